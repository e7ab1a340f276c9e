//! SQLite files of rosbag2 (`.db3`): tables `topics` and `messages`, since 2023 also `message_definitions`.
//!
//! Rows are read in the order of recording, in runs of about a megabyte, which are merged by time like chunks. The
//! file's index of times is not used: it may be missing, and in a damaged file it is one more thing that can be wrong.

mod rows;
mod topics;

use std::collections::BTreeMap;
use std::io::{Read, Seek};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, Statement};
use stats::Time;

use self::rows::{Head, walk};
use super::block::{Block, Decoded, Entry};
use super::source::Source;
use super::{Contents, Limits};
use crate::error::{OpenError, ReadError};
use crate::model::ChannelId;

/// The first sixteen bytes of every file.
pub(crate) const MAGIC: &[u8] = b"SQLite format 3\0";

/// Rows are read in runs of about this many bytes of messages.
const RUN: u64 = 1 << 20;
/// Most damaged places in a file after which reading continues.
const MAX_RESUMES: usize = 64;
/// Memory for pages of a file, in KiB.
const CACHE_KIB: i64 = 512;

/// An open database. It is locked for each run.
#[derive(Debug)]
pub(crate) struct Database {
    connection: Mutex<Connection>,
    path: PathBuf,
    /// The channels of the topics, by their ids.
    topics: BTreeMap<i64, ChannelId>,
    /// First and last row of each run; a block's offset is an index into it.
    runs: Vec<(i64, i64)>,
}

/// Opens the database in the file `at`, whose bytes are `source`, read-only.
pub(crate) fn open_file<R: Read + Seek>(
    at: &Path,
    source: &Source<R>,
    limits: &Limits,
) -> Result<(Database, Contents), OpenError> {
    let path = source.path();
    let absolute = std::path::absolute(at).map_err(|source| OpenError::Io {
        path: path.to_owned(),
        source: std::sync::Arc::new(source),
    })?;
    let beside = |suffix: &str| {
        let mut name = absolute.clone().into_os_string();
        name.push(suffix);
        std::fs::metadata(name).is_ok_and(|file| file.len() > 0)
    };
    // Without a log, only the file is read, and reading must neither lock it nor leave files next to it.
    let log = beside("-wal");
    let connection = if log { uri(&absolute, "") } else { None };
    let ignored = log && connection.is_none();
    let connection = match connection {
        Some(connection) => connection,
        None => connect(&absolute, "?immutable=1").map_err(|error| failed(path, &error))?,
    };
    let (database, mut contents) = read(connection, source, limits)?;
    if ignored || beside("-journal") {
        let detail = "its log (-wal, -journal) is not read: what was recorded last may be missing or wrong";
        contents
            .damage
            .get_or_insert(database.unreadable(i64::MAX, detail));
    }
    Ok((database, contents))
}

fn uri(path: &Path, query: &str) -> Option<Connection> {
    let connection = connect(path, query).ok()?;
    // Opening reads nothing; the first statement detects the log.
    let read = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
    read.ok().map(|()| connection)
}

fn connect(path: &Path, query: &str) -> rusqlite::Result<Connection> {
    let mut text = "file://".to_owned();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => text.push(byte.into()),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text.push_str(query);
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(text, flags)
}

/// Opens a database that is not a file. It is read whole, since SQLite reads only files and memory.
pub(crate) fn open_source<R: Read + Seek>(
    source: &Source<R>,
    limits: &Limits,
) -> Result<(Database, Contents), OpenError> {
    source.check(0, "a database in memory", source.len(), limits.block)?;
    let bytes = source.bytes(0, source.len(), "a database")?;
    let opened = Connection::open_in_memory().and_then(|mut connection| {
        connection.deserialize_read_exact("main", &bytes[..], bytes.len(), true)?;
        Ok(connection)
    });
    read(
        opened.map_err(|error| failed(source.path(), &error))?,
        source,
        limits,
    )
}

fn failed(path: &Path, error: &rusqlite::Error) -> ReadError {
    ReadError::Database {
        path: path.to_owned(),
        detail: error.to_string(),
    }
}

/// Reads the contents.
fn read<R: Read + Seek>(
    connection: Connection,
    source: &Source<R>,
    limits: &Limits,
) -> Result<(Database, Contents), OpenError> {
    let path = source.path();
    let cut = cut(source);
    harden(&connection, limits, cut.is_some()).map_err(|error| failed(path, &error))?;
    let mut contents = Contents {
        indexed: true,
        damage: cut,
        ..Contents::default()
    };
    let topics = topics::read(&connection, path, limits, &mut contents)?;
    let mut database = Database {
        connection: Mutex::new(connection),
        path: path.to_owned(),
        topics,
        runs: Vec::new(),
    };
    let damage = database.scan(limits, &mut contents);
    contents.damage = contents.damage.or(damage);
    Ok((database, contents))
}

/// Missing bytes of a file that is shorter than its header states.
fn cut<R: Read + Seek>(source: &Source<R>) -> Option<ReadError> {
    let header = source.bytes(0, 100, "the header of a database").ok()?;
    let word = |at: usize| {
        let bytes = header.get(at..at + 4)?.try_into().ok()?;
        Some(u64::from(u32::from_be_bytes(bytes)))
    };
    let page = match word(16)? >> 16 {
        1 => 1 << 16,
        size => size,
    };
    // The page count is valid only if both change counters of the header agree.
    let missing = (page * word(28)?).saturating_sub(source.len());
    let counts = word(24)? == word(92)?;
    (counts && missing > 0).then(|| source.truncated(0, "the database", missing))
}

/// The file is untrusted: its schema executes nothing, and no value is longer than a block.
fn harden(connection: &Connection, limits: &Limits, cut: bool) -> rusqlite::Result<()> {
    // Only without this setting is the rest of a truncated file read. Nothing is ever written, not even the schema.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, !cut)?;
    if cut {
        connection.pragma_update(None, "writable_schema", true)?;
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.set_limit(
        Limit::SQLITE_LIMIT_LENGTH,
        i32::try_from(limits.block).unwrap_or(i32::MAX),
    )?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "mmap_size", 0)
}

/// The messages of the run that `block` names, with their damage.
pub(crate) fn decode(database: &Database, limits: &Limits, block: &Block) -> Decoded {
    let mut decoded = Decoded::default();
    let run = usize::try_from(block.offset)
        .ok()
        .and_then(|at| database.runs.get(at));
    let Some(&(first, last)) = run else {
        return decoded;
    };
    let connection = database.lock();
    let result = connection
        .prepare("SELECT data FROM messages WHERE _rowid_ = ?1")
        .and_then(|mut data| {
            walk(&connection, first, last, |head| {
                if let Err(why) = database.fetch(&mut data, &head, limits, &mut decoded) {
                    decoded.note(ReadError::Rows {
                        path: database.path.clone(),
                        row: head.row,
                        rows: 1,
                        detail: why,
                    });
                }
                ControlFlow::Continue(())
            })
        });
    if let Err(error) = result {
        decoded.note(database.unreadable(first, error.to_string()));
    }
    decoded.sort();
    decoded
}

impl Database {
    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends the message of a row, or returns why it is invalid.
    fn fetch(
        &self,
        data: &mut Statement<'_>,
        head: &Head,
        limits: &Limits,
        decoded: &mut Decoded,
    ) -> Result<(), String> {
        let (time, channel) = self.judge(head, limits)?;
        let start = decoded.data.len();
        let taken = data.query_row([head.row], |row| {
            let bytes = row.get_ref(0)?.as_blob().unwrap_or_default();
            decoded.data.extend_from_slice(bytes);
            Ok(())
        });
        taken.map_err(|error| error.to_string())?;
        decoded.entries.push(Entry {
            log_time: time,
            publish_time: time,
            channel,
            start,
            len: decoded.data.len() - start,
        });
        Ok(())
    }

    /// Time and channel of a row, or why it is not a message.
    fn judge(&self, head: &Head, limits: &Limits) -> Result<(Time, ChannelId), String> {
        let time = head.time.and_then(|time| u64::try_from(time).ok());
        let time = time.ok_or("its time is not a number of nanoseconds")?;
        let length = head.length.ok_or("its data is not a blob")?;
        if length > limits.block {
            return Err(format!(
                "its data of {length} bytes exceeds the limit of {}",
                limits.block
            ));
        }
        let topic = head.topic.and_then(|topic| self.topics.get(&topic));
        let topic = topic.ok_or("it is of a topic that the file does not define")?;
        Ok((Time(time), *topic))
    }

    /// Divides the table into runs, and counts; returns the first damage, if any.
    fn scan(&mut self, limits: &Limits, contents: &mut Contents) -> Option<ReadError> {
        let mut runs = Runs::default();
        let mut damage: Option<ReadError> = None;
        let mut next = Some(i64::MIN);
        let connection = self.lock();
        for _ in 0..=MAX_RESUMES {
            let Some(first) = next.take() else { break };
            match self.scan_from(&connection, first, limits, contents, &mut runs) {
                Ok(end) => damage = damage.or(end),
                Err(error) => {
                    let failed = runs.last.map_or(first, |last| last.saturating_add(1)).max(first);
                    damage.get_or_insert(self.unreadable(failed, error.to_string()));
                    next = rows::behind(&connection, failed);
                }
            }
            runs.close();
        }
        drop(connection);
        for (index, run) in runs.all.into_iter().enumerate() {
            self.runs.push((run.first, run.last));
            contents.blocks.push(Block {
                offset: index as u64,
                len: 0,
                first: run.span.0,
                last: run.span.1,
                reported: false,
            });
        }
        damage
    }

    /// Scans from the row `first` on; returns what ends the reading of the file.
    fn scan_from(
        &self,
        connection: &Connection,
        first: i64,
        limits: &Limits,
        contents: &mut Contents,
        runs: &mut Runs,
    ) -> rusqlite::Result<Option<ReadError>> {
        let mut end = None;
        walk(connection, first, i64::MAX, |head| {
            let good = self.judge(&head, limits).ok();
            let bytes = good.map_or(0, |_| head.length.unwrap_or(0));
            if let Some((time, channel)) = good {
                contents.count(channel, 1, bytes);
                contents.span(time, time);
            }
            runs.add(head.row, good.map(|good| good.0), bytes, limits);
            let length = (runs.all.len() * (size_of::<Run>() + size_of::<Block>())) as u64;
            if length <= limits.index {
                return ControlFlow::Continue(());
            }
            end = Some(ReadError::TooLarge {
                path: self.path.clone(),
                offset: 0,
                what: "the list of runs of rows",
                length,
                limit: limits.index,
            });
            ControlFlow::Break(())
        })?;
        Ok(end)
    }

    fn unreadable(&self, row: i64, detail: impl Into<String>) -> ReadError {
        let detail = match row {
            i64::MAX => detail.into(),
            _ => format!("from row {row} of `messages` on: {}", detail.into()),
        };
        ReadError::Database {
            path: self.path.clone(),
            detail,
        }
    }
}

/// A run of rows that are read together.
#[derive(Debug)]
struct Run {
    first: i64,
    last: i64,
    span: (Time, Time),
    bytes: u64,
    rows: u64,
}

#[derive(Debug, Default)]
struct Runs {
    all: Vec<Run>,
    open: Option<Run>,
    /// The last row that was read.
    last: Option<i64>,
    /// Latest time of the messages before it.
    latest: Time,
}

impl Runs {
    fn add(&mut self, row: i64, time: Option<Time>, bytes: u64, limits: &Limits) {
        self.last = Some(row);
        // Rows that are not messages are reported after the messages before them.
        let at = time.unwrap_or(self.latest);
        self.latest = at;
        let longest = RUN.min(limits.block);
        let fits = |run: &Run| {
            run.bytes.saturating_add(bytes) <= longest
                && (run.rows + 1).saturating_mul(size_of::<Entry>() as u64) <= longest
        };
        match &mut self.open {
            Some(run) if fits(run) => {
                run.last = row;
                run.span = match time {
                    Some(time) => (run.span.0.min(time), run.span.1.max(time)),
                    None => run.span,
                };
                run.bytes += bytes;
                run.rows += 1;
            }
            _ => {
                self.close();
                self.open = Some(Run {
                    first: row,
                    last: row,
                    span: (at, at),
                    bytes,
                    rows: 1,
                });
            }
        }
    }

    fn close(&mut self) {
        self.all.extend(self.open.take());
    }
}
