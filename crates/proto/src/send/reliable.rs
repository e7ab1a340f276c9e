//! Messages of a reliable topic that were sent and are not settled yet: kept, retransmitted, given up (decision 090).

use super::bulk::Bulk;
use super::timing::Timing;
use super::topic::Pending;
use crate::body::Body;
use crate::receive::SPAN;
use crate::wire::Acknowledgement;
use stats::{DropReason, Time};
use std::collections::VecDeque;

/// A message is repeated whole up to `WHOLE` bytes; of a longer one the last `PROBE` bytes of what was sent are
/// repeated, so that the receiver can report what is missing.
const WHOLE: u32 = 1_100;
const PROBE: u32 = 64;
/// Patience doubles with each unanswered copy, up to this many times.
const MOST_DOUBLINGS: u32 = 4;
/// Until an acknowledgement can have been missed, each copy follows after this multiple of the wait before it.
const WIDENING: f64 = 1.5;
/// The sender asks this many times less often about a message that waits at its receiver for others.
const HELD: u32 = 4;

/// A message of which every byte was sent at least once, or one that is sent as symbols.
pub(crate) struct Kept<B> {
    pub(crate) pending: Pending<B>,
    pub(crate) seq: u64,
    /// Ranges of it that are due.
    pub(crate) due: VecDeque<(u32, u32)>,
    /// For a message that is sent as symbols: which and when; `due` stays empty then.
    pub(crate) bulk: Option<Bulk>,
    /// The last bytes of the latest round.
    tail: (u32, u32),
    /// The newest datagram with bytes of it.
    number: u64,
    /// Copies sent since the receiver last reported on it.
    copies: u32,
    /// When it is retransmitted if nothing is heard.
    at: Time,
}

/// A message with a known outcome.
pub(crate) struct Settled<B> {
    pub(crate) pending: Pending<B>,
    /// Why it was not delivered, if it was not.
    pub(crate) refused: Option<DropReason>,
}

/// The messages of one topic that wait for their acknowledgement, oldest first.
pub(crate) struct RetransmitBuffer<B> {
    kept: VecDeque<Kept<B>>,
    /// All messages below are settled, as the receiver last reported.
    base: u64,
    /// Messages below were given up.
    given_up: u64,
    /// The receiver remembers refusals that this host knows of.
    known_refusals: bool,
    /// Whether the receiver has to learn from which number on messages are still sent.
    floor_update: FloorUpdate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FloorUpdate {
    /// It knows.
    Known,
    Now,
    /// It was notified, and is notified again if nothing is heard.
    At(Time),
}

impl<B: Body> RetransmitBuffer<B> {
    pub(crate) fn new() -> Self {
        RetransmitBuffer {
            kept: VecDeque::new(),
            base: 0,
            given_up: 0,
            known_refusals: false,
            floor_update: FloorUpdate::Known,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    pub(crate) fn oldest(&self) -> Option<&Kept<B>> {
        self.kept.front()
    }

    /// Whether a message of this number may begin: the receiver's memory is limited to [`SPAN`] messages.
    pub(crate) fn admits(&self, seq: u64) -> bool {
        seq < self.base.saturating_add(SPAN)
    }

    /// The oldest message with something to retransmit.
    pub(crate) fn due(&self) -> Option<&Kept<B>> {
        self.kept.iter().find(|k| k.is_due())
    }

    pub(crate) fn due_mut(&mut self) -> Option<&mut Kept<B>> {
        self.kept.iter_mut().find(|k| k.is_due())
    }

    /// A message was sent for the first time; `sent` is its last part.
    pub(crate) fn keep(&mut self, now: Time, timing: Timing, pending: Pending<B>, seq: u64, sent: Sent) {
        let mut kept = Kept::new(pending, seq);
        kept.sent(now, timing, sent);
        self.kept.push_back(kept);
    }

    /// Begins a message that is sent as symbols.
    pub(crate) fn begin_bulk(&mut self, pending: Pending<B>, seq: u64, bulk: Bulk) {
        let kept = Kept::new(pending, seq);
        self.kept.push_back(Kept {
            bulk: Some(bulk),
            ..kept
        });
    }

    /// All of them, oldest first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Pending<B>> {
        self.kept.iter().map(|k| &k.pending)
    }

    /// The messages that are sent as symbols.
    pub(crate) fn bulks(&self) -> impl Iterator<Item = (&Pending<B>, &Bulk)> {
        self.kept
            .iter()
            .filter_map(|k| Some((&k.pending, k.bulk.as_ref()?)))
    }

    pub(crate) fn bulks_mut(&mut self) -> impl Iterator<Item = (&Pending<B>, &mut Bulk)> {
        self.kept
            .iter_mut()
            .filter_map(|k| Some((&k.pending, k.bulk.as_mut()?)))
    }

    /// Gives up the oldest message.
    pub(crate) fn give_up_oldest(&mut self) -> Option<Pending<B>> {
        let k = self.kept.pop_front()?;
        self.gave_up(k.seq);
        Some(k.pending)
    }

    /// Removes the message that has this stamp.
    pub(crate) fn remove(&mut self, stamp: Time) -> Option<Kept<B>> {
        let at = self.kept.iter().position(|k| k.pending.message.stamp == stamp)?;
        self.kept.remove(at)
    }

    /// A message that was partly sent is no longer sent.
    pub(crate) fn gave_up(&mut self, seq: u64) {
        self.given_up = self.given_up.max(seq + 1);
        self.floor_update = FloorUpdate::Now;
    }

    /// A new session begins; its first message has this number.
    pub(crate) fn begin(&mut self, next_seq: u64) {
        (self.base, self.given_up) = (next_seq, next_seq);
        (self.known_refusals, self.floor_update) = (false, FloorUpdate::Known);
    }

    /// The peer was lost: it dropped its incomplete messages, of which `begun` is the last. Once it is back, all are
    /// sent again.
    pub(crate) fn start_over(&mut self, begun: Option<(Pending<B>, u64)>) {
        self.kept
            .extend(begun.map(|(pending, seq)| Kept::new(pending, seq)));
        for k in &mut self.kept {
            match &mut k.bulk {
                Some(bulk) => bulk.start_over(),
                None => k.due = VecDeque::from([(0, k.pending.geometry.total_len())]),
            }
            (k.copies, k.at) = (0, Time::MAX);
        }
    }

    /// The next time at which something becomes due again.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let waiting = self.kept.iter().filter(|k| !k.is_due()).map(|k| k.at);
        let floor_update = match self.floor_update {
            FloorUpdate::At(t) => Some(t),
            FloorUpdate::Known | FloorUpdate::Now => None,
        };
        waiting.chain(floor_update).min()
    }

    /// Makes due everything that has waited long enough.
    pub(crate) fn tick(&mut self, now: Time, timing: Timing) {
        for k in &mut self.kept {
            if !k.is_due() && k.at <= now {
                k.at = Time::MAX;
                match &mut k.bulk {
                    Some(bulk) => {
                        bulk.trickle(timing);
                        if !bulk.is_due() {
                            k.at = now + timing.patience;
                        }
                    }
                    None => k.due.push_back(k.tail),
                }
            }
        }
        if matches!(self.floor_update, FloorUpdate::At(t) if t <= now) {
            self.floor_update = FloorUpdate::Now;
        }
    }

    /// Whether the receiver has to learn from which number on messages are still sent.
    pub(crate) fn floor_update_due(&self) -> bool {
        self.floor_update == FloorUpdate::Now
    }

    /// It was notified.
    pub(crate) fn floor_update_sent(&mut self, now: Time, timing: Timing) {
        self.floor_update = FloorUpdate::At(now + timing.patience);
    }

    /// Takes an acknowledgement, given that messages below `floor` are no longer sent. Returns the messages that it
    /// settles, in order.
    pub(crate) fn acknowledged(
        &mut self,
        now: Time,
        a: &Acknowledgement,
        floor: u64,
        timing: Timing,
    ) -> Vec<Settled<B>> {
        self.base = self.base.max(a.base);
        let mut settled = Vec::new();
        for mut k in core::mem::take(&mut self.kept) {
            if k.seq < a.base || a.runs.iter().any(|(from, to)| (*from..*to).contains(&k.seq)) {
                let refused = a.refused.iter().find(|(seq, _)| *seq == k.seq).map(|(_, r)| *r);
                settled.push(Settled {
                    pending: k.pending,
                    refused,
                });
                continue;
            }
            // Messages sent later than everything that the receiver reports on are still on their way.
            let described = a.top == 0 || k.seq < a.top;
            if let Some(bulk) = k.bulk.as_mut().filter(|_| described) {
                let missing = a.partial.iter().find(|(seq, _)| *seq == k.seq).map(|(_, m)| m);
                let needed = |m: &Vec<(u32, u32)>| m.first().map_or(0, |(from, to)| to - from);
                bulk.reported(a.newest, missing.map(needed), timing);
                if bulk.is_due() {
                    (k.copies, k.at) = (0, Time::MAX);
                } else if missing.is_some_and(Vec::is_empty) {
                    // It has arrived, and is being computed or waits for those before it.
                    k.at = now + timing.patience * HELD;
                } else {
                    k.at = k.at.min(now + timing.patience);
                }
            } else if described && k.due.is_empty() && k.number <= a.newest {
                k.acknowledged(now, a, timing);
            }
            self.kept.push_back(k);
        }
        let floor = self.oldest().map_or(floor, |k| floor.min(k.seq));
        self.known_refusals = a.refused.iter().any(|(seq, _)| *seq < floor);
        let known = self.base >= self.given_up && !self.known_refusals;
        if known {
            self.floor_update = FloorUpdate::Known;
        } else if self.floor_update == FloorUpdate::Known {
            self.floor_update = FloorUpdate::Now;
        }
        settled
    }
}

/// The last part of a message that was sent.
#[derive(Clone, Copy)]
pub(crate) struct Sent {
    /// The datagram's number.
    pub(crate) number: u64,
    /// The bytes.
    pub(crate) from: u32,
    pub(crate) to: u32,
}

impl<B> Kept<B> {
    fn new(pending: Pending<B>, seq: u64) -> Self {
        Kept {
            pending,
            seq,
            bulk: None,
            due: VecDeque::new(),
            tail: (0, 0),
            number: 0,
            copies: 0,
            at: Time::MAX,
        }
    }

    /// Whether something of it is due.
    fn is_due(&self) -> bool {
        self.bulk.as_ref().map_or(!self.due.is_empty(), Bulk::is_due)
    }

    /// The last bytes of a round were sent.
    pub(crate) fn sent(&mut self, now: Time, timing: Timing, sent: Sent) {
        self.number = sent.number;
        let total = self.pending.geometry.total_len();
        self.tail = if total <= WHOLE {
            (0, total)
        } else {
            (sent.to.saturating_sub(PROBE).max(sent.from), sent.to)
        };
        self.copies += 1;
        let wait = if self.copies < timing.copies {
            let wider = timing.spacing.mul_f64(WIDENING.powi((self.copies - 1) as i32));
            wider.min(timing.patience)
        } else {
            timing.patience * (1 << (self.copies - timing.copies).min(MOST_DOUBLINGS))
        };
        self.at = now + wait;
    }

    /// Some bytes of an unfinished round were sent.
    pub(crate) fn sent_some(&mut self, number: u64) {
        self.number = number;
    }

    /// The receiver reports on it, and it is not settled: what is missing is lost.
    fn acknowledged(&mut self, now: Time, a: &Acknowledgement, timing: Timing) {
        let total = self.pending.geometry.total_len();
        let missing = a.partial.iter().find(|(seq, _)| *seq == self.seq).map(|(_, m)| m);
        match missing {
            // It has arrived, and waits for those before it.
            Some(m) if m.is_empty() => self.at = now + timing.patience * HELD,
            Some(m) => {
                let within = m.iter().map(|(from, to)| (*from, (*to).min(total)));
                self.due = within.filter(|(from, to)| from < to).collect();
            }
            None => self.due = VecDeque::from([(0, total)]),
        }
        if self.due.is_empty() {
            // A receiver that contradicts itself is asked again.
            self.at = self.at.min(now + timing.patience * HELD);
        } else {
            (self.copies, self.at) = (0, Time::MAX);
        }
    }
}
