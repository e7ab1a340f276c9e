//! Sharing a radio with other hosts: which host yields to which, and how clocks compare.
//!
//! Hosts cannot overhear encrypted unicast, so they announce to their peers which messages wait and when their periodic
//! messages are due, and common peers repeat this. Less important messages yield (decision 359).

mod clock;
mod doubt;
mod floor;
mod table;
mod used;

pub use clock::ClockOffset;
pub(crate) use clock::{Exchange, PeerClock};
pub(crate) use table::{OWN_RHYTHMS, Speaker, Table};

use crate::policy::tuning::tuning;
use crate::send::Foreseen;
use core::time::Duration;
use doubt::Doubt;
use floor::Floor;
use serde::Serialize;
use stats::{Histogram, Time};
use std::collections::BTreeMap;
use used::Used;

/// Time over which the share of air yielded to each host is measured; a share below `LEAST_REPORTED` is not reported.
const YIELDED_SPAN: Duration = Duration::from_secs(2);
const LEAST_REPORTED: f64 = 0.001;
/// Most hosts that it distinguishes.
const MOST_YIELDED: usize = 64;
/// Topics whose delays are counted, for each peer.
const MOST_TOPICS: usize = crate::config::MAX_TOPICS;

/// How this host responds to the claims of others.
#[derive(Debug)]
pub(crate) struct Share {
    /// Short form of this host's id.
    pub(crate) own: u32,
    yields: bool,
    /// Least share of the air that others leave to this host.
    least: f64,
    pub(crate) table: Table,
    used: Used,
    /// When this host's share allows the next less important datagram.
    gate: Time,
    /// Balance of the time spent waiting for others and the air used.
    floor: Floor,
    /// The same for control frames.
    control: Floor,
    doubt: Doubt,
    /// The host for which a message waits, and since when.
    waits_for: Option<(u32, Time)>,
    /// How long messages waited for each host.
    yielded: BTreeMap<u32, Used>,
    /// The priority of the most important recent message that was not foreseen, and when it arrived.
    heard: Option<(u8, Time)>,
}

impl Share {
    /// `denied`: ids of hosts whose claims are ignored, through whichever peer they arrive.
    pub(crate) fn new(host: u64, session: u32, yields: bool, least: f64, denied: &[u64]) -> Self {
        let own = id(host, session);
        let mut table = Table::new(own);
        denied.iter().for_each(|host| table.deny(short(*host)));
        Share {
            own,
            yields,
            least,
            table,
            used: Used::new(),
            gate: Time::ZERO,
            floor: Floor::new(least),
            control: Floor::new(least),
            doubt: Doubt::default(),
            waits_for: None,
            yielded: BTreeMap::new(),
            heard: None,
        }
    }

    /// The share of the air that a datagram of this priority may take.
    fn share(&self, now: Time, priority: u8) -> f64 {
        if !self.yields {
            return 1.0;
        }
        match self.contenders(now, priority) {
            (0, same) => (1.0 / (same as f64 + 1.0)).max(self.least),
            _ => self.least,
        }
    }

    /// Number of other hosts that claim the air at more than `priority`, and at exactly that.
    fn contenders(&self, now: Time, priority: u8) -> (usize, usize) {
        self.table.contenders(now, priority, self.used.is_full(now))
    }

    /// Whether others claim the air for something more important.
    pub(crate) fn is_outranked(&self, now: Time, priority: u8) -> bool {
        self.yields && self.contenders(now, priority).0 > 0
    }

    /// When a datagram of this priority may be sent, if it has to wait.
    pub(crate) fn gate(&self, now: Time, priority: u8) -> Option<Time> {
        let shut = now < self.gate && !self.floor.is_due(now) && self.share(now, priority) < 1.0;
        shut.then_some(self.gate)
    }

    /// A datagram of this priority was sent. Returns true if the next of its kind has to wait for others.
    pub(crate) fn charge(&mut self, now: Time, priority: u8, airtime: Duration) -> bool {
        let share = self.share(now, priority);
        if share < 1.0 {
            self.gate = self.gate.max(now - tuning().share_lateness) + airtime.div_f64(share);
        }
        share < 1.0
    }

    /// This host sent a datagram of messages that takes `air`.
    pub(crate) fn takes(&mut self, now: Time, air: Duration) {
        self.used.add(now, air);
    }

    /// A host sent a datagram of messages that takes `air`.
    pub(crate) fn took(&mut self, now: Time, host: u64, air: Duration) {
        self.used.add(now, air);
        self.table.took(now, short(host), air);
    }

    /// A datagram of this priority was sent and is worth this much air; a full one takes `full`. It is not counted if
    /// others have no say in it: then it is not air that they leave to this host.
    pub(crate) fn goes(&mut self, now: Time, priority: u8, worth: Duration, full: Duration) {
        self.waits_no_more(now);
        if self.heeds(now, priority).is_some() {
            self.floor.takes(now, worth, full);
        }
    }

    /// The host that a datagram of this priority would have to wait for.
    fn heeds(&self, now: Time, priority: u8) -> Option<u32> {
        let claimant = || self.table.claimant(now, priority, self.used.is_full(now));
        let foreseen = || self.table.foreseen(now, priority).map(|(host, _)| host);
        self.yields.then(|| claimant().or_else(foreseen))?
    }

    /// Whether a datagram of this priority, sent now, would collide with what a host claims that this one cannot hear,
    /// if the claim is true. Room is made for foreseen messages, except by datagrams that are due.
    pub(crate) fn is_probe(&self, now: Time, priority: u8) -> bool {
        let foreseen = || {
            let due = self.floor.is_due(now);
            due.then(|| self.table.foreseen(now, priority))?
        };
        let claimant = || self.table.claimant(now, priority, self.used.is_full(now));
        let host = self.yields.then(|| claimant().or_else(|| Some(foreseen()?.0)));
        host.flatten()
            .is_some_and(|host| !self.table.keeps_word(now, host))
    }

    /// Result of such a datagram: whether it had to wait for the air.
    pub(crate) fn probed(&mut self, now: Time, met: bool) {
        if let Some(until) = self.doubt.probed(now, met) {
            self.table.doubt(until);
        }
    }

    /// Number of times claims were disbelieved because the air was free.
    pub(crate) fn found_free(&self) -> u64 {
        self.doubt.found_free
    }

    /// The next message of another host for which a datagram of `priority` makes room; `None` if it has already waited
    /// for its least share.
    pub(crate) fn foreseen(&self, now: Time, priority: u8) -> Option<Foreseen> {
        if !self.yields || self.floor.is_due(now) {
            return None;
        }
        self.table.foreseen(now, priority).map(|(_, f)| f)
    }

    /// The next message of a host other than `peer` for which a receipt to `peer` makes room; `None` if receipts have
    /// waited enough.
    pub(crate) fn foreseen_of_others(&self, now: Time, peer: u32) -> Option<Foreseen> {
        if !self.yields || self.control.is_due(now) {
            return None;
        }
        self.table.foreseen_of_others(now, peer)
    }

    /// A receipt waits for another host; a full datagram takes `full`. Returns when it need not wait any longer.
    pub(crate) fn control_waits(&mut self, now: Time, full: Duration) -> Option<Time> {
        self.control.waits(now, full)
    }

    /// No receipt waits for another host.
    pub(crate) fn control_rests(&mut self, now: Time) {
        self.control.rests(now);
    }

    /// A control frame was sent.
    pub(crate) fn control_goes(&mut self, now: Time, air: Duration, full: Duration) {
        self.control.takes(now, air, full);
    }

    /// A part of a message of this priority arrived from a host.
    pub(crate) fn heard(&mut self, now: Time, host: u64, priority: u8) {
        let more = self.heard_lately(now).is_none_or(|most| priority >= most);
        if more && !self.table.foresees(now, short(host), priority) {
            self.heard = Some((priority, now));
        }
    }

    fn heard_lately(&self, now: Time) -> Option<u8> {
        let (priority, at) = self.heard?;
        (now < at + tuning().more_comes).then_some(priority)
    }

    /// Whether another host may send something more important than this at any time.
    pub(crate) fn expects(&self, now: Time, priority: u8) -> bool {
        self.yields && self.heard_lately(now).is_some_and(|most| most > priority)
    }

    /// Whether another host has something more important than this to send, now or at a foreseen time.
    pub(crate) fn defers(&self, now: Time, priority: u8) -> bool {
        self.is_outranked(now, priority) || self.yields && self.table.foreseen(now, priority).is_some()
    }

    /// Something of this priority waits, perhaps for another host; a datagram of its peer takes at most `full`. Returns
    /// when it need not wait for others any longer, if it does.
    pub(crate) fn holds(&mut self, now: Time, priority: u8, full: Duration) -> Option<Time> {
        self.count_waiting(now);
        let Some(host) = self.heeds(now, priority) else {
            self.floor.rests(now);
            return None;
        };
        self.waits_for = Some((host, now));
        self.floor.waits(now, full)
    }

    /// Nothing waits for others.
    pub(crate) fn waits_no_more(&mut self, now: Time) {
        self.count_waiting(now);
        self.floor.rests(now);
    }

    fn count_waiting(&mut self, now: Time) {
        if let Some((host, since)) = self.waits_for.take()
            && (self.yielded.len() < MOST_YIELDED || self.yielded.contains_key(&host))
        {
            let waited = now.since(since);
            self.yielded
                .entry(host)
                .or_insert_with(|| Used::over(YIELDED_SPAN))
                .add(now, waited);
        }
    }

    /// The hosts that this host yields the air to, or did recently, by the short forms of their ids.
    pub(crate) fn yielded(&self, now: Time) -> Vec<(u32, f64)> {
        let shares = self.yielded.iter().map(|(host, used)| (*host, used.share(now)));
        shares.filter(|(_, share)| *share >= LEAST_REPORTED).collect()
    }

    /// Drops what is out of date.
    pub(crate) fn expire(&mut self, now: Time) {
        self.table.expire(now);
        self.yielded.retain(|_, used| used.share(now) >= LEAST_REPORTED);
    }
}

/// The short form of a host's id as others know it: derived from its session if it has no id.
pub(crate) fn id(host: u64, session: u32) -> u32 {
    match host {
        0 => session,
        host => short(host),
    }
}

/// The short form of a host's id that tables use. Two hosts with the same short form yield to each other as one.
fn short(host: u64) -> u32 {
    (host ^ (host >> 32)) as u32
}

/// State of one peer for sharing.
#[derive(Debug, Default)]
pub(crate) struct PeerShare {
    pub(crate) clock: PeerClock,
    /// The number of a datagram to the peer that probes whether the air is taken as others claim, and the result.
    pub(crate) probe: Option<u64>,
    pub(crate) met: Option<bool>,
    /// The exchange that the receipt in this datagram completed, except for the peer's clock.
    pub(crate) exchange: Option<Exchange>,
    /// The times of a message that the current datagram states: topic, number, when it was offered and its deadline, in
    /// microseconds.
    pub(crate) timing: Option<(u32, u64, u64, u64)>,
    pub(crate) claims_at: Time,
    pub(crate) rhythms_at: Time,
    delays: BTreeMap<u32, Delays>,
}

#[derive(Clone, Debug, Default)]
struct Delays {
    histogram: Histogram,
    uncertainty: Duration,
}

impl PeerShare {
    /// The peer has a new session.
    pub(crate) fn renew(&mut self) {
        self.clock.clear();
        self.exchange = None;
        self.timing = None;
        (self.probe, self.met) = (None, None);
        (self.claims_at, self.rhythms_at) = (Time::ZERO, Time::ZERO);
        self.delays.clear();
    }

    /// Age of the message, if the current datagram states it.
    pub(crate) fn age(&self, now: Time, topic: u32, seq: u64) -> Option<Age> {
        let (t, s, offered, deadline) = self.timing?;
        let clock = self.clock.offset(now)?;
        let offered = clock.ours(Time(offered.saturating_mul(1000)));
        (t == topic && s == seq).then(|| Age {
            delay: now.since(offered),
            uncertainty: clock.uncertainty,
            deadline: (deadline > 0).then(|| Duration::from_micros(deadline)),
        })
    }

    /// A message of this age was delivered.
    pub(crate) fn delivered(&mut self, topic: u32, age: Age) {
        if self.delays.len() < MOST_TOPICS || self.delays.contains_key(&topic) {
            let d = self.delays.entry(topic).or_default();
            d.histogram.record_duration(age.delay);
            d.uncertainty = age.uncertainty;
        }
    }

    /// The delays of a topic's messages.
    pub(crate) fn delays(&self, topic: u32) -> Option<LinkDelay> {
        let d = self.delays.get(&topic)?;
        let us = |ns: f64| ns / 1000.0;
        Some(LinkDelay {
            messages: d.histogram.count(),
            mean_us: us(d.histogram.mean()),
            p99_us: us(d.histogram.quantile(0.99) as f64),
            max_us: us(d.histogram.max() as f64),
            uncertainty_us: d.uncertainty.as_micros() as f64,
        })
    }
}

/// Age of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Age {
    delay: Duration,
    uncertainty: Duration,
    deadline: Option<Duration>,
}

impl Age {
    /// Whether it is certainly past its deadline.
    pub(crate) fn is_late(&self) -> bool {
        let least = self.delay.saturating_sub(self.uncertainty);
        self.deadline.is_some_and(|d| least > d)
    }
}

/// How long messages took from the sending link to this one, by aligned clocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LinkDelay {
    /// Messages that were measured; most topics send ten measurements per second.
    pub messages: u64,
    /// Mean.
    pub mean_us: f64,
    /// 99 % quantile.
    pub p99_us: f64,
    /// Largest.
    pub max_us: f64,
    /// How far each value may be off, since clocks differ.
    pub uncertainty_us: f64,
}

#[cfg(test)]
mod tests;
