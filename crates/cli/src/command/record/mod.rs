//! `ropewalk record`: records topics of the bus into an MCAP file or a folder of rosbag2.
//!
//! Uses three threads, so that none waits for another: this one takes messages and checks signals and the time, one
//! writes the file, and one asks the bus for topics, which a stopped process can delay (decision 311).

mod disk;
mod page;
mod queue;
mod take;
mod topics;

use crate::failure::{Failure, OrFail, Outcome};
use crate::signals::Signals;
use clap::Args;
use disk::Disk;
pub(crate) use page::FromPage;
use recording::{WriteError, Writer};
use ropewalk::Node;
use schema::{did_you_mean, nearest};
use serde_json::json;
use stats::{DropReason, Drops};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;
use topics::Topics;

/// Default of `--buffer`, in MiB.
const BUFFER_MIB: u64 = 256;
/// Default of `--drain` for a recording of fixed length.
const DRAIN: Duration = Duration::from_millis(500);

/// Record topics of this host's bus into an MCAP file or a folder of rosbag2.
///
/// Stops at Ctrl-C or after --duration. Messages are stored as ROS 1 writes them (CDR for types of ROS 2), stamped with
/// the time of publishing, with their publisher's name and whether it latches (`callerid`, `latching`; ROS 2:
/// `offered_qos_profiles`). A recording that is cut off (power loss, kill) is readable up to its last chunk: messages
/// of the last second, or since the last sync, may be missing. After Ctrl-C the buffered messages are still written; a
/// second Ctrl-C ends at once.
#[derive(Args)]
pub(crate) struct Options {
    /// The MCAP file to write; an existing one is an error unless --force. With --rosbag2 or --output, all words are topics.
    #[arg(value_name = "FILE", required_unless_present_any = ["rosbag2", "output"])]
    file: Option<PathBuf>,
    /// Record these topics (default: all, including those that appear later).
    #[arg(value_name = "TOPIC")]
    topics: Vec<String>,
    /// Write a folder in the format of rosbag2 instead (MCAP, `metadata.yaml` of version 9): all in CDR, topics of ROS
    /// 1 converted to their types of ROS 2.
    #[arg(long, value_name = "FOLDER")]
    rosbag2: Option<PathBuf>,
    /// Where to write, instead of FILE: an MCAP file if its name ends in `.mcap`, else a folder as with --rosbag2.
    #[arg(short, long, value_name = "PATH", conflicts_with = "rosbag2")]
    output: Option<PathBuf>,
    /// Record this topic (may be repeated).
    #[arg(long, value_name = "TOPIC")]
    topic: Vec<String>,
    /// The same, all topics after one option, as ros2 bag takes them.
    #[arg(long = "topics", value_name = "TOPIC", num_args = 1.., hide = true)]
    more: Vec<String>,
    /// Record all topics, even if some are named.
    #[arg(short, long, alias = "all-topics")]
    all: bool,
    /// Stop after this many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = crate::numbers::duration)]
    duration: Option<f64>,
    /// Compression of chunks.
    #[arg(long, value_enum, default_value_t = Compression::Lz4)]
    compression: Compression,
    /// Replace an existing file or, in an existing folder, the files of a recording.
    #[arg(long)]
    force: bool,
    /// Memory for messages that wait for a slow disk, in MiB; further messages are lost, and counted as `unwritten`.
    #[arg(long, value_name = "MIB", default_value_t = BUFFER_MIB, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    buffer: u64,
    /// Sync the file to disk every this many seconds; 0 syncs only at the end.
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    sync: u64,
    /// Write buffered messages for at most this many seconds after the end; the rest is lost. Default: half a second
    /// after --duration, unlimited after Ctrl-C.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=86_400))]
    drain: Option<u64>,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Compression {
    None,
    Lz4,
    Zstd,
}

/// What to record, and where to.
struct Plan<'a> {
    target: &'a Path,
    /// Whether the target is a folder of rosbag2.
    is_folder: bool,
    /// Full names; none for all topics.
    topics: Vec<String>,
}

impl<'a> Plan<'a> {
    fn of(options: &'a Options) -> Result<Self, Failure> {
        let (file, output) = (options.file.as_deref(), options.output.as_deref());
        let is_mcap = |path: &Path| path.extension().is_some_and(|e| e == "mcap");
        // With a target by option, the first word is a topic, too.
        let (target, is_folder, first) = match (options.rosbag2.as_deref(), output, file) {
            (Some(folder), _, first) => (folder, true, first),
            (_, Some(output), first) => (output, !is_mcap(output), first),
            (_, _, Some(file)) => (file, false, None),
            (None, None, None) => return Err(Failure::input("name a file: ropewalk record FILE")),
        };
        let mut topics: Vec<String> = Vec::new();
        if !options.all {
            let first = first.map(|first| first.to_string_lossy().into_owned());
            let named = [&options.topics, &options.topic, &options.more]
                .into_iter()
                .flatten();
            let full = |name: &String| format!("/{}", name.trim_start_matches('/'));
            topics.extend(first.iter().chain(named).map(full));
        }
        Ok(Plan {
            target,
            is_folder,
            topics,
        })
    }

    /// Refuses a topic as the file's name, and mentions topics that nobody publishes.
    fn check(&self, node: &Node) -> Outcome {
        let there = node.topics().or_input()?;
        let published: Vec<_> = there.iter().filter(|t| !t.publishers.is_empty()).collect();
        let is_there = |name: &str| published.iter().any(|t| t.topic.topic == name);
        if self
            .target
            .to_str()
            .is_some_and(|name| is_there(name) && !self.target.exists())
        {
            let topic = self.target.display();
            return Err(Failure::input(format_args!(
                "{topic} is a topic: name a file before it, such as `ropewalk record run.mcap {topic}`"
            )));
        }
        for topic in self.topics.iter().filter(|topic| !is_there(topic)) {
            let near = nearest(topic, published.iter().map(|t| t.topic.topic.as_str()));
            crate::screen::tell!("nobody publishes {topic} yet{}", did_you_mean(near));
        }
        Ok(())
    }
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Outcome {
    let signals = Signals::watch().or_job("watching signals")?;
    let node = Node::new("record").or_input()?;
    let compression = match options.compression {
        Compression::None => recording::write::Compression::None,
        Compression::Lz4 => recording::write::Compression::Lz4,
        Compression::Zstd => recording::write::Compression::Zstd,
    };
    let write = recording::write::Options {
        compression,
        overwrite: options.force,
        ..recording::write::Options::default()
    };
    let duration = options.duration.map(Duration::from_secs_f64);
    let plan = Plan::of(options)?;
    plan.check(&node)?;
    let (target, is_folder) = (plan.target, plan.is_folder);
    let writer = match is_folder {
        true => Writer::create_rosbag2(target, &write),
        false => Writer::create(target, &write),
    };
    let writer = writer.map_err(|error| match error {
        WriteError::Exists { path } => Failure::input(format_args!(
            "{} exists already: choose another name, or replace it with --force",
            path.display()
        )),
        error => Failure::input(error),
    })?;
    let sync = (options.sync > 0).then(|| Duration::from_secs(options.sync));
    let disk = Disk::start(writer, options.buffer << 20, sync).or_job("starting to write")?;
    let mut topics = Topics::new(is_folder);
    take(&node, &plan, duration, &signals, &disk, &mut topics)?;

    let stopped = signals.stopped();
    let patience = match options.drain {
        Some(seconds) => Some(Duration::from_secs(seconds)),
        None => (!stopped).then_some(DRAIN),
    };
    let (end, mut shown) = (clock::monotonic(), false);
    let written = disk.finish(|| {
        if !shown && clock::monotonic().since(end) > DRAIN && std::io::stderr().is_terminal() {
            shown = true;
            let waiting = disk.queue.bytes() >> 20;
            crate::screen::tell!("writing {waiting} MiB of buffered messages; Ctrl-C discards them");
        }
        patience.is_none_or(|patience| clock::monotonic().since(end) < patience)
    });
    report(options, target, &topics, &written)
}

/// Takes messages until the time is over, the user stops it, or writing fails.
fn take(
    node: &Node,
    plan: &Plan<'_>,
    duration: Option<Duration>,
    signals: &Signals,
    disk: &Disk,
    topics: &mut Topics,
) -> Outcome {
    let wanted = |name: &str| plan.topics.is_empty() || plan.topics.iter().any(|t| t == name);
    let start = clock::monotonic();
    let (terminal, mut shown) = (std::io::stderr().is_terminal(), start);
    take::take(node, disk, topics, wanted, |topics| {
        let now = clock::monotonic();
        if terminal && now.since(shown) >= take::LOOK {
            shown = now;
            let (messages, topics) = (disk.messages(), topics.count());
            crate::screen::draw(&format!("\r{messages} messages on {topics} topics "));
        }
        !signals.stopped() && duration.is_none_or(|d| now.since(start) < d)
    })?;
    if terminal {
        crate::screen::draw("\r\x1b[K");
    }
    Ok(())
}

/// All losses of a recording that has ended.
fn losses(topics: &Topics, written: &disk::Written) -> Drops {
    let mut lost = topics.lost();
    lost.merge(&written.lost);
    let known = written.messages + written.lost.total();
    lost.add(DropReason::Unwritten, topics.taken().saturating_sub(known));
    lost
}

fn report(options: &Options, target: &Path, topics: &Topics, written: &disk::Written) -> Outcome {
    let lost = losses(topics, written);
    let (messages, failures) = (written.messages, topics.failures());
    if options.json {
        crate::screen::say!(
            "{}",
            json!({ "messages": messages, "topics": topics.count(), "drops": lost, "left_out": failures })
        );
    } else {
        crate::screen::say!(
            "recorded {messages} messages on {} topics to {}",
            topics.count(),
            target.display()
        );
    }
    if let Some(error) = &written.error {
        return Err(Failure::job(format_args!(
            "{error}; the {messages} messages before it are readable"
        )));
    }
    if !written.finished {
        crate::screen::tell!(
            "the file has no index, because the disk did not write everything in time; it is readable"
        );
    }
    topics::verdict(&lost, &failures)
}
