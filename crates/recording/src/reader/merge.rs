//! Messages of all blocks in time order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{Read, Seek};
use std::sync::Arc;

use stats::Time;

use super::Inner;
use super::block::Decoded;
use crate::error::ReadError;
use crate::model::Message;

/// The messages of a recording in time order; see [`Recording::messages`](crate::Recording::messages).
///
/// It keeps the recording open and can be moved to another thread.
#[derive(Debug)]
pub struct Messages<R> {
    recording: Arc<Inner<R>>,
    /// The next block to open, in order of the blocks' first times.
    next: usize,
    /// The next message of every open block: time, the block's position in the file, block, message.
    due: BinaryHeap<Reverse<(Time, u64, usize, usize)>>,
    /// Decoded blocks in memory.
    held: Vec<(usize, Decoded)>,
    /// Bytes in `held`.
    memory: u64,
    errors: VecDeque<ReadError>,
    ended: bool,
}

impl<R: Read + Seek> Messages<R> {
    pub(super) fn new(recording: Arc<Inner<R>>) -> Self {
        Messages {
            recording,
            next: 0,
            due: BinaryHeap::new(),
            held: Vec::new(),
            memory: 0,
            errors: VecDeque::new(),
            ended: false,
        }
    }

    /// Opens all blocks that may have a message before the earliest message of the open ones.
    fn open_due(&mut self) {
        while let Some(&block) = self.recording.contents.blocks.get(self.next) {
            let earliest = self.due.peek().map(|&Reverse((time, ..))| time);
            if earliest.is_some_and(|earliest| earliest < block.first) || !self.errors.is_empty() {
                return;
            }
            let index = self.next;
            self.next += 1;
            let decoded = self.recording.decode(&block);
            match decoded.entries.first() {
                Some(first) => {
                    self.due.push(Reverse((first.log_time, block.offset, index, 0)));
                    self.hold(index, decoded);
                }
                None => self.report(index, decoded.damage),
            }
        }
    }

    fn hold(&mut self, index: usize, decoded: Decoded) {
        self.memory += decoded.size();
        self.held.push((index, decoded));
        // Drops the oldest block, never the newest, which is used next.
        while self.memory > self.recording.limits.memory && self.held.len() > 1 {
            let (_, gone) = self.held.remove(0);
            self.memory -= gone.size();
        }
    }

    fn report(&mut self, index: usize, damage: Vec<ReadError>) {
        let reported = self
            .recording
            .contents
            .blocks
            .get(index)
            .is_some_and(|block| block.reported);
        if !reported {
            self.errors.extend(damage);
        }
    }

    /// Message `entry` of block `index`, which is decoded again if it was dropped.
    fn take(&mut self, index: usize, entry: usize) -> Option<Result<Message, ReadError>> {
        let block = *self.recording.contents.blocks.get(index)?;
        let position = match self.held.iter().position(|(held, _)| *held == index) {
            Some(position) => position,
            None => {
                let decoded = self.recording.decode(&block);
                self.hold(index, decoded);
                self.held.len() - 1
            }
        };
        let decoded = &self.held.get(position)?.1;
        let found = decoded.entries.get(entry).map(|found| {
            let data = self
                .recording
                .message(&block, found.channel, decoded.message(found))?;
            Ok(Message {
                channel: found.channel,
                log_time: found.log_time,
                publish_time: found.publish_time,
                data,
            })
        });
        match decoded.entries.get(entry + 1) {
            Some(next) => self
                .due
                .push(Reverse((next.log_time, block.offset, index, entry + 1))),
            None => {
                let (_, gone) = self.held.remove(position);
                self.memory -= gone.size();
                self.report(index, gone.damage);
            }
        }
        found
    }
}

impl<R: Read + Seek> Iterator for Messages<R> {
    type Item = Result<Message, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.open_due();
            if let Some(error) = self.errors.pop_front() {
                return Some(Err(error));
            }
            let Some(Reverse((_, _, index, entry))) = self.due.pop() else {
                if self.ended {
                    return None;
                }
                self.ended = true;
                return self.recording.contents.damage.clone().map(Err);
            };
            if let Some(message) = self.take(index, entry) {
                return Some(message);
            }
        }
    }
}
