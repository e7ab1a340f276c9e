//! Errors, one enum per operation.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Why a recording cannot be opened.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file is missing, unreadable or not a file.
    #[error("cannot open {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: Arc<io::Error>,
    },
    /// The path is a folder without recordings of rosbag2.
    #[error("{} is a directory without recordings of rosbag2; name a .bag, .mcap or .db3 file", path.display())]
    Directory {
        /// The folder.
        path: PathBuf,
    },
    /// The path is a socket, pipe or device; reading a recording requires seeking.
    #[error("{} is not a regular file; a recording cannot be read from a pipe or device", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file has no bytes.
    #[error("{} is empty (0 bytes); nothing was recorded in it", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file has no format that this crate reads.
    #[error("{} is neither a ROS 1 bag nor MCAP nor SQLite: its first bytes are {first}", path.display())]
    NotARecording {
        /// The file.
        path: PathBuf,
        /// Up to sixteen first bytes, in hexadecimal and as text.
        first: String,
    },
    /// A bag of a format version other than 2.0.
    #[error(
        "{} is a bag of version {version}; only 2.0 is read: convert it with `rosbag fix` or `rosbag migrate`",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The version in its first line.
        version: String,
    },
    /// An encrypted bag.
    #[error("{} is encrypted by {encryptor}; decrypt it first with `rosbag decrypt`", path.display())]
    Encrypted {
        /// The file.
        path: PathBuf,
        /// The plugin that the bag names.
        encryptor: String,
    },
    /// An SQLite database that is not one of rosbag2.
    #[error("{} is an SQLite database, but not one of rosbag2: {detail}", path.display())]
    NotRosbag2 {
        /// The file.
        path: PathBuf,
        /// What it lacks.
        detail: String,
    },
    /// A compressed file that cannot be unpacked.
    #[error("{} cannot be decompressed: {detail}", path.display())]
    Unpack {
        /// The file.
        path: PathBuf,
        /// Reason.
        detail: String,
    },
    /// The metadata of a folder of rosbag2 names a file outside the folder.
    #[error("{}: metadata.yaml names `{name}`, which leads out of the folder and is not read", folder.display())]
    Outside {
        /// The folder.
        folder: PathBuf,
        /// The name.
        name: String,
    },
    /// The file ends or is damaged before its first message.
    #[error(transparent)]
    Damaged(#[from] ReadError),
}

/// Why a part of a recording cannot be read. Every variant contains the file and, if the file is read by bytes, the
/// offset in bytes from its start.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system reports a read error.
    #[error("{}: cannot read at byte {offset}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Offset of the read.
        offset: u64,
        /// Error of the operating system.
        source: Arc<io::Error>,
    },
    /// The file ends within an element.
    #[error(
        "{}: the file ends at byte {end}, within {what} that begins at byte {offset}: at least {missing} bytes are missing",
        path.display()
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Start of the truncated element.
        offset: u64,
        /// Kind of the truncated element.
        what: &'static str,
        /// Length of the file.
        end: u64,
        /// Bytes missing at the end of the element, as far as the lengths in the file tell.
        missing: u64,
    },
    /// Bytes that do not follow the format.
    #[error("{}: byte {offset}: expected {expected}, found {found}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Offset of the bytes.
        offset: u64,
        /// What the format requires here.
        expected: &'static str,
        /// What the file has here.
        found: String,
    },
    /// A length beyond [`Limits`](crate::Limits).
    #[error("{}: byte {offset}: {what} of {length} bytes exceeds the limit of {limit}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Offset of the element.
        offset: u64,
        /// Kind of the element.
        what: &'static str,
        /// Its length as stated in the file.
        length: u64,
        /// The limit.
        limit: u64,
    },
    /// A compression that this crate does not support.
    #[error(
        "{}: byte {offset}: unknown compression `{name}` (bags: none, bz2, lz4; MCAP: none, lz4, zstd)",
        path.display()
    )]
    UnknownCompression {
        /// The file.
        path: PathBuf,
        /// Start of the chunk.
        offset: u64,
        /// The compression's name.
        name: String,
    },
    /// A chunk's compressed data is damaged.
    #[error("{}: chunk at byte {offset}: its {compression} data is damaged: {detail}", path.display())]
    Decompress {
        /// The file.
        path: PathBuf,
        /// Start of the chunk.
        offset: u64,
        /// The compression.
        compression: &'static str,
        /// Error of the decompressor.
        detail: String,
    },
    /// Messages of channels that the file does not define.
    #[error(
        "{}: byte {offset}: {messages} messages of channels that the file does not define, the first of channel {channel}",
        path.display()
    )]
    UnknownChannel {
        /// The file.
        path: PathBuf,
        /// Start of the first one's chunk or record.
        offset: u64,
        /// Channel of the first one, by its number in the file.
        channel: u32,
        /// Number of such messages in the same chunk.
        messages: u64,
    },
    /// Rows of a database that are not messages, or cannot be read.
    #[error(
        "{}: {rows} rows of `messages` are left out, the first with the id {row}: {detail}",
        path.display()
    )]
    Rows {
        /// The file.
        path: PathBuf,
        /// Id of the first row.
        row: i64,
        /// Number of such rows in the same part of the file.
        rows: u64,
        /// What is wrong with the first row.
        detail: String,
    },
    /// Part of a database cannot be read.
    #[error("{}: the database is damaged: {detail}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// Error of SQLite.
        detail: String,
    },
    /// A file of a folder of rosbag2 cannot be opened; the others are read.
    #[error("{source}; the other files of the folder are read")]
    Unopened {
        /// Reason.
        source: Box<OpenError>,
        /// Number of its messages, if the folder's metadata states it.
        messages: u64,
    },
    /// The metadata of a folder of rosbag2 is missing or invalid, so that the folder's files are read without it. No
    /// message is lost.
    #[error("{}: {detail}; the files of the folder are read without it", path.display())]
    Metadata {
        /// `metadata.yaml`.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The index of the file is invalid or does not match the data, so that the whole file was read instead. No message
    /// is lost.
    #[error("{source}; the index is not used")]
    Index {
        /// What is wrong with it.
        source: Box<ReadError>,
    },
}

impl ReadError {
    /// Offset in the file in bytes; 0 if there is none, as in a database.
    pub fn offset(&self) -> u64 {
        match self {
            ReadError::Io { offset, .. }
            | ReadError::Truncated { offset, .. }
            | ReadError::Malformed { offset, .. }
            | ReadError::TooLarge { offset, .. }
            | ReadError::UnknownCompression { offset, .. }
            | ReadError::Decompress { offset, .. }
            | ReadError::UnknownChannel { offset, .. } => *offset,
            ReadError::Index { source } => source.offset(),
            ReadError::Rows { .. }
            | ReadError::Database { .. }
            | ReadError::Unopened { .. }
            | ReadError::Metadata { .. } => 0,
        }
    }

    /// Whether messages are lost.
    pub fn is_loss(&self) -> bool {
        !matches!(self, ReadError::Index { .. } | ReadError::Metadata { .. })
    }

    /// An error in an index, whose file was read whole instead. An index beyond the end of the file indicates missing
    /// data.
    pub(crate) fn of_index(self) -> Self {
        match self {
            cut @ ReadError::Truncated { .. } => cut,
            source => ReadError::Index {
                source: Box::new(source),
            },
        }
    }
}

/// Why a recording cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The file exists already.
    #[error("{} exists already; choose another name or allow overwriting", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The operating system refuses to create or write the file.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// More channels or types than MCAP can number.
    #[error("{}: MCAP holds at most 65,535 channels and as many types", path.display())]
    TooManyChannels {
        /// The file.
        path: PathBuf,
    },
    /// A channel that a folder of rosbag2 cannot hold.
    #[error("{}: {topic} is in `{encoding}`, but rosbag2 reads only CDR; write an MCAP file", path.display())]
    NotCdr {
        /// The file.
        path: PathBuf,
        /// The channel's topic.
        topic: String,
        /// Its encoding.
        encoding: String,
    },
    /// A message of a channel that was not added to this writer.
    #[error("{}: channel {channel} was not added to this recording", path.display())]
    UnknownChannel {
        /// The file.
        path: PathBuf,
        /// The number given.
        channel: u32,
    },
    /// A message, name or definition longer than MCAP's 32-bit lengths.
    #[error("{}: {what} of {length} bytes exceeds the limit of {limit}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Kind of the element.
        what: &'static str,
        /// Its length.
        length: u64,
        /// The limit.
        limit: u64,
    },
    /// The MCAP library reports an error.
    #[error("cannot write {}: {detail}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its text.
        detail: String,
    },
}
