//! States to the peer whether a topic that it sends only when watched has a subscriber here (decision 352).

use super::Receiver;
use core::time::Duration;
use stats::Time;

/// First wait for a confirmation; the statement may be lost as well as its confirmation.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(2);

/// The statement about one topic.
#[derive(Debug)]
pub(crate) struct Watching {
    watched: bool,
    /// Counts the statements; 0 before the first.
    serial: u32,
    /// Whether it is to be sent now.
    due: bool,
    /// When it is sent again; none if it is confirmed or due.
    retry_at: Option<Time>,
    retry: Duration,
}

impl Watching {
    pub(super) fn new() -> Self {
        Watching {
            watched: false,
            serial: 0,
            due: false,
            retry_at: None,
            retry: FIRST_RETRY,
        }
    }

    /// Whether there is a subscriber, as last stated.
    pub(super) fn watched(&self) -> bool {
        self.watched
    }

    fn state(&mut self, watched: bool) {
        if self.serial == 0 || self.watched != watched {
            self.watched = watched;
            self.serial = self.serial.saturating_add(1);
            (self.due, self.retry_at, self.retry) = (true, None, FIRST_RETRY);
        }
    }

    fn sent(&mut self, now: Time) {
        self.due = false;
        self.retry_at = Some(now + self.retry);
        self.retry = (self.retry * 2).min(LAST_RETRY);
    }

    /// Its sender announced the topic again, and may have forgotten what was stated before.
    pub(super) fn announced_again(&mut self) {
        if self.serial > 0 {
            (self.due, self.retry_at, self.retry) = (true, None, FIRST_RETRY);
        }
    }

    fn confirmed(&mut self, serial: u32) {
        if serial == self.serial {
            (self.due, self.retry_at) = (false, None);
        } else if serial > self.serial && self.serial > 0 {
            // A late statement about an earlier announcement has a higher serial: this one has to outrank it.
            self.serial = serial.saturating_add(1);
            (self.due, self.retry_at) = (true, None);
        }
    }

    /// When it is to be sent again.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.retry_at
    }

    pub(super) fn tick(&mut self, now: Time) {
        if self.retry_at.is_some_and(|t| t <= now) {
            (self.due, self.retry_at) = (true, None);
        }
    }
}

impl Receiver {
    /// Whether the peer sends a topic only while it has a subscriber here.
    pub(crate) fn asks_watched(&self, topic: u32) -> bool {
        self.topics.get(&topic).is_some_and(|t| t.watching.is_some())
    }

    /// States whether a topic has a subscriber here, if its sender asks.
    pub(crate) fn state_watched(&mut self, topic: u32, watched: bool) {
        if let Some(w) = self.topics.get_mut(&topic).and_then(|t| t.watching.as_mut()) {
            w.state(watched);
        }
    }

    /// The peer confirmed a statement.
    pub(crate) fn watched_confirmed(&mut self, topic: u32, serial: u32) {
        if let Some(w) = self.topics.get_mut(&topic).and_then(|t| t.watching.as_mut()) {
            w.confirmed(serial);
        }
    }

    /// The next statement to send: topic, serial, and whether the topic has a subscriber.
    pub(crate) fn next_watched(&self) -> Option<(u32, u32, bool)> {
        let mut all = self
            .topics
            .iter()
            .filter_map(|(id, t)| Some((id, t.watching.as_ref()?)));
        let (topic, w) = all.find(|(_, w)| w.due)?;
        Some((*topic, w.serial, w.watched))
    }

    /// That statement was sent.
    pub(crate) fn watched_sent(&mut self, now: Time, topic: u32) {
        if let Some(w) = self.topics.get_mut(&topic).and_then(|t| t.watching.as_mut()) {
            w.sent(now);
        }
    }

    /// Makes statements due again that were not confirmed in time.
    pub(super) fn tick_watched(&mut self, now: Time) {
        let all = self.topics.values_mut().filter_map(|t| t.watching.as_mut());
        all.for_each(|w| w.tick(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_repeated_until_it_is_confirmed() {
        let at = Time::from_millis;
        let mut w = Watching::new();
        assert!(!w.due, "nothing is known yet");
        w.state(false);
        assert!(w.due);
        w.sent(at(0));
        w.tick(at(99));
        assert!(!w.due);
        w.tick(at(100));
        assert!(w.due);
        w.sent(at(100));
        assert_eq!(w.next_timeout(), Some(at(300)), "later each time");
        // A change does not wait, and an old confirmation is not its own.
        w.state(true);
        assert!(w.due);
        w.sent(at(150));
        w.confirmed(1);
        assert_eq!(w.next_timeout(), Some(at(250)));
        w.confirmed(2);
        assert_eq!((w.due, w.next_timeout()), (false, None));
        w.state(true);
        assert!(!w.due, "it is known");
        w.announced_again();
        assert!(w.due);
        w.sent(at(200));
        w.confirmed(7);
        assert_eq!((w.due, w.serial), (true, 8), "it outranks a late one of before");
        w.confirmed(u32::MAX);
        w.confirmed(u32::MAX);
        assert!(!w.due);
    }
}
