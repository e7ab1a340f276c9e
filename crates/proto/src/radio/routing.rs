//! Routes to hosts beyond the peers.

use super::Radio;
use crate::body::{Body, Message};
use crate::config::{PeerId, RemoteTopic, TopicId};
use crate::peer::{Arrival, Peer, put};
use crate::route::{LinkState, Router, Way};
use crate::wire::{Frame, Ways};
use stats::Time;
use std::collections::BTreeMap;

/// Most notices that wait; further ones are sent when the next message arrives.
const MAX_UNWANTED: usize = 256;

impl<B: Body> Radio<B> {
    /// The routes in use, by host.
    pub fn ways(&self) -> impl Iterator<Item = Way> + '_ {
        self.router.iter().flat_map(Router::ways)
    }

    /// Number of times a route appeared or switched to another neighbour.
    pub fn way_changes(&self) -> u64 {
        self.router.as_ref().map_or(0, Router::changes)
    }

    /// The route to `host` over one of the peers for which `usable` returns true; without [`crate::RadioConfig::route`]
    /// it reaches only peers themselves.
    pub fn way(&self, host: u64, usable: impl Fn(PeerId) -> bool) -> Option<Way> {
        match &self.router {
            Some(router) => router.way(host, usable, |id| link(&self.peers, id)),
            None => {
                let mut peers = self.peers.iter();
                let (id, _) =
                    peers.find(|(id, p)| p.config.host == host && p.session.is_up() && usable(**id))?;
                Some(Way {
                    host,
                    next: *id,
                    cost_us: 0,
                    hops: 1,
                })
            }
        }
    }

    /// Whether another peer leads to this peer's host.
    pub fn leads_elsewhere(&self, peer: PeerId) -> bool {
        let router = self.router.as_ref();
        router.is_some_and(|r| r.leads_elsewhere(self.host_of(peer), peer))
    }

    /// Greets silent peers less often if another route leads to them.
    pub(super) fn greet_by_ways(&mut self, now: Time) {
        let Some(router) = &self.router else { return };
        for (id, p) in self.peers.iter_mut().filter(|(_, p)| !p.session.is_up()) {
            let elsewhere = router.leads_elsewhere(p.config.host, *id);
            p.session.leads_elsewhere(now, elsewhere);
        }
    }

    /// The host id of a peer, as set in [`crate::PeerConfig::host`]; 0 if it is unknown.
    pub(crate) fn host_of(&self, peer: PeerId) -> u64 {
        self.peers.get(&peer).map_or(0, |p| p.config.host)
    }

    /// Number of further bytes that may wait.
    pub(crate) fn room(&self) -> u64 {
        self.config
            .max_queued_bytes
            .saturating_sub(self.stats.queued_bytes)
    }

    /// Whether the peer of this topic has refused it.
    pub fn is_refused(&self, topic: TopicId) -> bool {
        let t = self.topics.get(topic.0 as usize);
        t.is_some_and(|t| t.announcer.accepted() == Some(false))
    }

    /// Avoids the neighbour `peer` as a route to `host` until `until`, as long as another leads there: its messages are
    /// known not to arrive, whatever the neighbour advertises.
    pub fn doubt_way(&mut self, now: Time, host: u64, peer: PeerId, until: Time) {
        let peers = &self.peers;
        if let Some(router) = &mut self.router {
            router.doubt(now, (host, peer), until, |id| link(peers, id));
        }
    }

    /// Notifies `peer` that this host does not need messages of its topic for the hosts in `to`.
    pub fn decline(&mut self, peer: PeerId, topic: RemoteTopic, to: u64) {
        let mut waiting = self.unwanted.iter_mut();
        if let Some((.., mask)) = waiting.find(|(p, t, _)| (*p, *t) == (peer, topic.0)) {
            *mask |= to;
        } else if self.unwanted.len() < MAX_UNWANTED {
            self.unwanted.push((peer, topic.0, to));
        }
    }

    /// Number of radio hops that a message still has to go, over the longest of its routes: they share the air.
    pub(super) fn route_hops(&self, topic: TopicId, message: &Message<B>) -> u32 {
        let Some((t, route)) = self.topics.get(topic.0 as usize).zip(message.route) else {
            return 0;
        };
        let hosts = t.config.via.iter().flat_map(|v| v.to.iter().enumerate());
        let ways = hosts
            .filter(|(i, _)| route.to >> i & 1 == 1)
            .filter_map(|(_, host)| self.way(*host, |p| p == t.peer));
        ways.map(|w| u32::from(w.hops)).max().unwrap_or(1)
    }

    /// Takes back this host's messages that wait for a failing peer, for hosts to which another route leads. Messages
    /// already begun are given up: the host that has the first half would refuse the other half.
    pub(crate) fn take_back(&mut self) -> Vec<(TopicId, Message<B>)> {
        let Some(router) = &self.router else {
            return Vec::new();
        };
        let (mut freed, mut taken) = (0, Vec::new());
        for (i, t) in self.topics.iter_mut().enumerate() {
            let Some(via) = t.config.via.clone().filter(|v| v.source == self.config.host) else {
                continue;
            };
            if !router.is_left(t.peer) || !t.is_best_effort() || t.config.latched {
                continue;
            }
            let goes_on = |host| router.chosen(host).is_some_and(|next| next != t.peer);
            let hosts = via.to.iter().enumerate();
            let others: u64 = hosts.filter(|(_, h)| goes_on(**h)).map(|(i, _)| 1 << i).sum();
            let (bytes, messages) = t.take_back(others);
            freed += bytes;
            taken.extend(messages.into_iter().map(|m| (TopicId(i as u32), m)));
        }
        self.released(freed);
        taken
    }

    /// Follows messages that are sent while they are still arriving.
    pub(super) fn follow_arrivals(&mut self, now: Time) {
        let mut freed = 0;
        for t in &mut self.topics {
            let (bytes, wakes) = t.follow_arrivals(now);
            freed += bytes;
            if wakes {
                self.scheduler.wake(t);
            }
        }
        self.released(freed);
    }

    /// Whether messages to this peer have a chance to arrive.
    pub(super) fn is_way(&self, peer: PeerId) -> bool {
        self.router.as_ref().is_none_or(|r| r.is_alive(peer))
    }

    /// How bad the link to a peer is; all are equal where routes are not sought.
    pub(super) fn badness(&self, peer: PeerId) -> u64 {
        self.router.as_ref().map_or(0, |r| r.badness(peer))
    }

    pub(super) fn route_due(&self, peer: PeerId) -> bool {
        self.router.as_ref().is_some_and(|r| r.is_due(peer)) || self.unwanted.iter().any(|(p, ..)| *p == peer)
    }

    /// When [`Radio::route_tick`] is due.
    pub(super) fn route_timeout(&self) -> Option<Time> {
        let router = self.router.as_ref()?;
        // A peer may have become silent meanwhile, so that this time has passed.
        Some(router.next_timeout(|id| link(&self.peers, id)).max(self.clock))
    }

    pub(super) fn route_tick(&mut self, now: Time) {
        if let Some(router) = &mut self.router {
            router.tick(now, |id| link(&self.peers, id));
        }
    }

    pub(super) fn route_renewed(&mut self, peer: PeerId) {
        self.unwanted.retain(|(p, ..)| *p != peer);
        if let Some(router) = &mut self.router {
            router.renew(peer);
        }
    }

    pub(super) fn route_turned(&mut self, now: Time, peer: PeerId) {
        if let Some(router) = &mut self.router {
            router.turned(now, peer, |id| link(&self.peers, id));
        }
    }

    pub(super) fn route_removed(&mut self, now: Time, peer: PeerId) {
        self.unwanted.retain(|(p, ..)| *p != peer);
        if let Some(router) = &mut self.router {
            router.remove(now, peer, |id| link(&self.peers, id));
        }
    }

    /// A datagram of the peer arrived.
    pub(super) fn route_heard(&mut self, now: Time, peer: PeerId, arrival: Arrival) {
        match arrival {
            Arrival::Newest { missing } => self.route_traffic(now, peer, 1, missing),
            Arrival::Late => {
                if let Some(router) = &mut self.router {
                    router.came_late(peer);
                }
            }
            Arrival::Again => {}
        }
    }

    /// Records that `came` more datagrams to or from the peer arrived and `lost` did not.
    pub(super) fn route_traffic(&mut self, now: Time, peer: PeerId, came: u64, lost: u64) {
        if let Some(router) = &mut self.router {
            router.traffic(now, peer, (came, lost), |id| link(&self.peers, id));
        }
    }

    pub(super) fn take_ways(&mut self, now: Time, peer: PeerId, ways: &Ways) {
        if let Some(router) = &mut self.router {
            router.take(now, peer, ways, |id| link(&self.peers, id));
        }
    }

    /// Appends the frames about routes that are due to a peer.
    pub(super) fn put_ways(&mut self, now: Time, peer: PeerId, out: &mut Vec<u8>) {
        let Some(p) = self.peers.get(&peer).filter(|p| p.session.is_up()) else {
            return;
        };
        let (max, hops) = (p.config.max_datagram, p.config.hops);
        self.unwanted.retain(|(to, topic, mask)| {
            let frame = Frame::Unwanted {
                topic: *topic,
                to: *mask,
            };
            *to != peer || !put(out, max, &frame)
        });
        if let Some(router) = &mut self.router
            && let Some(ways) = router.probe(now, peer, max.saturating_sub(out.len()), &p.airtime, hops)
        {
            put(out, max, &Frame::Ways(ways));
        }
    }
}

fn link(peers: &BTreeMap<PeerId, Peer>, id: PeerId) -> LinkState {
    let p = peers.get(&id);
    LinkState {
        up: p.is_some_and(|p| p.session.is_up()),
        silent: p.is_some_and(|p| p.flight.is_silent()),
        full: p.map_or_else(Default::default, |p| {
            p.airtime.airtime(p.config.max_datagram, p.config.hops)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AirtimeModel, RadioConfig};

    #[test]
    fn notices_of_unwanted_topics_are_bounded() {
        let config = RadioConfig::new(1, AirtimeModel::unlimited());
        let mut radio = Radio::<Vec<u8>>::new(config).expect("a valid configuration");
        for topic in 0..2 * MAX_UNWANTED as u32 {
            radio.decline(PeerId(0), RemoteTopic(topic), 1);
            radio.decline(PeerId(0), RemoteTopic(0), 2);
        }
        assert_eq!(radio.unwanted.len(), MAX_UNWANTED);
        assert_eq!(radio.unwanted[0], (PeerId(0), 0, 3));
    }
}
