//! `ropewalk demo`: shows on a recording, in one minute, why priorities matter.

mod part;
mod process;
mod protocol;
mod publisher;
mod result;
mod run;
mod subscriber;
mod view;

use crate::command::web::Beside;
use crate::failure::{Failure, OrFail, Outcome};
use crate::signals::Signals;
use bus::BusConfig;
use clap::Args;
use link::quantity;
pub(crate) use part::run as run_parts;
pub(crate) use protocol::Part;
use protocol::{Spec, TopicPlan};
use recording::{Recording, Writer, simulation};
use ropewalk::Node;
use run::RunResult;
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use terminal::json::Json;

/// Show the effect of priorities on a shared radio.
///
/// Runs three processes on this machine: a robot (recording → bus → link), a radio (a model of 802.11 behind loopback
/// sockets), and a base (link → bus → subscriber). Plays the recording twice, once in first-in-first-out order and once
/// by priority (and deadline); everything else is equal. Needs no ROS and no root.
#[derive(Args)]
pub(crate) struct Options {
    /// A ROS 1 bag or MCAP file to play (default: records a simulated robot in a room and plays that).
    #[arg(long, value_name = "FILE")]
    recording: Option<PathBuf>,
    /// The radio's bit rate (802.11a/g: 6, 9, 12, 18, 24, 36, 48 or 54 Mbit/s).
    #[arg(long, default_value = "6Mbit/s", value_parser = radio_rate)]
    rate: u64,
    /// Hops from robot to base; relays use the same radio channel.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    hops: u8,
    /// Seconds of the recording to play, in each of the two runs.
    #[arg(long, default_value_t = 20.0, value_parser = seconds)]
    seconds: f64,
    /// Run only one order.
    #[arg(long, value_enum)]
    only: Option<System>,
    /// Give a topic this priority (0–127, higher first); by default small messages have 100, bulky ones 50 or less.
    #[arg(long, value_name = "TOPIC=N", value_parser = topic_priority)]
    priority: Vec<(String, u8)>,
    /// Queue depth of a topic at the radio (1–1024); a newer message replaces the oldest.
    #[arg(long, value_name = "TOPIC=N", value_parser = topic_depth)]
    depth: Vec<(String, u16)>,
    /// In the run by priority, drop a small message older than this per hop.
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration, default_value = "13ms")]
    deadline: Duration,
    /// Run an order up to this many times if the machine stalled the radio's emulation; the best run counts.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=20))]
    tries: u8,
    /// Run publisher, links, radio and subscriber in five processes instead of three.
    #[arg(long)]
    separate: bool,
    #[command(flatten)]
    web: Beside,
    #[command(flatten)]
    json: Json,
    /// Write a plot of the delays (SVG) to this file.
    #[arg(long, value_name = "FILE", default_value = "ropewalk-demo.svg")]
    figure: PathBuf,
    /// Seed of the radio's randomness and of the simulated robot.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The two orders compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum System {
    /// First in, first out.
    Fifo,
    /// By priority.
    Priority,
}

impl System {
    fn name(self) -> &'static str {
        match self {
            System::Fifo => "fifo",
            System::Priority => "priority",
        }
    }
}

/// A rate of 802.11a.
fn radio_rate(text: &str) -> Result<u64, String> {
    const MBIT_S: [u64; 8] = [6, 9, 12, 18, 24, 36, 48, 54];
    let rate = quantity::bit_rate(text).map_err(|e| e.to_string())?;
    let is_of_radio = MBIT_S.iter().any(|known| known * 1_000_000 == rate);
    let help = "an 802.11a/g radio sends at 6, 9, 12, 18, 24, 36, 48 or 54 Mbit/s";
    is_of_radio.then_some(rate).ok_or_else(|| help.into())
}

fn seconds(text: &str) -> Result<f64, String> {
    let good = text.parse().ok().filter(|s: &f64| (0.5..=3600.0).contains(s));
    good.ok_or_else(|| "give 0.5 to 3600 seconds".into())
}

fn topic_priority(text: &str) -> Result<(String, u8), String> {
    topic_number(text, 0..=127)
}

fn topic_depth(text: &str) -> Result<(String, u16), String> {
    topic_number(text, 1..=1024)
}

fn topic_number<T>(text: &str, range: std::ops::RangeInclusive<T>) -> Result<(String, T), String>
where
    T: std::str::FromStr + PartialOrd + std::fmt::Display,
{
    let (topic, number) = text
        .rsplit_once('=')
        .ok_or("write TOPIC=N, for example /scan=100")?;
    let number = number.parse().ok().filter(|n| range.contains(n));
    let number = number.ok_or_else(|| format!("N must be {} to {}", range.start(), range.end()))?;
    Ok((topic.to_owned(), number))
}

/// Runs the demo.
pub(crate) fn run(options: &Options) -> Outcome {
    let signals = Signals::watch().or_job("watching signals")?;
    // Fails now, not after a minute's work.
    for file in options.json.file().into_iter().chain([&*options.figure]) {
        let writable = std::fs::OpenOptions::new().append(true).create(true).open(file);
        writable.map_err(|e| Failure::input(format_args!("cannot write {}: {e}", file.display())))?;
    }
    let work = Work::make()?;
    let recording = match &options.recording {
        Some(file) => file.clone(),
        None => simulate(&work.0, options, &signals)?,
    };
    let topics = plan(&recording, options)?;
    let systems = [System::Fifo, System::Priority]
        .into_iter()
        .filter(|s| options.only.is_none_or(|o| o == *s));
    // Sleeping processors wake late: by milliseconds in some virtual machines, as much as the delay of a message.
    let awake = clock::Awake::request();
    let _busy = clock::Busy::keep();
    let mut page = options.web.clone();
    let mut results = Vec::new();
    for (i, system) in systems.enumerate() {
        let folder = work.0.join(system.name());
        let make = |dir: &Path| std::fs::DirBuilder::new().mode(0o700).recursive(true).create(dir);
        make(&folder.join("robot"))
            .and_then(|()| make(&folder.join("base")))
            .or_job("making a folder")?;
        let spec = Spec {
            work: folder,
            recording: std::path::absolute(&recording).or_input()?,
            seconds: options.seconds,
            rate: options.rate,
            hops: options.hops,
            fifo: system == System::Fifo,
            seed: options.seed,
            net: net(i as u8),
            topics: topics.clone(),
        };
        let result = best_of(options.tries, || {
            // What the base sees.
            let bus = BusConfig::new(spec.work.join("base"));
            let _page = page.start(|| Node::with_config("web", bus).or_input())?;
            run::run(&spec, system, options.separate, &signals)
        })?;
        let stopped = result.stopped;
        results.push(result);
        if stopped {
            break;
        }
    }
    result::finish(options, &results, awake.is_some())
}

/// Runs until the radio's timing was good, at most `tries` times, and returns the run with the fewest stalls.
fn best_of(tries: u8, mut run: impl FnMut() -> Result<RunResult, Failure>) -> Result<RunResult, Failure> {
    let mut best = run()?;
    for i in 2..=tries {
        if best.state.radio.good || best.stopped || !best.casualties.is_empty() {
            break;
        }
        crate::screen::tell!(
            "{}: this machine stalled the radio's emulation {} times for over 5 ms; try {i} of {tries}",
            best.system.name(),
            best.state.radio.stalls
        );
        let again = run()?;
        let worse = again.casualties.is_empty() && again.state.radio.stalls >= best.state.radio.stalls;
        if !worse || again.stopped || again.state.radio.good {
            best = again;
        }
        best.tries = i;
    }
    Ok(best)
}

/// Records the simulated robot into the demo's temporary folder.
fn simulate(work: &Path, options: &Options, signals: &Signals) -> Result<PathBuf, Failure> {
    let file = work.join("simulated.mcap");
    let doing = "recording the simulated robot";
    let mut writer = Writer::create(&file, &recording::write::Options::default()).or_job(doing)?;
    let channels = simulation::channels();
    let ids = channels
        .iter()
        .map(|c| writer.add_channel(c))
        .collect::<Result<Vec<_>, _>>()
        .or_job(doing)?;
    let terminal = std::io::stderr().is_terminal();
    crate::screen::tell!(
        "recording {} s of a simulated robot: lidar 30 Hz, camera 6.67 Hz, tf 80 Hz",
        options.seconds
    );
    let mut shown = 0;
    for message in simulation::generate(options.seconds + 0.5, options.seed) {
        if signals.stopped() {
            return Err(Failure::job("stopped before the end"));
        }
        let second = message.log_time.0 / 1_000_000_000;
        if terminal && second > shown {
            shown = second;
            crate::screen::draw(&format!("\r{second} s "));
        }
        let id = ids[message.channel.0 as usize];
        writer
            .write(id, message.log_time, message.publish_time, &message.data)
            .or_job(doing)?;
    }
    if terminal {
        crate::screen::draw("\r\x1b[K");
    }
    writer.finish().or_job(doing)?;
    Ok(file)
}

/// A topic below this mean size in bytes counts as bursty, such as `/tf`.
const TINY: f64 = 1000.0;
/// Time by which a scan precedes a transform offered with it.
const AFTER_SAMPLES: Duration = Duration::from_micros(500);
/// A topic of at least this mean size in bytes is bulky.
const BULKY: f64 = 8000.0;

/// Priorities, depths and deadlines. Topics that close control loops are small. They share the highest priority, are
/// useless when late, and may queue a quarter of a second of messages, since they come in bursts. Each bulky topic has
/// a lower priority, the larger the lower, and queues its two newest messages.
fn plan(file: &Path, options: &Options) -> Result<BTreeMap<String, TopicPlan>, Failure> {
    let recording = Recording::open(file).or_input()?;
    let mut sizes = BTreeMap::<String, (String, u64, u64)>::new();
    let mut span = None;
    let mut left_out = BTreeSet::new();
    for channel in recording.channels() {
        if channel.encoding == recording::Encoding::Ros1
            && let Err(refusal) = crate::types::of_channel(channel, &[])
        {
            crate::screen::tell!("left out: {}: {}", channel.topic, refusal.why);
            left_out.insert(channel.topic.clone());
        }
    }
    for message in recording.messages() {
        let message = message.or_input()?;
        let channel = recording.channel(message.channel);
        if channel.encoding == recording::Encoding::Ros1 && !left_out.contains(&channel.topic) {
            let size = sizes
                .entry(channel.topic.clone())
                .or_insert((channel.type_name.clone(), 0, 0));
            size.1 += 1;
            size.2 += message.data.len() as u64;
        }
        let (first, _) = *span.get_or_insert((message.log_time, message.log_time));
        span = Some((first, message.log_time));
    }
    if sizes.is_empty() {
        return Err(Failure::input(format_args!(
            "{} has no ROS 1 messages to play",
            file.display()
        )));
    }
    let seconds = span.map_or(0.0, |(a, b)| b.since(a).as_secs_f64()).max(0.1);
    let mut order: Vec<_> = sizes
        .iter()
        .map(|(t, s)| (s.2 as f64 / s.1 as f64, t.clone()))
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    let mut plan = BTreeMap::new();
    let mut bulky = 0;
    for (bytes, topic) in order {
        let (type_name, messages, _) = &sizes[&topic];
        let burst = (*messages as f64 / seconds * 0.25).ceil().clamp(2.0, 64.0) as u16;
        let small = bytes < BULKY;
        let (priority, depth) = if small {
            (100, burst)
        } else {
            (50 - (bulky * 10).min(50), 2)
        };
        let deadline = if bytes < TINY {
            options.deadline + AFTER_SAMPLES
        } else {
            options.deadline
        };
        let deadline = small.then(|| deadline * u32::from(options.hops));
        bulky += u8::from(!small);
        plan.insert(
            topic,
            TopicPlan {
                type_name: type_name.clone(),
                priority,
                depth,
                deadline,
                bytes,
            },
        );
    }
    for (topic, priority) in &options.priority {
        planned(&mut plan, topic)?.priority = *priority;
    }
    for (topic, depth) in &options.depth {
        planned(&mut plan, topic)?.depth = *depth;
    }
    Ok(plan)
}

fn planned<'a>(plan: &'a mut BTreeMap<String, TopicPlan>, topic: &str) -> Result<&'a mut TopicPlan, Failure> {
    let known = plan.keys().cloned().collect::<Vec<_>>().join(", ");
    let unknown = || Failure::input(format_args!("{topic} is not in the recording; it has {known}"));
    plan.get_mut(topic).ok_or_else(unknown)
}

/// A network in 127.0.0.0/8 for one run of one process.
fn net(run: u8) -> [u8; 2] {
    let pid = std::process::id();
    [16 + (pid >> 7) as u8 % 224, ((pid & 127) as u8) << 1 | (run & 1)]
}

/// The demo's temporary folder; dropping this removes it.
struct Work(PathBuf);

impl Work {
    fn make() -> Result<Self, Failure> {
        Self::sweep();
        let path = std::env::temp_dir().join(format!("ropewalk-demo-{}", std::process::id()));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|e| Failure::job(format_args!("cannot make the folder {}: {e}", path.display())))?;
        Ok(Work(path))
    }

    /// Removes the folders of demos that were killed.
    fn sweep() {
        let own = rustix::process::getuid().as_raw();
        for entry in std::fs::read_dir(std::env::temp_dir())
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = entry.file_name();
            let pid = name
                .to_str()
                .and_then(|n| n.strip_prefix("ropewalk-demo-")?.parse::<u32>().ok());
            let gone = pid.is_some_and(|p| !Path::new(&format!("/proc/{p}")).exists());
            if gone && entry.metadata().is_ok_and(|m| m.is_dir() && m.uid() == own) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, folder = %self.0.display(), "cannot remove");
        }
    }
}
