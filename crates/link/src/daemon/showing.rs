//! The status of a daemon, and the counts behind it.

use super::Daemon;
use crate::carrier::Carrier;
use crate::config::{self, PeerConfig};
use crate::names::{Line, host_id};
use crate::outbound::OutboundTopic;
use crate::relay::Carrying;
use crate::status::{PeerStatus, ReceivedTopic, SentTopic, Status, WayStatus};
use proto::{PeerId, TopicStats};
use stats::Drops;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

impl<C: Carrier> Daemon<C> {
    /// Counts messages that this host's bus lost before the radio got them as offered and lost towards each
    /// peer.
    pub(super) fn count_lost_before(&mut self) {
        let lost = self
            .outbound
            .iter_mut()
            .map(|(name, t)| (name.clone(), t.newly_lost()));
        let lost: BTreeMap<String, Drops> = lost.filter(|(_, drops)| drops.total() > 0).collect();
        if lost.is_empty() {
            return;
        }
        let topics: Vec<_> = self.pump.radio.topics().collect();
        for (id, stats) in topics {
            if let Some(drops) = self.name_here(&stats).and_then(|name| lost.get(&name)) {
                self.pump.radio.lost_before(id, drops);
            }
        }
    }

    /// Why topics with a publisher are not sent, or not to all peers.
    fn why_unsent(&self) -> BTreeMap<String, String> {
        let partly = (self.outbound.iter()).filter_map(|(name, t)| Some((name.clone(), t.why_unsent()?)));
        let wholly = self.unsent.iter().map(|(name, u)| (name.clone(), u.why.clone()));
        partly.chain(wholly).collect()
    }

    /// The destination hosts of a topic of the radio, if the topic is this host's own.
    fn hosts_of(&self, stats: &TopicStats) -> Vec<&PeerConfig> {
        let own = self.inbound.flows.relay.own();
        let is_own = stats.via.as_ref().is_none_or(|v| v.source == own);
        (self.config.peers.iter().enumerate())
            .filter(|(i, _)| is_own && is_for(&self.inbound.flows.carrying, stats, PeerId(*i as u32)))
            .map(|(_, p)| p)
            .collect()
    }

    /// The name of a topic of the radio on this host's bus.
    fn name_here(&self, stats: &TopicStats) -> Option<String> {
        let to = self.hosts_of(stats);
        to.first().map(|p| config::on_bus(p, &stats.name))
    }

    /// A topic of the radio, with this host's bus-side counts.
    fn sent_status(&self, stats: TopicStats) -> SentTopic {
        let own = self.inbound.flows.relay.own();
        let carrying = &self.inbound.flows.carrying;
        let here = self.name_here(&stats);
        let topic = here.as_ref().and_then(|name| self.outbound.get(name));
        SentTopic {
            peer: self.peer_name(stats.peer),
            source: carrying.name(stats.via.as_ref().map_or(own, |v| v.source)),
            to: match &stats.via {
                Some(via) => via.to.iter().map(|host| carrying.name(*host)).collect(),
                None => vec![self.peer_name(stats.peer)],
            },
            packing: topic.and_then(OutboundTopic::pack_stats),
            tf: topic.and_then(OutboundTopic::tf_stats),
            // A service's requests and replies are not topics on the bus.
            here: here.filter(|name| Line::parse(name).is_some_and(Line::is_topic)),
            stats,
        }
    }

    /// The radio's counts, with the names of the hosts to which this one yields.
    fn radio_stats(&self) -> proto::RadioStats {
        let mut stats = self.pump.radio.stats();
        for y in &mut stats.yields_to {
            let mut peers = self.config.peers.iter();
            if let Some(p) = peers.find(|p| proto::short_id(host_id(&p.name)) == y.id) {
                y.host.clone_from(&p.name);
            }
        }
        stats
    }

    /// Refreshes the status and, from the same counts, reports to subscribers of this bus the messages lost
    /// on the way.
    pub(super) fn renew_status(&mut self) {
        let recent = self.inbound.recent(clock::realtime());
        let remote: Vec<_> = (self.pump.peers.iter())
            .flat_map(|p| self.pump.radio.remote_topics(*p))
            .collect();
        for (topic, stats) in &remote {
            if let Some(account) = &stats.account {
                self.inbound.report_lost((stats.peer, *topic), account);
            }
        }
        let name = |peer: PeerId| self.peer_name(peer);
        let sends: BTreeSet<String> = config::sent(&self.config).collect();
        let status = Status {
            host: self.config.host.clone(),
            link: self.config.link_name(),
            uptime_clock_s: clock::monotonic().as_secs_f64(),
            scheduling: self.scheduling.to_string(),
            radio: self.radio_stats(),
            peers: std::iter::zip(&self.config.peers, &self.pump.peers)
                .enumerate()
                .map(|(i, (c, id))| PeerStatus {
                    name: c.name.clone(),
                    path_mtu: self.carrier.path_mtu(i),
                    refused_topics: self.inbound.refused(*id),
                    unheard: self.pump.reach.unheard(i),
                    stats: self.pump.radio.peer_stats(*id).unwrap_or_default(),
                })
                .collect(),
            sent: (self.pump.radio.topics())
                .map(|(_, t)| self.sent_status(t))
                .collect(),
            received: (remote.into_iter())
                .map(|(id, t)| {
                    let publisher = self.inbound.publisher_of(t.peer, id);
                    ReceivedTopic {
                        peer: name(t.peer),
                        source: self.inbound.source_of(t.peer, id),
                        here: publisher.map(|p| p.topic().topic.clone()),
                        recent: publisher.and_then(|p| recent.get(&p.id()).cloned()),
                        unpacking: publisher.and_then(|p| self.inbound.unpack_stats(p)),
                        bus_drops: publisher.map(|p| p.stats().drops).unwrap_or_default(),
                        stats: t,
                    }
                })
                .collect(),
            unpublished: sends
                .into_iter()
                .filter(|t| {
                    !bridge::is_pattern(t) && !self.outbound.contains_key(t) && !self.unsent.contains_key(t)
                })
                .collect(),
            unsent: self.why_unsent(),
            services: (self.inbound.services.as_ref())
                .map_or_else(Vec::new, |s| s.calls.status(&self.pump.radio)),
            refused_datagrams: self.carrier.refused(),
            ways: (self.pump.radio.ways())
                .map(|w| WayStatus {
                    host: self.inbound.flows.carrying.name(w.host),
                    over: name(w.next),
                    hops: w.hops,
                    cost_us: w.cost_us,
                })
                .collect(),
            unreachable: (self.config.peers.iter().skip(self.pump.peers.len()))
                .filter(|p| self.pump.radio.way(host_id(&p.name), |_| true).is_none())
                .map(|p| p.name.clone())
                .collect(),
            way_changes: self.pump.radio.way_changes(),
            relay: self.inbound.flows.relay.stats().clone(),
            sealing: self.inbound.flows.seals.as_ref().map(|s| s.stats()),
        };
        *self
            .handle
            .0
            .status
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = status;
    }
}

/// Returns whether a topic of the radio is for a host, no matter over which peer it goes.
pub(super) fn is_for(carrying: &Carrying, topic: &TopicStats, host: PeerId) -> bool {
    match &topic.via {
        Some(via) => via.to.contains(&carrying.host(host)),
        None => topic.peer == host,
    }
}
