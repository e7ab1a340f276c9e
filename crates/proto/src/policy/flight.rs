//! Datagrams that were handed over and may still be on the air (decision 359).

use super::Recent;
use super::tuning::tuning;
use crate::wire::Receipt;
use core::time::Duration;
use stats::Time;
use std::collections::VecDeque;

/// Datagrams that are remembered, however long the path, and of these the ones that asked: what a peer that answers nothing
/// makes this host hold.
const MOST: usize = 4096;
const MOST_ASKS: usize = 64;
/// At most this many of those in flight ask, so that the answers concern asks that are remembered.
pub(super) const ASKS: usize = MOST_ASKS / 2;

/// A datagram in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) number: u64,
    pub(crate) at: Time,
    pub(crate) bytes: usize,
    /// Number of datagrams that the carrier makes of it.
    pub(crate) pieces: usize,
    pub(crate) importance: u8,
    pub(crate) asks: bool,
}

impl Entry {
    /// Weight by airtime; a full datagram counts `small_per_full`.
    fn weight(&self) -> usize {
        if self.bytes <= tuning().small {
            1
        } else {
            tuning().small_per_full * self.pieces
        }
    }
}

/// A datagram that asked for a receipt.
#[derive(Clone, Copy, Debug)]
struct Ask {
    number: u64,
    at: Time,
    bytes: usize,
    /// When its receipt is due at the latest, by the airtimes.
    late_at: Time,
}

/// Measurements from a receipt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lesson {
    /// Bytes of the datagram that `round_trip` and `service` refer to.
    pub(crate) bytes: usize,
    /// From handing over to the receipt, without the time the receiver held it.
    pub(crate) round_trip: Option<Duration>,
    /// Bytes of the datagram that asked.
    pub(crate) asked: usize,
    /// The part that neither airtimes nor the path explain: it waited in the device queue.
    pub(crate) queued: Duration,
    /// The same, even if a correction was already made for it.
    pub(crate) waited: Duration,
    /// Service time: interval between the arrivals of the previous datagram and of this one, if both were handed over
    /// at once.
    pub(crate) service: Option<Duration>,
    /// What arrived since the receipt before this one.
    pub(crate) train: Option<Train>,
}

/// Datagrams that arrived one after another while always more were on their way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Train {
    pub(crate) datagrams: usize,
    pub(crate) bytes: usize,
    pub(crate) took: Duration,
}

/// Whether one more datagram may go while `all` are in flight, of which `equals` are of its importance or more: less
/// important ones hold it up by a few at most.
pub(crate) fn is_within(all: usize, window: usize, equals: impl FnOnce() -> usize) -> bool {
    all < window || all < window + tuning().urgent && equals() < window
}

/// Limits the datagrams on the way to one peer.
///
/// While receipts arrive when the pacer's estimate predicts, they are asked for seldom, and the limit is wide. As soon
/// as one is late, the limit is `least` datagrams plus what the path itself holds, and receipts clock the sending. A
/// datagram leaves when a receipt covers it or a later one, or when its timeout ends: a lost datagram never blocks
/// anything forever.
#[derive(Debug)]
pub(crate) struct Flight {
    least: usize,
    /// While receipts clock the sending, one datagram in this many asks for one.
    asks_every: usize,
    /// Nobody contends, so delay that airtimes do not explain is the path's own, however short it is.
    own_delay: bool,
    entries: VecDeque<Entry>,
    /// Pieces of all entries.
    pieces: usize,
    /// Their weight, in parts of a full datagram.
    weight: usize,
    since_ask: usize,
    asked_at: Time,
    /// Unanswered asks, including those that have timed out.
    asked: VecDeque<Ask>,
    /// The oldest ask that has not timed out.
    unanswered: Option<Ask>,
    doubts: u32,
    /// Round trip and its mean deviation, smoothed as in RFC 6298.
    smoothed: Option<(Duration, Duration)>,
    /// Delay beyond what the airtimes explain.
    path: Recent<Duration>,
    timeouts: u32,
    /// The peer reported by other means than receipts that datagrams below this number arrived.
    known: u64,
    corrected: Time,
    /// When the last receipt's datagram arrived, plus the time of the way back, unless nothing was in flight since.
    train: Option<Time>,
    /// Datagrams and bytes that are no longer in flight since then.
    gone: (usize, usize),
    /// How many receipts in a row may be missing by chance, and how many are.
    tolerated: u32,
    missing: u32,
}

impl Flight {
    /// Creates a limit of `least` datagrams on a short path.
    pub(crate) fn new(least: u32) -> Self {
        Flight {
            least: least.max(1) as usize,
            asks_every: least.max(1) as usize,
            own_delay: false,
            entries: VecDeque::new(),
            pieces: 0,
            weight: 0,
            since_ask: 0,
            asked_at: Time::ZERO,
            asked: VecDeque::new(),
            unanswered: None,
            doubts: 0,
            smoothed: None,
            path: Recent::least(tuning().path_span),
            timeouts: 0,
            known: 0,
            corrected: Time::ZERO,
            train: None,
            gone: (0, 0),
            tolerated: 0,
            missing: 0,
        }
    }

    /// Requests a receipt with one datagram in `asks_every` while receipts pace the sender, so that the sender does not
    /// stall until the receipt for the last datagram within the limit arrives.
    pub(crate) fn asking_every(self, asks_every: usize) -> Self {
        Flight { asks_every, ..self }
    }

    /// The same on a medium on which nobody contends: delay that airtimes do not explain is the path's own, however
    /// short it is.
    pub(crate) fn with_own_delay(self) -> Self {
        Flight {
            own_delay: true,
            ..self
        }
    }

    /// The path loses this share of the datagrams, in each direction, in bursts of `burst`.
    pub(crate) fn loses(&mut self, loss: f64, burst: f64) {
        let missing = 1.0 - (1.0 - loss) * (1.0 - loss);
        self.tolerated = match loss {
            l if l < tuning().lossy_path => 0,
            _ => (burst * tuning().by_chance.ln() / missing.min(0.9).ln()).ceil() as u32,
        };
    }

    /// Number of datagrams in flight, as the carrier sends them.
    pub(crate) fn len(&self) -> usize {
        self.pieces
    }

    /// The smoothed round trip of receipts; zero before the first.
    pub(crate) fn round_trip_time(&self) -> Duration {
        self.smoothed.map_or(Duration::ZERO, |(s, _)| s)
    }

    /// The mean deviation of round trips.
    pub(crate) fn varies(&self) -> Duration {
        self.smoothed.map_or(Duration::ZERO, |(_, v)| v)
    }

    /// Whether receipts were late recently, so that they clock the sending.
    pub(crate) fn doubts(&self) -> bool {
        self.doubts > 0
    }

    /// Whether the last receipts never arrived.
    pub(crate) fn is_silent(&self) -> bool {
        self.timeouts > 0
    }

    /// Whether the datagram sent last asked for a receipt that is still due and hardly lost.
    pub(crate) fn receipt_comes(&self) -> bool {
        self.since_ask == 0 && self.awaits_receipt() && self.tolerated == 0
    }

    /// Whether a receipt is due. If none is, nothing will show when the datagrams in flight have left.
    pub(crate) fn awaits_receipt(&self) -> bool {
        self.unanswered.is_some()
    }

    /// Number of datagrams of this importance or more that may still be in the device queue, with small ones counted as
    /// in [`Flight::admits`].
    pub(crate) fn peers_of(&self, now: Time, importance: u8) -> usize {
        let once = self.patience_once();
        let recent = self.entries.iter().rev().take_while(|e| e.at + once > now);
        let equals = recent.filter(|e| e.importance >= importance);
        equals.map(Entry::weight).sum::<usize>() / tuning().small_per_full
    }

    /// Whether anything of this importance or more is in flight.
    pub(crate) fn holds(&self, importance: u8) -> bool {
        self.entries.iter().any(|e| e.importance >= importance)
    }

    /// The delay of the path itself, where a full datagram takes `service`. On a radio a short delay may as well be
    /// contention, or a medium slower than estimated; on a cable it is the delay plus its variation.
    pub(crate) fn path_delay(&self, service: Duration) -> Duration {
        let least = self.path.get().unwrap_or_default();
        match (least < service * tuning().long_path, self.smoothed) {
            (false, _) => least,
            (true, Some((_, varies))) if self.own_delay => least + varies * tuning().cable_varies,
            _ => Duration::ZERO,
        }
    }

    /// How many datagrams may be in flight. `service` is the airtime of a full one; with `clocked`, receipts clock the
    /// sending in any case.
    pub(crate) fn window(&self, clocked: bool, service: Duration) -> usize {
        if self.is_silent() {
            return 1;
        }
        let held = match service.as_nanos() {
            0 => 0,
            n => usize::try_from(self.path_delay(service).as_nanos() / n).unwrap_or(MOST),
        };
        // Datagrams that leave until the next receipt arrives, given how many in a row may be lost.
        let unreported = held / ASKS * (2 + self.tolerated as usize);
        let held = held.saturating_add(unreported);
        let sparse = if clocked || self.doubts() {
            0
        } else {
            2 * tuning().sparse
        };
        self.least.saturating_add(held).saturating_add(sparse).min(MOST)
    }

    /// Whether a datagram of this importance may follow. A small one counts by its part of a full one's air: otherwise
    /// the copies of a command would use up the limit before the first can be acknowledged.
    pub(crate) fn admits(&self, now: Time, importance: u8, window: usize) -> bool {
        // The limit may have become narrower than what is in flight; then something has to ask.
        if !self.awaits_receipt() {
            return true;
        }
        is_within(self.weight / tuning().small_per_full, window, || {
            self.peers_of(now, importance)
        })
    }

    /// Whether the next datagram should ask for a receipt, because more waits behind it or the limit is near. `defers`:
    /// this host defers to more important hosts.
    pub(crate) fn should_ask(&self, now: Time, clocked: bool, defers: bool, window: usize) -> bool {
        if clocked || self.doubts() {
            let every = self.asks_every.max(window / ASKS);
            return self.since_ask + 1 >= every || self.len() + 1 >= window;
        }
        let sparse = match (self.tolerated > 0, defers) {
            (true, _) => tuning().sparse_lossy,
            (false, true) => tuning().sparse_deferring,
            (false, false) => tuning().sparse,
        };
        // Where many are in flight anyway, each receipt may cover more of them.
        let sparse = sparse.max(window / ASKS);
        self.since_ask + 1 >= sparse
            || self.len() >= self.least && now >= self.asked_at + tuning().sparse_interval
    }

    /// Whether no datagram has asked for longer than it should be.
    pub(crate) fn is_overdue(&self) -> bool {
        self.since_ask + 1 >= 2 * tuning().sparse
    }

    /// A datagram was handed over. If it asks, its receipt is late after `late_at`. `service`: the airtime of a full
    /// one.
    pub(crate) fn sent(&mut self, entry: Entry, late_at: Time, service: Duration) {
        if entry.asks {
            (self.since_ask, self.asked_at) = (0, entry.at);
            let ask = Ask {
                number: entry.number,
                at: entry.at,
                bytes: entry.bytes,
                late_at: late_at + self.path_delay(service),
            };
            self.unanswered.get_or_insert(ask);
            self.asked.push_back(ask);
            if self.asked.len() > MOST_ASKS {
                self.asked.pop_front();
            }
        } else {
            self.since_ask += entry.pieces;
        }
        if self.entries.is_empty() {
            self.train = None;
        }
        self.pieces += entry.pieces;
        self.weight += entry.weight();
        self.entries.push_back(entry);
        if self.entries.len() > MOST {
            self.let_go();
        }
    }

    /// A receipt arrived; `expected` returns the round trip that airtimes explain, by the bytes of the datagram.
    pub(crate) fn receipt(
        &mut self,
        now: Time,
        receipt: &Receipt,
        expected: impl Fn(usize) -> Duration,
        service: Duration,
    ) -> Lesson {
        // Also for a timed-out ask: otherwise a slower radio would never be detected.
        let ask = self.asked.iter().find(|a| a.number == receipt.newest).copied();
        let round_trip = ask.map(|ask| {
            let held = Duration::from_micros(receipt.held);
            now.since(ask.at).saturating_sub(held)
        });
        // While it was missing it was not counted as late, if the loss may be chance.
        let late = self.tolerated > 0 && ask.is_some_and(|a| self.is_late(now, a));
        let explained = ask.map_or(Duration::ZERO, |a| expected(a.bytes));
        self.round_trip(now, round_trip, explained);
        // One correction at a time: datagrams sent before the last correction waited for the same reason.
        let known = explained + self.path_delay(service);
        let waited = round_trip.unwrap_or_default().saturating_sub(known);
        let queued = match ask {
            Some(ask) if ask.at >= self.corrected => waited,
            _ => Duration::ZERO,
        };
        let spacing = self.spacing(receipt);
        self.release(|e| e.number <= receipt.newest);
        let train = self.train(now, receipt, ask.is_some());
        self.answered(now, receipt.newest);
        if late {
            self.doubts = tuning().penalty;
        }
        Lesson {
            bytes: spacing.map_or(ask.map_or(0, |a| a.bytes), |(bytes, _)| bytes),
            round_trip,
            asked: ask.map_or(0, |a| a.bytes),
            queued,
            waited,
            service: spacing.map(|(_, d)| d),
            train,
        }
    }

    /// What arrived since the receipt before.
    fn train(&mut self, now: Time, receipt: &Receipt, is_known: bool) -> Option<Train> {
        if !is_known {
            return None;
        }
        let arrived = now - Duration::from_micros(receipt.held);
        let (datagrams, bytes) = std::mem::take(&mut self.gone);
        let before = self.train.replace(arrived)?;
        Some(Train {
            datagrams,
            bytes,
            took: arrived.since(before),
        })
    }

    /// Bytes and service time of the newest datagram, if the one before it was handed over together with it.
    fn spacing(&self, receipt: &Receipt) -> Option<(usize, Duration)> {
        let at = self.entries.iter().position(|e| e.number == receipt.newest)?;
        let (newest, before) = (self.entries[at], self.entries.get(at.checked_sub(1)?)?);
        let together = before.number + 1 == newest.number && newest.at.since(before.at) < tuning().together;
        (together && receipt.gap > 0).then(|| (newest.bytes, Duration::from_micros(receipt.gap)))
    }

    fn round_trip(&mut self, now: Time, round_trip: Option<Duration>, expected: Duration) {
        let Some(rtt) = round_trip else { return };
        self.smoothed = Some(self.smoothed.map_or((rtt, rtt / 2), |(s, v)| {
            ((s * 7 + rtt) / 8, (v * 3 + s.abs_diff(rtt)) / 4)
        }));
        self.path.add(now, rtt.saturating_sub(expected));
    }

    fn answered(&mut self, now: Time, newest: u64) {
        while self.asked.front().is_some_and(|a| a.number <= newest) {
            self.asked.pop_front();
        }
        (self.timeouts, self.missing) = (0, 0);
        let Some(ask) = self.unanswered.filter(|a| a.number <= newest) else {
            return;
        };
        // For a lost receipt it is unknown whether it would have been late.
        if self.tolerated > 0 && ask.number != newest {
        } else if self.is_late(now, ask) {
            self.doubts = tuning().penalty;
        } else if now <= ask.late_at {
            self.doubts = self.doubts.saturating_sub(1);
        }
        self.unanswered = self.asked.front().copied();
    }

    /// The peer reports by other means than a receipt that datagrams up to this number arrived.
    pub(crate) fn came(&mut self, newest: u64) {
        if newest < self.known {
            return;
        }
        self.known = newest.saturating_add(1);
        (self.timeouts, self.missing) = (0, 0);
        self.release(|e| e.number <= newest);
        if self.unanswered.is_some_and(|a| a.number <= newest) {
            // Its receipt may still arrive, and is measured as any other.
            self.unanswered = self.asked.iter().find(|a| a.number > newest).copied();
        }
    }

    fn release(&mut self, gone: impl Fn(&Entry) -> bool) {
        while self.entries.front().is_some_and(&gone) {
            self.let_go();
        }
    }

    /// The oldest is no longer in flight.
    fn let_go(&mut self) {
        if let Some(gone) = self.entries.pop_front() {
            self.pieces -= gone.pieces;
            self.weight -= gone.weight();
            self.gone.0 += 1;
            self.gone.1 += gone.bytes;
        }
    }

    fn patience_once(&self) -> Duration {
        self.smoothed
            .map_or(tuning().first_patience, |(s, v)| s + v * 4 + tuning().patience)
    }

    fn patience(&self) -> Duration {
        (self.patience_once() * (1 << self.timeouts.min(5))).min(tuning().longest_patience)
    }

    /// When the wait for the oldest ask ends.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        Some(self.unanswered?.at + self.patience())
    }

    /// Detects late receipts and removes datagrams that have timed out.
    pub(crate) fn expire(&mut self, now: Time) {
        let chance = self.missing < self.tolerated;
        if !chance && self.unanswered.is_some_and(|ask| self.is_late(now, ask)) {
            self.doubts = tuning().penalty;
        }
        while self.next_timeout().is_some_and(|t| t <= now) {
            self.give_up(now);
        }
        // Silence after the last ask says nothing about the present.
        let rested = self.unanswered.is_none() && self.entries.is_empty();
        if rested && now >= self.asked_at + tuning().longest_patience {
            (self.timeouts, self.missing) = (0, 0);
        }
    }

    fn give_up(&mut self, now: Time) {
        // With several on the way, the last of those that time out now stands for all: they were silent together.
        let over = now - self.patience();
        let together = self.asks_every < self.least;
        let last = self
            .asked
            .iter()
            .rev()
            .find(|a| together && a.at <= over)
            .copied();
        let Some(ask) = self.unanswered.take() else { return };
        self.train = None;
        let ask = last.filter(|l| l.number > ask.number).unwrap_or(ask);
        if self.missing < self.tolerated {
            self.missing += 1;
        } else {
            self.timeouts = self.timeouts.saturating_add(1);
        }
        self.release(|e| e.number <= ask.number);
        self.unanswered = self.asked.iter().find(|a| a.number > ask.number).copied();
        if self.unanswered.is_none() {
            self.release(|_| true);
        }
    }

    /// Whether a receipt is later than both the airtimes and experience predict.
    fn is_late(&self, now: Time, ask: Ask) -> bool {
        self.smoothed.is_some() && now > ask.late_at.max(ask.at + self.patience())
            || self.smoothed.is_none() && now > ask.late_at
    }

    /// The pacer has made up for the queue.
    pub(crate) fn corrected(&mut self, now: Time) {
        self.corrected = now;
    }

    /// Late receipts no longer count: there is a new estimate.
    pub(crate) fn trust(&mut self) {
        self.doubts = 0;
        self.unanswered = None;
    }

    /// The peer is gone, or has a new session.
    pub(crate) fn clear(&mut self) {
        *self = Flight {
            tolerated: self.tolerated,
            own_delay: self.own_delay,
            ..Flight::new(self.least as u32).asking_every(self.asks_every)
        };
    }
}

#[cfg(test)]
mod tests;
