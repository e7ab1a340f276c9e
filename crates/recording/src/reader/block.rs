//! The unit of reading: a chunk, or a run of records outside chunks.

use std::io::{Read, Seek};

use stats::Time;

use super::Limits;
use super::source::Source;
use crate::error::ReadError;
use crate::model::ChannelId;

/// Position of a block, and the time span of its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) offset: u64,
    /// Its length in the file, including its record's head.
    pub(crate) len: u64,
    pub(crate) first: Time,
    pub(crate) last: Time,
    /// The recording as a whole already reports that this block is truncated.
    pub(crate) reported: bool,
}

/// A message within a decoded block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) log_time: Time,
    pub(crate) publish_time: Time,
    pub(crate) channel: ChannelId,
    pub(crate) start: usize,
    pub(crate) len: usize,
}

/// A block's messages in time order; messages of the same time stay in file order.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    pub(crate) data: Vec<u8>,
    pub(crate) entries: Vec<Entry>,
    /// Errors in the block, the first of each kind; the entries are the readable messages.
    pub(crate) damage: Vec<ReadError>,
}

impl Decoded {
    pub(crate) fn failed(damage: ReadError) -> Self {
        Decoded {
            damage: vec![damage],
            ..Decoded::default()
        }
    }

    /// Records an error in the block. Keeps the first of each kind, and counts messages without a channel and rows.
    pub(crate) fn note(&mut self, error: ReadError) {
        let kind = std::mem::discriminant(&error);
        let known = (self.damage.iter_mut()).find(|known| std::mem::discriminant(*known) == kind);
        match (known, &error) {
            (
                Some(ReadError::UnknownChannel { messages, .. }),
                ReadError::UnknownChannel { messages: more, .. },
            ) => *messages = messages.saturating_add(*more),
            (Some(ReadError::Rows { rows, .. }), ReadError::Rows { rows: more, .. }) => {
                *rows = rows.saturating_add(*more);
            }
            (Some(_), _) => {}
            (None, _) => self.damage.push(error),
        }
    }

    /// Whether one more entry is within the limit of a block.
    pub(crate) fn check_entries<R: Read + Seek>(
        count: usize,
        source: &Source<R>,
        limits: &Limits,
        offset: u64,
    ) -> Result<(), ReadError> {
        let length = ((count + 1) * size_of::<Entry>()) as u64;
        source.check(
            offset,
            "what is noted of a chunk's messages",
            length,
            limits.block,
        )
    }

    pub(crate) fn sort(&mut self) {
        if !self.entries.is_sorted_by_key(|entry| entry.log_time) {
            self.entries.sort_by_key(|entry| entry.log_time);
        }
    }

    pub(crate) fn message(&self, entry: &Entry) -> &[u8] {
        self.data
            .get(entry.start..entry.start + entry.len)
            .unwrap_or_default()
    }

    /// Memory held, in bytes.
    pub(crate) fn size(&self) -> u64 {
        (self.data.len() + self.entries.len() * size_of::<Entry>()) as u64
    }
}
