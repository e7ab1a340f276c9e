//! The receiving side of a program's own link: judges announcements and reassembles messages.

use crate::config::{self, Config, ServiceRole};
use crate::names;
use crate::rules::{Right, may};
use crate::services::{Of, configured};
use bus::ServiceType;
use proto::{Announcement, Down, Geometry, Incoming, PeerId, PeerInfo, RemoteTopic, Sink, Slot, Verdict};
use stats::{DropReason, Time};
use std::collections::BTreeMap;

/// The purpose of a peer's topic.
#[derive(Clone, Debug)]
pub(super) enum Route {
    Requests(Of),
    Replies(Of),
    /// The topic's name here.
    Topic(String),
}

/// Changes of services and peers.
pub(super) enum News {
    Offered(Of, ServiceType),
    Withdrawn(Of),
    Lost(PeerId),
    Found(PeerId),
    /// All its announcements are void.
    Renewed(PeerId),
}

/// A complete message.
pub(super) struct Came {
    pub(super) route: Route,
    pub(super) bytes: Vec<u8>,
    pub(super) geometry: Geometry,
    pub(super) at: Time,
    pub(super) stamp: Time,
}

/// Receives the radio's messages and news.
pub(super) struct Inbox {
    config: Config,
    /// The services of this program, by name.
    pub(super) served: BTreeMap<String, ServiceType>,
    pub(super) news: Vec<News>,
    pub(super) came: Vec<Came>,
    routes: BTreeMap<(PeerId, RemoteTopic), Route>,
    filling: BTreeMap<Slot, Came>,
    next_slot: u64,
}

impl Inbox {
    pub(super) fn new(config: &Config) -> Self {
        Inbox {
            config: config.clone(),
            served: BTreeMap::new(),
            news: Vec::new(),
            came: Vec::new(),
            routes: BTreeMap::new(),
            filling: BTreeMap::new(),
            next_slot: 0,
        }
    }

    /// The purpose of a topic that a peer announces, if it is wanted.
    fn route(&self, peer: PeerId, a: &Announcement) -> Option<Route> {
        let from = self.config.peers.get(peer.0 as usize)?;
        if a.via.is_some() || !may(from.allow.as_ref(), Right::Publish, &a.name) {
            return None;
        }
        if !a.name.contains('?') {
            let mut topics = self.config.topics.iter();
            let wanted = topics.any(|t| t.direction.receives() && names::covers(&t.name, &a.name));
            return wanted.then(|| Route::Topic(config::on_bus(from, &a.name)));
        }
        let of = configured(&self.config, peer, &a.name)?;
        match of.role {
            ServiceRole::Call => Some(Route::Replies(of)),
            ServiceRole::Serve => {
                let served = self.served.get(&self.config.services[of.service].name)?;
                (served.type_hash == a.type_hash).then_some(Route::Requests(of))
            }
        }
    }
}

impl Sink for Inbox {
    fn begin(&mut self, m: &Incoming) -> Result<Slot, DropReason> {
        let route = self
            .routes
            .get(&(m.peer, m.topic))
            .ok_or(DropReason::Unannounced)?;
        if m.route.is_some() {
            return Err(DropReason::Malformed);
        }
        if m.geometry.is_packed() {
            // Its sender compresses (`compress`), and only daemons decompress.
            return Err(DropReason::TooLarge);
        }
        let slot = Slot(self.next_slot);
        self.next_slot += 1;
        let came = Came {
            route: route.clone(),
            bytes: vec![0; m.geometry.total_len() as usize],
            geometry: m.geometry,
            at: Time::ZERO,
            stamp: m.stamp,
        };
        self.filling.insert(slot, came);
        Ok(slot)
    }

    fn write(&mut self, slot: Slot, offset: u32, bytes: &[u8]) {
        if let Some(came) = self.filling.get_mut(&slot) {
            came.bytes[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        }
    }

    fn finish(&mut self, slot: Slot) -> Result<(), DropReason> {
        let came = self.filling.remove(&slot).ok_or(DropReason::ReceiverMemory)?;
        let at = clock::monotonic();
        self.came.push(Came { at, ..came });
        Ok(())
    }

    fn abort(&mut self, slot: Slot, _: DropReason) {
        self.filling.remove(&slot);
    }

    fn topic_announced(&mut self, peer: PeerId, topic: RemoteTopic, a: &Announcement) -> Verdict {
        let Some(route) = self.route(peer, a) else {
            tracing::info!(
                topic = a.name,
                "a peer's offer is refused: not configured, or not permitted by `allow`"
            );
            return Verdict::Refuse;
        };
        if let Route::Replies(of) = route {
            let kind = ServiceType {
                service: self.config.services[of.service].name.clone(),
                type_name: a.type_name.clone(),
                type_hash: a.type_hash,
                flavour: names::stated(a.flavour),
                definition: a.definition.as_str().into(),
            };
            self.news.push(News::Offered(of, kind));
        }
        self.routes.insert((peer, topic), route);
        Verdict::Accept
    }

    fn topic_withdrawn(&mut self, peer: PeerId, topic: RemoteTopic) {
        if let Some(Route::Replies(of)) = self.routes.remove(&(peer, topic)) {
            self.news.push(News::Withdrawn(of));
        }
    }

    fn peer_up(&mut self, peer: PeerId, _: &PeerInfo) {
        self.news.push(News::Found(peer));
    }

    fn peer_down(&mut self, peer: PeerId, why: Down) {
        if why == Down::Lost {
            self.news.push(News::Lost(peer));
        } else {
            self.routes.retain(|(p, _), _| *p != peer);
            self.news.push(News::Renewed(peer));
        }
    }
}
