//! Opening a recording and reading it in time order.

mod bag;
mod block;
mod directory;
mod mcap;
mod merge;
mod source;
mod sqlite;
mod unpack;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::sync::Arc;

use stats::Time;

use self::block::{Block, Decoded};
use self::directory::{Access, Directory};
pub use self::merge::Messages;
use self::source::{Source, shown, text};
use self::sqlite::Database;
use crate::error::{OpenError, ReadError};
use crate::model::{Channel, ChannelId, Encoding, Summary};
use crate::qos::Qos;

/// Memory limits for reading a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest record or uncompressed chunk, and most memory for the entries of a chunk's messages, in bytes. Default:
    /// 256 MiB.
    pub block: u64,
    /// Memory for uncompressed chunks that overlap in time and are merged, in bytes; one chunk is always held. Default:
    /// 256 MiB.
    pub memory: u64,
    /// Memory for a file's metadata, in bytes: texts of channels, definitions, the list of its chunks. Default: 128
    /// MiB.
    pub index: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            block: 256 << 20,
            memory: 256 << 20,
            index: 128 << 20,
        }
    }
}

/// Name of the data limited by [`Limits::index`], in errors.
pub(crate) const TEXTS: &str = "all channels' texts";

/// An open recording: a ROS 1 bag, an MCAP file or a database of rosbag2 (`.db3`). Unpacks what rosbag2 itself
/// compressed, as a whole or message by message.
///
/// A file whose recorder was killed has no index, and may be truncated or damaged. Such a file opens, and all its
/// intact messages are read; see [`Recording::is_indexed`] and [`Recording::damage`].
#[derive(Debug)]
pub struct Recording<R = File>(Arc<Inner<R>>);

impl<R> Clone for Recording<R> {
    /// Another handle on the same open file.
    fn clone(&self) -> Self {
        Recording(self.0.clone())
    }
}

#[derive(Debug)]
struct Inner<R> {
    format: Format,
    source: Source<R>,
    limits: Limits,
    contents: Contents,
    summary: Summary,
}

#[derive(Debug)]
enum Format {
    Bag,
    Mcap,
    Sqlite(Box<Database>),
}

/// File format according to its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bag,
    Mcap,
    Sqlite,
    /// A compressed file.
    Zstd,
}

impl Recording {
    /// Opens a file by its content, not its name.
    ///
    /// Reads only the index. A file without an index is read whole once, which may take long.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let failed = |source| OpenError::Io {
            path: path.to_owned(),
            source: Arc::new(source),
        };
        // Checked first: opening a pipe would wait for its writer.
        let metadata = std::fs::metadata(path).map_err(failed)?;
        if metadata.is_dir() {
            return Err(OpenError::Directory {
                path: path.to_owned(),
            });
        }
        if !metadata.is_file() {
            return Err(OpenError::NotAFile {
                path: path.to_owned(),
            });
        }
        let mut file = File::open(path).map_err(failed)?;
        let limits = Limits::default();
        let source = Source::new(file.try_clone().map_err(failed)?, path).map_err(failed)?;
        match sniff(&source)? {
            Kind::Sqlite => {
                let (database, contents) = sqlite::open_file(path, &source, &limits)?;
                Ok(Self::new(
                    Format::Sqlite(Box::new(database)),
                    source,
                    limits,
                    contents,
                ))
            }
            Kind::Zstd => {
                let (unpacked, damage) = unpack::file(&mut file, path)?;
                let source = Source::new(unpacked.reopen().map_err(failed)?, path).map_err(failed)?;
                // The name is removed when this function returns, the file itself when it is closed.
                let (format, mut contents) = match sniff(&source)? {
                    Kind::Sqlite => {
                        let (database, contents) = sqlite::open_file(unpacked.path(), &source, &limits)?;
                        (Format::Sqlite(Box::new(database)), contents)
                    }
                    kind => open(kind, &source, &limits)?,
                };
                contents.damage = damage.or(contents.damage);
                Ok(Self::new(format, source, limits, contents))
            }
            kind => {
                let (format, contents) = open(kind, &source, &limits)?;
                Ok(Self::new(format, source, limits, contents))
            }
        }
    }
}

impl<R: Read + Seek> Recording<R> {
    /// Reads from anything that can seek, such as bytes in memory; errors call it `name`. A database is read into
    /// memory.
    pub fn read(source: R, name: impl AsRef<Path>, limits: Limits) -> Result<Self, OpenError> {
        let path = name.as_ref();
        let source = Source::new(source, path).map_err(|source| OpenError::Io {
            path: path.to_owned(),
            source: Arc::new(source),
        })?;
        let (format, contents) = open(sniff(&source)?, &source, &limits)?;
        Ok(Self::new(format, source, limits, contents))
    }

    fn new(format: Format, source: Source<R>, limits: Limits, mut contents: Contents) -> Self {
        contents.blocks.sort_by_key(|block| (block.first, block.offset));
        let summary = contents.summary();
        Recording(Arc::new(Inner {
            format,
            source,
            limits,
            contents,
            summary,
        }))
    }

    /// Sets what the publishers of a topic offer, if the file does not state it.
    pub(crate) fn complete(&mut self, offered: &BTreeMap<String, Vec<Qos>>) {
        // There is no other handle yet.
        let Some(inner) = Arc::get_mut(&mut self.0) else {
            return;
        };
        for channel in &mut inner.contents.directory.channels {
            if let Some(profiles) = offered.get(&channel.topic).filter(|_| channel.qos.is_empty()) {
                channel.qos.clone_from(profiles);
            }
        }
    }

    /// The recording has no message before this time.
    pub(crate) fn begin(&self) -> Time {
        (self.0.contents.blocks.first()).map_or(Time::ZERO, |block| block.first)
    }

    /// All channels; a [`ChannelId`] is an index into this slice.
    pub fn channels(&self) -> &[Channel] {
        &self.0.contents.directory.channels
    }

    /// The channel of a message of this recording.
    ///
    /// # Panics
    /// If `id` belongs to another recording and this one has fewer channels.
    pub fn channel(&self, id: ChannelId) -> &Channel {
        &self.channels()[id.0 as usize]
    }

    /// Start, end and counts from the index, without reading.
    pub fn summary(&self) -> &Summary {
        &self.0.summary
    }

    /// The summary of all readable messages, counted, with each topic's bytes. Reads the whole file, unless that was
    /// done on opening; damage does not end it.
    ///
    /// (A damaged file that defines a channel only after its first messages yields those in [`Self::messages`] but may
    /// not count them here.)
    pub fn measure(&self) -> Summary {
        if !self.0.contents.indexed {
            return self.0.summary.clone();
        }
        let mut counted = Contents::default();
        for message in self.messages().flatten() {
            counted.count(message.channel, 1, message.data.len() as u64);
            counted.span(message.log_time, message.log_time);
        }
        Summary::new(self.channels(), &counted.counts, counted.span, true)
    }

    /// Whether the file has a valid index. The messages of a file without one, whose recorder was killed, are read all
    /// the same.
    pub fn is_indexed(&self) -> bool {
        self.0.contents.indexed
    }

    /// The damage found on opening, such as truncation. [`Self::messages`] ends with the same error.
    pub fn damage(&self) -> Option<&ReadError> {
        self.0.contents.damage.as_ref()
    }

    /// All messages in the order of their log times; messages of the same time in the file's order. Each call starts
    /// from the beginning.
    ///
    /// Chunks that overlap in time are merged: one is held from its first message's time to its last's, within
    /// [`Limits::memory`]. Above this limit a chunk is dropped, and decompressed again when its next message is due.
    /// Messages older than the index states are delivered late, but not lost.
    ///
    /// Damage within a chunk is returned as errors after the chunk's intact messages, and the other chunks follow; the
    /// error of [`Self::damage`] is last. A single invalid record, or a message of an unknown channel, does not affect
    /// the others.
    pub fn messages(&self) -> Messages<R> {
        Messages::new(self.0.clone())
    }
}

impl<R: Read + Seek> Inner<R> {
    fn decode(&self, block: &Block) -> Decoded {
        let access = Access::Look(&self.contents.directory);
        match &self.format {
            Format::Bag => bag::decode(&self.source, &self.limits, block, access),
            Format::Mcap => mcap::decode(&self.source, &self.limits, block, access),
            Format::Sqlite(database) => sqlite::decode(database, &self.limits, block),
        }
    }

    /// The bytes of a message of a block; an error affects only this message.
    fn message(&self, block: &Block, channel: ChannelId, data: &[u8]) -> Result<Vec<u8>, ReadError> {
        let is_cdr = || {
            let channel = self.contents.directory.channels.get(channel.0 as usize);
            channel.is_some_and(|channel| channel.encoding == Encoding::Cdr)
        };
        if !data.starts_with(unpack::MAGIC) || !is_cdr() {
            return Ok(data.to_vec());
        }
        unpack::message(data, self.limits.block).map_err(|detail| ReadError::Decompress {
            path: self.source.path().to_owned(),
            offset: block.offset,
            compression: "zstd",
            detail,
        })
    }
}

fn open<R: Read + Seek>(
    kind: Kind,
    source: &Source<R>,
    limits: &Limits,
) -> Result<(Format, Contents), OpenError> {
    Ok(match kind {
        Kind::Bag => (Format::Bag, bag::open(source, limits)?),
        Kind::Mcap => (Format::Mcap, mcap::open(source, limits)?),
        Kind::Sqlite => {
            let (database, contents) = sqlite::open_source(source, limits)?;
            (Format::Sqlite(Box::new(database)), contents)
        }
        Kind::Zstd => {
            return Err(OpenError::Unpack {
                path: source.path().to_owned(),
                detail: "only a file of its own is unpacked, and only once".to_owned(),
            });
        }
    })
}

/// Result of opening.
#[derive(Debug, Default)]
struct Contents {
    directory: Directory,
    blocks: Vec<Block>,
    /// Messages and bytes of each channel.
    counts: Vec<(u64, u64)>,
    span: Option<(Time, Time)>,
    indexed: bool,
    damage: Option<ReadError>,
}

impl Contents {
    fn count(&mut self, id: ChannelId, messages: u64, bytes: u64) {
        let index = id.0 as usize;
        if self.counts.len() <= index {
            self.counts.resize(index + 1, (0, 0));
        }
        let counts = &mut self.counts[index];
        *counts = (counts.0.saturating_add(messages), counts.1.saturating_add(bytes));
    }

    fn span(&mut self, first: Time, last: Time) {
        self.span = Some(match self.span {
            None => (first, last),
            Some((start, end)) => (start.min(first), end.max(last)),
        });
    }

    /// Adds a block that was decoded to collect its contents.
    fn add(&mut self, mut block: Block, decoded: &Decoded) {
        for entry in &decoded.entries {
            self.count(entry.channel, 1, entry.len as u64);
        }
        // When it is read again, only these channels are missing.
        let of_texts = |error: &&ReadError| matches!(error, ReadError::TooLarge { what: TEXTS, .. });
        if let Some(error) = decoded.damage.iter().find(of_texts) {
            self.damage.get_or_insert_with(|| error.clone());
        }
        match (decoded.entries.first(), decoded.entries.last()) {
            (Some(first), Some(last)) => {
                (block.first, block.last) = (first.log_time, last.log_time);
                self.span(block.first, block.last);
            }
            // Its damage is reported after the messages before it.
            _ if !decoded.damage.is_empty() && !block.reported => {
                let before = self.blocks.last().map_or(Time::ZERO, |block| block.last);
                (block.first, block.last) = (before, before);
            }
            _ => return,
        }
        self.blocks.push(block);
    }

    /// Whether the list of blocks is within its limit; `offset` is where it grew.
    fn check_blocks<R: Read + Seek>(
        &self,
        source: &Source<R>,
        limits: &Limits,
        offset: u64,
    ) -> Result<(), ReadError> {
        let length = (self.blocks.len() * size_of::<Block>()) as u64;
        source.check(offset, "the list of chunks", length, limits.index)
    }

    fn summary(&self) -> Summary {
        Summary::new(&self.directory.channels, &self.counts, self.span, !self.indexed)
    }
}

fn sniff<R: Read + Seek>(source: &Source<R>) -> Result<Kind, OpenError> {
    if source.len() == 0 {
        return Err(OpenError::Empty {
            path: source.path().to_owned(),
        });
    }
    let first = source.bytes(0, source.len().min(32), "the first bytes")?;
    for (magic, kind) in [
        (bag::MAGIC, Kind::Bag),
        (mcap::MAGIC, Kind::Mcap),
        (sqlite::MAGIC, Kind::Sqlite),
        (unpack::MAGIC, Kind::Zstd),
    ] {
        if first.starts_with(magic) {
            return Ok(kind);
        }
        if magic.starts_with(&first) {
            let missing = magic.len() - first.len();
            return Err(source
                .truncated(0, "the format's first line", missing as u64)
                .into());
        }
    }
    let line = text(first.split(|&byte| byte == b'\n').next().unwrap_or_default());
    for name in ["#ROSBAG V", "#ROSRECORD V", "#ROSLOG V"] {
        if let Some(version) = line.strip_prefix(name) {
            let version = version.trim().to_owned();
            return Err(OpenError::Version {
                path: source.path().to_owned(),
                version,
            });
        }
    }
    Err(OpenError::NotARecording {
        path: source.path().to_owned(),
        first: shown(&first),
    })
}
