//! Sharing a radio with other hosts: who yields to whom, and whose clock says what.
//!
//! Encrypted unicast cannot be overheard, so hosts tell their peers what they wait for and when their
//! periodic messages come, and common peers repeat it. What is less important than that yields.

mod clock;
mod table;
mod used;

pub use clock::ClockOffset;
pub(crate) use clock::{Exchange, PeerClock};
pub(crate) use table::Table;

use crate::send::Foreseen;
use core::time::Duration;
use serde::Serialize;
use stats::{Histogram, Time};
use std::collections::BTreeMap;
use used::Used;

/// How late a caller may be without losing its share, as with the pacer's slots.
const LATENESS: Duration = Duration::from_millis(1);
/// So long after a message of others more like it may come.
const MORE_COMES: Duration = Duration::from_millis(200);
/// Topics whose delays are counted, for each peer.
const MOST_TOPICS: usize = crate::config::MAX_TOPICS;

/// What this host does about what others claim.
#[derive(Debug)]
pub(crate) struct Share {
    /// Short form of our own id.
    pub(crate) own: u32,
    yields: bool,
    /// The least share of the air that claims leave us.
    least: f64,
    pub(crate) table: Table,
    used: Used,
    /// When our share lets the next less important datagram go.
    gate: Time,
    /// Since when something waits for a message that another host is to send.
    held: Option<Time>,
    /// The same of what the protocol itself has to say.
    control_held: Option<Time>,
    /// The priority of the most important message that came lately and was not foreseen, and when.
    heard: Option<(u8, Time)>,
}

impl Share {
    pub(crate) fn new(host: u64, session: u32, yields: bool, least: f64) -> Self {
        Share {
            own: if host == 0 { session } else { short(host) },
            yields,
            least,
            table: Table::default(),
            used: Used::new(),
            gate: Time::ZERO,
            held: None,
            control_held: None,
            heard: None,
        }
    }

    /// The share of the air that something of this priority may take.
    fn share(&self, now: Time, priority: u8) -> f64 {
        if !self.yields {
            return 1.0;
        }
        let (more, same) = self.rivals(now, priority);
        let all = if more > 0 { self.least } else { 1.0 };
        (all / (same as f64 + 1.0)).max(self.least / 4.0)
    }

    /// How many others claim the air at more than `priority`, and at just that.
    fn rivals(&self, now: Time, priority: u8) -> (usize, usize) {
        self.table.rivals(now, priority, self.used.is_full(now))
    }

    /// Whether others claim the air for what is more important.
    pub(crate) fn is_outranked(&self, now: Time, priority: u8) -> bool {
        self.yields && self.rivals(now, priority).0 > 0
    }

    /// When something of this priority may go, if not now.
    pub(crate) fn gate(&self, now: Time, priority: u8) -> Option<Time> {
        (now < self.gate && self.share(now, priority) < 1.0).then_some(self.gate)
    }

    /// A datagram of this priority was sent. True if the next of its kind has to wait for others.
    pub(crate) fn charge(&mut self, now: Time, priority: u8, airtime: Duration) -> bool {
        let share = self.share(now, priority);
        if share < 1.0 {
            self.gate = self.gate.max(now - LATENESS) + airtime.div_f64(share);
        }
        self.goes();
        share < 1.0
    }

    /// A datagram of messages was sent, which takes so much air.
    pub(crate) fn takes(&mut self, now: Time, air: Duration) {
        self.used.add(now, air);
    }

    /// A datagram of messages came from a host, which takes so much air.
    pub(crate) fn took(&mut self, now: Time, host: u64, air: Duration) {
        self.used.add(now, air);
        self.table.took(short(host), air);
    }

    /// A datagram was sent, so what waited did not wait in vain.
    pub(crate) fn goes(&mut self) {
        self.held = None;
    }

    /// The next message of another host for which something of `priority` makes room; nothing if it has waited
    /// for its least share already, a datagram of which takes `full`.
    pub(crate) fn foreseen(&self, now: Time, priority: u8, full: Duration) -> Option<Foreseen> {
        let patience = full.div_f64(self.least);
        if !self.yields || self.held.is_some_and(|t| now >= t + patience) {
            return None;
        }
        self.table.foreseen(now, priority)
    }

    /// The next message of a host other than `peer`, for which a receipt to `peer` makes room; nothing if something
    /// has waited too long already.
    pub(crate) fn foreseen_of_others(&self, now: Time, peer: u64, full: Duration) -> Option<Foreseen> {
        let patience = full.div_f64(self.least);
        if !self.yields || self.control_held.is_some_and(|t| now >= t + patience) {
            return None;
        }
        self.table.foreseen_of_others(now, short(peer))
    }

    /// A receipt waits for another host, or one was sent.
    pub(crate) fn control_holds(&mut self, since: Option<Time>) {
        self.control_held = since.map(|now| self.control_held.unwrap_or(now));
    }

    /// A part of a message of this priority came from a host.
    pub(crate) fn heard(&mut self, now: Time, host: u64, priority: u8) {
        let more = self.heard_lately(now).is_none_or(|most| priority >= most);
        if more && !self.table.foresees(now, short(host), priority) {
            self.heard = Some((priority, now));
        }
    }

    fn heard_lately(&self, now: Time) -> Option<u8> {
        let (priority, at) = self.heard?;
        (now < at + MORE_COMES).then_some(priority)
    }

    /// Whether another host may say something more important than this at any time.
    pub(crate) fn expects(&self, now: Time, priority: u8) -> bool {
        self.yields && self.heard_lately(now).is_some_and(|most| most > priority)
    }

    /// Whether another host has something more important than this to say, now or when that is foreseen.
    pub(crate) fn defers(&self, now: Time, priority: u8) -> bool {
        self.is_outranked(now, priority) || self.yields && self.table.foreseen(now, priority).is_some()
    }

    /// Something waits, perhaps for another host.
    pub(crate) fn holds(&mut self, now: Time) {
        self.held.get_or_insert(now);
    }
}

/// The short form of a host's id that tables use. Two hosts of one short form yield to each other as one.
fn short(host: u64) -> u32 {
    (host ^ (host >> 32)) as u32
}

/// What is kept of one peer for sharing.
#[derive(Debug, Default)]
pub(crate) struct PeerShare {
    pub(crate) clock: PeerClock,
    /// The exchange that the receipt in this datagram completed, but for the peer's clock.
    pub(crate) exchange: Option<Exchange>,
    /// What the datagram at hand says of a message: topic, number, when it was offered, and its deadline, in
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
        (self.claims_at, self.rhythms_at) = (Time::ZERO, Time::ZERO);
        self.delays.clear();
    }

    /// How old the message is of which the datagram at hand tells, if it does.
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

    /// A message was delivered that is so old.
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

/// How old a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Age {
    delay: Duration,
    uncertainty: Duration,
    deadline: Option<Duration>,
}

impl Age {
    /// Whether it is past its deadline for certain.
    pub(crate) fn is_late(&self) -> bool {
        let least = self.delay.saturating_sub(self.uncertainty);
        self.deadline.is_some_and(|d| least > d)
    }
}

/// How long messages took from the sending link to this one, by aligned clocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LinkDelay {
    /// Messages that were measured; most topics tell of ten a second.
    pub messages: u64,
    /// Mean.
    pub mean_us: f64,
    /// 99 % quantile.
    pub p99_us: f64,
    /// Largest.
    pub max_us: f64,
    /// By how much each may be wrong, since clocks differ.
    pub uncertainty_us: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PeerId;
    use crate::wire::{Beat, Claim};

    const AIR: Duration = Duration::from_millis(2);
    const PEER: PeerId = PeerId(0);

    fn claim(host: u32, priority: u8) -> Claim {
        Claim {
            host,
            priority,
            demand_ms: 255,
            age_ms: 0,
        }
    }

    #[test]
    fn the_less_important_keeps_its_least_share_and_the_important_all() {
        let mut s = Share::new(1, 1, true, 0.1);
        let t = Time::from_millis(1_000);
        s.table.claim(t, 1, PEER, &claim(9, 50));
        s.charge(t, 50, AIR);
        let half = s.gate(t, 50).expect("an equal has its half");
        assert!(half.since(t) <= AIR * 2);
        let mut s = Share::new(1, 1, true, 0.1);
        s.table.claim(t, 1, PEER, &claim(9, 50));
        s.charge(t, 10, AIR);
        assert_eq!(s.gate(t, 51), None);
        let gate = s.gate(t, 10).expect("yields");
        assert!(
            (AIR * 9..=AIR * 10).contains(&gate.since(t)),
            "{:?}",
            gate.since(t)
        );
        assert_eq!(
            s.gate(t + Duration::from_millis(200), 10),
            None,
            "it was not renewed"
        );
        let mut s = Share::new(1, 1, false, 0.1);
        s.table.claim(t, 1, PEER, &claim(9, 50));
        s.charge(t, 10, AIR);
        assert_eq!(s.gate(t, 10), None, "it is told not to yield");
    }

    #[test]
    fn a_liar_is_bounded_and_takes_no_more_than_what_is_beyond_the_least_share() {
        let mut s = Share::new(1, 1, true, 0.1);
        let t = Time::from_millis(1_000);
        for host in 0..10_000 {
            s.table.claim(t, 1, PEER, &claim(host, 127));
        }
        assert!(s.table.claimants(t) <= 16);
        // Sixteen that say they are equals leave a share that is not less than a quarter of the least.
        s.charge(t, 127, AIR);
        assert!(s.gate(t, 127).expect("yields").since(t) <= AIR * 40);
        let beat = |host, at| Beat {
            host,
            priority: 127,
            at,
            period: 5_000,
            air: 2_500,
            spread: 1_000,
            age_ms: 0,
        };
        let mut sent = 0;
        let mut now = t;
        for _ in 0..10_000 {
            now += Duration::from_micros(100);
            for host in 2..40u32 {
                let next = now + Duration::from_micros(u64::from(host) * 100);
                s.table.rhythm(now, 1, PEER, &beat(host, 0), next, Duration::ZERO);
            }
            assert!(s.table.rhythms() <= 16);
            match s.foreseen(now, 126, AIR) {
                Some(f) if f.from < now + AIR => s.holds(now),
                _ => {
                    s.charge(now, 126, AIR);
                    sent += 1;
                }
            }
        }
        // A second has passed, in which a tenth of the air was due.
        assert!(sent >= 45, "{sent} datagrams of 2 ms in a second");
    }

    #[test]
    fn ages_grow_as_they_are_repeated_and_the_newest_counts() {
        let (t, us, other) = (Time::from_millis(1_000), 1, PeerId(1));
        let mut table = Table::default();
        table.claim(
            t,
            us,
            PEER,
            &Claim {
                age_ms: 100,
                ..claim(9, 50)
            },
        );
        table.claim(
            t,
            us,
            other,
            &Claim {
                age_ms: 20,
                ..claim(9, 20)
            },
        );
        table.claim(
            t,
            us,
            PEER,
            &Claim {
                age_ms: 90,
                ..claim(9, 60)
            },
        );
        assert_eq!(table.rivals(t, 30, false), (0, 0), "the newest says 20");
        let told = table.claims_for(t, PEER);
        assert_eq!((told.len(), told[0].age_ms), (1, 21));
        assert!(table.claims_for(t, other).is_empty(), "who said it knows");
        table.claim(
            t,
            us,
            PEER,
            &Claim {
                age_ms: 210,
                ..claim(8, 50)
            },
        );
        table.claim(t, us, PEER, &claim(us, 50));
        assert_eq!(table.claimants(t), 1, "neither old ones nor our own");
        table.expire(t + Duration::from_millis(180));
        assert_eq!(table.claimants(t), 0);
    }

    #[test]
    fn a_claim_ends_with_what_it_claims_and_for_equals_in_full_air_later() {
        let (t, ms) = (Time::from_millis(1_000), Duration::from_millis);
        let message = Claim {
            demand_ms: 6,
            ..claim(9, 50)
        };
        let claimed = |before: u32| {
            let mut s = Share::new(1, 1, true, 0.1);
            for n in 0..before {
                s.takes(t - AIR * (before - n), AIR);
            }
            s.table.claim(t, 1, PEER, &message);
            for n in 1..=3 {
                assert_eq!(s.rivals(t + AIR * n, 50), (0, 1));
                s.took(t + AIR * n, 9, AIR);
            }
            s
        };
        let end = t + AIR * 3;
        let free = claimed(0);
        assert_eq!((free.rivals(end, 50), free.rivals(end, 20)), ((0, 0), (0, 0)));
        let full = claimed(1_000);
        assert_eq!(full.rivals(end, 50), (0, 1), "they go on taking turns");
        assert_eq!(
            full.rivals(end, 20),
            (0, 0),
            "what is less important need not wait"
        );
        assert_eq!(full.rivals(end + ms(60), 50), (0, 0));
        // A quick radio's claim of less than a millisecond is not over with the datagram that says it.
        let mut quick = Share::new(1, 1, true, 0.1);
        let least = Claim {
            demand_ms: 0,
            ..message
        };
        quick.table.claim(t, 1, PEER, &least);
        quick.took(t, 9, AIR / 8);
        assert_eq!(quick.rivals(t, 50), (0, 1));
        // Whom it does not hear it waits for as long as what it claims should take.
        let mut unheard = Share::new(1, 1, true, 0.1);
        unheard.table.claim(t, 1, PEER, &message);
        assert_eq!(unheard.rivals(end, 50), (0, 1));
        assert_eq!(unheard.rivals(t + ms(14), 50), (0, 0));
    }

    #[test]
    fn a_foreign_rhythm_goes_on_until_it_expires() {
        let (t, ms) = (Time::from_millis(1_000), Duration::from_millis);
        let mut s = Share::new(1, 1, true, 0.1);
        let beat = Beat {
            host: 9,
            priority: 100,
            at: 0,
            period: 20_000,
            air: 1_500,
            spread: 50,
            age_ms: 0,
        };
        s.table
            .rhythm(t, 1, PEER, &beat, t + ms(7), Duration::from_micros(50));
        assert_eq!(s.foreseen(t, 100, AIR), None, "an equal does not make room");
        for n in 0..20 {
            let now = t + ms(20) * n;
            let f = s.foreseen(now, 99, AIR).expect("foreseen");
            assert_eq!(f.from, now + ms(7) - Duration::from_micros(100));
            assert!(f.until > now + ms(7));
            // While its frames are in the air ours wait by themselves.
            let f = s.foreseen(now + ms(10), 99, AIR).expect("the next");
            assert_eq!(f.from, now + ms(27) - Duration::from_micros(100));
        }
        s.table.expire(t + ms(600));
        assert_eq!(s.foreseen(t + ms(600), 99, AIR), None);
    }
}
