//! `ropewalk play`: plays recordings on the bus.

mod keys;
mod left_out;
mod outlets;
mod stage;

use crate::command::waiting::Waiting;
use crate::failure::{Failure, OrFail, Outcome};
use crate::numbers;
use crate::signals::Signals;
use clap::Args;
use left_out::LeftOut;
pub(crate) use left_out::{Reason, Refusal};
use outlets::{Outlet, Outlets, Remap, same};
use recording::{Channel, ChannelId, Encoding, Message, Pace, Player, Schedule, Set};
use ropewalk::{Flavour, Node};
use serde_json::json;
use stage::{SimulatedTime, Stage};
use stats::{Drops, Time};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

/// Play ROS 1 bags, MCAP files and rosbag2 recordings on this host's bus, with their original timing.
///
/// Skips data that cannot be played, reports it and counts it by reason; the exit code is then 3. At a terminal,
/// the space bar pauses, and `s` plays only the next message.
#[derive(Args)]
pub(crate) struct Options {
    /// Recordings: .bag, .mcap and .db3 files (.zstd is decompressed) and folders of rosbag2. Several are merged by the
    /// times of their messages.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Playback speed, relative to the recording.
    #[arg(
        short = 'r',
        long,
        visible_alias = "rate",
        default_value_t = 1.0,
        value_parser = numbers::speed
    )]
    speed: f64,
    /// Skip this many seconds at the start; latched and durable messages from before are published first.
    #[arg(
        short = 's',
        long,
        alias = "start-offset",
        default_value_t = 0.0,
        value_parser = numbers::seconds
    )]
    start: f64,
    /// Play only this many seconds of the recording.
    #[arg(short = 'u', long, alias = "playback-duration", value_name = "SECONDS", value_parser = numbers::duration)]
    duration: Option<f64>,
    /// Start again at the end, until Ctrl-C.
    #[arg(short = 'l', long = "loop")]
    repeat: bool,
    /// Shorten each gap in the recording to this many seconds.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1")]
    skip_gaps: Option<String>,
    /// Play only these topics (may be repeated).
    #[arg(long, value_name = "TOPIC")]
    topic: Vec<String>,
    /// The same, all topics after one option, as ros2 bag takes them.
    #[arg(long, value_name = "TOPIC", num_args = 1.., hide = true)]
    topics: Vec<String>,
    /// Exclude these topics (may be repeated).
    #[arg(long, alias = "exclude-topics", value_name = "TOPIC")]
    exclude: Vec<String>,
    /// Play a topic under another name, such as /scan:=/front/scan (may be repeated).
    #[arg(short = 'm', long, value_name = "FROM:=TO", value_parser = Remap::parse)]
    remap: Vec<Remap>,
    /// Folder with packages, or a package's own folder, in which to look up definitions that the recording lacks (may
    /// be repeated).
    #[arg(long = "path", value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// Publish the recording's time on /clock at this rate; a recorded /clock is left out.
    #[arg(long, value_name = "HZ", num_args = 0..=1, default_missing_value = "100")]
    clock: Option<String>,
    /// Start paused; the space bar continues.
    #[arg(short = 'p', long, alias = "start-paused")]
    pause: bool,
    /// Wait until every topic has a subscriber, at most this many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = numbers::seconds)]
    wait: Option<f64>,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

impl Options {
    fn wants(&self, topic: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|name| same(name, topic));
        let is_ours = self.clock.is_some() && same(topic, SimulatedTime::TOPIC);
        let all = self.topic.is_empty() && self.topics.is_empty();
        (all || named(&self.topic) || named(&self.topics)) && !named(&self.exclude) && !is_ours
    }
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Outcome {
    let mut files = options.files.clone();
    let longest_gap = optional(
        &options.skip_gaps,
        "--skip-gaps",
        1.0,
        &mut files,
        numbers::seconds,
    )?;
    let clock_hz = optional(&options.clock, "--clock", 100.0, &mut files, numbers::rate)?;
    if files.is_empty() {
        return Err(Failure::input("name a recording: ropewalk play FILE"));
    }
    let set = Set::open(&files).or_input()?;
    let first = set.first();
    let begin = first.unwrap_or(Time::ZERO);
    let end = set.summary().end.map_or(begin, |end| end.max(begin));
    let mut pace = Pace {
        speed: options.speed,
        offset: Duration::from_secs_f64(options.start),
        duration: options.duration.map(Duration::from_secs_f64),
        repeat: options.repeat,
        longest_gap: longest_gap.map(Duration::from_secs_f64),
    };
    // Checked before anything is published; without messages there is nothing to skip.
    if first.is_some() {
        Schedule::new(&pace, begin, end, Time::ZERO).or_input()?;
    } else {
        pace.offset = Duration::ZERO;
    }
    let signals = Signals::watch().or_job("watching signals")?;
    let node = Node::new("play").or_input()?;
    let mut left_out = LeftOut::default();
    let outlets = Outlets::new(&set, &node, options, &mut left_out)?;
    let clock = clock_hz
        .map(|hz| SimulatedTime::new(&node, flavour(&set), hz))
        .transpose()?;
    wait_for_subscribers(&outlets, options)?;
    let total = (!options.repeat).then(|| set.summary().messages);
    let mut stage = Stage::new(&signals, clock, options.speed, total);
    if stage.has_keys() {
        crate::screen::tell!("{}", stage::HELP);
    } else if options.pause {
        return Err(Failure::input(
            "--pause needs a terminal: its space bar ends the pause",
        ));
    }
    if options.pause {
        stage.toggle();
    }
    // Without publishers, a repeated recording would never wait.
    pace.repeat &= outlets.publishers().next().is_some();
    let latched = publish_latched(&set, &outlets, begin + pace.offset, &signals);
    let start = stage.now() + Duration::from_millis(20);
    let schedule = Schedule::new(&pace, begin, end, start).or_input()?;
    let (mut played, mut seen, mut whole) = (0u64, 0u64, pace.offset.is_zero() && pace.duration.is_none());
    for item in Player::new(schedule, || set.messages()) {
        let (due, message) = match item {
            Ok(due) => due,
            Err(error) => {
                stage.end();
                left_out.damage(&error);
                continue;
            }
        };
        seen += 1;
        if signals.stopped() {
            whole = false;
            break;
        }
        let topic = || {
            set.channel(message.channel)
                .map_or("", |channel| channel.topic.as_str())
        };
        let refusal = match outlets.get(message.channel) {
            Outlet::Unwanted => continue,
            Outlet::Refused(refusal) => Err(refusal.clone()),
            Outlet::Publisher(publisher, encoding) => {
                if !stage.wait(due, message.log_time)? {
                    whole = false;
                    break;
                }
                outlets::publish(publisher, encoding, &message.data)
            }
        };
        match refusal {
            Ok(()) => played += 1,
            Err(refusal) => {
                stage.end();
                left_out.count(refusal.reason, 1);
                left_out.tell(refusal.reason, topic(), &refusal.why);
            }
        }
        stage.show(played, message.log_time.since(begin));
    }
    stage.end();
    if whole && !pace.repeat {
        left_out.missing(set.expected().saturating_sub(seen));
    }
    report(options, &outlets, played, latched, &left_out)
}

/// Publishes the messages that durable publishers kept before `from`, as late subscribers would have received them, and
/// returns their number. The player reports what cannot be read or played when it skips that part.
fn publish_latched(set: &Set, outlets: &Outlets, from: Time, signals: &Signals) -> u64 {
    let mut kept: BTreeMap<ChannelId, VecDeque<Message>> = BTreeMap::new();
    let before =
        |m: &Result<Message, _>| m.as_ref().map_or(true, |m| m.log_time < from) && !signals.stopped();
    for message in set.messages().take_while(before).flatten() {
        let most = set.channel(message.channel).map_or(0, Channel::kept) as usize;
        if most > 0 && matches!(outlets.get(message.channel), Outlet::Publisher(..)) {
            let newest = kept.entry(message.channel).or_default();
            newest.push_back(message);
            if newest.len() > most {
                newest.pop_front();
            }
        }
    }
    let mut messages: Vec<_> = kept.into_values().flatten().collect();
    messages.sort_by_key(|m| m.log_time);
    let publish = |m: &Message| match outlets.get(m.channel) {
        Outlet::Publisher(publisher, encoding) => outlets::publish(publisher, encoding, &m.data).is_ok(),
        _ => false,
    };
    messages.iter().map(|m| u64::from(publish(m))).sum()
}

fn report(options: &Options, outlets: &Outlets, played: u64, latched: u64, left_out: &LeftOut) -> Outcome {
    let mut drops = Drops::default();
    outlets.publishers().for_each(|p| drops.merge(&p.stats().drops));
    let topics = outlets.publishers().count();
    if options.json {
        crate::screen::say!(
            "{}",
            json!({ "messages": played, "latched_before": latched, "topics": topics, "drops": drops,
                    "left_out": left_out.json(), "damaged_parts": left_out.parts() })
        );
    } else {
        let before = if latched > 0 {
            format!(" and {latched} earlier latched ones")
        } else {
            String::new()
        };
        crate::screen::say!("played {played} messages{before} on {topics} topics; lost: {drops}");
    }
    if left_out.is_empty() {
        return Ok(());
    }
    Err(Failure::lost(format_args!("left out by reason: {left_out}")))
}

/// The number of an option whose value is optional: a text that is no number is a file.
fn optional(
    text: &Option<String>,
    option: &str,
    default: f64,
    files: &mut Vec<PathBuf>,
    parse: fn(&str) -> Result<f64, String>,
) -> Result<Option<f64>, Failure> {
    let Some(text) = text else { return Ok(None) };
    match parse(text) {
        Ok(number) => Ok(Some(number)),
        Err(why) if text.parse::<f64>().is_ok() => {
            Err(Failure::input(format_args!("{option} {text}: {why}")))
        }
        Err(_) => {
            files.insert(0, text.into());
            Ok(Some(default))
        }
    }
}

/// The ROS generation whose `/clock` fits the recording.
fn flavour(set: &Set) -> Flavour {
    if set
        .channels()
        .any(|(_, channel)| channel.encoding == Encoding::Cdr)
    {
        Flavour::Ros2
    } else {
        Flavour::Ros1
    }
}

fn wait_for_subscribers(outlets: &Outlets, options: &Options) -> Outcome {
    let Some(wait) = options.wait else { return Ok(()) };
    let deadline = clock::monotonic() + Duration::from_secs_f64(wait);
    for publisher in outlets.publishers() {
        let left = deadline.since(clock::monotonic());
        let _waiting = Waiting::on(format!("a subscriber to {}", publisher.topic()));
        if !publisher.wait_for_subscribers(1, left) {
            return Err(Failure::job(format_args!(
                "no subscriber to {} in time",
                publisher.topic()
            )));
        }
    }
    Ok(())
}
