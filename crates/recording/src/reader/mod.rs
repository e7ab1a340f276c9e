//! Opening a recording and reading it in time order.

use std::fs::File;
use std::io::{Read, Seek};
use std::marker::PhantomData;
use std::path::Path;

use crate::error::{OpenError, ReadError};
use crate::model::{Channel, ChannelId, Message, Summary};

/// How much memory a file may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest record or uncompressed chunk, in bytes. Default: 256 MiB.
    pub block: u64,
    /// Uncompressed chunks held at a time while chunks that overlap in time are merged, in bytes; one
    /// chunk is always held. Default: 512 MiB.
    pub memory: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            block: 256 << 20,
            memory: 512 << 20,
        }
    }
}

/// An open recording.
#[derive(Debug)]
pub struct Recording<R = File>(PhantomData<R>);

impl Recording<File> {
    /// Opens a file by its content, not its name.
    pub fn open(_path: impl AsRef<Path>) -> Result<Self, OpenError> {
        todo!()
    }
}

impl<R: Read + Seek> Recording<R> {
    /// Reads from anything, such as bytes in memory; errors call it `name`.
    pub fn read(_source: R, _name: impl AsRef<Path>, _limits: Limits) -> Result<Self, OpenError> {
        todo!()
    }

    /// All channels; a [`ChannelId`] is a position in it.
    pub fn channels(&self) -> &[Channel] {
        todo!()
    }

    /// The channel of a message of this recording.
    ///
    /// # Panics
    /// If `id` is of another recording and this one has fewer channels.
    pub fn channel(&self, _id: ChannelId) -> &Channel {
        todo!()
    }

    /// Start, end and counts, without reading the messages.
    pub fn summary(&self) -> &Summary {
        todo!()
    }

    /// The summary with the bytes of each topic; reads the whole file unless that was done on opening.
    pub fn measure(&self) -> Result<Summary, ReadError> {
        todo!()
    }

    /// Whether the file has an index. One whose recorder was killed has none; all its whole messages are
    /// read all the same.
    pub fn is_indexed(&self) -> bool {
        todo!()
    }

    /// The damage found on opening, such as a file that was cut. [`Self::messages`] ends with the same.
    pub fn damage(&self) -> Option<&ReadError> {
        todo!()
    }

    /// All messages in the order of their log times.
    pub fn messages(&self) -> Messages<R> {
        todo!()
    }
}

/// The messages of a recording, in time order.
#[derive(Debug)]
pub struct Messages<R>(PhantomData<R>);

impl<R: Read + Seek> Iterator for Messages<R> {
    type Item = Result<Message, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        todo!()
    }
}
