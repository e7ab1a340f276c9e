//! Current statistics of a received topic.

use serde::Serialize;
use stats::{Delay, Drops, Flow, FlowMetrics, Jitter, Spread, Time};
use std::time::Duration;

/// A span ends after this time if it has enough messages.
const SPAN: Duration = Duration::from_secs(1);
/// A span ends after this time in any case.
const LONGEST: Duration = Duration::from_secs(10);

/// Statistics of a peer's topic over the last second or so, as this host received it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Recent {
    /// Messages per second.
    pub hz: f64,
    /// Payload.
    pub mbit_s: f64,
    /// Delay from the publisher's stamp to publication here. The stamp is by the clock of the publisher's
    /// host, so the delay is as accurate as the two clocks agree.
    pub delay_ms: Delay,
    /// Time between two messages.
    pub period_ms: Spread,
    /// Jitter that the path added to the time between two messages.
    pub added_jitter_ms: Jitter,
    /// Messages that arrived before their stamp: the clocks disagree by more than the delay.
    pub negative_delays: u64,
}

/// Measures one topic, span after span.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    current: Flow,
    since: Time,
    last: Option<Recent>,
}

impl Spans {
    /// Counts a message of `bytes` bytes, stamped at `stamp`, that is published at `now`. Both are times of
    /// day.
    pub(crate) fn received(&mut self, stamp: Time, now: Time, bytes: u64) {
        self.current.received(stamp, now, bytes);
    }

    /// The last completed span.
    pub(crate) fn recent(&mut self, now: Time) -> Option<Recent> {
        let age = now.since(self.since);
        let suffices = self.current.count() >= 2 && age >= SPAN;
        if suffices || age >= LONGEST {
            self.last = (self.current.count() > 0).then(|| recent(&self.current));
            // The next span's first period begins with this span's last message, so that period is lost.
            self.current = Flow::new();
            self.since = now;
        }
        self.last.clone()
    }
}

fn recent(flow: &Flow) -> Recent {
    let FlowMetrics {
        mbit_s,
        delay_ms,
        period_ms,
        added_jitter_ms,
        ..
    } = flow.metrics(flow.count(), &Drops::default());
    Recent {
        hz: flow.rate_hz(),
        mbit_s,
        delay_ms,
        period_ms,
        added_jitter_ms,
        negative_delays: flow.negative_delays(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_shown_when_it_is_over_and_forgotten_when_nothing_comes() {
        let mut spans = Spans::default();
        let at = |ms: u64| Time::from_millis(1_000_000 + ms);
        assert_eq!(spans.recent(at(0)), None);
        for i in 0..20 {
            spans.received(at(i * 50), at(i * 50 + 7), 1000);
        }
        assert_eq!(spans.recent(at(999)), None, "not over yet");
        let shown = spans.recent(at(1000)).expect("a span");
        assert!((shown.hz - 20.0).abs() < 0.01, "{shown:?}");
        assert!((shown.delay_ms.mean - 7.0).abs() < 0.1, "{shown:?}");
        assert_eq!(shown.added_jitter_ms.std, 0.0);
        assert_eq!(spans.recent(at(5000)), Some(shown), "nothing newer");
        assert_eq!(spans.recent(at(11_000)), None);
    }

    #[test]
    fn a_slow_topic_is_waited_for() {
        let mut spans = Spans::default();
        let at = |s: u64| Time::from_millis((1000 + s) * 1000);
        spans.recent(at(0));
        spans.received(at(1), at(1), 8);
        spans.recent(at(2));
        spans.received(at(4), at(4), 8);
        let shown = spans.recent(at(4)).expect("a span");
        assert!((shown.hz - 1.0 / 3.0).abs() < 0.01, "{shown:?}");
    }
}
