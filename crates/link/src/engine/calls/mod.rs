//! Calls over a link: a call crosses the air as a message of one topic, and its reply as a message of another
//! (decision 120).
//!
//! [`Calls`] decides what happens to each call. It does not know its callers and servers: a driver says what
//! they do, and passes on what [`Calls::poll_event`] returns. The daemon does so for a bus, whose blocks pass
//! through without a copy, and a program's own link for that program.

mod calling;
mod event;
mod failure;
mod found;
pub(crate) mod header;
mod seen;
mod serving;
mod shared;
mod status;
#[cfg(test)]
mod tests;

use super::path::Air;
use crate::config::matching::{is_for, named};
use crate::config::{PeerConfig, ServiceConfig, ServiceRole};
use crate::names::{self, Line};
use crate::outgoing::Outgoing;
use crate::rules::{Right, permits};
use bus::ServiceType;
use calling::Calling;
use event::Arrived;
pub(crate) use event::{Asked, Content, EndpointId, Event, Ticket, Times};
pub(crate) use failure::Failed;
pub use failure::Failure;
use found::Of;
use header::{Header, Kind, LEN};
use proto::{Announcement, Down, End, PeerId, Radio, RemoteTopic, Verdict};
use serving::Serving;
pub(crate) use serving::UNDER_WAY;
use shared::{Shared, all_of};
use stats::{DropReason, Time};
pub use status::{ServiceState, ServiceStatus};
use std::collections::BTreeMap;
use std::time::Duration;

/// Interval at which to check which peers relays still reach.
const SWEEP: Duration = Duration::from_millis(500);

/// An accepted service topic of a peer.
struct Route {
    of: Of,
    type_hash: [u8; 16],
    /// For replies: the service's endpoint.
    endpoint: EndpointId,
}

/// What a peer's announcement or silence leads to, once the radio is free.
enum News {
    Offered(Of),
    Lost(PeerId),
    Found(PeerId),
}

/// The calls of a host, whose driver passes on received contents `C` and callers `K`.
pub(crate) struct Calls<C, K> {
    shared: Shared<C, K>,
    calling: Calling<K>,
    serving: Serving,
    routes: BTreeMap<(PeerId, RemoteTopic), Route>,
    news: Vec<News>,
    arrived: Vec<Arrived<C>>,
    next_sweep: Time,
}

impl<C: Content, K> Calls<C, K> {
    /// Without any call yet. `run` distinguishes this run of the host from others.
    pub(crate) fn new(services: &[ServiceConfig], peers: &[PeerConfig], run: u32) -> Self {
        Calls {
            shared: Shared::new(services.to_vec(), peers.to_vec(), run),
            calling: Calling::default(),
            serving: Serving::default(),
            routes: BTreeMap::new(),
            news: Vec::new(),
            arrived: Vec::new(),
            next_sweep: Time::ZERO,
        }
    }

    /// Changes the priority for topics opened from now on, also for services that a pattern found.
    pub(crate) fn set_priority(&mut self, name: &str, priority: u8) {
        let of_it = self
            .shared
            .services
            .iter_mut()
            .filter(|s| bridge::covers(name, &s.name));
        of_it.for_each(|s| s.priority = priority);
    }

    /// Why a service's topic is refused from `source`, if it is. `source` is the announcement's own host, not
    /// the relay.
    pub(crate) fn objection(&self, source: PeerId, line: Line<'_>) -> Option<&'static str> {
        let peer = self.shared.peers.get(source.0 as usize);
        let rules = peer.and_then(|p| p.allow.as_ref());
        if !is_for(&self.shared.services, self.shared.listed, peer, line) {
            Some("whose service is not configured for it")
        } else if !permits(rules, Right::Publish, line) {
            Some("which `allow` does not permit it to call, or serve")
        } else {
            None
        }
    }

    /// The service of a topic that `source` announces.
    fn of(&mut self, source: PeerId, line: Line<'_>) -> Option<Of> {
        let (name, role) = named(line)?;
        let service = self.index_of(name, role)?;
        let of = Of {
            peer: source,
            service,
            role,
        };
        let peer = self.shared.peers.get(source.0 as usize)?;
        if !self.shared.setting(of).is_for(role, peer) {
            return None;
        }
        // A pattern can match names that the configuration could not compare, and that would be two services
        // of this host.
        let here = self.shared.here(of);
        if role == ServiceRole::Call
            && let Some(other) = self.has(&here, of)
        {
            tracing::warn!(
                service = here,
                peer = self.shared.peer(source),
                "not served here: {other} serves it; give the peer a `namespace`"
            );
            return None;
        }
        Some(of)
    }

    /// The server of a service on this host, other than the peer of `of`.
    fn has(&self, here: &str, of: Of) -> Option<String> {
        if self.serving.serves(here) {
            return Some("this host".to_owned());
        }
        let mut others = self.calling.services().filter(|(other, _)| *other != of);
        let other = others.find(|(_, kind)| kind.service == here);
        other.map(|(other, _)| format!("the peer {}", self.shared.peer(other.peer)))
    }

    fn index_of(&mut self, name: &str, role: ServiceRole) -> Option<usize> {
        let (calling, serving, routes) = (&self.calling, &self.serving, &self.routes);
        let in_use = |index: usize| {
            let of_routes = routes.values().map(|r| r.of);
            let mut all = of_routes.chain(calling.all()).chain(serving.all());
            all.any(|of| of.service == index)
        };
        self.shared
            .index_of(name, role, in_use)
            .unwrap_or_else(|problem| {
                tracing::warn!(service = name, "not carried: {problem}");
                None
            })
    }

    /// A peer announced a topic of a service of `source`, without an objection.
    pub(crate) fn announced(
        &mut self,
        from: (PeerId, RemoteTopic),
        source: PeerId,
        line: Line<'_>,
        a: &Announcement,
    ) -> Verdict {
        let Some(of) = self.of(source, line) else {
            return Verdict::Refuse;
        };
        let mut route = Route {
            of,
            type_hash: a.type_hash,
            endpoint: 0,
        };
        if of.role == ServiceRole::Call {
            let kind = ServiceType {
                service: self.shared.here(of),
                type_name: a.type_name.clone(),
                type_hash: a.type_hash,
                flavour: names::stated(a.flavour),
                definition: a.definition.as_str().into(),
            };
            let (endpoint, is_new) = self.offered(of, kind, from);
            route.endpoint = endpoint;
            if is_new {
                self.news.push(News::Offered(of));
            }
        }
        self.routes.insert(from, route);
        Verdict::Accept
    }

    /// A peer withdrew a topic. Returns whether it belonged to a service.
    pub(crate) fn withdrawn(&mut self, from: (PeerId, RemoteTopic)) -> bool {
        let Some(route) = self.routes.remove(&from) else {
            return false;
        };
        if route.of.role == ServiceRole::Call {
            self.calling.withdrawn(route.of, from);
        }
        true
    }

    pub(crate) fn peer_up(&mut self, peer: PeerId) {
        self.news.push(News::Found(peer));
    }

    pub(crate) fn peer_down(&mut self, now: Time, peer: PeerId, why: Down) {
        if why == Down::Lost {
            self.news.push(News::Lost(peer));
        } else {
            self.routes.retain(|(p, _), _| *p != peer);
            self.calling.peer_renewed(now, peer);
        }
    }

    /// Returns whether a peer's topic belongs to a service.
    pub(crate) fn is_route(&self, from: (PeerId, RemoteTopic)) -> bool {
        self.routes.contains_key(&from)
    }

    /// The endpoint that takes a peer's topic at present: this host's servers take requests, and its callers
    /// replies.
    pub(crate) fn taker(&self, from: (PeerId, RemoteTopic)) -> Option<(ServiceRole, EndpointId)> {
        let Route {
            of,
            type_hash,
            endpoint,
        } = *self.routes.get(&from)?;
        let endpoint = match of.role {
            ServiceRole::Serve => self.serving.takes(of, type_hash)?,
            ServiceRole::Call => self.calling.awaits(of, endpoint).then_some(endpoint)?,
        };
        Some((of.role, endpoint))
    }

    /// A message is complete: its header, its content, and the length of both.
    ///
    /// # Errors
    /// The reason under which its loss is counted.
    pub(crate) fn came(
        &mut self,
        from: (PeerId, RemoteTopic),
        head: &[u8; LEN],
        (content, bytes): (C, u64),
        times: Times,
    ) -> Result<(), DropReason> {
        let Route { of, endpoint, .. } = *self.routes.get(&from).ok_or(DropReason::Unannounced)?;
        let header = Header::parse(head).map_err(|error| {
            tracing::debug!(%error, "a service's message is malformed");
            DropReason::Malformed
        })?;
        let fits = match header.kind {
            Kind::Request(_) => of.role == ServiceRole::Serve,
            Kind::Reply(_) => of.role == ServiceRole::Call,
        };
        if !fits {
            return Err(DropReason::Malformed);
        }
        self.arrived.push(Arrived {
            of,
            endpoint,
            header,
            content,
            bytes,
            times,
        });
        Ok(())
    }

    /// Handles what the radio received.
    pub(crate) fn hear(&mut self, air: &mut Air<'_>) {
        self.retire(air);
        let routes = air.flows.routes;
        for news in std::mem::take(&mut self.news) {
            match news {
                News::Offered(of) => self.open(air, of),
                // With relays the ways matter instead, see below.
                News::Lost(_) | News::Found(_) if routes => {}
                News::Lost(peer) => self.lost(air, peer),
                News::Found(peer) => self.found(peer),
            }
        }
        for arrived in std::mem::take(&mut self.arrived) {
            match arrived.header.kind {
                Kind::Request(left) => self.requested(air, arrived, left),
                Kind::Reply(outcome) => self.replied(air, arrived, outcome),
            }
        }
    }

    /// Handles the radio's outcomes and due timers. What the driver has to say comes between
    /// [`Calls::hear`] and this.
    pub(crate) fn run(&mut self, air: &mut Air<'_>) {
        while let Some(outcome) = air.radio.next_outcome() {
            let lost = match outcome.end {
                End::Delivered(_) => None,
                End::Lost(reason) => Some(reason),
            };
            let stamp = outcome.stamp;
            if lost.is_none_or(|reason| !self.lost_message(air, stamp, reason)) {
                self.settled(air, stamp, lost);
            }
        }
        self.expire_calls(air);
        self.expire_replies(air);
        self.withdraw(air);
        if air.now < self.next_sweep {
            return;
        }
        self.next_sweep = air.now + SWEEP;
        self.calling.sweep(air.now);
        let routes = air.flows.routes;
        for (peer, is_up) in self.calling.peers().into_iter().filter(|_| routes) {
            match air.reaches(peer) {
                true if !is_up => self.found(peer),
                false if is_up => self.lost(air, peer),
                _ => {}
            }
        }
    }

    /// Ends everything: services are withdrawn at peers, and calls of this host end.
    pub(crate) fn stop(&mut self, air: &mut Air<'_>) {
        self.calling.end_all();
        self.retire(air);
        self.remove_outlets(air, |_| true);
    }

    /// The next thing for the driver to do.
    pub(crate) fn poll_event(&mut self) -> Option<Event<C, K>> {
        self.shared.events.pop_front()
    }

    /// When [`Calls::run`] is due, if nothing happens before.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let deadlines = [self.calling.next_deadline(), self.serving.next_deadline()];
        deadlines.into_iter().flatten().min()
    }

    /// The type of an endpoint's service, with its name on this host.
    pub(crate) fn kind(&self, endpoint: EndpointId) -> Option<&ServiceType> {
        let of_peers = self.calling.kind(endpoint);
        of_peers.or_else(|| self.serving.kind(endpoint))
    }

    /// A peer's configured name.
    pub(crate) fn peer(&self, peer: PeerId) -> &str {
        self.shared.peer(peer)
    }

    /// The status of all services, in the configuration's order.
    pub(crate) fn status(&self, radio: &Radio<Outgoing>) -> Vec<ServiceStatus> {
        let (services, peers) = (&self.shared.services, &self.shared.peers);
        let roles = [ServiceRole::Serve, ServiceRole::Call];
        let all = roles.into_iter().flat_map(|role| all_of(services, peers, role));
        let all = all.filter(|of| !self.shared.setting(*of).is_pattern());
        all.map(|of| self.status_of(radio, of)).collect()
    }

    fn status_of(&self, radio: &Radio<Outgoing>, of: Of) -> ServiceStatus {
        let (setting, here) = (self.shared.setting(of), self.shared.here(of));
        let tally = self.shared.tallies.get(&of).cloned().unwrap_or_default();
        let rules = self
            .shared
            .peers
            .get(of.peer.0 as usize)
            .and_then(|p| p.allow.as_ref());
        let (kind, state, open) = match of.role {
            ServiceRole::Serve => {
                let (outlet, open) = self.serving.state(of);
                let state = match outlet {
                    _ if !permits(rules, Right::Publish, Line::Request(&setting.name)) => {
                        ServiceState::Refused
                    }
                    Some((_, true)) => ServiceState::Ready,
                    _ => ServiceState::Unserved,
                };
                (outlet.map(|o| o.0), state, open)
            }
            ServiceRole::Call => match self.calling.state(radio, of) {
                None => (None, ServiceState::NotOffered, 0),
                Some((kind, _, true, open)) => (Some(kind), ServiceState::Refused, open),
                Some((kind, true, _, open)) => (Some(kind), ServiceState::Ready, open),
                Some((kind, false, _, open)) => (Some(kind), ServiceState::NoPeer, open),
            },
        };
        ServiceStatus {
            peer: self.shared.peer(of.peer).to_owned(),
            name: setting.name.clone(),
            role: of.role,
            type_name: kind.map(|k| k.type_name.clone()),
            state,
            priority: setting.priority,
            open,
            calls: tally.calls,
            answered: tally.answered,
            failed: tally.failed,
            request_bytes: tally.request_bytes,
            reply_bytes: tally.reply_bytes,
            repeated: tally.repeated,
            late: tally.late,
            here,
        }
    }
}
