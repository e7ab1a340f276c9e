//! What a participant knows of another.

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
    /// Where its announcement came from.
    pub(super) from: Ipv4Addr,
    /// Where discovery and where data goes.
    pub(super) metatraffic: SocketAddrV4,
    pub(super) unicast: SocketAddrV4,
    /// Other addresses of its endpoints.
    pub(super) addresses: BTreeSet<SocketAddrV4>,
    pub(super) since: Duration,
    pub(super) heard: Duration,
    pub(super) lease: Duration,
    /// When it was last sent this participant's announcement because of its own.
    pub(super) greeted: Duration,
    /// It said something for this participant, and so has heard it.
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
    /// Local endpoints with which it does not agree, as was told.
    pub(super) incompatible: BTreeMap<EntityId, Policy>,
    pub(super) _charge: Charge,
}

/// What a participant and an endpoint cost beside what they announce.
pub(super) const PEER: usize = 4 << 10;
pub(super) const ENDPOINT: usize = 1 << 10;
/// Addresses of its endpoints beside its own.
pub(crate) const MAX_ADDRESSES: usize = 8;

impl Peer {
    pub(super) fn guid(&self) -> Guid {
        self.data.guid
    }

    pub(super) fn account(&self) -> &Arc<Account> {
        &self.accounts.all
    }

    /// From now on it has a participant's memory, of which half may wait for samples that are missing.
    pub(super) fn acquaint(&mut self, memory: usize) {
        self.acquainted = true;
        self.accounts.all.set_limit(memory);
        self.accounts.ahead.set_limit(memory / 2);
    }

    /// Where an endpoint is reached: at an address of its own, or where its participant is.
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
