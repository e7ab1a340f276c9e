//! Other hosts' need of the air, as they claim it themselves and common peers repeat it.

use super::used::Used;
use crate::config::PeerId;
use crate::policy::tuning::tuning;
use crate::send::Foreseen;
use crate::wire::{Beat, Claim, MOST_ENTRIES};
use core::time::Duration;
use stats::Time;
use std::collections::{BTreeMap, BTreeSet};

/// Claims and rhythms of other hosts that are kept for one peer, and rhythms of its own.
const MOST_REPEATED: usize = MOST_ENTRIES;
pub(crate) const OWN_RHYTHMS: usize = 4;
/// Most hosts whose claims are compared with what they send.
const MOST_KEPT: usize = 64;

/// The peer that makes a claim, and the host that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Speaker {
    pub(crate) peer: PeerId,
    /// The short form of its id, which its connection proves.
    pub(crate) host: u32,
}

#[derive(Clone, Copy, Debug)]
struct Claimed {
    priority: u8,
    demand: Duration,
    /// Airtime that its host has used since, as far as this host heard it.
    heard: Duration,
    at: Time,
    /// Whether its host itself made the claim.
    direct: bool,
}

#[derive(Clone, Copy, Debug)]
struct Rhythmic {
    next: Time,
    period: Duration,
    air: Duration,
    spread: Duration,
    at: Time,
    direct: bool,
}

/// How long a host recently claimed the air, and the air that it took, as far as this host heard it.
#[derive(Debug)]
struct Kept {
    claimed: Used,
    heard: Used,
}

impl Kept {
    fn new() -> Self {
        Kept {
            claimed: Used::over(tuning().kept_span),
            heard: Used::over(tuning().kept_span),
        }
    }
}

/// Claims of other hosts, by their identity and the peer they came through: none can claim for another, nor use up the
/// room of another's claims. Claims decide over at most as much of the air as [`super::Share`] allows.
#[derive(Debug)]
pub(crate) struct Table {
    own: u32,
    /// Hosts whose claims are ignored.
    denied: BTreeSet<u32>,
    claims: BTreeMap<(u32, PeerId), Claimed>,
    /// The last part of the key tells rhythms of one host and priority apart, by their order in the frame.
    rhythms: BTreeMap<(u32, PeerId, u8, u8), Rhythmic>,
    kept: BTreeMap<u32, Kept>,
    /// Until then, a host's claims count only if this host hears it use the claimed air.
    doubts_until: Time,
}

impl Table {
    /// The table of the host whose short id is `own`.
    pub(crate) fn new(own: u32) -> Self {
        Table {
            own,
            denied: BTreeSet::new(),
            claims: BTreeMap::new(),
            rhythms: BTreeMap::new(),
            kept: BTreeMap::new(),
            doubts_until: Time::ZERO,
        }
    }

    /// Ignores the claims of this host, through whichever peer they arrive.
    pub(crate) fn deny(&mut self, host: u32) {
        self.denied.insert(host);
        self.claims.retain(|(h, _), _| *h != host);
        self.rhythms.retain(|(h, ..), _| *h != host);
    }

    /// Until `until`, disbelieves hosts that are not heard to take what they claim.
    pub(crate) fn doubt(&mut self, until: Time) {
        self.doubts_until = until;
    }

    /// Whether a host uses the air that it claims, as far as this host hears it.
    pub(crate) fn keeps_word(&self, now: Time, host: u32) -> bool {
        let Some(kept) = self.kept.get(&host) else {
            return false;
        };
        let rhythms = self.rhythms.range(rhythms_of(host)).map(|(_, r)| r);
        let announced = rhythms.filter(|r| r.direct && now < r.until());
        let beats: f64 = announced.map(|r| r.air.div_duration_f64(r.period)).sum();
        let heard = kept.heard.share(now);
        heard >= tuning().least_heard
            && heard >= tuning().kept_part * (beats + tuning().least_of_claimed * kept.claimed.share(now))
    }

    fn believes(&self, now: Time, host: u32) -> bool {
        now >= self.doubts_until || self.keeps_word(now, host)
    }

    fn kept(&mut self, host: u32) -> Option<&mut Kept> {
        let has_room = self.kept.len() < MOST_KEPT || self.kept.contains_key(&host);
        has_room.then(|| self.kept.entry(host).or_insert_with(Kept::new))
    }

    /// Whether the claims of this host are ignored.
    pub(crate) fn is_denied(&self, host: u32) -> bool {
        self.denied.contains(&host)
    }

    fn listens_to(&self, host: u32) -> bool {
        host != self.own && !self.denied.contains(&host)
    }

    /// Takes a claim that a peer makes for itself or repeats for others.
    pub(crate) fn claim(&mut self, now: Time, by: Speaker, c: &Claim) {
        let at = now - Duration::from_millis(c.age_ms.into());
        let key = (c.host, by.peer);
        if !self.listens_to(c.host)
            || now.since(at) >= tuning().claim_expiry
            || self.claims.get(&key).is_some_and(|k| k.at > at)
        {
            return;
        }
        let entry = Claimed {
            priority: c.priority,
            demand: Duration::from_millis(c.demand_ms.into()),
            heard: Duration::ZERO,
            at,
            direct: c.host == by.host,
        };
        let before = self.claims.insert(key, entry);
        if let (true, Some(before)) = (entry.direct, before)
            && let Some(kept) = self.kept(c.host)
        {
            kept.claimed.add(now, now.min(before.until()).since(before.at));
        }
        let repeated = self
            .claims
            .iter()
            .filter(|((_, via), k)| *via == by.peer && !k.direct);
        if !entry.direct
            && repeated.clone().count() > MOST_REPEATED
            && let Some(oldest) = repeated.min_by_key(|(_, k)| k.at).map(|(key, _)| *key)
        {
            self.claims.remove(&oldest);
        }
    }

    /// A host sent something that takes this much air.
    pub(crate) fn took(&mut self, now: Time, host: u32, air: Duration) {
        if let Some(kept) = self.kept(host) {
            kept.heard.add(now, air);
        }
        for (_, c) in self.claims.range_mut(of_host(host)) {
            c.heard += air;
        }
    }

    /// Takes a rhythm, the nth of its host and priority in its frame; `next` is when its next message is due by our clock,
    /// `doubt` how far that may be off.
    pub(crate) fn rhythm(&mut self, now: Time, by: Speaker, b: &Beat, nth: u8, next: Time, doubt: Duration) {
        let us = |n: u32| Duration::from_micros(n.into());
        let at = now - Duration::from_millis(b.age_ms.into());
        let spread = us(b.spread) + doubt;
        let (period, air) = (us(b.period), us(b.air));
        let key = (b.host, by.peer, b.priority, nth);
        let direct = b.host == by.host;
        if !self.listens_to(b.host)
            || now.since(at) >= tuning().rhythm_expiry
            || period < tuning().reported_period
            || air > period / 2
            || doubt > tuning().reported_doubt
            || spread > tuning().reported_spread.min(period / 4)
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
            direct,
        };
        self.rhythms.insert(key, entry);
        let most = if direct { OWN_RHYTHMS } else { MOST_REPEATED };
        let alike = self
            .rhythms
            .iter()
            .filter(|((_, via, ..), r)| *via == by.peer && r.direct == direct);
        if alike.clone().count() > most
            && let Some(oldest) = alike.min_by_key(|(_, r)| r.at).map(|(key, _)| *key)
        {
            self.rhythms.remove(&oldest);
        }
    }

    /// Drops what is out of date.
    pub(crate) fn expire(&mut self, now: Time) {
        self.claims.retain(|_, c| now < c.until_full());
        self.rhythms.retain(|_, r| now < r.until());
        let counts = |used: &Used| used.share(now) >= tuning().least_heard / 2.0;
        self.kept.retain(|_, k| counts(&k.claimed) || counts(&k.heard));
    }

    /// The claims that currently hold, one per host: its own claim, otherwise the highest one repeated for it.
    fn claimed(
        &self,
        now: Time,
        until: impl Fn(&Claimed) -> Time + Copy,
    ) -> impl Iterator<Item = (u32, &Claimed)> {
        let holds = move |c: &Claimed| now < until(c);
        let counts = |c: &Claimed, via: PeerId| (c.direct, c.priority, via);
        self.claims.iter().filter_map(move |((host, via), c)| {
            let mut same = self.claims.range(of_host(*host));
            let silent = !holds(c) || same.any(|((_, v), o)| holds(o) && counts(o, *v) > counts(c, *via));
            (!silent && self.believes(now, *host)).then_some((*host, c))
        })
    }

    /// Number of hosts that claim the air at more than `priority`, and at exactly that. `full`: hardly any air is left.
    pub(crate) fn contenders(&self, now: Time, priority: u8, full: bool) -> (usize, usize) {
        let claims = self.claimed(now, until_at(priority, full));
        claims.fold((0, 0), |(more, same), (_, c)| {
            (
                more + usize::from(c.priority > priority),
                same + usize::from(c.priority == priority),
            )
        })
    }

    /// The host with the most important claim that a datagram of `priority` yields to.
    pub(crate) fn claimant(&self, now: Time, priority: u8, full: bool) -> Option<u32> {
        let claims = self.claimed(now, until_at(priority, full));
        let most = claims.filter(|(_, c)| c.priority >= priority);
        most.max_by_key(|(host, c)| (c.priority, *host))
            .map(|(host, _)| host)
    }

    /// Number of hosts that currently claim the air.
    pub(crate) fn claimants(&self, now: Time) -> usize {
        self.claimed(now, Claimed::until).count()
    }

    /// Number of known rhythms.
    pub(crate) fn rhythms(&self) -> usize {
        self.rhythms.len()
    }

    /// The rhythms that currently count: repeated rhythms of a host do not while it announces its own.
    fn announced(&self, now: Time) -> impl Iterator<Item = ((u32, u8), &Rhythmic)> {
        self.rhythms
            .iter()
            .filter_map(move |((host, _, priority, _), r)| {
                let mut own = self.rhythms.range(rhythms_of(*host));
                let counts = now < r.until() && (r.direct || !own.any(|(_, o)| o.direct && now < o.until()));
                (counts && self.believes(now, *host)).then_some(((*host, *priority), r))
            })
    }

    /// The next message of another host that is more important than `priority`, and that host.
    pub(crate) fn foreseen(&self, now: Time, priority: u8) -> Option<(u32, Foreseen)> {
        let more = self.announced(now).filter(|((_, p), _)| *p > priority);
        let next = more.filter_map(|((host, _), r)| Some((host, r.next(now)?)));
        next.min_by_key(|(_, f)| f.from)
    }

    /// Whether it is known when a host's messages of this priority are due.
    pub(crate) fn foresees(&self, now: Time, host: u32, priority: u8) -> bool {
        self.announced(now).any(|(of, _)| of == (host, priority))
    }

    /// The next message of a host other than this one and `peer`, if that host keeps its word: control frames wait for
    /// no other.
    pub(crate) fn foreseen_of_others(&self, now: Time, peer: u32) -> Option<Foreseen> {
        let others = self.announced(now).filter(|((host, _), _)| *host != peer);
        let others = others.filter(|((host, _), _)| self.keeps_word(now, *host));
        others.filter_map(|(_, r)| r.next(now)).min_by_key(|f| f.from)
    }

    /// Claims to repeat to a peer: those that other hosts made themselves and are heard to keep. A host farther away
    /// does not share the air.
    pub(crate) fn claims_for(&self, now: Time, peer: PeerId) -> Vec<Claim> {
        let others = self
            .claims
            .iter()
            .filter(|((_, via), c)| *via != peer && c.direct && now < c.until())
            .filter(|((host, _), _)| self.keeps_word(now, *host));
        let claim = |((host, _), c): (&(u32, PeerId), &Claimed)| Claim {
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

    /// The rhythms to repeat to a peer, by our clock.
    pub(crate) fn rhythms_for(&self, now: Time, peer: PeerId) -> Vec<Beat> {
        let others = self
            .rhythms
            .iter()
            .filter(|((_, via, ..), r)| *via != peer && r.direct && now < r.until())
            .filter(|((host, ..), _)| self.keeps_word(now, *host));
        let beat = |((host, _, priority, _), r): (&(u32, PeerId, u8, u8), &Rhythmic)| Beat {
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

    /// Drops claims that arrived through a peer that is gone.
    pub(crate) fn forget(&mut self, peer: PeerId) {
        self.claims.retain(|(_, via), _| *via != peer);
        self.rhythms.retain(|(_, via, ..), _| *via != peer);
    }
}

/// The keys of a host's claims.
fn of_host(host: u32) -> core::ops::RangeInclusive<(u32, PeerId)> {
    (host, PeerId(0))..=(host, PeerId(u32::MAX))
}

/// The keys of a host's rhythms.
fn rhythms_of(host: u32) -> core::ops::RangeInclusive<(u32, PeerId, u8, u8)> {
    (host, PeerId(0), 0, 0)..=(host, PeerId(u32::MAX), u8::MAX, u8::MAX)
}

/// Until when a claim counts for a datagram of `priority`. `full`: hardly any air is left.
fn until_at(priority: u8, full: bool) -> impl Fn(&Claimed) -> Time + Copy {
    move |c| match full && c.priority == priority {
        true => c.until_full(),
        false => c.until(),
    }
}

impl Claimed {
    /// When its host has had the air that it waits for, or no longer claims it.
    fn until(&self) -> Time {
        // Claims are in whole milliseconds: an amount below one is unknown.
        match !self.demand.is_zero() && self.heard >= self.demand {
            true => self.at,
            false => self.expected(tuning().claim_slack),
        }
    }

    /// When its equals stop taking turns with its host, where the air is full: without turns they collide, and the
    /// little air that is left is lost.
    fn until_full(&self) -> Time {
        self.expected(tuning().claim_slack_where_full)
    }

    fn expected(&self, slack: Duration) -> Time {
        // The least share of the others, and contention, delay it.
        self.at + tuning().claim_expiry.min(self.demand * 3 / 2 + slack)
    }
}

impl Rhythmic {
    fn until(&self) -> Time {
        self.at + tuning().rhythm_expiry
    }

    fn next(&self, now: Time) -> Option<Foreseen> {
        let busy = self.air.max(tuning().begun);
        let past = (now - busy - self.spread).since(self.next);
        let n = past.as_nanos().div_ceil(self.period.as_nanos().max(1));
        let at = self.next + self.period.saturating_mul(u32::try_from(n).ok()?);
        // Datagrams handed over while its frames are in the air wait in the device queue, where they can no longer be
        // cut.
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

/// Rounded up, and never 0: so a claim that circulates ends.
fn age(now: Time, at: Time) -> u8 {
    u8::try_from(now.since(at).as_millis() + 1).unwrap_or(u8::MAX)
}

fn micros(d: Duration) -> u32 {
    u32::try_from(d.as_micros()).unwrap_or(u32::MAX)
}
