//! A topic of a source, as this host knows it.

use crate::announcement::{Announcement, Via};
use crate::body::Body;
use crate::config::{PeerId, RemoteTopic, TopicConfig, TopicId};
use crate::radio::Radio;
use crate::route::Seen;
use stats::Time;
use std::collections::BTreeMap;

/// Its announcement, the neighbours that bring it, and its destinations.
pub(super) struct Flow {
    pub(super) announcement: Announcement,
    pub(super) via: Via,
    /// Messages that the source itself brought, or that were proven to be its own.
    pub(super) seen: Seen,
    /// Messages that each other neighbour brought: these do not interfere with anyone else's.
    pub(super) brought: BTreeMap<PeerId, Seen>,
    /// Number of the next message, where this host is the source.
    pub(super) next: u64,
    /// Newest number that was handed to this host.
    pub(super) newest: Option<u64>,
    /// For each peer: its topic, and the hosts for which it may carry messages.
    pub(super) topics: BTreeMap<PeerId, (TopicId, u64)>,
    /// The neighbour that brought it first, if another host is its source: it counts towards that neighbour's limit as
    /// long as it is kept.
    pub(super) first: Option<PeerId>,
    /// The neighbours that brought it, and whether each is the source itself.
    pub(super) upstream: BTreeMap<(PeerId, RemoteTopic), bool>,
    /// Hosts that a peer needs no messages for, and until when.
    pub(super) declined: BTreeMap<PeerId, (u64, Time)>,
    /// Whether this host itself takes it.
    pub(super) local: bool,
    /// Settings with which its topics are opened.
    pub(super) settings: TopicConfig,
    /// Since when no neighbour brings it.
    pub(super) orphan: Option<Time>,
    /// Whether it is about to be closed: another announcement opens it again.
    pub(super) ends: bool,
}

impl Flow {
    /// A flow that no neighbour has brought and that has gone nowhere yet.
    pub(super) fn new(announcement: Announcement, via: Via, settings: TopicConfig) -> Self {
        Flow {
            announcement,
            via,
            seen: Seen::default(),
            brought: BTreeMap::new(),
            next: 0,
            newest: None,
            topics: BTreeMap::new(),
            first: None,
            upstream: BTreeMap::new(),
            declined: BTreeMap::new(),
            local: false,
            settings,
            orphan: None,
            ends: false,
        }
    }

    /// Whether its messages are forwarded while they are still arriving. Reliable messages are kept until they are
    /// acknowledged, and latched ones for late joiners: neither may turn out never to be complete.
    pub(super) fn cuts_through(&self) -> bool {
        !self.settings.reliability.keeps() && !self.settings.latched
    }

    /// The hosts for which some peer other than `from` takes messages.
    pub(super) fn serves<B: Body>(&self, now: Time, radio: &Radio<B>, from: PeerId) -> u64 {
        let others = self.topics.iter().filter(|(p, _)| **p != from);
        let takes = others.filter(|(_, (t, _))| !radio.is_refused(*t));
        takes.fold(0, |all, (p, (_, mask))| all | mask & !self.declined_by(now, *p))
    }

    pub(super) fn declined_by(&self, now: Time, peer: PeerId) -> u64 {
        let declined = self.declined.get(&peer).filter(|(_, until)| now < *until);
        declined.map_or(0, |(mask, _)| *mask)
    }
}
