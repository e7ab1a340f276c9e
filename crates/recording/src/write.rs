//! Writing MCAP files.

use std::path::Path;
use std::time::Duration;

use stats::Time;

use crate::error::WriteError;
use crate::model::{Channel, ChannelId, Summary};

/// How chunks are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// LZ4: fast.
    Lz4,
    /// Zstandard: smaller.
    #[default]
    Zstd,
}

/// How a file is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How chunks are compressed.
    pub compression: Compression,
    /// A chunk is closed once it holds more than this many bytes (at most 64 MiB).
    pub chunk_size: u64,
    /// A chunk is closed, and so safe from a crash of this process, once its messages span this time.
    pub flush_after: Duration,
    /// Whether an existing file is replaced.
    pub overwrite: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            compression: Compression::default(),
            chunk_size: 1024 * 1024,
            flush_after: Duration::from_secs(1),
            overwrite: false,
        }
    }
}

/// Writes one MCAP file.
pub struct Writer(());

impl Writer {
    /// Creates the file and writes its header.
    pub fn create(_path: impl AsRef<Path>, _options: &Options) -> Result<Self, WriteError> {
        todo!()
    }

    /// Adds a channel; its `id` is ignored, and the id to write with is returned.
    pub fn add_channel(&mut self, _channel: &Channel) -> Result<ChannelId, WriteError> {
        todo!()
    }

    /// Appends a message. Blocks while the system takes the bytes of a full chunk.
    pub fn write(
        &mut self,
        _channel: ChannelId,
        _log_time: Time,
        _publish_time: Time,
        _data: &[u8],
    ) -> Result<(), WriteError> {
        todo!()
    }

    /// Closes the open chunk, so that all messages so far survive a crash of this process.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        todo!()
    }

    /// Writes the index and closes the file.
    pub fn finish(self) -> Result<Summary, WriteError> {
        todo!()
    }
}
