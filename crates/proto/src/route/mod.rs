//! Routing: which neighbour leads to which host.
//!
//! A distance vector in the manner of Babel (RFC 8966). Every host numbers its own advertisements. This host takes a
//! route only if it is newer or nearer than what it has advertised itself ([`Router::is_feasible`]), so no loop forms.
//! The distance is the airtime that a full datagram takes, measured by probes. An entry lives only as long as it is
//! repeated, and tables are bounded (decision 112).

mod neighbour;
mod seen;

pub use seen::Seen;

use crate::airtime::AirtimeModel;
use crate::config::PeerId;
use crate::session::OVERSLEPT;
use crate::wire::{ENTRY_ROOM, Entry, MAX_ENTRIES, Ways};
use core::time::Duration;
use neighbour::{MAX_HOSTS, Neighbour};
use stats::Time;
use std::collections::BTreeMap;

/// Largest hop limit of a message.
pub const MAX_HOPS: u8 = 16;
/// Hop limit that the source gives a message.
pub(crate) const START_HOPS: u8 = 8;
/// Most hosts that a message may be addressed to.
pub const MAX_DESTINATIONS: usize = 62;

/// An entry that nobody has repeated for this long is dropped.
const EXPIRY: Duration = Duration::from_secs(1);
/// How long the distance that this host has advertised for another host remains binding.
const FEASIBLE_FOR: Duration = Duration::from_secs(3);
/// Sequence numbers that differ by more than this belong to different runs of a host.
const SAME_RUN: u64 = 64;
/// A route is left for a better one no sooner than this after the last change, unless it ends.
const DWELL: Duration = Duration::from_secs(1);
/// Factor on the cost of a route that proved to lose everything sent over it: it is taken only where no other route
/// leads.
const DOUBTED: u64 = 1 << 20;
/// Changes are advertised after this delay, so that several go together.
const SOON: Duration = Duration::from_millis(2);

/// How a message continues beyond the next host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Its number among its source's messages of the topic; source, topic and number identify the message.
    pub number: u64,
    /// How many more hops it may go.
    pub hops: u8,
    /// Its destinations: bit `i` is the host `i` in the topic's [`crate::Via::to`].
    pub to: u64,
}

/// Settings of route discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteConfig {
    /// Interval at which neighbours receive probes and advertisements. Default 100 ms.
    pub interval: Duration,
    /// A neighbour that answers nothing for this long is no longer a route. Default 300 ms.
    pub silence: Duration,
    /// Whether this host forwards, and so advertises other hosts to its neighbours.
    pub relay: bool,
}

impl Default for RouteConfig {
    fn default() -> Self {
        RouteConfig {
            interval: Duration::from_millis(100),
            silence: Duration::from_millis(300),
            relay: false,
        }
    }
}

/// A route to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The host.
    pub host: u64,
    /// The neighbour that leads there.
    pub next: PeerId,
    /// Measured airtime of a full datagram over the whole route, in microseconds.
    pub cost_us: u64,
    /// Hops of the route.
    pub hops: u8,
}

/// A route in use, and since when.
#[derive(Clone, Copy, Debug)]
struct Chosen {
    way: Way,
    seq: u64,
    since: Time,
}

/// The best distance to another host that this host has advertised.
#[derive(Clone, Copy, Debug)]
struct Advertised {
    seq: u64,
    cost: u64,
    at: Time,
}

#[derive(Debug)]
pub(crate) struct Router {
    config: RouteConfig,
    own: u64,
    seq: u64,
    next: Time,
    soon: Option<Time>,
    neighbours: BTreeMap<PeerId, Neighbour>,
    chosen: BTreeMap<u64, Chosen>,
    advertised: BTreeMap<u64, Advertised>,
    /// Routes to hosts, by the neighbour, that lost everything, and until when they are avoided.
    doubted: BTreeMap<(u64, PeerId), Time>,
    changes: u64,
}

/// State of a peer's link, as far as its session and its airtimes show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkState {
    pub(crate) up: bool,
    /// Whether datagrams that asked for a receipt got none.
    pub(crate) silent: bool,
    /// Airtime of a full datagram.
    pub(crate) full: Duration,
}

impl Router {
    pub(crate) fn new(config: RouteConfig, own: u64, session: u32) -> Self {
        Router {
            config,
            own,
            seq: u64::from(session) << 8,
            next: Time::ZERO,
            soon: None,
            neighbours: BTreeMap::new(),
            chosen: BTreeMap::new(),
            advertised: BTreeMap::new(),
            doubted: BTreeMap::new(),
            changes: 0,
        }
    }

    pub(crate) fn add(&mut self, now: Time, peer: PeerId, host: u64) {
        self.next = self.next.max(now);
        if host != 0 && host != self.own {
            self.neighbours.insert(peer, Neighbour::new(host));
        }
    }

    pub(crate) fn remove(&mut self, now: Time, peer: PeerId, links: impl Fn(PeerId) -> LinkState) {
        self.neighbours.remove(&peer);
        self.choose(now, links);
    }

    /// The peer has a new session: its counts start from zero.
    pub(crate) fn renew(&mut self, peer: PeerId) {
        if let Some(n) = self.neighbours.get_mut(&peer) {
            *n = Neighbour::new(n.host);
        }
    }

    /// The peer was silent for long, or is heard again: its measurements are void.
    pub(crate) fn turned(&mut self, now: Time, peer: PeerId, links: impl Fn(PeerId) -> LinkState) {
        if let Some(n) = self.neighbours.get_mut(&peer) {
            n.turn();
        }
        self.choose(now, links);
    }

    pub(crate) fn next_timeout(&self, links: impl Fn(PeerId) -> LinkState) -> Time {
        let alive = self.neighbours.iter().filter(|(_, n)| n.alive);
        let silent = alive.filter_map(|(id, n)| n.silent_at(self.config.silence, links(*id)));
        let turn = self.soon.map_or(self.next, |t| t.min(self.next));
        silent.fold(turn, Time::min)
    }

    /// Advances time: makes probes due, detects neighbours that fell silent, drops old entries.
    pub(crate) fn tick(&mut self, now: Time, links: impl Fn(PeerId) -> LinkState) {
        let asked = self.next_timeout(&links);
        if now < asked {
            return;
        }
        let slept = now.since(asked);
        if slept > OVERSLEPT {
            self.neighbours.values_mut().for_each(|n| n.slept(now, slept));
        }
        if now < self.next && self.soon.is_none_or(|t| now < t) {
            return self.choose(now, links);
        }
        if now >= self.next {
            // Hosts that were started together must not keep probing together.
            let share = self.config.interval / 64;
            self.next = now + self.config.interval - share * (self.own % 8) as u32;
            self.seq += 1;
        }
        for n in self.neighbours.values_mut() {
            n.due |= n.wants_probe(self.seq);
            n.adverts.retain(|_, a| now < a.at + EXPIRY);
        }
        self.soon = None;
        self.advertised.retain(|_, t| now < t.at + FEASIBLE_FOR);
        self.doubted.retain(|_, until| now < *until);
        self.choose(now, links);
    }

    pub(crate) fn is_due(&self, peer: PeerId) -> bool {
        self.neighbours.get(&peer).is_some_and(|n| n.due)
    }

    /// How bad the link to a peer is, for comparison.
    pub(crate) fn badness(&self, peer: PeerId) -> u64 {
        let bad = |n: &Neighbour| if n.alive { n.ratio() } else { u64::MAX };
        self.neighbours.get(&peer).map_or(0, bad)
    }

    /// The probe that is due to `peer`, of at most `room` bytes, with the routes to other hosts that the peer may use.
    pub(crate) fn probe(
        &mut self,
        now: Time,
        peer: PeerId,
        room: usize,
        model: &AirtimeModel,
        hops: u32,
    ) -> Option<Ways> {
        let most = (room.checked_sub(Ways::ROOM)? / ENTRY_ROOM).min(MAX_ENTRIES);
        let host = self.neighbours.get(&peer).filter(|n| n.due)?.host;
        let relays = self.config.relay;
        let reachable = (self.chosen.values())
            .filter(|c| relays && c.way.host != host && c.way.next != peer && c.way.hops < MAX_HOPS)
            .map(|c| Entry {
                host: c.way.host,
                seq: c.seq,
                cost: c.way.cost_us,
                hops: c.way.hops,
            });
        let mut entries: Vec<Entry> = reachable.take(most).collect();
        let n = self.neighbours.get_mut(&peer)?;
        let gone = n
            .advertised
            .iter()
            .filter(|h| entries.iter().all(|e| e.host != **h));
        let gone: Vec<u64> = gone.copied().collect();
        n.advertised = entries.iter().map(|e| e.host).collect();
        for e in &entries {
            let advertised = self.advertised.entry(e.host).or_insert(Advertised {
                seq: e.seq,
                cost: e.cost,
                at: now,
            });
            if advertised.seq != e.seq || e.cost < advertised.cost {
                (advertised.seq, advertised.cost) = (e.seq, e.cost);
            }
            advertised.at = now;
        }
        let over = |host| Entry {
            host,
            seq: 0,
            cost: 0,
            hops: 0,
        };
        let left = most - entries.len();
        entries.extend(gone.into_iter().take(left).map(over));
        let bytes = Ways::ROOM / 2 + entries.len() * ENTRY_ROOM / 2;
        let expected = model.airtime(bytes, hops) * 2;
        let mut ways = n.probe(now, self.seq, expected);
        ways.entries = entries;
        Some(ways)
    }

    /// Takes the probe that `peer` sent.
    pub(crate) fn take(&mut self, now: Time, peer: PeerId, ways: &Ways, links: impl Fn(PeerId) -> LinkState) {
        let own = self.own;
        let Some(n) = self.neighbours.get_mut(&peer) else {
            return;
        };
        n.take(now, ways);
        // It waits for the answer.
        n.due |= !n.alive;
        let host = n.host;
        n.record_advert(
            now,
            Entry {
                host,
                seq: ways.seq,
                cost: 0,
                hops: 0,
            },
        );
        for e in ways.entries.iter().filter(|e| e.host != own && e.host != host) {
            if e.cost == 0 || e.hops >= MAX_HOPS {
                n.adverts.remove(&e.host);
            } else if self.advertised.get(&e.host).is_none_or(|t| is_feasible(t, e)) {
                n.record_advert(now, *e);
            } else {
                // Neither newer nor nearer than what this host advertised: it may lead back.
                n.adverts.remove(&e.host);
            }
        }
        self.choose(now, links);
    }

    /// Messages to `host` over the neighbour `peer` do not arrive, whatever the neighbour advertises.
    pub(crate) fn doubt(
        &mut self,
        now: Time,
        (host, peer): (u64, PeerId),
        until: Time,
        links: impl Fn(PeerId) -> LinkState,
    ) {
        if self.neighbours.get(&peer).is_some_and(|n| n.host != host) && self.doubted.len() < 2 * MAX_HOSTS {
            self.doubted.insert((host, peer), until);
            self.choose(now, links);
        }
    }

    /// Records that `came` more datagrams to or from `peer` arrived and `lost` did not.
    pub(crate) fn traffic(
        &mut self,
        now: Time,
        peer: PeerId,
        (came, lost): (u64, u64),
        links: impl Fn(PeerId) -> LinkState,
    ) {
        let Some(n) = self.neighbours.get_mut(&peer) else {
            return;
        };
        if n.traffic(now, came, lost) {
            self.choose(now, links);
        }
    }

    /// A datagram of `peer` that counted as lost arrived.
    pub(crate) fn came_late(&mut self, peer: PeerId) {
        if let Some(n) = self.neighbours.get_mut(&peer) {
            n.came_late();
        }
    }

    /// Chooses the route to each host again.
    fn choose(&mut self, now: Time, links: impl Fn(PeerId) -> LinkState) {
        for (id, n) in &mut self.neighbours {
            let link = links(*id);
            // A neighbour that does not seek routes itself answers no probes.
            let alive = link.up && n.silent_at(self.config.silence, link).is_none_or(|t| now < t);
            match (n.alive, alive) {
                (true, false) => n.distrust(),
                _ => n.alive = alive,
            }
        }
        let mut hosts: Vec<u64> = self.neighbours.values().map(|n| n.host).collect();
        hosts.extend(self.neighbours.values().flat_map(|n| n.adverts.keys().copied()));
        hosts.extend(self.chosen.keys().copied());
        hosts.sort_unstable();
        hosts.dedup();
        hosts.truncate(2 * MAX_HOSTS);
        let mut changed = false;
        for host in hosts {
            let best = self
                .candidates(host, &links)
                .min_by_key(|(w, _)| (w.cost_us, w.next));
            let old = self.chosen.get(&host).copied();
            let same = old.and_then(|o| self.candidates(host, &links).find(|(w, _)| w.next == o.way.next));
            let next = match (best, same, old) {
                (None, ..) => {
                    changed |= self.chosen.remove(&host).is_some();
                    continue;
                }
                (Some(b), Some(s), Some(o)) => {
                    let better = b.0.cost_us.saturating_mul(3) < s.0.cost_us.saturating_mul(2);
                    let fails = |id| self.neighbours.get(&id).is_some_and(|n| n.is_failing());
                    let doubted = self.doubted.contains_key(&(host, s.0.next));
                    let at_once = doubted || fails(s.0.next) && !fails(b.0.next);
                    if better && (at_once || now >= o.since + DWELL) {
                        b
                    } else {
                        s
                    }
                }
                (Some(b), ..) => b,
            };
            let since = match old {
                Some(o) if o.way.next == next.0.next => o.since,
                _ => {
                    changed = true;
                    self.changes += 1;
                    now
                }
            };
            let (way, seq) = next;
            self.chosen.insert(host, Chosen { way, seq, since });
        }
        if changed && self.config.relay {
            self.soon.get_or_insert(now + SOON);
        }
    }

    /// The routes to `host`, each with the sequence number that it was advertised with.
    fn candidates(
        &self,
        host: u64,
        links: &impl Fn(PeerId) -> LinkState,
    ) -> impl Iterator<Item = (Way, u64)> {
        let neighbours = self.neighbours.iter().filter(|(_, n)| n.alive);
        neighbours.filter_map(move |(id, n)| {
            let (cost, hops, seq) = match n.adverts.get(&host) {
                Some(a) => (a.entry.cost, a.entry.hops, a.entry.seq),
                None if n.host == host => (0, 0, 0),
                None => return None,
            };
            let cost = n.cost(links(*id).full).saturating_add(cost);
            let doubted = self.doubted.contains_key(&(host, *id));
            let way = Way {
                host,
                next: *id,
                cost_us: if doubted {
                    cost.saturating_mul(DOUBTED)
                } else {
                    cost
                },
                hops: hops + 1,
            };
            Some((way, seq))
        })
    }

    /// The route to `host` over one of the neighbours for which `usable` returns true: the chosen one, otherwise the
    /// best.
    pub(crate) fn way(
        &self,
        host: u64,
        usable: impl Fn(PeerId) -> bool,
        links: impl Fn(PeerId) -> LinkState,
    ) -> Option<Way> {
        let chosen = self.chosen.get(&host).map(|c| c.way);
        chosen.filter(|w| usable(w.next)).or_else(|| {
            let others = self.candidates(host, &links).map(|(w, _)| w);
            others
                .filter(|w| usable(w.next))
                .min_by_key(|w| (w.cost_us, w.next))
        })
    }

    /// Whether messages to this peer have a chance to arrive.
    pub(crate) fn is_alive(&self, peer: PeerId) -> bool {
        self.neighbours.get(&peer).is_none_or(|n| n.alive)
    }

    /// Whether messages go to this peer only if no other peer leads to their destination.
    pub(crate) fn is_left(&self, peer: PeerId) -> bool {
        self.neighbours
            .get(&peer)
            .is_some_and(|n| !n.alive || n.is_failing())
    }

    /// The neighbour chosen for `host`.
    pub(crate) fn chosen(&self, host: u64) -> Option<PeerId> {
        self.chosen.get(&host).map(|c| c.way.next)
    }

    /// Whether a neighbour other than `peer` is chosen for `host`.
    pub(crate) fn leads_elsewhere(&self, host: u64, peer: PeerId) -> bool {
        self.chosen(host).is_some_and(|next| next != peer)
    }

    pub(crate) fn ways(&self) -> impl Iterator<Item = Way> + '_ {
        self.chosen.values().map(|c| c.way)
    }

    /// Number of times a route appeared or switched to another neighbour.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }
}

/// Whether a neighbour's entry cannot lead back here: it is newer or nearer than what this host advertised.
fn is_feasible(advertised: &Advertised, e: &Entry) -> bool {
    let ahead = e.seq.wrapping_sub(advertised.seq) as i64;
    ahead.unsigned_abs() > SAME_RUN || ahead > 0 || ahead == 0 && e.cost < advertised.cost
}

#[cfg(test)]
mod tests;
