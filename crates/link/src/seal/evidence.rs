//! Evidence of whether messages to a host arrive over relays. Only the host's own reports count, since a
//! relay may promise and drop.

use proto::FlowKey;
use stats::Time;
use std::collections::BTreeMap;
use std::time::Duration;

/// Interval at which a host receives the number of its opened messages, while there are any.
pub(super) const EVERY: Duration = Duration::from_secs(1);
/// After this many messages without an answer for this long, their path is treated as unreliable.
const UNANSWERED: u32 = 3;
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a path is treated as unreliable.
pub(super) const DOUBTED: Duration = Duration::from_secs(30);
/// A message of up to this many bytes arrives within [`PATIENCE`] if the path works at all; larger ones take
/// the time that the air needs.
const SMALL: u32 = 1024;

/// Number of messages sent since the last answer, and since when.
#[derive(Debug, Default)]
struct Unanswered {
    count: u32,
    since: Time,
}

/// The evidence for one host.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// Small messages sealed for it since it last opened any. Only its own report of more opened messages
    /// answers them: a relay may forward tallies and drop messages.
    messages: Unanswered,
    /// The counts of `messages` by flow, since it may have declined a flow.
    by_flow: BTreeMap<FlowKey, u32>,
    /// Tallies, greetings and large messages, which any report of it answers.
    asked_there: Unanswered,
    /// Its messages opened with the present keys, and how many of them were reported to it.
    pub(super) opened: u64,
    reported: u64,
    reported_at: Time,
    /// Whether it requested a report.
    pub(super) asked: bool,
    /// The number of opened messages in its last report.
    heard: u64,
    /// The serial of its last report.
    serial: Option<u64>,
}

impl Unanswered {
    fn add(&mut self, now: Time) {
        if self.count == 0 {
            self.since = now;
        }
        self.count = self.count.saturating_add(1);
    }

    fn is_lost(&self, now: Time) -> bool {
        self.count >= UNANSWERED && now >= self.since + PATIENCE
    }
}

impl Evidence {
    /// Records a message of this many bytes that was sealed for it.
    pub(super) fn sent(&mut self, now: Time, flow: &FlowKey, bytes: u32) {
        if bytes > SMALL {
            return self.asks(now);
        }
        self.messages.add(now);
        match self.by_flow.get_mut(flow) {
            Some(count) => *count += 1,
            None => drop(self.by_flow.insert(flow.clone(), 1)),
        }
    }

    /// Records a tally or a greeting to it that requires an answer.
    pub(super) fn asks(&mut self, now: Time) {
        self.asked_there.add(now);
    }

    /// It declined a flow.
    pub(super) fn declined(&mut self, flow: &FlowKey) {
        let of_it = self.by_flow.remove(flow).unwrap_or_default();
        self.messages.count = self.messages.count.saturating_sub(of_it);
    }

    /// A greeting of it arrived that answers one of this host's.
    pub(super) fn greeted(&mut self) {
        self.asked_there.count = 0;
    }

    /// It reported that it opened this many of this host's messages.
    pub(super) fn heard(&mut self, serial: u64, opened: u64, asks: bool) {
        if self.serial.is_some_and(|s| serial <= s) {
            return;
        }
        self.serial = Some(serial);
        self.asked |= asks;
        if opened > self.heard {
            self.answered();
        } else if !asks {
            self.asked_there.count = 0;
        }
        self.heard = self.heard.max(opened);
    }

    fn answered(&mut self) {
        (self.messages.count, self.asked_there.count) = (0, 0);
        self.by_flow.clear();
    }

    /// Returns whether a report to it is due, and whether the report requests an answer.
    pub(super) fn report_due(&mut self, now: Time) -> Option<bool> {
        let news = self.opened > self.reported;
        if !(news || self.asked) || now < self.reported_at + EVERY {
            return None;
        }
        (self.reported, self.reported_at, self.asked) = (self.opened, now, false);
        Some(news)
    }

    /// Returns whether the way seems to lose everything. Starts counting again if so.
    pub(super) fn is_lost(&mut self, now: Time) -> bool {
        let lost = self.messages.is_lost(now) || self.asked_there.is_lost(now);
        if lost {
            self.answered();
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    fn flow(topic: &str) -> FlowKey {
        FlowKey {
            source: 1,
            topic: topic.into(),
            first: 2,
            variant: 0,
        }
    }

    #[test]
    fn a_way_is_doubted_when_nothing_is_said_to_arrive() {
        let (mut e, scan) = (Evidence::default(), flow("/scan"));
        for ms in [0, 1000, 2000, 2900] {
            e.sent(at(ms), &scan, 100);
            assert!(!e.is_lost(at(ms)));
        }
        assert!(e.is_lost(at(3000)));
        assert!(!e.is_lost(at(9000)), "once");
        e.sent(at(9000), &scan, 100);
        e.sent(at(9100), &scan, 100);
        assert!(!e.is_lost(at(13_000)), "too few to be sure");
        e.sent(at(13_100), &scan, 100);
        e.heard(1, 1, true);
        assert!(!e.is_lost(at(14_000)), "something arrived");
        (0..3).for_each(|_| e.sent(at(14_000), &scan, 100));
        e.heard(2, 1, true);
        e.heard(1, 9, false);
        assert!(
            e.is_lost(at(17_000)),
            "nothing else arrived, and an old report does not count"
        );
    }

    #[test]
    fn a_way_that_lets_tallies_pass_and_no_messages_is_doubted() {
        let (mut e, scan, image) = (Evidence::default(), flow("/scan"), flow("/image"));
        (0..60).for_each(|i| e.sent(at(50 * i), &scan, 100));
        (1..4).for_each(|serial| e.heard(serial, 0, false));
        assert!(e.is_lost(at(3000)));
        // A large message takes its time, and an answer shows that the way works.
        (0..60).for_each(|i| e.sent(at(4000 + 50 * i), &image, 1_000_000));
        (4..7).for_each(|serial| e.heard(serial, 0, false));
        assert!(!e.is_lost(at(9000)));
        (0..3).for_each(|_| e.sent(at(9000), &image, 1_000_000));
        assert!(e.is_lost(at(12_000)), "without an answer it is lost");
    }

    #[test]
    fn declined_messages_are_no_evidence_of_loss() {
        let (mut e, scan, map) = (Evidence::default(), flow("/scan"), flow("/map"));
        (0..3).for_each(|_| e.sent(at(0), &map, 100));
        (0..2).for_each(|_| e.sent(at(0), &scan, 100));
        e.declined(&map);
        assert!(!e.is_lost(at(4000)));
        e.sent(at(4000), &scan, 100);
        e.declined(&map);
        assert!(e.is_lost(at(4000)), "and it does not excuse another flow");
    }

    #[test]
    fn greetings_without_an_answer_are_evidence() {
        let mut e = Evidence::default();
        [0, 500, 1500].into_iter().for_each(|ms| e.asks(at(ms)));
        e.greeted();
        assert!(!e.is_lost(at(3500)));
        [4000, 4500, 5500].into_iter().for_each(|ms| e.asks(at(ms)));
        assert!(e.is_lost(at(7000)));
    }

    #[test]
    fn words_are_said_once_a_second_and_only_while_there_is_something_to_say() {
        let mut e = Evidence::default();
        assert_eq!(e.report_due(at(5000)), None);
        e.opened = 3;
        assert_eq!(e.report_due(at(5000)), Some(true));
        e.opened = 4;
        assert_eq!(e.report_due(at(5500)), None);
        assert_eq!(e.report_due(at(6000)), Some(true));
        e.heard(1, 0, true);
        assert_eq!(e.report_due(at(7000)), Some(false));
        assert_eq!(e.report_due(at(9000)), None);
    }
}
