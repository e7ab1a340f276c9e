//! Whether what goes to a host over relays arrives there: by the host's own word, since a relay may promise and drop.

use stats::Time;
use std::time::Duration;

/// How often a host is told how much of it was opened, while anything is.
pub(super) const EVERY: Duration = Duration::from_secs(1);
/// So many messages without an answer for so long, and their way is doubted.
const UNANSWERED: u32 = 3;
const PATIENCE: Duration = Duration::from_secs(3);
/// For how long.
pub(super) const DOUBTED: Duration = Duration::from_secs(30);

/// Of one host.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// Messages sealed for it since its last word, and when the first was.
    unanswered: u32,
    since: Time,
    /// Messages of it that were opened with the present keys, and of how many it was told.
    pub(super) opened: u64,
    told: u64,
    told_at: Time,
    /// It wants to know.
    pub(super) asked: bool,
    /// What it said last: how many were opened there.
    heard: u64,
    /// Its last word's serial.
    serial: Option<u64>,
}

impl Evidence {
    /// A message was sealed for it.
    pub(super) fn sent(&mut self, now: Time) {
        if self.unanswered == 0 {
            self.since = now;
        }
        self.unanswered = self.unanswered.saturating_add(1);
    }

    /// It says that so many of this host's messages were opened there.
    pub(super) fn heard(&mut self, serial: u64, opened: u64, asks: bool) {
        if self.serial.is_some_and(|s| serial <= s) {
            return;
        }
        self.serial = Some(serial);
        self.asked |= asks;
        if opened > self.heard || !asks {
            self.unanswered = 0;
        }
        self.heard = self.heard.max(opened);
    }

    /// Whether it is to be told now, and whether it is to answer.
    pub(super) fn tells(&mut self, now: Time) -> Option<bool> {
        let news = self.opened > self.told;
        if !(news || self.asked) || now < self.told_at + EVERY {
            return None;
        }
        (self.told, self.told_at, self.asked) = (self.opened, now, false);
        Some(news)
    }

    /// Whether nothing arrives there, as it seems; asked once for what was sent so far.
    pub(super) fn is_lost(&mut self, now: Time) -> bool {
        let lost = self.unanswered >= UNANSWERED && now >= self.since + PATIENCE;
        if lost {
            self.unanswered = 0;
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

    #[test]
    fn a_way_is_doubted_when_nothing_is_said_to_arrive() {
        let mut e = Evidence::default();
        for ms in [0, 1000, 2000, 2900] {
            e.sent(at(ms));
            assert!(!e.is_lost(at(ms)));
        }
        assert!(e.is_lost(at(3000)));
        assert!(!e.is_lost(at(9000)), "once");
        e.sent(at(9000));
        e.sent(at(9100));
        assert!(!e.is_lost(at(13_000)), "too few to tell");
        e.sent(at(13_100));
        e.heard(1, 1, true);
        assert!(!e.is_lost(at(14_000)), "something arrived");
        (0..3).for_each(|_| e.sent(at(14_000)));
        e.heard(2, 1, true);
        e.heard(1, 9, false);
        assert!(
            e.is_lost(at(17_000)),
            "nothing more did, and an old word counts for nothing"
        );
    }

    #[test]
    fn words_are_said_once_a_second_and_only_while_there_is_something_to_say() {
        let mut e = Evidence::default();
        assert_eq!(e.tells(at(5000)), None);
        e.opened = 3;
        assert_eq!(e.tells(at(5000)), Some(true));
        e.opened = 4;
        assert_eq!(e.tells(at(5500)), None);
        assert_eq!(e.tells(at(6000)), Some(true));
        e.heard(1, 0, true);
        assert_eq!(e.tells(at(7000)), Some(false));
        assert_eq!(e.tells(at(9000)), None);
    }
}
