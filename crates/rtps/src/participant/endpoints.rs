//! Endpoints of other participants, as SEDP announces them (DDSI-RTPS 2.5, section 8.5.4).

use super::Participant;
use super::peer::{ENDPOINT, Remote};
use crate::event::{Event, SMALL};
use crate::reader::Arrived;
use crate::wire::endpoint::EndpointData;
use crate::wire::ids::{EntityId, Guid, GuidPrefix};
use crate::wire::parameters::pid;
use crate::wire::participant::read_key;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Participant {
    /// Handles the announcement of a new, changed or removed endpoint.
    pub(super) fn on_sedp(&mut self, now: Duration, prefix: GuidPrefix, arrived: &Arrived, writer: bool) {
        let gone = arrived.inline.gone || arrived.key;
        if gone {
            let by_hash = || arrived.inline.key_hash.map(Guid::from_bytes);
            let guid = read_key(pid::ENDPOINT_GUID, &arrived.payload)
                .ok()
                .or_else(by_hash);
            if let Some(guid) = guid.filter(|g| g.prefix == prefix && g.entity.is_writer() == writer) {
                self.drop_endpoint(now, guid);
            }
            return;
        }
        match EndpointData::read(&arrived.payload, writer) {
            // No participant may announce for another. Vendors' own discovery topics are not user topics.
            Ok(data) if data.guid.prefix != prefix => self.counters.announcements_refused += 1,
            Ok(data) if data.guid.entity.is_builtin() => {}
            Ok(data) => self.add_endpoint(now, data),
            Err(error) => {
                tracing::debug!(%prefix, %error, "cannot read the announcement of an endpoint");
                self.counters.announcements_refused += 1;
            }
        }
    }

    fn add_endpoint(&mut self, now: Duration, data: EndpointData) {
        let guid = data.guid;
        let Some(peer) = self.peers.get_mut(&guid.prefix) else {
            return;
        };
        let known = peer.endpoints.get(&guid.entity);
        if known.is_some_and(|r| *r.data == data) {
            return;
        }
        let size = data.size();
        let (Some(charge), Some(event)) = (
            peer.account().take(ENDPOINT + size),
            peer.account().take(SMALL + size),
        ) else {
            self.counters.endpoints_refused += 1;
            return;
        };
        let data = Arc::new(data);
        if let Some(remote) = peer.endpoints.get_mut(&guid.entity) {
            remote.data = Arc::clone(&data);
            remote._charge = charge;
        } else if peer.endpoints.len() < self.config.limits.endpoints {
            let remote = Remote {
                data: Arc::clone(&data),
                matched: BTreeSet::new(),
                incompatible: BTreeMap::new(),
                _charge: charge,
            };
            peer.endpoints.insert(guid.entity, remote);
        } else {
            self.counters.endpoints_refused += 1;
            return;
        }
        self.events.push(Event::Endpoint(data), Some(event));
        let local: Vec<EntityId> = if guid.entity.is_writer() {
            self.readers.keys().copied().collect()
        } else {
            self.writers.keys().copied().collect()
        };
        for id in local.into_iter().filter(|id| !id.is_builtin()) {
            self.compare(now, id, guid);
        }
    }

    /// Forgets an endpoint of another participant.
    pub(super) fn drop_endpoint(&mut self, now: Duration, guid: Guid) {
        let Some(peer) = self.peers.get_mut(&guid.prefix) else {
            return;
        };
        let Some(remote) = peer.endpoints.remove(&guid.entity) else {
            return;
        };
        let account = Arc::clone(peer.account());
        for local in &remote.matched {
            self.unmatch(now, *local, guid, &account);
        }
        drop(remote);
        // The removal freed enough of the peer's budget for this event.
        self.events.push(Event::EndpointGone(guid), account.take(SMALL));
    }
}
