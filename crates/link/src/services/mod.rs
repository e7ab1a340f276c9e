//! Services over the link: a call crosses the air as a message of one topic, and its reply as a message of
//! another.
//!
//! The link of the calling host serves a peer's services on its bus, and passes requests to the radio
//! directly from their callers' blocks. The link of the serving host is a client on its bus. This module
//! communicates with callers and servers through [`dispatcher`], which never blocks. Everything here runs on the
//! radio thread (decision 120).

mod calling;
mod dispatcher;
mod failure;
mod found;
pub(crate) mod header;
pub(crate) mod message;
mod path;
pub(crate) mod seen;
mod serving;
mod shared;
mod status;

use crate::blocks::Ids;
use crate::config::matching::{is_for, named};
use crate::config::{Config, ServiceRole};
use crate::error::LinkError;
use crate::flows::Flows;
use crate::names::{self, REQUEST};
use crate::outgoing::Outgoing;
use crate::rules::{Right, may};
use bus::{Bus, ServiceType, TopicType};
use calling::Calling;
pub(crate) use calling::{lost_link, lost_request, outcome_text};
use clock::PollFd;
use dispatcher::{Dispatcher, EndpointId, Event};
pub use failure::Failure;
pub(crate) use found::configured;
pub(crate) use header::Outcome;
use header::{Header, Kind};
use message::{ServiceMessage, Taker};
use path::Air;
use proto::{Announcement, Down, End, PeerId, Radio, RemoteTopic, Verdict};
use serving::Serving;
pub(crate) use serving::{MOST_UNDER_WAY, age, lost_response};
pub(crate) use shared::{Of, path_config};
use shared::{Shared, all_of};
use stats::{DropReason, Time};
pub use status::{ServiceState, ServiceStatus};
use std::collections::BTreeMap;
use std::time::Duration;

/// Most open calls over a link in each direction, regardless of the services' own limits.
pub(crate) const MAX_OPEN: usize = 256;
/// Interval at which to check which peers relays still reach.
const SWEEP: Duration = Duration::from_millis(500);

/// The topics of requests to servers of this bus, by which the servers are discovered.
pub(crate) fn watched(config: &Config) -> impl Iterator<Item = String> + '_ {
    let served = config.services.iter().filter(|s| s.is_for_serving());
    served
        .filter(|s| !s.is_pattern())
        .map(|s| s.name.clone() + REQUEST)
}

/// The patterns of services of this bus.
pub(crate) fn watched_patterns(config: &Config) -> impl Iterator<Item = String> + '_ {
    let served = config.services.iter().filter(|s| s.is_for_serving());
    served.filter(|s| s.is_pattern()).map(|s| s.name.clone())
}

/// The service of a topic of requests.
fn service_of(topic: &str) -> &str {
    topic.strip_suffix(REQUEST).unwrap_or(topic)
}

/// An accepted service topic of a peer.
struct Route {
    of: Of,
    type_hash: [u8; 16],
    /// For replies: the service's endpoint.
    endpoint: EndpointId,
}

/// An event in the sink, where the radio is busy.
enum News {
    Offered(Of),
    Lost(PeerId),
    Found(PeerId),
}

/// A received message.
struct Arrived {
    of: Of,
    endpoint: EndpointId,
    header: Header,
    loan: bus::Loan,
    bytes: u64,
    at: Time,
    stamp: Time,
    /// When its caller stops waiting, as reported by relays.
    expires: Option<Time>,
}

/// A daemon's services.
pub(crate) struct Services {
    shared: Shared,
    calling: Calling,
    serving: Serving,
    routes: BTreeMap<(PeerId, RemoteTopic), Route>,
    news: Vec<News>,
    arrived: Vec<Arrived>,
    next_sweep: Time,
    /// A descriptor of a caller or server was ready since the last round.
    rang: bool,
}

impl Services {
    /// Starts the services of `config`, if it names any. `run` distinguishes this run of the host from
    /// others. The servers for peers' services are added to `ids`.
    pub(crate) fn start(
        config: &Config,
        bus: &Bus,
        (run, ids): (u32, Ids),
    ) -> Result<Option<Box<Self>>, LinkError> {
        if config.services.is_empty() {
            return Ok(None);
        }
        let shared = Shared {
            bus: bus.clone(),
            services: config.services.clone(),
            listed: config.services.len(),
            dispatcher: Dispatcher::start(bus, ids.clone())?,
            ids,
            peers: config.peers.clone(),
            tallies: BTreeMap::new(),
            run,
            last_stamp: Time::ZERO,
            last_endpoint: 0,
        };
        Ok(Some(Box::new(Services {
            shared,
            calling: Calling::default(),
            serving: Serving::default(),
            routes: BTreeMap::new(),
            news: Vec::new(),
            arrived: Vec::new(),
            next_sweep: Time::ZERO,
            rang: false,
        })))
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
    pub(crate) fn objection(&self, source: PeerId, topic: &str) -> Option<&'static str> {
        let peer = self.shared.peers.get(source.0 as usize);
        let rules = peer.and_then(|p| p.allow.as_ref());
        if !is_for(&self.shared.services, self.shared.listed, peer, topic) {
            Some("whose service is not configured for it")
        } else if !may(rules, Right::Publish, topic) {
            Some("which `allow` does not permit it to call, or serve")
        } else {
            None
        }
    }

    /// The service of a topic that `source` announces.
    fn of(&mut self, source: PeerId, topic: &str) -> Option<Of> {
        let (name, role) = named(topic)?;
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
        // of this bus.
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

    /// The server of a service on this bus, other than the peer of `of`.
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
        a: &Announcement,
    ) -> Verdict {
        let Some(of) = self.of(source, &a.name) else {
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
            match self.calling.offered(&mut self.shared, of, kind, from) {
                Ok((endpoint, new)) => {
                    route.endpoint = endpoint;
                    if new {
                        self.news.push(News::Offered(of));
                    }
                }
                Err(error) => {
                    tracing::error!(%error, service = a.name, "cannot offer a peer's service here");
                    return Verdict::Refuse;
                }
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

    /// The recipient of a peer's topic at present.
    pub(crate) fn taker(&self, from: (PeerId, RemoteTopic)) -> Option<Taker> {
        let Route {
            of,
            type_hash,
            endpoint,
        } = *self.routes.get(&from)?;
        match of.role {
            ServiceRole::Serve => {
                let client = self.serving.client(of, type_hash)?;
                Some(Taker::Client(client.clone()))
            }
            ServiceRole::Call => Some(Taker::Server(self.calling.server(of, endpoint)?.clone())),
        }
    }

    /// A message is complete.
    ///
    /// # Errors
    /// The reason under which its loss is counted.
    pub(crate) fn came(
        &mut self,
        from: (PeerId, RemoteTopic),
        service_message: ServiceMessage,
        bytes: u64,
        (at, stamp, expires): (Time, Time, Option<Time>),
    ) -> Result<(), DropReason> {
        let Route { of, endpoint, .. } = *self.routes.get(&from).ok_or(DropReason::Unannounced)?;
        let (header, loan) = service_message.open()?;
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
            loan,
            bytes,
            at,
            stamp,
            expires,
        });
        Ok(())
    }

    /// This topic of requests has a server on the bus, or none any more.
    pub(crate) fn found(
        &mut self,
        now: Time,
        radio: &mut Radio<Outgoing>,
        flows: &mut Flows,
        kind: Result<TopicType, &str>,
    ) {
        if let Ok(kind) = &kind {
            // A pattern may match it.
            let _ = self.index_of(service_of(&kind.topic), ServiceRole::Serve);
        }
        let mut air = Air { now, radio, flows };
        match kind {
            Ok(kind) => {
                let service = ServiceType {
                    service: service_of(&kind.topic).to_owned(),
                    type_name: kind.type_name,
                    type_hash: kind.type_hash,
                    flavour: kind.flavour,
                    definition: kind.definition,
                };
                self.serving.found(&mut self.shared, &mut air, service);
            }
            Err(topic) => {
                self.serving.gone(&mut self.shared, &mut air, service_of(topic));
            }
        }
    }

    /// Handles the latest datagrams, this host's callers and servers, and due timers.
    pub(crate) fn run(&mut self, now: Time, radio: &mut Radio<Outgoing>, flows: &mut Flows) {
        let (shared, calling, serving) = (&mut self.shared, &mut self.calling, &mut self.serving);
        let mut air = Air { now, radio, flows };
        calling.retire(shared, &mut air);
        let routes = air.flows.routes;
        for news in std::mem::take(&mut self.news) {
            match news {
                News::Offered(of) => calling.open(shared, &mut air, of),
                // With relays the ways matter instead, see below.
                News::Lost(_) | News::Found(_) if routes => {}
                News::Lost(peer) => calling.lost(shared, &mut air, peer),
                News::Found(peer) => calling.found(shared, peer),
            }
        }
        for a in std::mem::take(&mut self.arrived) {
            let content = (a.loan, a.bytes);
            match a.header.kind {
                Kind::Request(_) => {
                    let times = (a.at, a.stamp, a.expires);
                    serving.requested(shared, &mut air, a.of, a.header, content, times);
                }
                Kind::Reply(outcome) => {
                    calling.replied(
                        shared,
                        &mut air,
                        (a.of, a.endpoint),
                        (a.header.call, outcome),
                        content,
                    );
                }
            }
        }
        shared.dispatcher.look(now, std::mem::take(&mut self.rang));
        while let Some(event) = shared.dispatcher.next() {
            match event {
                Event::Asked(endpoint, request) => calling.asked(shared, &mut air, endpoint, request),
                Event::Answered(ticket, result) => serving.answered(shared, &mut air, ticket, result),
                Event::Serving(endpoint, yes) => serving.serving(shared, &mut air, endpoint, yes),
            }
        }
        while let Some(outcome) = air.radio.next_outcome() {
            let lost = match outcome.end {
                End::Delivered(_) => None,
                End::Lost(reason) => Some(reason),
            };
            let stamp = outcome.stamp;
            if lost.is_none_or(|reason| !calling.lost_message(shared, &mut air, stamp, reason)) {
                serving.settled(shared, &mut air, stamp, lost);
            }
        }
        calling.expire(shared, &mut air);
        serving.expire(shared, &mut air);
        serving.withdraw(&mut air);
        if now >= self.next_sweep {
            self.next_sweep = now + SWEEP;
            calling.sweep(now);
            serving.sweep(now);
            for (peer, served) in calling.peers().into_iter().filter(|_| routes) {
                let host = air.flows.carrying.host(peer);
                match air.radio.way(host, |_| true) {
                    Some(_) if !served => calling.found(shared, peer),
                    None if served => calling.lost(shared, &mut air, peer),
                    _ => {}
                }
            }
        }
    }

    /// When [`Services::run`] is due, if nothing happens before.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let look = Some(self.shared.dispatcher.next_look());
        let deadlines = [look, self.calling.next_deadline(), self.serving.next_deadline()];
        deadlines.into_iter().flatten().min()
    }

    /// Adds the descriptors that the radio thread waits for.
    pub(crate) fn watch<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        self.shared.dispatcher.watch(fds);
    }

    /// One of these descriptors is ready.
    pub(crate) fn rang(&mut self) {
        self.rang = true;
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
        let request = format!("{}{REQUEST}", setting.name);
        let (kind, state, open) = match of.role {
            ServiceRole::Serve => {
                let (outlet, open) = self.serving.state(of);
                let state = match outlet {
                    _ if !may(rules, Right::Publish, &request) => ServiceState::Refused,
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
