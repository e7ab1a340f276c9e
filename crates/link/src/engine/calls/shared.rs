//! State and settings that callers' and servers' sides share.

use super::event::{EndpointId, Event};
use super::failure::Failure;
use super::found::{Of, found_index};
use crate::config::{self, PeerConfig, Reliability, ServiceConfig, ServiceRole};
use crate::engine::path::{Air, ServicePath};
use crate::names::{self, Line};
use bus::ServiceType;
use proto::{PeerId, TopicError};
use stats::Time;
use std::collections::{BTreeMap, VecDeque};

/// Most open calls over a link in each direction, regardless of the services' own limits.
pub(super) const MAX_OPEN: usize = 256;

/// Counts of a service towards one peer. Every call is answered, failed for one reason, or open.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) calls: u64,
    pub(super) answered: u64,
    pub(super) failed: BTreeMap<Failure, u64>,
    pub(super) request_bytes: u64,
    pub(super) reply_bytes: u64,
    pub(super) repeated: u64,
    pub(super) late: u64,
}

impl Tally {
    pub(super) fn failed(&mut self, failure: Failure) {
        *self.failed.entry(failure).or_default() += 1;
    }
}

/// State that callers' and servers' sides share.
pub(super) struct Shared<C, K> {
    /// Those of the configuration, followed by those that its patterns found.
    pub(super) services: Vec<ServiceConfig>,
    /// Number of services in the configuration.
    pub(super) listed: usize,
    pub(super) peers: Vec<PeerConfig>,
    pub(super) tallies: BTreeMap<Of, Tally>,
    pub(super) run: u32,
    pub(super) last_stamp: Time,
    pub(super) last_endpoint: EndpointId,
    pub(super) events: VecDeque<Event<C, K>>,
}

impl<C, K> Shared<C, K> {
    pub(super) fn new(services: Vec<ServiceConfig>, peers: Vec<PeerConfig>, run: u32) -> Self {
        Shared {
            listed: services.len(),
            services,
            peers,
            tallies: BTreeMap::new(),
            run,
            last_stamp: Time::ZERO,
            last_endpoint: 0,
            events: VecDeque::new(),
        }
    }

    pub(super) fn setting(&self, of: Of) -> &ServiceConfig {
        // `Of` values come from this list.
        &self.services[of.service]
    }

    pub(super) fn peer(&self, peer: PeerId) -> &str {
        self.peers.get(peer.0 as usize).map_or("unknown", |p| &p.name)
    }

    /// The index of a service's entry, creating it if a pattern matches. `in_use` says which found entries
    /// have state left; at the limit, the others are reused.
    pub(super) fn index_of(
        &mut self,
        name: &str,
        role: ServiceRole,
        in_use: impl Fn(usize) -> bool,
    ) -> Result<Option<usize>, &'static str> {
        let index = found_index(&mut self.services, self.listed, (name, role), in_use)?;
        if let Some((index, true)) = index {
            self.tallies.retain(|of, _| of.service != index);
        }
        Ok(index.map(|(index, _)| index))
    }

    /// A service's name on this host.
    pub(super) fn here(&self, of: Of) -> String {
        let name = &self.setting(of).name;
        let peer = self.peers.get(of.peer.0 as usize);
        peer.map_or_else(|| name.clone(), |p| config::service_on_bus(p, of.role, name))
    }

    pub(super) fn tally(&mut self, of: Of) -> &mut Tally {
        self.tallies.entry(of).or_default()
    }

    pub(super) fn new_endpoint(&mut self) -> EndpointId {
        self.last_endpoint += 1;
        self.last_endpoint
    }

    /// A stamp that no other message of a service has. It tells the peer how old the message is, and
    /// identifies the message at the radio.
    pub(super) fn stamp(&mut self, now: Time) -> Time {
        self.last_stamp = now.max(Time(self.last_stamp.0 + 1));
        self.last_stamp
    }

    /// The peers that may call this host's service `here`.
    pub(super) fn callers_of(&self, here: &str) -> Vec<Of> {
        let all = all_of(&self.services, &self.peers, ServiceRole::Serve);
        all.filter(|of| self.setting(*of).name == here).collect()
    }

    /// Opens the path for this host's requests or replies.
    pub(super) fn open_path(
        &self,
        air: &mut Air<'_>,
        of: Of,
        kind: &ServiceType,
    ) -> Result<ServicePath, TopicError> {
        let setting = self.setting(of);
        // Only for replies `bulk`: a request must be released as soon as its call ends, and a coding job might
        // still read it. Only a caller has to learn the definition.
        let (line, depth, is_bulk, definition) = match of.role {
            ServiceRole::Call => (Line::Request(&setting.name), setting.depth.into(), false, ""),
            ServiceRole::Serve => {
                let is_bulk = setting.reliability == Reliability::Bulk;
                (
                    Line::Reply(&setting.name),
                    proto::MAX_DEPTH,
                    is_bulk,
                    &*kind.definition,
                )
            }
        };
        let topic = proto::TopicConfig {
            priority: setting.priority,
            depth,
            expiry: Some(setting.timeout()),
            reliability: match is_bulk {
                true => proto::Reliability::Bulk,
                false => proto::Reliability::Reliable,
            },
            // No call waits for another one.
            ordering: proto::Ordering::Any,
            type_hash: kind.type_hash,
            flavour: names::announced(kind.flavour),
            definition: definition.to_owned(),
            ..proto::TopicConfig::new(line.to_string(), kind.type_name.clone())
        };
        ServicePath::open(air, of.peer, topic)
    }
}

/// Each service of a role, for each peer that it is for.
pub(super) fn all_of<'a>(
    services: &'a [ServiceConfig],
    peers: &'a [PeerConfig],
    role: ServiceRole,
) -> impl Iterator<Item = Of> + 'a {
    let with = move |(service, s): (usize, &'a ServiceConfig)| {
        let peers = peers.iter().enumerate().filter(move |(_, p)| s.is_for(role, p));
        peers.map(move |(i, _)| Of {
            peer: PeerId(i as u32),
            service,
            role,
        })
    };
    services.iter().enumerate().flat_map(with)
}
