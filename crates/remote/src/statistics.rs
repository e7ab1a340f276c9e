//! Received and sent messages, by kind, and dropped ones, by reason.

use crate::clock::now;
use crate::sync::lock;
use ropewalk::guard::{self, LOG_INTERVAL};
use stats::{Seldom, Time, Window};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

/// Window of the rates.
const SPAN: Duration = Duration::from_secs(5);
/// Maximum frames of one kind from which a rate is computed.
const FRAMES: usize = 512;
/// Maximum number of kinds that are counted separately; further kinds are counted together.
const MOST_KINDS: usize = 512;

/// Counts of what an end has received, sent and dropped since it started.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// By kind: commands at a robot, telemetry at a controller.
    pub received: BTreeMap<String, Rate>,
    /// By kind: telemetry at a robot, commands at a controller.
    pub sent: BTreeMap<String, Rate>,
    /// Number of messages that were not executed, delivered or sent, by reason. `callback_panicked` counts panics in
    /// callbacks of this end's user: each panic loses that callback's event, and the next event is delivered.
    pub dropped: BTreeMap<&'static str, u64>,
}

/// Traffic of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// Messages since the start.
    pub messages: u64,
    /// Bytes of their bodies since the start.
    pub bytes: u64,
    /// Messages per second, over the last 5 s.
    pub hz: f64,
    /// Thousands of bytes per second, over the last 5 s.
    pub kb_s: f64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    received: BTreeMap<String, Traffic>,
    sent: BTreeMap<String, Traffic>,
    dropped: BTreeMap<&'static str, u64>,
    panics: Option<Seldom>,
    refusals: Option<Seldom>,
}

#[derive(Debug)]
struct Traffic {
    messages: u64,
    bytes: u64,
    window: Window,
}

impl Counters {
    pub(crate) fn received(&self, kind: &str, bytes: usize, now: Time) {
        add(&mut lock(&self.0).received, kind, bytes, now);
    }

    pub(crate) fn sent(&self, kind: &str, bytes: usize, now: Time) {
        add(&mut lock(&self.0).sent, kind, bytes, now);
    }

    pub(crate) fn dropped(&self, reason: &'static str, messages: u64) {
        *lock(&self.0).dropped.entry(reason).or_default() += messages;
    }

    /// Returns whether to log a refusal, with the number of refusals not logged since the last one: peers can cause any
    /// number of them.
    pub(crate) fn refusal_to_log(&self) -> Option<u64> {
        let mut counted = lock(&self.0);
        counted
            .refusals
            .get_or_insert(Seldom::every(LOG_INTERVAL))
            .lets(now())
    }

    /// Runs a user's callback. Returns `None` if it panicked; the panic is counted, and logged as one of `what`.
    pub(crate) fn guarded<T>(&self, what: &str, f: impl FnOnce() -> T) -> Option<T> {
        match guard::catch(f) {
            Ok(given) => Some(given),
            Err(panicked) => {
                self.dropped("callback_panicked", 1);
                let mut counted = lock(&self.0);
                let panics = counted.panics.get_or_insert(Seldom::every(LOG_INTERVAL));
                if panics.lets(now()).is_some() {
                    tracing::error!(error = %panicked, "{what} panicked");
                }
                panicked.forget();
                None
            }
        }
    }

    pub(crate) fn statistics(&self, now: Time) -> Statistics {
        let mut counted = lock(&self.0);
        Statistics {
            received: rates(&mut counted.received, now),
            sent: rates(&mut counted.sent, now),
            dropped: counted.dropped.clone(),
        }
    }
}

fn add(kinds: &mut BTreeMap<String, Traffic>, kind: &str, bytes: usize, now: Time) {
    let kind = if kinds.len() < MOST_KINDS || kinds.contains_key(kind) {
        kind
    } else {
        "others"
    };
    if !kinds.contains_key(kind) {
        let window = Window::new(SPAN, FRAMES);
        kinds.insert(
            kind.to_owned(),
            Traffic {
                messages: 0,
                bytes: 0,
                window,
            },
        );
    }
    if let Some(traffic) = kinds.get_mut(kind) {
        traffic.messages += 1;
        traffic.bytes += bytes as u64;
        traffic.window.record(now, bytes as u64);
    }
}

fn rates(kinds: &mut BTreeMap<String, Traffic>, now: Time) -> BTreeMap<String, Rate> {
    let rate = |traffic: &mut Traffic| {
        let rates = traffic.window.rates(now);
        Rate {
            messages: traffic.messages,
            bytes: traffic.bytes,
            hz: rates.hz,
            kb_s: rates.bytes_s / 1_000.0,
        }
    };
    kinds
        .iter_mut()
        .map(|(kind, traffic)| (kind.clone(), rate(traffic)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_the_last_seconds_and_kinds_are_bounded() {
        let counters = Counters::default();
        for i in 0..100 {
            counters.received("a.Twist", 20, Time::from_millis(i * 100));
        }
        let rate = counters.statistics(Time::from_millis(9_900)).received["a.Twist"];
        assert_eq!((rate.messages, rate.bytes), (100, 2_000));
        assert!(
            (rate.hz - 10.0).abs() < 1e-9 && (rate.kb_s - 0.2).abs() < 1e-9,
            "{rate:?}"
        );
        for i in 0..10_000 {
            counters.sent(&format!("kind {i}"), 1, Time::ZERO);
        }
        let sent = counters.statistics(Time::ZERO).sent;
        assert_eq!(
            (sent.len(), sent["others"].messages),
            (MOST_KINDS + 1, 10_000 - MOST_KINDS as u64)
        );
    }
}
