//! The commands that the documentation shows: each block is run, here or by another test, or says why not.

use crate::lab::Place;
use crate::support::Host;
use ::documented::{Block, Mark};
use recording::{Channel, Writer};
use schema::{Flavour, Registry};
use stats::Time;
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Until then a command has failed, or runs on.
const A_WHILE: Duration = Duration::from_secs(3);
/// A longer command hangs.
const WATCHDOG: Duration = Duration::from_secs(300);

#[test]
fn every_block_of_commands_is_run_or_says_why_not() {
    let mut faults = Vec::new();
    for block in ::documented::pages()
        .expect("reads")
        .iter()
        .flat_map(|page| &page.blocks)
    {
        let fault = match &block.mark {
            Mark::Missing => "write above it `<!-- run -->`, `<!-- run for a while -->`, `<!-- run by PATH -->` or `<!-- not run: REASON -->`".to_owned(),
            Mark::RunBy(path) if !::documented::repository().join(path).is_file() => format!("{} is no file", path.display()),
            _ => continue,
        };
        faults.push(format!("{}:{}: {fault}", block.file.display(), block.number));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn documented_commands_run() {
    let mut files: BTreeMap<PathBuf, Vec<Block>> = BTreeMap::new();
    for block in ::documented::pages()
        .expect("reads")
        .into_iter()
        .flat_map(|page| page.blocks)
    {
        if matches!(block.mark, Mark::Run | Mark::RunForAWhile) {
            files.entry(block.file.clone()).or_default().push(block);
        }
    }
    assert!(files.len() >= 4, "the documentation has lost its commands");
    // They mostly wait.
    std::thread::scope(|scope| {
        for blocks in files.into_values() {
            scope.spawn(move || follow(&blocks));
        }
    });
}

/// Types the commands of a page, in order.
fn follow(blocks: &[Block]) {
    let in_lab = |block: &Block| {
        let mut lines = block.lines.iter();
        lines.any(|line| line.text.starts_with("ropewalk lab"))
    };
    if blocks.iter().any(in_lab) {
        let Some(place) = Place::new() else { return };
        Terminal::new(&place.host, place.folder()).run(blocks);
    } else {
        let host = Host::new();
        Terminal::new(&host, host.path("labs")).run(blocks);
    }
}

/// A user's terminals in one folder with the files that the documentation names.
struct Terminal<'a> {
    host: &'a Host,
    labs: PathBuf,
    folder: PathBuf,
    running: Vec<Group>,
}

impl<'a> Terminal<'a> {
    fn new(host: &'a Host, labs: PathBuf) -> Self {
        let folder = host.path("home");
        let root = ::documented::repository();
        let recordings = root.join("tests/vectors/recording");
        std::fs::create_dir_all(folder.join("my_msgs/msg")).expect("a folder");
        std::fs::write(folder.join("my_msgs/msg/Reading.msg"), "float64[] values\n").expect("writes");
        recording(&folder.join("run.bag"));
        for (to, from) in [
            ("examples", root.join("examples")),
            ("part_0.mcap", recordings.join("none.mcap")),
            ("part_1.mcap", recordings.join("lz4.mcap")),
            ("rosbag2_2026_11_27", recordings.join("rosbag2/sqlite3")),
        ] {
            let from = from.canonicalize().expect("is there");
            std::os::unix::fs::symlink(from, folder.join(to)).expect("links");
        }
        Terminal {
            host,
            labs,
            folder,
            running: Vec::new(),
        }
    }

    fn run(mut self, blocks: &[Block]) {
        for block in blocks {
            for line in &block.lines {
                let place = format!("{}:{}: {}", block.file.display(), line.number, line.text);
                let mut child = Group(self.start(&line.text));
                let since = Instant::now();
                loop {
                    if let Some(status) = child.0.try_wait().expect("waits") {
                        let said = std::fs::read_to_string(self.host.path("said")).unwrap_or_default();
                        assert!(status.success(), "{place}: {status}\n{said}");
                        self.follow();
                        break;
                    }
                    if block.mark == Mark::RunForAWhile && since.elapsed() > A_WHILE {
                        self.running.push(child);
                        break;
                    }
                    assert!(since.elapsed() < WATCHDOG, "{place}: hangs");
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        }
    }

    /// Starts a command in a process group of its own, with an empty standard input unless it has a here-document.
    fn start(&self, line: &str) -> Child {
        let own = Path::new(env!("CARGO_BIN_EXE_ropewalk"));
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", own.parent().expect("a folder").display());
        let said = std::fs::File::create(self.host.path("said")).expect("creates");
        let script = format!("{line}\n[ $? = 0 ] && pwd > \"$TMPDIR/pwd\"");
        let mut command = self.host.command(&[]);
        let variables: Vec<_> = command
            .get_envs()
            .map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)))
            .collect();
        command = Command::new("bash");
        for (name, value) in variables {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.args(["-c", &script]).current_dir(&self.folder);
        command.env("PATH", path).env("ROPEWALK_LAB_DIR", &self.labs);
        command.stdin(Stdio::null()).process_group(0);
        command.stdout(said.try_clone().expect("clones")).stderr(said);
        command.spawn().expect("starts")
    }

    /// Goes where the last command went.
    fn follow(&mut self) {
        if let Ok(text) = std::fs::read_to_string(self.host.path("t/pwd")) {
            self.folder = PathBuf::from(text.trim_end());
        }
    }
}

/// A recording with the topics that the guide plays, long enough for `--start 30 --duration 10`.
fn recording(file: &Path) {
    let byte = Registry::new(Flavour::Ros1).schema("std_msgs/UInt8");
    let byte = byte.expect("is known");
    let mut writer = Writer::create(file, &recording::write::Options::default()).expect("creates");
    let channels = ["/scan", "/tf", "/camera/image"].map(|topic| {
        let channel = Channel::ros1(topic, byte.name(), &byte.md5_hex(), &byte.definition());
        writer.add_channel(&channel).expect("adds")
    });
    for second in [0, 32, 50] {
        let at = Time::ZERO + Duration::from_secs(1_600_000_000 + second);
        for channel in channels {
            writer.write(channel, at, at, &[7]).expect("writes");
        }
    }
    writer.finish().expect("finishes");
}

/// A command and all that it started; dropping it ends them.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        use rustix::process::{Pid, Signal, kill_process_group};
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = kill_process_group(Pid::from_child(&self.0), Signal::TERM);
            let _ = self.0.wait();
        }
    }
}
