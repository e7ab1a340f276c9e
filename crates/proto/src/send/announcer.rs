//! Announces a topic to the peer until the peer has understood it.

use crate::wire::AckState;
use core::time::Duration;
use stats::Time;

/// First wait for an answer; the answer may be lost as well as the announcement.
const FIRST_RETRY: Duration = Duration::from_millis(100);
/// Factor by which each further wait is longer.
const WIDENING: f64 = 1.5;
const LAST_RETRY: Duration = Duration::from_secs(2);

/// The announcement of one topic in the current session.
#[derive(Debug)]
pub(crate) struct Announcer {
    edition: u32,
    bytes: Vec<u8>,
    /// Bytes from here on are still to be sent.
    at: usize,
    /// Sending stops here: at the end, or after one piece if only an answer is needed.
    until: usize,
    retry: Duration,
    retry_at: Time,
    understood: bool,
    /// The verdict on this or an earlier edition in this session.
    accepted: Option<bool>,
}

impl Announcer {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let mut a = Announcer {
            edition: 0,
            bytes,
            at: 0,
            until: 0,
            retry: FIRST_RETRY,
            retry_at: Time::MAX,
            understood: false,
            accepted: None,
        };
        a.begin();
        a
    }

    fn begin(&mut self) {
        self.edition = self.edition.saturating_add(1);
        (self.at, self.until) = (0, self.bytes.len());
        (self.retry, self.retry_at) = (FIRST_RETRY, Time::MAX);
        self.understood = false;
    }

    /// Announces a change. Messages keep flowing meanwhile.
    pub(crate) fn change(&mut self, bytes: Vec<u8>) {
        self.bytes = bytes;
        self.begin();
    }

    /// The peer knows nothing (any more).
    pub(crate) fn restart(&mut self, bytes: Vec<u8>) {
        self.accepted = None;
        self.change(bytes);
    }

    /// There is nothing to announce in this session.
    pub(crate) fn keep_silent(&mut self) {
        self.accepted = None;
        (self.understood, self.retry_at) = (true, Time::MAX);
    }

    pub(crate) fn edition(&self) -> u32 {
        self.edition
    }

    pub(crate) fn accepted(&self) -> Option<bool> {
        self.accepted
    }

    pub(crate) fn total(&self) -> u32 {
        self.bytes.len() as u32
    }

    /// Whether a piece is due.
    pub(crate) fn is_due(&self) -> bool {
        !self.understood && self.at < self.until
    }

    /// The next piece of at most `room` bytes: offset, whether an answer is needed, bytes. `air`: airtime of such a
    /// piece.
    pub(crate) fn piece(&mut self, now: Time, room: usize, air: Duration) -> (u32, bool, &[u8]) {
        let at = self.at;
        self.at = at.saturating_add(room).min(self.until);
        let poll = self.at == self.until;
        if poll {
            self.retry_at = now + self.retry.max(air * 2).min(LAST_RETRY);
            self.retry = self.retry.mul_f64(WIDENING).min(LAST_RETRY);
        }
        (at as u32, poll, &self.bytes[at..self.at])
    }

    /// Whether the peer is assumed to know the topic.
    pub(crate) fn is_understood(&self) -> bool {
        self.understood
    }

    /// The peer answered.
    pub(crate) fn answered(&mut self, edition: u32, state: AckState) {
        if edition != self.edition || self.understood {
            return;
        }
        match state {
            AckState::Accepted | AckState::Refused => {
                self.understood = true;
                self.retry_at = Time::MAX;
                self.accepted = Some(state == AckState::Accepted);
            }
            // While pieces are still being sent, the missing ones are on their way.
            AckState::Missing(at) if !self.is_due() && (at as usize) < self.bytes.len() => {
                (self.at, self.until) = (at as usize, self.bytes.len());
                (self.retry, self.retry_at) = (FIRST_RETRY, Time::MAX);
            }
            AckState::Missing(_) | AckState::Unknown => {}
        }
    }

    /// When the wait for an answer ends.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        (!self.understood && self.at >= self.until).then_some(self.retry_at)
    }

    /// No answer arrived: sends one piece again, to learn what is missing.
    pub(crate) fn expire(&mut self, now: Time, room: usize) {
        if self.next_timeout().is_some_and(|t| t <= now) {
            let n = self.bytes.len();
            (self.at, self.until) = (n.saturating_sub(room), n);
            self.retry_at = Time::MAX;
        }
    }
}
