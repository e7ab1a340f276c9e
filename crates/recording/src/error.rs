//! What can go wrong, one enum per operation.

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
        /// What the system says.
        source: Arc<io::Error>,
    },
    /// A folder was named where a file is wanted, or one in which nothing was recorded.
    #[error("{} is a directory without recordings of rosbag2; name a .bag, .mcap or .db3 file", path.display())]
    Directory {
        /// The folder.
        path: PathBuf,
    },
    /// A socket, pipe or device was named; a recording is read back and forth.
    #[error("{} is not a regular file; a recording cannot be read from a pipe or device", path.display())]
    NotAFile {
        /// What was named.
        path: PathBuf,
    },
    /// The file has no bytes.
    #[error("{} is empty (0 bytes); nothing was recorded in it", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file is of no format that this crate reads.
    #[error("{} is neither a ROS 1 bag nor MCAP nor SQLite: its first bytes are {first}", path.display())]
    NotARecording {
        /// The file.
        path: PathBuf,
        /// Up to sixteen first bytes, in hexadecimal and as text.
        first: String,
    },
    /// A bag of another format version than 2.0.
    #[error(
        "{} is a bag of version {version}; only 2.0 is read: convert it with `rosbag fix` or `rosbag migrate`",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The version its first line names.
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
    /// An SQLite database of something else.
    #[error("{} is an SQLite database, but not one of rosbag2: {detail}", path.display())]
    NotRosbag2 {
        /// The file.
        path: PathBuf,
        /// What it lacks.
        detail: String,
    },
    /// A compressed file that cannot be unpacked.
    #[error("{} cannot be unpacked: {detail}", path.display())]
    Unpack {
        /// The file.
        path: PathBuf,
        /// Why.
        detail: String,
    },
    /// A file that the metadata of a folder of rosbag2 names, and that is not in the folder.
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

/// Why a part of a recording cannot be read. Every variant says the file, and of a file that is read by bytes the
/// offset, in bytes from its start.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The system refused to read.
    #[error("{}: cannot read at byte {offset}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What the system says.
        source: Arc<io::Error>,
    },
    /// The file ends within something.
    #[error(
        "{}: the file ends at byte {end}, within {what} that begins at byte {offset}: at least {missing} bytes are missing",
        path.display()
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Where the thing that is cut begins.
        offset: u64,
        /// What is cut.
        what: &'static str,
        /// Length of the file.
        end: u64,
        /// Bytes missing to the end of the thing, as far as the lengths in the file tell.
        missing: u64,
    },
    /// Bytes that do not follow the format.
    #[error("{}: byte {offset}: expected {expected}, found {found}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What the format asks for here.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A length beyond [`Limits`](crate::Limits).
    #[error("{}: byte {offset}: {what} of {length} bytes exceeds the limit of {limit}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What is too large.
        what: &'static str,
        /// Its length as the file says.
        length: u64,
        /// The limit.
        limit: u64,
    },
    /// A compression that this crate does not know.
    #[error(
        "{}: byte {offset}: unknown compression `{name}` (bags: none, bz2, lz4; MCAP: none, lz4, zstd)",
        path.display()
    )]
    UnknownCompression {
        /// The file.
        path: PathBuf,
        /// Where the chunk begins.
        offset: u64,
        /// The compression's name.
        name: String,
    },
    /// A chunk's compressed data is damaged.
    #[error("{}: chunk at byte {offset}: its {compression} data is damaged: {detail}", path.display())]
    Decompress {
        /// The file.
        path: PathBuf,
        /// Where the chunk begins.
        offset: u64,
        /// The compression.
        compression: &'static str,
        /// What the decompressor says.
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
        /// Where the first one's chunk or record begins.
        offset: u64,
        /// The first one's channel, by its number in the file.
        channel: u32,
        /// How many messages of the same chunk.
        messages: u64,
    },
    /// Rows of a database that are no messages, or cannot be read.
    #[error(
        "{}: {rows} rows of `messages` are left out, the first with the id {row}: {detail}",
        path.display()
    )]
    Rows {
        /// The file.
        path: PathBuf,
        /// The first one's id.
        row: i64,
        /// How many of the same part of the file.
        rows: u64,
        /// What is wrong with the first one.
        detail: String,
    },
    /// Part of a database cannot be read.
    #[error("{}: the database is damaged: {detail}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        detail: String,
    },
    /// A file of a folder of rosbag2 does not open; the others are read.
    #[error("{source}; the other files of the folder are read")]
    Unopened {
        /// Why.
        source: Box<OpenError>,
        /// How many messages it has, if the folder's metadata says so.
        messages: u64,
    },
    /// The metadata of a folder of rosbag2 is missing or wrong, so that the folder's files are read without it. No message
    /// is lost by it.
    #[error("{}: {detail}; the files of the folder are read without it", path.display())]
    Metadata {
        /// `metadata.yaml`.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The index of the file is wrong or does not fit the data, so that the whole file was read instead of it. No message
    /// is lost by it.
    #[error("{source}; the index is not used")]
    Index {
        /// What is wrong with it.
        source: Box<ReadError>,
    },
}

impl ReadError {
    /// Where in the file, in bytes from its start; 0 where bytes do not tell, as in a database.
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

    /// Whether messages are lost by it.
    pub fn is_loss(&self) -> bool {
        !matches!(self, ReadError::Index { .. } | ReadError::Metadata { .. })
    }

    /// An error in an index whose file was read whole instead. An index that lies beyond the end of the file tells of data
    /// that is missing.
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
    /// The system refused to create or write.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// More channels or types than MCAP can number.
    #[error("{}: MCAP holds at most 65,535 channels and as many types", path.display())]
    TooManyChannels {
        /// The file.
        path: PathBuf,
    },
    /// A channel that a folder of rosbag2 cannot hold.
    #[error("{}: {topic} is in `{encoding}`, and rosbag2 reads CDR alone; write an MCAP file", path.display())]
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
        /// What is too large.
        what: &'static str,
        /// Its length.
        length: u64,
        /// The limit.
        limit: u64,
    },
    /// The MCAP library refused.
    #[error("cannot write {}: {detail}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What it says.
        detail: String,
    },
}
