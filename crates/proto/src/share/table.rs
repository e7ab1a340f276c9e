//! Who else wants the air, by what they say of themselves and common peers repeat.

use super::used::Used;
use crate::config::PeerId;
use crate::send::Foreseen;
use crate::wire::{Beat, Claim, MOST_ENTRIES};
use core::time::Duration;
use stats::Time;
use std::collections::{BTreeMap, BTreeSet};

/// A claim that was not renewed for so long counts no more.
const EXPIRY: Duration = Duration::from_millis(200);
/// After what it claims the air for a host is expected to have gone on for so long; and where the air is full, its equals
/// expect that it soon has more.
const SLACK: Duration = Duration::from_millis(5);
const SLACK_WHERE_FULL: Duration = Duration::from_millis(40);
/// A rhythm foretells longer than a claim.
const RHYTHM_EXPIRY: Duration = Duration::from_millis(600);
/// Claims and rhythms of other hosts that are kept of one peer, and rhythms of its own.
const MOST_REPEATED: usize = MOST_ENTRIES;
pub(crate) const OWN_RHYTHMS: usize = 4;
/// A source quicker than this is not waited for, and none that takes more of the air than a half.
const LEAST_PERIOD: Duration = Duration::from_millis(5);
const MOST_SPREAD: Duration = Duration::from_millis(2);
/// A message takes the air for this long at least, back-off included.
const BEGUN: Duration = Duration::from_micros(250);
/// Of what clocks are uncertain by, so much is allowed for beside the spread.
const MOST_DOUBT: Duration = Duration::from_millis(1);

/// Over this time what a host claims is held against what is heard of it.
const KEPT_SPAN: Duration = Duration::from_secs(2);
/// While a host claims the air it gets so much of it at least: half of the least share that all leave it by default.
const LEAST_OF_CLAIMED: f64 = 0.05;
/// A host that sends less of what it says than this part does not do what it says; some is lost, or for others on the way.
const KEPT: f64 = 0.125;
/// And less of the air than this is nothing.
const LEAST_HEARD: f64 = 0.0005;
/// Hosts whose word is held against what they do.
const MOST_KEPT: usize = 64;

/// The peer that says something, and the host that it is.
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
    /// What its host has sent since, as far as this host heard it.
    heard: Duration,
    at: Time,
    /// Its host said so itself.
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

/// The time for which a host claimed the air lately, and the air that it took, as far as this host heard it.
#[derive(Debug)]
struct Kept {
    claimed: Used,
    heard: Used,
}

impl Kept {
    fn new() -> Self {
        Kept {
            claimed: Used::over(KEPT_SPAN),
            heard: Used::over(KEPT_SPAN),
        }
    }
}

/// What other hosts claim of the air, by who they are and through which peer it came: none can speak for another, nor use up
/// the room of another's words. What is claimed decides over no more of the air than [`super::Share`] lets it.
#[derive(Debug)]
pub(crate) struct Table {
    own: u32,
    /// Hosts of which nothing is believed.
    denied: BTreeSet<u32>,
    claims: BTreeMap<(u32, PeerId), Claimed>,
    rhythms: BTreeMap<(u32, PeerId, u8), Rhythmic>,
    kept: BTreeMap<u32, Kept>,
    /// Until then hosts are believed only if they are heard to take what they claim.
    doubts_until: Time,
}

impl Table {
    /// The table of the host whose id is `own` in its short form.
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

    /// Nothing is believed of this host, through whomever it comes.
    pub(crate) fn deny(&mut self, host: u32) {
        self.denied.insert(host);
        self.claims.retain(|(h, _), _| *h != host);
        self.rhythms.retain(|(h, ..), _| *h != host);
    }

    /// Until then nothing is believed of hosts that are not heard to take what they claim.
    pub(crate) fn doubt(&mut self, until: Time) {
        self.doubts_until = until;
    }

    /// Whether a host takes the air that it claims, as far as this host hears it.
    pub(crate) fn keeps_word(&self, now: Time, host: u32) -> bool {
        let Some(kept) = self.kept.get(&host) else {
            return false;
        };
        let rhythms = self.rhythms.range(rhythms_of(host)).map(|(_, r)| r);
        let told = rhythms.filter(|r| r.direct && now < r.until());
        let beats: f64 = told.map(|r| r.air.div_duration_f64(r.period)).sum();
        let heard = kept.heard.share(now);
        heard >= LEAST_HEARD && heard >= KEPT * (beats + LEAST_OF_CLAIMED * kept.claimed.share(now))
    }

    fn believes(&self, now: Time, host: u32) -> bool {
        now >= self.doubts_until || self.keeps_word(now, host)
    }

    fn kept(&mut self, host: u32) -> Option<&mut Kept> {
        let has_room = self.kept.len() < MOST_KEPT || self.kept.contains_key(&host);
        has_room.then(|| self.kept.entry(host).or_insert_with(Kept::new))
    }

    /// Whether nothing is believed of this host.
    pub(crate) fn is_denied(&self, host: u32) -> bool {
        self.denied.contains(&host)
    }

    fn listens_to(&self, host: u32) -> bool {
        host != self.own && !self.denied.contains(&host)
    }

    /// Takes what a peer says of itself or repeats of others.
    pub(crate) fn claim(&mut self, now: Time, by: Speaker, c: &Claim) {
        let at = now - Duration::from_millis(c.age_ms.into());
        let key = (c.host, by.peer);
        if !self.listens_to(c.host)
            || now.since(at) >= EXPIRY
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

    /// A host sent something that takes so much air.
    pub(crate) fn took(&mut self, now: Time, host: u32, air: Duration) {
        if let Some(kept) = self.kept(host) {
            kept.heard.add(now, air);
        }
        for (_, c) in self.claims.range_mut(of_host(host)) {
            c.heard += air;
        }
    }

    /// Takes a rhythm; `next` is when its next message comes by our clock, `doubt` how far that may be wrong.
    pub(crate) fn rhythm(&mut self, now: Time, by: Speaker, b: &Beat, next: Time, doubt: Duration) {
        let us = |n: u32| Duration::from_micros(n.into());
        let at = now - Duration::from_millis(b.age_ms.into());
        let spread = us(b.spread) + doubt;
        let (period, air) = (us(b.period), us(b.air));
        let key = (b.host, by.peer, b.priority);
        let direct = b.host == by.host;
        if !self.listens_to(b.host)
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
            direct,
        };
        self.rhythms.insert(key, entry);
        let most = if direct { OWN_RHYTHMS } else { MOST_REPEATED };
        let alike = self
            .rhythms
            .iter()
            .filter(|((_, via, _), r)| *via == by.peer && r.direct == direct);
        if alike.clone().count() > most
            && let Some(oldest) = alike.min_by_key(|(_, r)| r.at).map(|(key, _)| *key)
        {
            self.rhythms.remove(&oldest);
        }
    }

    /// Lets go of what is out of date.
    pub(crate) fn expire(&mut self, now: Time) {
        self.claims.retain(|_, c| now < c.until_full());
        self.rhythms.retain(|_, r| now < r.until());
        let counts = |used: &Used| used.share(now) >= LEAST_HEARD / 2.0;
        self.kept.retain(|_, k| counts(&k.claimed) || counts(&k.heard));
    }

    /// The claims that hold now, one of each host: what it says itself, else the most that is repeated of it.
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

    /// How many hosts claim the air at more than `priority`, and at just that. `full`: hardly any is left.
    pub(crate) fn rivals(&self, now: Time, priority: u8, full: bool) -> (usize, usize) {
        let claims = self.claimed(now, until_at(priority, full));
        claims.fold((0, 0), |(more, same), (_, c)| {
            (
                more + usize::from(c.priority > priority),
                same + usize::from(c.priority == priority),
            )
        })
    }

    /// Who claims the air for the most important that something of `priority` yields to.
    pub(crate) fn claimant(&self, now: Time, priority: u8, full: bool) -> Option<u32> {
        let claims = self.claimed(now, until_at(priority, full));
        let most = claims.filter(|(_, c)| c.priority >= priority);
        most.max_by_key(|(host, c)| (c.priority, *host))
            .map(|(host, _)| host)
    }

    /// The hosts that claim the air now.
    pub(crate) fn claimants(&self, now: Time) -> usize {
        self.claimed(now, Claimed::until).count()
    }

    /// The rhythms that are known.
    pub(crate) fn rhythms(&self) -> usize {
        self.rhythms.len()
    }

    /// The rhythms that count now: what is repeated of a host does not while it tells its own.
    fn told(&self, now: Time) -> impl Iterator<Item = ((u32, u8), &Rhythmic)> {
        self.rhythms.iter().filter_map(move |((host, _, priority), r)| {
            let mut own = self.rhythms.range(rhythms_of(*host));
            let counts = now < r.until() && (r.direct || !own.any(|(_, o)| o.direct && now < o.until()));
            (counts && self.believes(now, *host)).then_some(((*host, *priority), r))
        })
    }

    /// The next message of another host that is more important than `priority`, and whose it is.
    pub(crate) fn foreseen(&self, now: Time, priority: u8) -> Option<(u32, Foreseen)> {
        let more = self.told(now).filter(|((_, p), _)| *p > priority);
        let next = more.filter_map(|((host, _), r)| Some((host, r.next(now)?)));
        next.min_by_key(|(_, f)| f.from)
    }

    /// Whether it is known when the messages of this priority come from a host.
    pub(crate) fn foresees(&self, now: Time, host: u32, priority: u8) -> bool {
        self.told(now).any(|(of, _)| of == (host, priority))
    }

    /// The next message of a host that is neither we nor `peer`, if it does as it says: what the protocol has to say waits for
    /// no other.
    pub(crate) fn foreseen_of_others(&self, now: Time, peer: u32) -> Option<Foreseen> {
        let others = self.told(now).filter(|((host, _), _)| *host != peer);
        let others = others.filter(|((host, _), _)| self.keeps_word(now, *host));
        others.filter_map(|(_, r)| r.next(now)).min_by_key(|f| f.from)
    }

    /// What is repeated to a peer: what others said of themselves and are heard to do. Who is farther away does not share the
    /// air.
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

    /// The rhythms that are repeated to a peer, by our clock.
    pub(crate) fn rhythms_for(&self, now: Time, peer: PeerId) -> Vec<Beat> {
        let others = self
            .rhythms
            .iter()
            .filter(|((_, via, _), r)| *via != peer && r.direct && now < r.until())
            .filter(|((host, ..), _)| self.keeps_word(now, *host));
        let beat = |((host, _, priority), r): (&(u32, PeerId, u8), &Rhythmic)| Beat {
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
        self.claims.retain(|(_, via), _| *via != peer);
        self.rhythms.retain(|(_, via, _), _| *via != peer);
    }
}

/// The keys of a host's claims.
fn of_host(host: u32) -> core::ops::RangeInclusive<(u32, PeerId)> {
    (host, PeerId(0))..=(host, PeerId(u32::MAX))
}

/// The keys of a host's rhythms.
fn rhythms_of(host: u32) -> core::ops::RangeInclusive<(u32, PeerId, u8)> {
    (host, PeerId(0), 0)..=(host, PeerId(u32::MAX), u8::MAX)
}

/// Until when a claim counts for something of `priority`. `full`: hardly any air is left.
fn until_at(priority: u8, full: bool) -> impl Fn(&Claimed) -> Time + Copy {
    move |c| match full && c.priority == priority {
        true => c.until_full(),
        false => c.until(),
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
    fn until(&self) -> Time {
        self.at + RHYTHM_EXPIRY
    }

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
