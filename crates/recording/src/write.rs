//! Writes MCAP files, alone or in a folder of rosbag2.
//!
//! The output follows the conventions of the MCAP tools for ROS 1: schema encoding `ros1msg`, message encoding `ros1`,
//! the connection's `md5sum`, `callerid` and `latching` in the channel's metadata; and rosbag2's convention for
//! channels of ROS 2: `offered_qos_profiles`.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use mcap::McapError;
use mcap::records::MessageHeader;
use mcap::write::NoSeek;
use stats::Time;

use crate::error::WriteError;
use crate::model::{Channel, ChannelId, Encoding, Summary};
use crate::qos::{self, Qos, Words};
use crate::rosbag2;

/// Compression of chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    None,
    /// LZ4: fast.
    Lz4,
    /// Zstandard: smaller.
    #[default]
    Zstd,
}

/// Options for writing a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Compression of chunks.
    pub compression: Compression,
    /// A chunk is closed once it holds this many bytes; at most [`MAX_CHUNK`].
    pub chunk_size: u64,
    /// A chunk is closed, and so survives a crash of this process, once the log times of its messages span this
    /// duration.
    pub flush_after: Duration,
    /// Whether an existing file is replaced; otherwise it is an error.
    pub overwrite: bool,
    /// The file's profile, `ros1` or `ros2`; `None` takes that of the first channel, until which the file stays empty.
    pub profile: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            compression: Compression::default(),
            chunk_size: 1024 * 1024,
            flush_after: Duration::from_secs(1),
            overwrite: false,
            profile: None,
        }
    }
}

/// Greatest chunk size, in bytes.
pub const MAX_CHUNK: u64 = 64 << 20;
/// Longest message, name or definition, in bytes; the default [`Limits`](crate::Limits) allow reading it.
pub const MAX_MESSAGE: u64 = 128 << 20;

/// Writes one MCAP file.
///
/// Messages are collected in a chunk, and each full chunk is written at once. A crash of this process loses only the
/// open chunk; the losses of a power failure depend on the file system. A file that was not finished has no index but
/// is readable all the same. Dropping a writer also finishes the file, if it has a channel, but ignores errors.
pub struct Writer {
    path: PathBuf,
    file: State,
    channels: Vec<Channel>,
    numbers: Vec<u16>,
    counts: Vec<(u64, u64)>,
    span: Option<(Time, Time)>,
    /// Bytes in the open chunk and the log time of its first message.
    open: (u64, Option<Time>),
    chunk_size: u64,
    flush_after: Duration,
    handle: File,
    /// Messages in the open chunk.
    pending: u64,
    /// Its folder of rosbag2, if any.
    folder: Option<PathBuf>,
}

/// The key of a type's hash in a channel's metadata, as in rosbag2.
pub(crate) const TYPE_HASH: &str = "topic_type_hash";

type Output = NoSeek<BufWriter<Sink>>;

/// A file whose header contains the ROS of its contents.
enum State {
    Open(Box<mcap::Writer<Output>>),
    /// Nothing is written yet.
    Empty(Box<(Output, mcap::WriteOptions)>),
    /// The header could not be written.
    Failed,
}

impl State {
    /// Writes the header, unless it is written already, and returns the writer for the rest.
    fn open(&mut self, path: &Path, profile: &str) -> Result<&mut mcap::Writer<Output>, WriteError> {
        if matches!(self, State::Empty(_))
            && let State::Empty(empty) = std::mem::replace(self, State::Failed)
        {
            let (output, options) = *empty;
            let created = options.profile(profile).create(output);
            *self = State::Open(Box::new(created.map_err(|error| translate(path, error))?));
        }
        match self {
            State::Open(mcap) => Ok(mcap),
            _ => Err(WriteError::Io {
                path: path.to_owned(),
                source: io::Error::other("its header could not be written"),
            }),
        }
    }
}

/// A file that accepts nothing after an error: data after a truncated record would be read as part of it.
struct Sink {
    file: File,
    failed: bool,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.failed {
            return Err(io::Error::other("an earlier write failed"));
        }
        let result = self.file.write(bytes);
        self.failed = matches!(&result, Err(error) if error.kind() != io::ErrorKind::Interrupted);
        result
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("path", &self.path)
            .field("channels", &self.channels.len())
            .finish()
    }
}

impl Writer {
    /// Creates the file, and writes its header if its profile is known.
    pub fn create(path: impl AsRef<Path>, options: &Options) -> Result<Self, WriteError> {
        let path = path.as_ref().to_owned();
        let mut open = OpenOptions::new();
        open.write(true);
        if options.overwrite {
            open.create(true).truncate(true)
        } else {
            open.create_new(true)
        };
        let file = open.open(&path).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => WriteError::Exists { path: path.clone() },
            _ => WriteError::Io {
                path: path.clone(),
                source,
            },
        })?;
        let compression = match options.compression {
            Compression::None => None,
            Compression::Lz4 => Some(mcap::Compression::Lz4),
            Compression::Zstd => Some(mcap::Compression::Zstd),
        };
        let handle = file.try_clone().map_err(|source| WriteError::Io {
            path: path.clone(),
            source,
        })?;
        let mcap = mcap::WriteOptions::new()
            .library(concat!("ropewalk ", env!("CARGO_PKG_VERSION")))
            .compression(compression)
            // A recorder runs next to the programs that it records: no additional threads.
            .compression_threads(0)
            .chunk_size(None)
            // Without seeking, a chunk reaches the file whole or not at all.
            .disable_seeking(true);
        let output = NoSeek::new(BufWriter::new(Sink { file, failed: false }));
        let mut writer = Writer {
            path,
            file: State::Empty(Box::new((output, mcap))),
            channels: Vec::new(),
            numbers: Vec::new(),
            counts: Vec::new(),
            span: None,
            open: (0, None),
            chunk_size: options.chunk_size.clamp(1, MAX_CHUNK),
            flush_after: options.flush_after,
            handle,
            pending: 0,
            folder: None,
        };
        if let Some(profile) = &options.profile {
            writer.file.open(&writer.path, profile)?;
        }
        writer.flush()?;
        Ok(writer)
    }

    /// Creates a folder of rosbag2 with a file `FOLDER_0.mcap` of the profile `ros2`; [`Self::finish`] writes its
    /// `metadata.yaml`. Accepts only channels in CDR.
    ///
    /// # Errors
    /// As [`Self::create`]. An existing folder is used if it is empty or `options` allow overwriting: then the two
    /// files are replaced, and others stay.
    pub fn create_rosbag2(folder: impl AsRef<Path>, options: &Options) -> Result<Self, WriteError> {
        let folder = folder.as_ref().to_owned();
        let failed = |source| WriteError::Io {
            path: folder.clone(),
            source,
        };
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let is_empty = std::fs::read_dir(&folder).map_err(failed)?.next().is_none();
        if !is_empty && !options.overwrite {
            return Err(WriteError::Exists { path: folder });
        }
        // Old metadata would describe another file.
        match std::fs::remove_file(folder.join(rosbag2::METADATA)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let named = folder.canonicalize().map_err(failed)?;
        let name = named
            .file_name()
            .map_or("recording".into(), |name| name.to_string_lossy());
        let options = Options {
            profile: Some("ros2".to_owned()),
            ..options.clone()
        };
        let mut writer = Self::create(folder.join(format!("{name}_0.mcap")), &options)?;
        writer.folder = Some(folder);
        Ok(writer)
    }

    /// Adds a channel, and returns the id to write with; the channel's own `id` is ignored. Channels are numbered from
    /// 0 in the order in which they are added.
    pub fn add_channel(&mut self, channel: &Channel) -> Result<ChannelId, WriteError> {
        let texts = [
            ("a topic", channel.topic.len()),
            ("a type's name", channel.type_name.len()),
            ("a definition", channel.definition.len()),
        ];
        for (what, length) in texts {
            self.check(what, length)?;
        }
        if self.folder.is_some() && !rosbag2::write::can_hold(channel) {
            return Err(WriteError::NotCdr {
                path: self.path.clone(),
                topic: channel.topic.clone(),
                encoding: channel.encoding.name().to_owned(),
            });
        }
        // MCAP numbers channels with 16 bits.
        let id = u16::try_from(self.channels.len())
            .ok()
            .filter(|&id| id < u16::MAX)
            .ok_or_else(|| WriteError::TooManyChannels {
                path: self.path.clone(),
            })?;
        let profile = match channel.encoding {
            Encoding::Cdr => "ros2",
            _ => "ros1",
        };
        if matches!(self.file, State::Empty(_)) {
            // At once, so that the recording exists from its first channel on.
            self.file.open(&self.path, profile)?;
            self.flush()?;
        }
        let mcap = self.file.open(&self.path, profile)?;
        let schema = if channel.type_name.is_empty() && channel.definition.is_empty() {
            0
        } else {
            mcap.add_schema(
                &channel.type_name,
                &channel.definition_encoding,
                channel.definition.as_bytes(),
            )
            .map_err(|error| translate(&self.path, error))?
        };
        let mut metadata = BTreeMap::new();
        if let Some(md5) = &channel.md5 {
            metadata.insert("md5sum".to_owned(), md5.clone());
        }
        if let Some(callerid) = &channel.callerid {
            metadata.insert("callerid".to_owned(), callerid.clone());
        }
        if channel.latched {
            metadata.insert("latching".to_owned(), "true".to_owned());
        }
        if let Some(hash) = &channel.type_hash {
            metadata.insert(TYPE_HASH.to_owned(), hash.clone());
        }
        if !channel.qos.is_empty() {
            // Readers assume the terms of the folder's version.
            let words = self.folder.as_ref().map_or(Words::Numbers, |_| Words::Names);
            metadata.insert(qos::KEY.to_owned(), Qos::write(&channel.qos, words));
        }
        let number = mcap
            .add_channel_with_id(id, schema, &channel.topic, channel.encoding.name(), &metadata)
            .map_err(|error| translate(&self.path, error))?;
        let id = ChannelId(u32::from(id));
        self.open.0 += texts.iter().map(|(_, length)| *length as u64).sum::<u64>();
        self.channels.push(Channel {
            id,
            ..channel.clone()
        });
        self.numbers.push(number);
        self.counts.push((0, 0));
        Ok(id)
    }

    /// Appends a message. Blocks while the bytes of a full chunk are written. Log times may be out of order; reading
    /// sorts them.
    pub fn write(
        &mut self,
        channel: ChannelId,
        log_time: Time,
        publish_time: Time,
        data: &[u8],
    ) -> Result<(), WriteError> {
        self.check("a message", data.len())?;
        let index = channel.0 as usize;
        let (Some(&number), Some(counts)) = (self.numbers.get(index), self.counts.get_mut(index)) else {
            return Err(WriteError::UnknownChannel {
                path: self.path.clone(),
                channel: channel.0,
            });
        };
        let header = MessageHeader {
            channel_id: number,
            sequence: counts.0 as u32,
            log_time: log_time.0,
            publish_time: publish_time.0,
        };
        self.file
            .open(&self.path, "")?
            .write_to_known_channel(&header, data)
            .map_err(|error| translate(&self.path, error))?;
        *counts = (counts.0 + 1, counts.1 + data.len() as u64);
        self.span = Some(self.span.map_or((log_time, log_time), |(first, last)| {
            (first.min(log_time), last.max(log_time))
        }));
        self.pending += 1;
        self.open.0 += RECORD_OVERHEAD + data.len() as u64;
        let first = *self.open.1.get_or_insert(log_time);
        if self.open.0 >= self.chunk_size || log_time.since(first) >= self.flush_after {
            self.flush()?;
        }
        Ok(())
    }

    /// Closes the open chunk, so that all messages so far survive a crash of this process.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.open = (0, None);
        if let State::Open(mcap) = &mut self.file {
            mcap.flush().map_err(|error| translate(&self.path, error))?;
        }
        self.pending = 0;
        Ok(())
    }

    /// Messages in the open chunk, which a crash of this process would lose.
    pub fn pending(&self) -> u64 {
        self.pending
    }

    /// Another handle on the file, for example to sync it to disk while this writer continues.
    pub fn handle(&self) -> io::Result<File> {
        self.handle.try_clone()
    }

    /// Writes the index and closes the file; of a folder of rosbag2, writes its metadata.
    pub fn finish(self) -> Result<Summary, WriteError> {
        let Writer {
            path,
            mut file,
            channels,
            counts,
            span,
            folder,
            ..
        } = self;
        file.open(&path, "ros1")?
            .finish()
            .map_err(|error| translate(&path, error))?;
        let State::Open(mcap) = file else {
            return Ok(Summary::new(&channels, &counts, span, true));
        };
        let mut output = mcap.into_inner().into_inner();
        output.flush().map_err(|source| WriteError::Io {
            path: path.clone(),
            source,
        })?;
        if let Some(folder) = folder {
            let written = rosbag2::write::Written {
                file: &path.file_name().unwrap_or_default().to_string_lossy(),
                channels: &channels,
                counts: &counts,
                span,
            };
            rosbag2::write::write(&folder, &written).map_err(|source| WriteError::Io {
                path: folder.join(rosbag2::METADATA),
                source,
            })?;
        }
        Ok(Summary::new(&channels, &counts, span, true))
    }

    fn check(&self, what: &'static str, length: usize) -> Result<(), WriteError> {
        let length = length as u64;
        if length > MAX_MESSAGE {
            return Err(WriteError::TooLarge {
                path: self.path.clone(),
                what,
                length,
                limit: MAX_MESSAGE,
            });
        }
        Ok(())
    }
}

/// Opcode, length and fixed fields of a message record.
const RECORD_OVERHEAD: u64 = 31;

fn translate(path: &Path, error: McapError) -> WriteError {
    let path = path.to_owned();
    match error {
        McapError::Io(source) => WriteError::Io { path, source },
        McapError::TooManyChannels | McapError::TooManySchemas => WriteError::TooManyChannels { path },
        other => WriteError::Format {
            path,
            detail: other.to_string(),
        },
    }
}
