//! `ropewalk play`: a recording onto the bus, in time.

use crate::failure::{Failure, OrFail, Outcome};
use crate::signals::Signals;
use clap::Args;
use recording::{ChannelId, Encoding, Pace, Player, Recording, Schedule};
use ropewalk::{Node, Publisher};
use serde_json::json;
use stats::Drops;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

/// Plays a ROS 1 bag or an MCAP file onto this host's bus, at the times it was recorded.
#[derive(Args)]
pub(crate) struct Options {
    /// The recording.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How many times as fast as recorded.
    #[arg(long, default_value_t = 1.0)]
    speed: f64,
    /// Skip the first seconds.
    #[arg(long, default_value_t = 0.0, value_parser = seconds)]
    start: f64,
    /// Play so many seconds of the recording only.
    #[arg(long, value_parser = seconds)]
    duration: Option<f64>,
    /// Begin again at the end, until Ctrl-C.
    #[arg(long = "loop")]
    repeat: bool,
    /// Play these topics only (may be repeated).
    #[arg(long, value_name = "TOPIC")]
    topic: Vec<String>,
    /// Wait until every topic has a subscriber, at most so many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    wait: Option<f64>,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    let good = text.parse().ok().filter(|s: &f64| (0.0..=1e7).contains(s));
    good.ok_or_else(|| "give a number of seconds, 0 or more".into())
}

/// Plays.
pub(crate) fn run(options: &Options) -> Outcome {
    let recording = Recording::open(&options.file).or_input()?;
    let summary = recording.summary();
    let (Some(first), Some(last)) = (summary.start, summary.end) else {
        return Err(Failure::input(format_args!(
            "{} has no messages",
            options.file.display()
        )));
    };
    let pace = Pace {
        speed: options.speed,
        offset: Duration::from_secs_f64(options.start),
        duration: options.duration.map(Duration::from_secs_f64),
        repeat: options.repeat,
    };
    // Checked before anything is published.
    Schedule::new(&pace, first, last, clock::monotonic()).or_input()?;
    let signals = Signals::watch().or_job("watching signals")?;
    let node = Node::new("play").or_input()?;
    let publishers = publishers(&recording, &node, options)?;
    let deadline = clock::monotonic() + Duration::from_secs_f64(options.wait.unwrap_or(0.0));
    for publisher in publishers.values() {
        let left = deadline.since(clock::monotonic());
        if options.wait.is_some() && !publisher.wait_for_subscribers(1, left) {
            return Err(Failure::job(format_args!(
                "nobody subscribed to {} in time",
                publisher.topic()
            )));
        }
    }
    let mut progress = Progress {
        total: summary.messages,
        shown: clock::monotonic(),
        terminal: std::io::stderr().is_terminal(),
    };
    let start = clock::monotonic() + Duration::from_millis(20);
    let schedule = Schedule::new(&pace, first, last, start).or_input()?;
    let mut played = 0u64;
    for due in Player::new(schedule, || recording.messages()) {
        let (due, message) = due.or_input()?;
        let Some(publisher) = publishers.get(&message.channel) else {
            continue;
        };
        if !clock::sleep_until(due, Duration::ZERO, || signals.stopped()).or_job("waiting")? {
            break;
        }
        let published = match recording.channel(message.channel).encoding {
            Encoding::Cdr => publisher.publish_cdr(&message.data),
            _ => publisher.publish_ros1(&message.data),
        };
        published.map_err(|e| Failure::input(format_args!("{}: {e}", publisher.topic())))?;
        played += 1;
        progress.show(played, message.log_time.since(first));
    }
    progress.end();
    let drops = publishers.values().fold(Drops::default(), |mut all, p| {
        all.merge(&p.stats().drops);
        all
    });
    if options.json {
        crate::screen::say!(
            "{}",
            json!({ "messages": played, "topics": publishers.len(), "drops": drops })
        );
    } else {
        crate::screen::say!(
            "played {played} messages on {} topics; lost: {drops}",
            publishers.len()
        );
    }
    Ok(())
}

fn publishers(
    recording: &Recording,
    node: &Node,
    options: &Options,
) -> Result<BTreeMap<ChannelId, Publisher>, Failure> {
    for topic in &options.topic {
        if !recording.channels().iter().any(|c| c.topic == *topic) {
            let known: Vec<_> = recording.channels().iter().map(|c| c.topic.as_str()).collect();
            return Err(Failure::input(format_args!(
                "{topic} is not in the recording; it has {}",
                known.join(", ")
            )));
        }
    }
    let mut publishers = BTreeMap::new();
    for channel in recording.channels() {
        if !options.topic.is_empty() && !options.topic.contains(&channel.topic) {
            continue;
        }
        if let Encoding::Other(encoding) = &channel.encoding {
            crate::screen::tell!("{}: messages in {encoding} are not played", channel.topic);
            continue;
        }
        let schema = crate::types::of_channel(channel)?;
        publishers.insert(
            channel.id,
            node.publisher_with(&channel.topic, &schema, crate::offers::of_channel(channel))
                .or_job("publishing")?,
        );
    }
    if publishers.is_empty() {
        return Err(Failure::input(format_args!(
            "{} has nothing to play",
            options.file.display()
        )));
    }
    Ok(publishers)
}

/// A line on the terminal that tells how far it is.
struct Progress {
    total: u64,
    shown: stats::Time,
    terminal: bool,
}

impl Progress {
    fn show(&mut self, played: u64, at: Duration) {
        let now = clock::monotonic();
        if self.terminal && now.since(self.shown) > Duration::from_millis(200) {
            self.shown = now;
            crate::screen::draw(&format!(
                "\r{:.1} s, {played} of {} messages ",
                at.as_secs_f64(),
                self.total
            ));
        }
    }

    fn end(&self) {
        if self.terminal {
            crate::screen::draw("\r\x1b[K");
        }
    }
}
