//! The parity that a redundant topic sends in addition to its fragments, from which lost ones are computed.

use crate::coding::{WINDOW, add, coefficient};
use crate::wire::Frame;
use core::time::Duration;
use stats::Time;
use std::collections::VecDeque;

/// Older fragments are of no use any more, whatever was lost.
const LIFETIME: Duration = Duration::from_secs(3);
/// How long parity waits after a fragment, so that one burst does not take both.
const SPACING: Duration = Duration::from_millis(5);
/// After such a pause parity is sent for fragments that have had less than their share.
const PAUSE: Duration = Duration::from_millis(30);
/// Most parities that wait behind fresh fragments; each covers the last [`WINDOW`] of them.
const BACKLOG: usize = 8;
/// Room that a fragment needs around it in a datagram, or its parity.
pub(crate) const AROUND: usize = 48;

/// The fragments sent last, and how much parity is owed for them.
#[derive(Default)]
pub(crate) struct Coder {
    window: VecDeque<(Time, Vec<u8>)>,
    next_id: u64,
    key: u8,
    /// Bytes of parity that may be sent, and the number of fragments that no parity covers yet.
    credit: f64,
    uncovered: u32,
    /// Parities that are due.
    due: u32,
    at: Option<Time>,
}

impl Coder {
    /// The number of the next fragment.
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id
    }

    /// A fragment was sent as this frame; `share` bytes of parity are due for each of its bytes.
    pub(crate) fn sent(&mut self, now: Time, frame: &[u8], share: f64) {
        let mut shard = Vec::with_capacity(frame.len() + 2);
        shard.extend_from_slice(&(frame.len() as u16).to_le_bytes());
        shard.extend_from_slice(frame);
        // Credit saved while little was lost does not make a burst of parity later.
        self.credit = (self.credit + frame.len() as f64 * share).min(self.longest() as f64 * WINDOW as f64);
        self.window.push_back((now, shard));
        self.next_id += 1;
        self.uncovered += 1;
        if self.window.len() as u64 > WINDOW {
            self.window.pop_front();
        }
        self.at = (share > 0.0).then_some(now + if self.affords() { SPACING } else { PAUSE });
    }

    fn longest(&self) -> usize {
        self.window.iter().map(|(_, s)| s.len()).max().unwrap_or(0)
    }

    fn affords(&self) -> bool {
        self.credit >= self.longest() as f64
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.at.filter(|_| self.due == 0)
    }

    /// Makes due everything that has waited long enough.
    pub(crate) fn tick(&mut self, now: Time) {
        while self.window.front().is_some_and(|(at, _)| *at + LIFETIME < now) {
            self.window.pop_front();
        }
        if self.at.is_none_or(|t| t > now) || self.due > 0 {
            return;
        }
        self.at = None;
        let longest = self.longest();
        if longest == 0 {
            return;
        }
        self.due = (self.credit / longest as f64) as u32;
        // The last before a pause: better too early than never. The credit pays for it later.
        if self.due == 0 && self.uncovered > 0 && self.credit > 0.0 {
            self.due = 1;
        }
    }

    /// Whether parity is due when there are no fresh fragments.
    pub(crate) fn is_due(&self) -> bool {
        self.due > 0
    }

    /// Whether parity is sent before fresh fragments: later, this much parity would be of no use.
    pub(crate) fn presses(&self) -> bool {
        let longest = self.longest();
        longest > 0 && self.credit >= (longest * BACKLOG) as f64
    }

    /// Approximate length of the next parity's frame.
    pub(crate) fn frame_length(&self) -> usize {
        self.longest() + AROUND / 2
    }

    /// Appends a parity to a datagram that may grow to `max` bytes, and returns its bytes.
    pub(crate) fn put(&mut self, now: Time, topic: u32, max: usize, out: &mut Vec<u8>) -> usize {
        let mut sum = Vec::new();
        let first = self.next_id - self.window.len() as u64;
        for (i, (_, shard)) in self.window.iter().enumerate() {
            add(&mut sum, shard, coefficient(self.key, first + i as u64));
        }
        let mark = out.len();
        let frame = Frame::Parity {
            topic,
            first,
            count: self.window.len() as u8,
            key: self.key,
            bytes: &sum,
        };
        frame.encode(out);
        if out.len() > max {
            // The window holds fragments from when datagrams were longer.
            out.truncate(mark);
        }
        self.key = self.key.wrapping_add(1);
        self.credit -= sum.len() as f64;
        self.uncovered = 0;
        self.due = self.due.saturating_sub(1);
        self.at = (self.due == 0 && self.affords()).then_some(now + SPACING);
        out.len() - mark
    }

    /// A new session began, whose receiver has none of this.
    pub(crate) fn clear(&mut self) {
        *self = Coder {
            next_id: self.next_id,
            ..Coder::default()
        };
    }
}
