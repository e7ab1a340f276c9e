//! Recordings that operators start from the page (`ropewalk web --record`), by the threads of decision 311.

use super::disk::{Disk, Written};
use super::take::take;
use super::topics::Topics;
use super::{BUFFER_MIB, losses};
use crate::failure::{Failure, OrFail};
use crate::numbers;
use clap::Args;
use recording::write::{Compression, Options};
use recording::{WriteError, Writer};
use ropewalk::Node;
use stats::quantity;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use web::page::Progress;

/// Interval at which the file's size and the free space of its disk are read.
const LOOK: Duration = Duration::from_millis(100);
/// Interval at which the file is synced to disk.
const SYNC: Duration = Duration::from_secs(5);
/// Minimum free space, in bytes, that a recording leaves on its disk; on a larger disk, one part in `ROOM_SHARE`.
const ROOM: u64 = 1_000_000_000;
const ROOM_SHARE: u64 = 100;
/// Maximum number of topics that the page names as not recorded.
const MAX_NAMED: usize = 8;

/// Options of commands with a page.
#[derive(Args, Clone)]
pub(crate) struct FromPage {
    /// Let operators record this host's bus from the page, each time into a new MCAP file in this folder.
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
    /// End a recording from the page when its file has this size. It also ends when less than 1 % or 1 GB of the disk is
    /// free.
    #[arg(long, value_name = "SIZE", default_value = "10GB", value_parser = quantity::bytes, requires = "record")]
    record_limit: u64,
}

impl FromPage {
    /// Whether a folder is given.
    pub(crate) fn is_given(&self) -> bool {
        self.record.is_some()
    }

    /// Records the bus of `node`, if a folder is given.
    pub(crate) fn recorder(&self, node: &Node) -> Result<Option<Arc<dyn web::page::Recorder>>, Failure> {
        let Some(folder) = &self.record else {
            return Ok(None);
        };
        if !folder.is_dir() {
            let folder = folder.display();
            return Err(Failure::input(format_args!(
                "--record: {folder} is not a folder: create it"
            )));
        }
        Ok(Some(Arc::new(Recorder {
            node: node.clone(),
            // Absolute, since operators on other machines read it in errors.
            folder: std::path::absolute(folder).or_input()?,
            limit: self.record_limit,
        })))
    }
}

/// Records a bus into files of a folder.
#[derive(Debug)]
struct Recorder {
    node: Node,
    folder: PathBuf,
    /// The largest file, in bytes.
    limit: u64,
}

/// Space on a disk, in bytes.
#[derive(Clone, Copy, Debug)]
struct Room {
    free: u64,
    total: u64,
}

impl web::page::Recorder for Recorder {
    fn record(&self, patterns: &[String], tell: &mut dyn FnMut(Progress) -> bool) -> Result<(), String> {
        let room = self.room()?;
        self.check(0, 0, room)?;
        let (path, writer) = self.create()?;
        let mut progress = Progress {
            file: path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            limit: self.limit,
            free: room.free,
            ..Progress::default()
        };
        tell(progress.clone());
        let disk = Disk::start(writer, BUFFER_MIB << 20, Some(SYNC));
        let disk = disk.map_err(|error| format!("starting to write: {error}: try again"))?;
        let wanted = |name: &str| patterns.is_empty() || patterns.iter().any(|p| bridge::covers(p, name));
        let mut topics = Topics::new(false);
        let (mut looked, mut ended) = (clock::monotonic(), Ok(()));
        let taken = take(&self.node, &disk, &mut topics, wanted, |topics| {
            let now = clock::monotonic();
            if now.since(looked) < LOOK {
                return true;
            }
            looked = now;
            measure(&mut progress, &path, &disk, topics);
            ended = self.room().and_then(|room| {
                progress.free = room.free;
                self.check(progress.bytes, disk.queue.bytes(), room)
            });
            tell(progress.clone()) && ended.is_ok()
        });
        // A slow disk may take long; meanwhile the page shows the progress.
        let written = disk.finish(|| {
            measure(&mut progress, &path, &disk, &topics);
            tell(progress.clone());
            true
        });
        measure(&mut progress, &path, &disk, &topics);
        progress.lost = losses(&topics, &written);
        tell(progress);
        self.written(&written)?;
        taken.map_err(|failure| format!("{failure}: start again"))?;
        ended
    }
}

impl Recorder {
    /// Creates a file; two files within the same second get different names.
    fn create(&self) -> Result<(PathBuf, Writer), String> {
        let options = Options {
            compression: Compression::Lz4,
            ..Options::default()
        };
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let stem = stem(&host, seconds.as_secs());
        let mut name = format!("{stem}.mcap");
        let mut number = 1;
        loop {
            let path = self.folder.join(name);
            match Writer::create(&path, &options) {
                Ok(writer) => return Ok((path, writer)),
                Err(WriteError::Exists { .. }) => {
                    number += 1;
                    name = format!("{stem}_{number}.mcap");
                }
                Err(error) => return Err(self.refused(&error)),
            }
        }
    }

    /// The reason why no file can be created, and what to do.
    fn refused(&self, error: &WriteError) -> String {
        let folder = self.folder.display();
        let kind = match error {
            WriteError::Io { source, .. } => source.kind(),
            _ => ErrorKind::Other,
        };
        match kind {
            ErrorKind::PermissionDenied => {
                format!(
                    "the server may not write to {folder}: let its user write there, or give --record another folder"
                )
            }
            ErrorKind::NotFound => format!("{folder} is gone: create it again"),
            ErrorKind::ReadOnlyFilesystem => {
                format!("{folder} is read-only: mount its disk writable, or give --record another folder")
            }
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                format!("{error}: delete files there, or give --record a folder on another disk")
            }
            _ => format!("{error}: give --record another folder"),
        }
    }

    /// Space on the folder's disk.
    fn room(&self) -> Result<Room, String> {
        let folder = self.folder.display();
        let found = rustix::fs::statvfs(&self.folder);
        let found = found.map_err(|error| match error.kind() {
            ErrorKind::NotFound => format!("{folder} is gone: create it again"),
            _ => format!("{folder}: {error}: give --record another folder"),
        })?;
        Ok(Room {
            free: found.f_bavail.saturating_mul(found.f_frsize),
            total: found.f_blocks.saturating_mul(found.f_frsize),
        })
    }

    /// An error if the file, together with the waiting messages, is too large for the limit or for the disk.
    fn check(&self, bytes: u64, waiting: u64, room: Room) -> Result<(), String> {
        let keep = ROOM.max(room.total / ROOM_SHARE);
        let left = room.free.saturating_sub(waiting);
        if left < keep {
            return Err(format!(
                "the disk of {1} has {0} of free space, and {2} must stay free: delete files there, or give --record a \
                 folder on another disk",
                size(left),
                self.folder.display(),
                size(keep)
            ));
        }
        if bytes.saturating_add(waiting) >= self.limit {
            return Err(format!(
                "the file has reached the limit of {}: start another recording, or raise --record-limit",
                size(self.limit)
            ));
        }
        Ok(())
    }

    /// An error if writing the file failed before its end.
    fn written(&self, written: &Written) -> Result<(), String> {
        let Some(error) = &written.error else {
            return Ok(());
        };
        let folder = self.folder.display();
        Err(format!(
            "{error}: delete files in {folder}, or give --record a folder on another disk; the {} messages before it are \
             readable",
            written.messages
        ))
    }
}

/// A file's name without its extension: the host, and the time in UTC.
fn stem(host: &str, seconds: u64) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let host: String = host.chars().filter(|c| plain(*c)).take(64).collect();
    let time = numbers::date(seconds).replace(' ', "_").replace(':', "-");
    format!("{}_{time}", if host.is_empty() { "host" } else { &host })
}

/// Updates the progress.
fn measure(progress: &mut Progress, file: &Path, disk: &Disk, topics: &Topics) {
    if let Ok(file) = std::fs::metadata(file) {
        progress.bytes = file.len();
    }
    progress.messages = disk.messages();
    progress.topics = topics.count() as u64;
    progress.lost = topics.lost();
    progress.left_out = left_out(topics);
}

/// The first topics that are not recorded, or not until the end, each with the reason.
fn left_out(topics: &Topics) -> Vec<String> {
    let failures = topics.failures();
    let named = failures.iter().take(MAX_NAMED);
    let mut lines: Vec<String> = named.map(|(name, why)| format!("{name}: {why}")).collect();
    if failures.len() > MAX_NAMED {
        lines.push(format!("{} more", failures.len() - MAX_NAMED));
    }
    lines
}

fn size(bytes: u64) -> String {
    match bytes {
        ..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::Recording;
    use ropewalk::{BusConfig, Flavour, Publisher, Registry};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, MutexGuard};
    use std::thread::ScopedJoinHandle;
    use web::page::Recorder as _;

    const LONG: Duration = Duration::from_secs(60);

    /// A bus, and a folder for recordings of it.
    struct Bench {
        recorder: Recorder,
        node: Node,
        folder: tempfile::TempDir,
        stop: AtomicBool,
        progress: Mutex<Progress>,
    }

    impl Bench {
        fn new(limit: u64) -> Bench {
            let folder = tempfile::Builder::new().prefix("rw").tempdir().expect("a folder");
            let node = |name: &str| Node::with_config(name, BusConfig::new(folder.path().join("bus")));
            let to = folder.path().join("recordings");
            std::fs::create_dir(&to).expect("a folder");
            Bench {
                recorder: Recorder {
                    node: node("web").expect("a node"),
                    folder: to,
                    limit,
                },
                node: node("test").expect("a node"),
                folder,
                stop: AtomicBool::new(false),
                progress: Mutex::default(),
            }
        }

        fn record(&self, patterns: &[&str]) -> Result<(), String> {
            let patterns: Vec<String> = patterns.iter().map(|p| (*p).to_owned()).collect();
            let start = clock::monotonic();
            self.recorder.record(&patterns, &mut |progress| {
                *self.progress() = progress;
                !self.stop.load(Ordering::Relaxed) && clock::monotonic().since(start) < LONG
            })
        }

        fn progress(&self) -> MutexGuard<'_, Progress> {
            self.progress.lock().expect("no panic")
        }

        fn publisher(&self, topic: &str) -> Publisher {
            let mut registry = Registry::new(Flavour::Ros1);
            registry
                .add_embedded("t/Bytes", "uint8[] data")
                .expect("a definition");
            let schema = registry.schema("t/Bytes").expect("a schema");
            self.node.dynamic_publisher(topic, &schema).expect("a publisher")
        }

        /// The topics of the messages in the file, which must be whole.
        fn recorded(&self) -> Vec<String> {
            let file = self.recorder.folder.join(&self.progress().file);
            let recording = Recording::open(file).expect("opens");
            assert!(recording.damage().is_none());
            let topic = |id| recording.channel(id).topic.clone();
            let messages = recording.messages();
            messages.map(|m| topic(m.expect("a message").channel)).collect()
        }
    }

    fn wait_until(what: &str, thread: &ScopedJoinHandle<'_, Result<(), String>>, done: impl Fn() -> bool) {
        let start = clock::monotonic();
        while !done() {
            assert!(
                !thread.is_finished() && clock::monotonic().since(start) < LONG,
                "{what}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Bytes that cannot be compressed, in ROS 1's serialization.
    fn noise(seed: u64) -> Vec<u8> {
        const LEN: usize = 10_000;
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        let mut bytes = (LEN as u32).to_le_bytes().to_vec();
        bytes.extend(std::iter::repeat_with(&mut next).take(LEN));
        bytes
    }

    #[test]
    fn the_chosen_topics_are_recorded_until_the_page_stops_it() {
        let bench = Bench::new(1 << 30);
        let (wanted, other) = (bench.publisher("/a/x"), bench.publisher("/b"));
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| bench.record(&["/a/*", "/c"]));
            assert!(wanted.wait_for_subscribers(1, LONG), "nobody records");
            for n in 0..100 {
                wanted.publish_ros1(&noise(n)).expect("publishes");
                other.publish_ros1(&noise(n)).expect("publishes");
            }
            wait_until("all are written", &thread, || bench.progress().messages == 100);
            assert!(bench.progress().bytes > 500_000, "{:?}", bench.progress());
            bench.stop.store(true, Ordering::Relaxed);
            assert_eq!(thread.join().expect("no panic"), Ok(()));
        });
        assert_eq!(bench.recorded(), vec!["/a/x"; 100]);
        let progress = bench.progress();
        assert_eq!(
            (progress.topics, progress.lost.total(), progress.limit),
            (1, 0, 1 << 30)
        );
        assert!(progress.free > 0 && progress.left_out.is_empty());
    }

    #[test]
    fn at_its_limit_a_recording_ends_with_all_messages_until_then() {
        let bench = Bench::new(3_000_000);
        let publisher = bench.publisher("/a");
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| bench.record(&[]));
            let mut sent = 0;
            while !thread.is_finished() {
                // A message without memory does not matter here.
                let _ = publisher.publish_ros1(&noise(sent));
                sent += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
            let why = thread.join().expect("no panic").expect_err("the limit");
            assert!(why.contains("3.0 MB") && why.contains("--record-limit"), "{why}");
        });
        let progress = bench.progress();
        assert!(progress.bytes > 2_000_000, "{progress:?}");
        drop(progress);
        let messages = bench.recorded().len() as u64;
        assert_eq!(messages, bench.progress().messages);
    }

    #[test]
    fn obstacles_to_a_recording_are_reported_with_the_fix() {
        let bench = Bench::new(1 << 30);
        let folder = &bench.recorder.folder;
        std::fs::remove_dir(folder).expect("removes");
        let why = bench.record(&[]).expect_err("no folder");
        assert!(why.ends_with("is gone: create it again"), "{why}");
        std::fs::write(folder, "").expect("writes");
        let why = bench.record(&[]).expect_err("no folder");
        assert!(why.contains("--record"), "{why}");
        let options = FromPage {
            record: Some(folder.clone()),
            record_limit: 1,
        };
        let error = options.recorder(&bench.node).expect_err("no folder");
        assert!(
            error.is_bad_input() && error.to_string().contains("create it"),
            "{error}"
        );
        let source = std::io::Error::from(ErrorKind::PermissionDenied);
        let path = bench.folder.path().to_owned();
        let why = bench.recorder.refused(&WriteError::Io { path, source });
        assert!(why.contains("let its user write"), "{why}");
    }

    #[test]
    fn one_gigabyte_or_one_percent_of_the_disk_stays_free() {
        const GB: u64 = 1_000_000_000;
        let bench = Bench::new(10 * GB);
        let ends = |bytes, waiting, free, total| {
            let checked = bench.recorder.check(bytes, waiting, Room { free, total });
            checked.err()
        };
        assert_eq!(ends(0, 0, GB, 50 * GB), None);
        let why = ends(0, 0, GB - 1, 50 * GB).expect("full");
        assert!(why.contains("delete files"), "{why}");
        assert!(ends(0, 0, 19 * GB, 2000 * GB).is_some());
        assert_eq!(ends(0, 0, 20 * GB, 2000 * GB), None);
        assert!(
            ends(0, 2 * GB, 2 * GB, 50 * GB).is_some(),
            "what waits is as good as written"
        );
        let why = ends(9 * GB, GB, 20 * GB, 50 * GB).expect("the limit");
        assert!(why.contains("10.0 GB"), "{why}");
    }

    #[test]
    fn files_are_named_by_host_and_time_and_none_is_replaced() {
        assert_eq!(
            stem("ro/b o\u{1b}t-1", 1_600_000_000),
            "robot-1_2020-09-13_12-26-40"
        );
        assert_eq!(stem("..", 0), "host_1970-01-01_00-00-00");
        let bench = Bench::new(1);
        let mut names: Vec<_> = (0..5)
            .map(|_| bench.recorder.create().expect("creates").0)
            .collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 5);
    }
}
