//! A participant's knowledge of another one.

use crate::account::{Account, Charge};
use crate::qos::Policy;
use crate::reader::Accounts;
use crate::wire::endpoint::EndpointData;
use crate::wire::ids::{EntityId, Guid};
use crate::wire::participant::ParticipantData;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

/// Another participant.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) data: Arc<ParticipantData>,
    /// Source address of its announcement.
    pub(super) from: Ipv4Addr,
    /// Destinations for discovery and for data.
    pub(super) metatraffic: SocketAddrV4,
    pub(super) unicast: SocketAddrV4,
    /// Other addresses of its endpoints.
    pub(super) addresses: BTreeSet<SocketAddrV4>,
    pub(super) since: Duration,
    pub(super) heard: Duration,
    pub(super) lease: Duration,
    /// When this participant last announced itself to it in response to its announcement.
    pub(super) greeted: Duration,
    /// It sent something to this participant, which shows that it received messages of this one.
    pub(super) acquainted: bool,
    pub(super) endpoints: BTreeMap<EntityId, Remote>,
    pub(super) accounts: Accounts,
    pub(super) _charge: Charge,
}

/// An endpoint of another participant.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) data: Arc<EndpointData>,
    /// Local endpoints that it is matched with.
    pub(super) matched: BTreeSet<EntityId>,
    /// Local endpoints that it is incompatible with, as reported.
    pub(super) incompatible: BTreeMap<EntityId, Policy>,
    pub(super) _charge: Charge,
}

/// Memory of a participant or an endpoint, in addition to what it announces.
pub(super) const PEER: usize = 4 << 10;
pub(super) const ENDPOINT: usize = 1 << 10;
/// Maximum number of addresses of its endpoints, in addition to its own.
pub(crate) const MAX_ADDRESSES: usize = 8;

impl Peer {
    pub(super) fn guid(&self) -> Guid {
        self.data.guid
    }

    pub(super) fn account(&self) -> &Arc<Account> {
        &self.accounts.all
    }

    /// Grants it the memory limit of a participant. Half of it may hold samples that wait for missing ones.
    pub(super) fn acquaint(&mut self, memory: usize) {
        self.acquainted = true;
        self.accounts.all.set_limit(memory);
        self.accounts.ahead.set_limit(memory / 2);
    }

    /// Returns the destination for an endpoint: its own address, or that of its participant.
    pub(super) fn reached_at(&mut self, own: Option<SocketAddrV4>) -> SocketAddrV4 {
        let Some(own) = own.filter(|a| *a != self.unicast) else {
            return self.unicast;
        };
        if self.addresses.len() < MAX_ADDRESSES || self.addresses.contains(&own) {
            self.addresses.insert(own);
            return own;
        }
        self.unicast
    }
}
