//! Matches local endpoints with those of others (DDS 1.4, section 2.2.3).

use super::Participant;
use crate::account::Account;
use crate::context::Context;
use crate::event::{Event, SMALL};
use crate::qos::Policy;
use crate::reader::WriterProxy;
use crate::send::Target;
use crate::wire::endpoint::EndpointData;
use crate::wire::ids::{EntityId, Guid};
use crate::writer::{PROXY, ReaderProxy};
use core::time::Duration;
use std::sync::Arc;

/// Relation of two endpoints.
enum Terms {
    /// Different topics, or no common partition.
    Unrelated,
    Disagree(Policy),
    Agree,
}

fn terms(writer: &EndpointData, reader: &EndpointData) -> Terms {
    if writer.topic != reader.topic || !writer.qos.meets(&reader.qos) {
        Terms::Unrelated
    } else if writer.type_name != reader.type_name {
        Terms::Disagree(Policy::TypeName)
    } else {
        let policy = writer.qos.disagrees(&reader.qos);
        policy.map_or(Terms::Agree, Terms::Disagree)
    }
}

impl Participant {
    /// Compares a new local endpoint with all known endpoints.
    pub(super) fn match_local(&mut self, now: Duration, local: EntityId) {
        let mut remotes = Vec::new();
        for (prefix, peer) in &self.peers {
            for entity in peer.endpoints.keys() {
                if entity.is_writer() != local.is_writer() {
                    remotes.push(Guid::new(*prefix, *entity));
                }
            }
        }
        for remote in remotes {
            self.compare(now, local, remote);
        }
    }

    pub(super) fn unmatch_local(&mut self, now: Duration, local: EntityId) {
        for remote in self.matched(local) {
            let peer = self.peers.get_mut(&remote.prefix);
            if let Some(account) = peer.map(|p| Arc::clone(p.account())) {
                self.unmatch(now, local, remote, &account);
            }
        }
        for remote in self.peers.values_mut().flat_map(|p| p.endpoints.values_mut()) {
            remote.incompatible.remove(&local);
        }
    }

    /// Matches a local endpoint and a remote one, or ends their match, depending on their policies.
    pub(super) fn compare(&mut self, now: Duration, local: EntityId, remote: Guid) {
        let own = self.writers.get(&local).map(|w| Arc::clone(&w.data));
        let own = own.or_else(|| self.readers.get(&local).map(|r| Arc::clone(&r.data)));
        let Some(peer) = self.peers.get_mut(&remote.prefix) else {
            return;
        };
        let account = Arc::clone(peer.account());
        let (Some(own), Some(other)) = (own, peer.endpoints.get_mut(&remote.entity)) else {
            return;
        };
        let terms = if local.is_writer() {
            terms(&own, &other.data)
        } else {
            terms(&other.data, &own)
        };
        let is_matched = other.matched.contains(&local);
        let reported = other.incompatible.get(&local).copied();
        match terms {
            Terms::Agree => {
                other.incompatible.remove(&local);
                if !is_matched {
                    self.add_match(now, local, remote, &own);
                }
            }
            Terms::Unrelated | Terms::Disagree(_) if is_matched => {
                other.matched.remove(&local);
                self.unmatch(now, local, remote, &account);
            }
            Terms::Unrelated => {}
            Terms::Disagree(_) => {}
        }
        if let Terms::Disagree(policy) = terms
            && reported != Some(policy)
            && let Some(charge) = account.take(SMALL)
            && let Some(peer) = self.peers.get_mut(&remote.prefix)
            && let Some(other) = peer.endpoints.get_mut(&remote.entity)
        {
            other.incompatible.insert(local, policy);
            let event = Event::Incompatible {
                local,
                remote,
                policy,
            };
            self.events.push(event, Some(charge));
        }
    }

    fn add_match(&mut self, now: Duration, local: EntityId, remote: Guid, own: &EndpointData) {
        let Some(peer) = self.peers.get_mut(&remote.prefix) else {
            return;
        };
        let Some(data) = peer.endpoints.get(&remote.entity).map(|r| Arc::clone(&r.data)) else {
            return;
        };
        let (Some(charge), Some(event)) = (peer.account().take(PROXY), peer.account().take(SMALL)) else {
            self.counters.endpoints_refused += 1;
            return;
        };
        let address = peer.reached_at(self.config.reach.pick(&data.unicast, peer.from));
        let target = Target {
            address,
            prefix: remote.prefix,
        };
        let pace = self.config.pace(address);
        let cx = &mut Context {
            now,
            outbox: &mut self.outbox,
            timers: &mut self.timers,
        };
        if let Some(writer) = self.writers.get_mut(&local) {
            let reliable = own.qos.is_reliable() && data.qos.is_reliable();
            let proxy = ReaderProxy::new(reliable, target, pace, Arc::clone(peer.account()), charge);
            writer.add_reader(cx, remote, proxy, data.qos.keeps());
        } else if let Some(reader) = self.readers.get_mut(&local) {
            let policies = (&own.qos, &data.qos);
            let (vendor, accounts) = (peer.data.vendor, peer.accounts.clone());
            let proxy = WriterProxy::new(now, vendor, policies, (target, pace), accounts, charge);
            reader.add_writer(cx, remote, proxy);
        }
        if let Some(other) = peer.endpoints.get_mut(&remote.entity) {
            other.matched.insert(local);
        }
        self.events.push(Event::Matched { local, remote }, Some(event));
    }

    /// Ends a match and reports it.
    pub(super) fn unmatch(&mut self, now: Duration, local: EntityId, remote: Guid, account: &Arc<Account>) {
        let cx = &mut Context {
            now,
            outbox: &mut self.outbox,
            timers: &mut self.timers,
        };
        if let Some(writer) = self.writers.get_mut(&local) {
            if writer.remove_reader(cx, remote) {
                self.events.writable(local);
            }
        } else if let Some(reader) = self.readers.get_mut(&local) {
            reader.remove_writer(cx, remote);
        }
        if let Some(peer) = self.peers.get_mut(&remote.prefix)
            && let Some(other) = peer.endpoints.get_mut(&remote.entity)
        {
            other.matched.remove(&local);
        }
        // The removal freed enough of the peer's budget for this event.
        self.events
            .push(Event::Unmatched { local, remote }, account.take(SMALL));
    }
}
