//! `ropewalk topic hz` and `ropewalk topic bw`.

use super::{How, subscribe};
use crate::failure::{Failure, OrFail, Outcome};
use crate::numbers;
use crate::signals::Signals;
use clap::Args;
use clock::{PollFd, PollFlags};
use ropewalk::{Node, Subscriber};
use serde_json::json;
use stats::{Drops, Window};
use std::io::Write;
use std::time::Duration;

#[derive(Args)]
pub(super) struct Options {
    /// One or more topics.
    #[arg(required = true, value_name = "TOPIC")]
    topics: Vec<String>,
    /// Average over this many seconds.
    #[arg(long, default_value_t = 5.0, value_parser = numbers::duration)]
    window: f64,
    /// Stop after this many seconds.
    #[arg(long, value_parser = numbers::duration)]
    duration: Option<f64>,
    /// Print a line of JSON every second, for each topic.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    how: How,
}

/// A topic that is measured.
struct Measured {
    subscriber: Subscriber,
    window: Window,
}

/// Most messages taken from a topic before the others have their turn.
const MAX_TAKEN: usize = 4096;
/// Longest time until a signal is noticed.
const INTERVAL: Duration = Duration::from_millis(100);

pub(super) fn run(node: &Node, measure: &Options, signals: &Signals, bandwidth: bool) -> Outcome {
    let span = Duration::from_secs_f64(measure.window);
    let one = |topic: &String| {
        let subscriber = subscribe(node, topic, &measure.how, None)?;
        let window = Window::new(span, 100_000);
        Ok(Measured { subscriber, window })
    };
    let mut all: Vec<Measured> = measure.topics.iter().map(one).collect::<Result<_, Failure>>()?;
    let start = clock::monotonic();
    let end = measure.duration.map(|d| start + Duration::from_secs_f64(d));
    let mut next = start + Duration::from_secs(1);
    let mut out = crate::screen::stdout();
    while !signals.stopped() && end.is_none_or(|end| clock::monotonic() < end) {
        let until = next.min(clock::monotonic() + INTERVAL);
        let mut fds: Vec<_> = all
            .iter()
            .map(|m| PollFd::new(&m.subscriber, PollFlags::IN))
            .collect();
        clock::wait(&mut fds, Some(until), Duration::ZERO).or_job("waiting")?;
        all.iter_mut().try_for_each(Measured::count)?;
        if clock::monotonic() < next {
            continue;
        }
        next += Duration::from_secs(1);
        let lines = all.iter_mut().map(|m| m.line(measure, bandwidth));
        if lines
            .map(|line| writeln!(out, "{line}"))
            .any(|written| written.is_err())
        {
            break;
        }
    }
    Ok(())
}

impl Measured {
    /// Takes the waiting messages, at most [`MAX_TAKEN`].
    fn count(&mut self) -> Outcome {
        for _ in 0..MAX_TAKEN {
            let Some(message) = self.subscriber.take().or_job("taking a message")? else {
                break;
            };
            let bytes = message.ros1_len().or_job("a message")? as u64;
            self.window.record(clock::monotonic(), bytes);
        }
        Ok(())
    }

    fn line(&mut self, measure: &Options, bandwidth: bool) -> String {
        let rates = self.window.rates(clock::monotonic());
        let drops = self.subscriber.stats().drops;
        let topic = self.subscriber.topic();
        match (measure.json, measure.topics.len()) {
            (true, _) => rates_json(topic, &rates, &drops),
            (_, 1) => rates_text(&rates, &drops, bandwidth),
            _ => format!("{topic}: {}", rates_text(&rates, &drops, bandwidth)),
        }
    }
}

fn rates_text(rates: &stats::Rates, drops: &Drops, bandwidth: bool) -> String {
    if rates.messages == 0 {
        return "no messages".into();
    }
    let ms = |ns: f64| ns / 1e6;
    let lost = if drops.total() > 0 {
        format!(", lost: {drops}")
    } else {
        String::new()
    };
    if bandwidth {
        return format!(
            "{:.3} Mbit/s, {} messages of {:.0} bytes ({} to {}){lost}",
            rates.bytes_s * 8.0 / 1e6,
            rates.messages,
            rates.bytes_mean,
            rates.bytes_min,
            rates.bytes_max
        );
    }
    let p = &rates.period;
    format!(
        "{:.3} Hz, period {:.3} ms (min {:.3}, max {:.3}, std {:.3}), {} messages{lost}",
        rates.hz,
        ms(p.mean()),
        ms(p.min() as f64),
        ms(p.max() as f64),
        ms(p.std()),
        rates.messages
    )
}

fn rates_json(topic: &str, rates: &stats::Rates, drops: &Drops) -> String {
    let ms = |ns: f64| ns / 1e6;
    let p = &rates.period;
    json!({
        "topic": topic,
        "rate_hz": rates.hz,
        "period_ms": { "mean": ms(p.mean()), "std": ms(p.std()), "min": ms(p.min() as f64), "max": ms(p.max() as f64) },
        "mbit_s": rates.bytes_s * 8.0 / 1e6,
        "message_bytes": { "mean": rates.bytes_mean, "min": rates.bytes_min, "max": rates.bytes_max },
        "messages": rates.messages,
        "drops": drops,
    })
    .to_string()
}
