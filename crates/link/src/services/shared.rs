//! State and settings that callers' and servers' sides share.

use super::Failure;
use super::dispatcher::{Dispatcher, EndpointId};
use super::found::found_index;
use super::path::{Air, ServicePath};
use crate::blocks::Ids;
use crate::config::{self, PeerConfig, Reliability, ServiceConfig, ServiceRole};
use crate::names::{self, REPLY, REQUEST};
use bus::{Bus, ServiceType};
use proto::{PeerId, TopicError};
use stats::Time;
use std::collections::BTreeMap;

/// A service of the configuration, towards one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Of {
    /// The serving or the calling peer.
    pub(crate) peer: PeerId,
    /// Its index in the configuration.
    pub(crate) service: usize,
    pub(crate) role: ServiceRole,
}

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
pub(super) struct Shared {
    pub(super) bus: Bus,
    /// Those of the configuration, followed by those that its patterns found.
    pub(super) services: Vec<ServiceConfig>,
    /// Number of services in the configuration.
    pub(super) listed: usize,
    /// The servers for peers' services on this bus, which are not services of this host.
    pub(super) ids: Ids,
    pub(super) peers: Vec<PeerConfig>,
    pub(super) dispatcher: Dispatcher,
    pub(super) tallies: BTreeMap<Of, Tally>,
    pub(super) run: u32,
    pub(super) last_stamp: Time,
    pub(super) last_endpoint: EndpointId,
}

impl Shared {
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

    /// A service's name on this bus.
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

    /// The peers that may call this bus's service `here`.
    pub(super) fn callers_of(&self, here: &str) -> Vec<Of> {
        let all = all_of(&self.services, &self.peers, ServiceRole::Serve);
        all.filter(|of| self.setting(*of).name == here).collect()
    }

    /// Opens the path for requests or replies.
    pub(super) fn open_path(
        &self,
        air: &mut Air<'_>,
        of: Of,
        part: &str,
        kind: &ServiceType,
        depth: u32,
    ) -> Result<ServicePath, TopicError> {
        let topic = path_config(self.setting(of), part, kind, depth);
        ServicePath::open(air, of.peer, topic)
    }
}

/// The topic of a service's requests or replies.
pub(crate) fn path_config(
    setting: &ServiceConfig,
    part: &str,
    kind: &ServiceType,
    depth: u32,
) -> proto::TopicConfig {
    proto::TopicConfig {
        priority: setting.priority,
        depth,
        expiry: Some(setting.timeout()),
        // Only for replies: a request must be released as soon as its call ends, and a coding job might still
        // read it.
        reliability: match setting.reliability {
            Reliability::Bulk if part == REPLY => proto::Reliability::Bulk,
            _ => proto::Reliability::Reliable,
        },
        // No call waits for another one.
        ordering: proto::Ordering::Any,
        type_hash: kind.type_hash,
        flavour: names::announced(kind.flavour),
        // Only a caller has to learn it.
        definition: match part {
            REQUEST => String::new(),
            _ => kind.definition.to_string(),
        },
        ..proto::TopicConfig::new(format!("{}{part}", setting.name), kind.type_name.clone())
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
