//! `ropewalk topic delay`: age of messages, by the stamps in their headers.

use super::{Topic, follow, subscribe};
use crate::failure::{Failure, OrFail, Outcome};
use crate::numbers;
use crate::signals::Signals;
use clap::Args;
use ropewalk::{Message, Node};
use schema::Value;
use serde_json::json;
use stats::Time;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::Write;
use std::time::Duration;

/// Measure the age of messages on arrival, by `header.stamp`
///
///   ropewalk topic delay /scan
///   ropewalk topic delay /scan --duration 10 --json
///
/// Between two hosts, the clocks have to agree.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Options {
    #[command(flatten)]
    topic: Topic,
    /// Average over this many seconds.
    #[arg(long, default_value_t = 5.0, value_parser = numbers::duration)]
    window: f64,
    /// Stop after this many seconds.
    #[arg(long, value_parser = numbers::duration)]
    duration: Option<f64>,
    /// Print a line of JSON every second.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(node: &Node, options: &Options, signals: &Signals) -> Outcome {
    let subscriber = subscribe(node, &options.topic.topic, &options.topic.how, None)?;
    let delays = RefCell::new(Delays::new(Duration::from_secs_f64(options.window)));
    let mut next = clock::monotonic() + Duration::from_secs(1);
    let mut out = crate::screen::stdout();
    let count = |message: Message| {
        let now = clock::realtime();
        let stamp = stamp(&message)?;
        // Signed: the stamp of a clock that is ahead is later than now.
        let delay = now.as_nanos() as f64 - stamp;
        delays.borrow_mut().add(clock::monotonic(), delay / 1e9);
        Ok(true)
    };
    let tick = || {
        if clock::monotonic() < next {
            return Ok(true);
        }
        next += Duration::from_secs(1);
        let mut delays = delays.borrow_mut();
        let line = match delays.summary(clock::monotonic()) {
            None if options.json => json!({ "messages": 0 }).to_string(),
            None => "no messages".into(),
            Some(s) if options.json => s.json(),
            Some(s) => s.text(),
        };
        Ok(writeln!(out, "{line}").is_ok())
    };
    follow(&subscriber, signals, options.duration, count, tick)
}

/// The stamp of a message's header in nanoseconds since 1970.
fn stamp(message: &Message) -> Result<f64, Failure> {
    let value = message.small_value().or_job("a message")?;
    let stamp = value.get("header.stamp").map_err(|_| {
        let ty = message.schema().name();
        Failure::input(format_args!(
            "messages of {ty} have no header.stamp to measure a delay by"
        ))
    })?;
    let part = |names: [&str; 2]| {
        let found = names.iter().find_map(|name| stamp.get(name).ok());
        found.as_ref().and_then(Value::as_f64).unwrap_or(0.0)
    };
    Ok(part(["secs", "sec"]) * 1e9 + part(["nsecs", "nanosec"]))
}

/// Delays of the last seconds.
struct Delays {
    span: Duration,
    all: VecDeque<(Time, f64)>,
}

/// In seconds.
#[derive(Debug, PartialEq)]
struct Summary {
    mean: f64,
    min: f64,
    max: f64,
    std: f64,
    messages: usize,
}

impl Delays {
    /// Most messages kept.
    const MAX: usize = 100_000;

    fn new(span: Duration) -> Self {
        let all = VecDeque::new();
        Delays { span, all }
    }

    fn add(&mut self, now: Time, delay: f64) {
        if self.all.len() == Self::MAX {
            self.all.pop_front();
        }
        self.all.push_back((now, delay));
    }

    fn summary(&mut self, now: Time) -> Option<Summary> {
        while self.all.front().is_some_and(|(at, _)| now.since(*at) > self.span) {
            self.all.pop_front();
        }
        let messages = self.all.len();
        let delays = || self.all.iter().map(|(_, delay)| *delay);
        let mean = delays().sum::<f64>() / messages as f64;
        let variance = delays().map(|d| (d - mean).powi(2)).sum::<f64>() / messages as f64;
        (messages > 0).then(|| Summary {
            mean,
            min: delays().fold(f64::INFINITY, f64::min),
            max: delays().fold(f64::NEG_INFINITY, f64::max),
            std: variance.sqrt(),
            messages,
        })
    }
}

impl Summary {
    fn text(&self) -> String {
        let ms = |s: f64| s * 1e3;
        format!(
            "average delay {:.3} ms (min {:.3}, max {:.3}, std {:.3}), {} messages",
            ms(self.mean),
            ms(self.min),
            ms(self.max),
            ms(self.std),
            self.messages
        )
    }

    fn json(&self) -> String {
        let ms = |s: f64| s * 1e3;
        json!({
            "delay_ms": { "mean": ms(self.mean), "min": ms(self.min), "max": ms(self.max), "std": ms(self.std) },
            "messages": self.messages,
        })
        .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_leave_the_window_and_may_be_negative() {
        let mut delays = Delays::new(Duration::from_secs(1));
        assert_eq!(delays.summary(Time(0)), None);
        delays.add(Time(0), 9.0);
        delays.add(Time(1_500_000_000), -0.5);
        delays.add(Time(1_600_000_000), 0.5);
        let summary = delays.summary(Time(2_000_000_000)).expect("two");
        assert_eq!(
            (summary.messages, summary.mean, summary.min, summary.std),
            (2, 0.0, -0.5, 0.5)
        );
    }
}
