//! Who else wants the air, by what they and common peers say.

use crate::config::PeerId;
use crate::send::Foreseen;
use crate::wire::{Beat, Claim, MOST_ENTRIES};
use core::time::Duration;
use stats::Time;
use std::collections::BTreeMap;

/// A claim that was not renewed for so long counts no more.
const EXPIRY: Duration = Duration::from_millis(200);
/// After what it claims the air for a host is expected to have gone on for so long; and where the air is full, its equals
/// expect that it soon has more.
const SLACK: Duration = Duration::from_millis(5);
const SLACK_WHERE_FULL: Duration = Duration::from_millis(40);
/// A rhythm foretells longer than a claim.
const RHYTHM_EXPIRY: Duration = Duration::from_millis(600);
/// Claims and rhythms that are kept.
const MOST: usize = 16;
/// A source quicker than this is not waited for, and none that takes more of the air than a half.
const LEAST_PERIOD: Duration = Duration::from_millis(5);
const MOST_SPREAD: Duration = Duration::from_millis(2);
/// A message takes the air for this long at least, back-off included.
const BEGUN: Duration = Duration::from_micros(250);
/// Of what clocks are uncertain by, so much is allowed for beside the spread.
const MOST_DOUBT: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug)]
struct Claimed {
    priority: u8,
    demand: Duration,
    /// What its host has sent since, as far as this host heard it.
    heard: Duration,
    at: Time,
    via: PeerId,
}

#[derive(Clone, Copy, Debug)]
struct Rhythmic {
    next: Time,
    period: Duration,
    air: Duration,
    spread: Duration,
    at: Time,
    via: PeerId,
}

/// What other hosts claim of the air. Bounded, whatever peers say; what is claimed decides over no more of
/// the air than [`super::Share`] lets it.
#[derive(Debug, Default)]
pub(crate) struct Table {
    claims: BTreeMap<u32, Claimed>,
    rhythms: BTreeMap<(u32, u8), Rhythmic>,
}

impl Table {
    /// Takes what a peer says of itself or repeats of others. `own` is our own host.
    pub(crate) fn claim(&mut self, now: Time, own: u32, via: PeerId, c: &Claim) {
        let at = now - Duration::from_millis(c.age_ms.into());
        if c.host == own || now.since(at) >= EXPIRY || self.claims.get(&c.host).is_some_and(|k| k.at > at) {
            return;
        }
        let demand = Duration::from_millis(c.demand_ms.into());
        let entry = Claimed {
            priority: c.priority,
            demand,
            heard: Duration::ZERO,
            at,
            via,
        };
        self.claims.insert(c.host, entry);
        if self.claims.len() > MOST
            && let Some(oldest) = self.claims.iter().min_by_key(|(_, k)| k.at).map(|(h, _)| *h)
        {
            self.claims.remove(&oldest);
        }
    }

    /// A host sent something that takes so much air.
    pub(crate) fn took(&mut self, host: u32, air: Duration) {
        if let Some(c) = self.claims.get_mut(&host) {
            c.heard += air;
        }
    }

    /// Takes a rhythm; `next` is when its next message comes by our clock, `doubt` how far that may be wrong.
    pub(crate) fn rhythm(&mut self, now: Time, own: u32, via: PeerId, b: &Beat, next: Time, doubt: Duration) {
        let us = |n: u32| Duration::from_micros(n.into());
        let at = now - Duration::from_millis(b.age_ms.into());
        let spread = us(b.spread) + doubt;
        let (period, air) = (us(b.period), us(b.air));
        let key = (b.host, b.priority);
        if b.host == own
            || now.since(at) >= RHYTHM_EXPIRY
            || period < LEAST_PERIOD
            || air > period / 2
            || doubt > MOST_DOUBT
            || spread > MOST_SPREAD.min(period / 4)
            || self.rhythms.get(&key).is_some_and(|k| k.at > at)
        {
            return;
        }
        let entry = Rhythmic {
            next,
            period,
            air,
            spread,
            at,
            via,
        };
        self.rhythms.insert(key, entry);
        if self.rhythms.len() > MOST
            && let Some(oldest) = self.rhythms.iter().min_by_key(|(_, k)| k.at).map(|(h, _)| *h)
        {
            self.rhythms.remove(&oldest);
        }
    }

    /// Lets go of what is out of date.
    pub(crate) fn expire(&mut self, now: Time) {
        self.claims.retain(|_, c| now < c.until_full());
        self.rhythms.retain(|_, r| now < r.at + RHYTHM_EXPIRY);
    }

    /// How many hosts claim the air at more than `priority`, and at just that. `full`: hardly any is left.
    pub(crate) fn rivals(&self, now: Time, priority: u8, full: bool) -> (usize, usize) {
        let until = |c: &Claimed| match full && c.priority == priority {
            true => c.until_full(),
            false => c.until(),
        };
        let claims = self.claims.values().filter(|c| now < until(c));
        claims.fold((0, 0), |(more, same), c| {
            (
                more + usize::from(c.priority > priority),
                same + usize::from(c.priority == priority),
            )
        })
    }

    /// The hosts that claim the air now.
    pub(crate) fn claimants(&self, now: Time) -> usize {
        self.claims.values().filter(|c| now < c.until()).count()
    }

    /// The rhythms that are known.
    pub(crate) fn rhythms(&self) -> usize {
        self.rhythms.len()
    }

    /// The next message of another host that is more important than `priority`.
    pub(crate) fn foreseen(&self, now: Time, priority: u8) -> Option<Foreseen> {
        let more = self
            .rhythms
            .iter()
            .filter(|((_, p), r)| *p > priority && now < r.at + RHYTHM_EXPIRY);
        more.filter_map(|(_, r)| r.next(now)).min_by_key(|f| f.from)
    }

    /// Whether it is known when the messages of this priority come from a host.
    pub(crate) fn foresees(&self, now: Time, host: u32, priority: u8) -> bool {
        let rhythm = self.rhythms.get(&(host, priority));
        rhythm.is_some_and(|r| now < r.at + RHYTHM_EXPIRY)
    }

    /// The next message of a host that is neither we nor `peer`.
    pub(crate) fn foreseen_of_others(&self, now: Time, peer: u32) -> Option<Foreseen> {
        let others = self
            .rhythms
            .iter()
            .filter(|((host, _), r)| *host != peer && now < r.at + RHYTHM_EXPIRY);
        others.filter_map(|(_, r)| r.next(now)).min_by_key(|f| f.from)
    }

    /// What is repeated to a peer: what it does not know better itself.
    pub(crate) fn claims_for(&self, now: Time, peer: PeerId) -> Vec<Claim> {
        let others = self
            .claims
            .iter()
            .filter(|(_, c)| c.via != peer && now < c.until());
        let claim = |(host, c): (&u32, &Claimed)| Claim {
            host: *host,
            priority: c.priority,
            demand_ms: u8::try_from(c.demand.as_millis()).unwrap_or(u8::MAX),
            age_ms: age(now, c.at),
        };
        let mut all: Vec<Claim> = others.map(claim).collect();
        all.sort_by_key(|c| core::cmp::Reverse(c.priority));
        all.truncate(MOST_ENTRIES - 1);
        all
    }

    /// The rhythms that are repeated to a peer, by our clock.
    pub(crate) fn rhythms_for(&self, now: Time, peer: PeerId) -> Vec<Beat> {
        let others = self
            .rhythms
            .iter()
            .filter(|(_, r)| r.via != peer && now < r.at + RHYTHM_EXPIRY);
        let beat = |((host, priority), r): (&(u32, u8), &Rhythmic)| Beat {
            host: *host,
            priority: *priority,
            at: r.next.as_nanos() / 1000,
            period: micros(r.period),
            air: micros(r.air),
            spread: micros(r.spread),
            age_ms: age(now, r.at),
        };
        let mut all: Vec<Beat> = others.map(beat).collect();
        all.sort_by_key(|b| core::cmp::Reverse(b.priority));
        all
    }

    /// What came by way of a peer is of no use when it is gone.
    pub(crate) fn forget(&mut self, peer: PeerId) {
        self.claims.retain(|_, c| c.via != peer);
        self.rhythms.retain(|_, r| r.via != peer);
    }
}

impl Claimed {
    /// When its host has what it waits for, or does not claim it any more.
    fn until(&self) -> Time {
        // What is claimed is in whole milliseconds: less than one is not known.
        match !self.demand.is_zero() && self.heard >= self.demand {
            true => self.at,
            false => self.expected(SLACK),
        }
    }

    /// When its equals do not take turns with its host any more, where the air is full: without turns they collide, and the
    /// little that is left of the air is gone.
    fn until_full(&self) -> Time {
        self.expected(SLACK_WHERE_FULL)
    }

    fn expected(&self, slack: Duration) -> Time {
        // The others' least share and contention are in its way.
        self.at + EXPIRY.min(self.demand * 3 / 2 + slack)
    }
}

impl Rhythmic {
    fn next(&self, now: Time) -> Option<Foreseen> {
        let busy = self.air.max(BEGUN);
        let past = (now - busy - self.spread).since(self.next);
        let n = past.as_nanos().div_ceil(self.period.as_nanos().max(1));
        let at = self.next + self.period.saturating_mul(u32::try_from(n).ok()?);
        // What is handed over while its frames are in the air waits in the device queue, where no cut reaches it.
        let f = Foreseen {
            from: at - self.spread,
            until: at + self.spread + busy,
            period: self.period,
        };
        (f.until > now).then_some(f).or(Some(Foreseen {
            from: f.from + self.period,
            until: f.until + self.period,
            period: self.period,
        }))
    }
}

/// Rounded up, and never 0: what goes round in a circle ends.
fn age(now: Time, at: Time) -> u8 {
    u8::try_from(now.since(at).as_millis() + 1).unwrap_or(u8::MAX)
}

fn micros(d: Duration) -> u32 {
    u32::try_from(d.as_micros()).unwrap_or(u32::MAX)
}
