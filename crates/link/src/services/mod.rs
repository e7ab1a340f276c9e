//! Drives the calls of a link for a bus: the callers and servers there.
//!
//! The link of the calling host serves a peer's services on its bus, and passes requests to the radio
//! directly from their callers' blocks. The link of the serving host is a client on its bus. This module
//! communicates with callers and servers through [`dispatcher`], which never blocks. Everything here runs on the
//! radio thread (decision 120).

mod dispatcher;
pub(crate) mod message;

use crate::blocks::Ids;
use crate::config::{Config, ServiceRole};
use crate::engine::calls::{Asked, Calls, Content, EndpointId, Event, Failure, Times, UNDER_WAY};
use crate::engine::path::Air;
use crate::error::LinkError;
use crate::flows::Flows;
use crate::names::{Line, host_id};
use crate::outgoing::Outgoing;
use bus::{
    Bus, CallError, ClientOptions, CreateError, Loan, Request, Server, ServerOptions, ServiceType, TopicType,
};
use clock::PollFd;
use dispatcher::{Dispatcher, Job, News};
use message::{ServiceMessage, Taker};
use proto::{PeerId, Radio, RemoteTopic};
use stats::{DropReason, Time};
use std::sync::Arc;

/// Limits of a caller's queued requests and of its unanswered requests. A service's `depth` is a tighter
/// limit.
const QUEUE: u32 = 64;
const HELD: u32 = 256;

/// The topics of requests to servers of this bus, by which the servers are discovered.
pub(crate) fn watched(config: &Config) -> impl Iterator<Item = String> + '_ {
    let served = config.services.iter().filter(|s| s.is_for_serving());
    served
        .filter(|s| !s.is_pattern())
        .map(|s| Line::Request(&s.name).to_string())
}

/// The patterns of services of this bus.
pub(crate) fn watched_patterns(config: &Config) -> impl Iterator<Item = String> + '_ {
    let served = config.services.iter().filter(|s| s.is_for_serving());
    served.filter(|s| s.is_pattern()).map(|s| s.name.clone())
}

/// A caller on this host's bus. The radio holds its request, too, while it sends it.
pub(crate) struct Caller {
    server: Arc<Server>,
    request: Arc<Request>,
}

impl Content for Loan {
    fn control(&mut self) -> &[u8] {
        self.control_mut()
    }
}

/// A daemon's services.
pub(crate) struct Services {
    pub(crate) calls: Calls<Loan, Caller>,
    bus: Bus,
    dispatcher: Dispatcher,
    /// The servers for peers' services on this bus, which are not services of this host.
    ids: Ids,
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
        Ok(Some(Box::new(Services {
            calls: Calls::new(&config.services, &config.peers, run),
            bus: bus.clone(),
            dispatcher: Dispatcher::start(bus, ids.clone())?,
            ids,
            rang: false,
        })))
    }

    /// The recipient of a peer's topic at present.
    pub(crate) fn taker(&self, from: (PeerId, RemoteTopic)) -> Option<Taker> {
        let (role, endpoint) = self.calls.taker(from)?;
        match role {
            ServiceRole::Serve => Some(Taker::Client(self.dispatcher.client(endpoint)?.clone())),
            ServiceRole::Call => Some(Taker::Server(self.dispatcher.server(endpoint)?.clone())),
        }
    }

    /// A message is complete, with this many bytes.
    ///
    /// # Errors
    /// The reason under which its loss is counted.
    pub(crate) fn came(
        &mut self,
        from: (PeerId, RemoteTopic),
        service_message: ServiceMessage,
        bytes: u64,
        times: Times,
    ) -> Result<(), DropReason> {
        if let Some((_, endpoint)) = self.calls.taker(from) {
            self.dispatcher.is_in_use(endpoint, times.at);
        }
        let (head, loan) = service_message.open();
        self.calls.came(from, &head, (loan, bytes), times)
    }

    /// This service has a server on the bus, whose topic of requests has this type, or none any more.
    pub(crate) fn found(
        &mut self,
        now: Time,
        radio: &mut Radio<Outgoing>,
        flows: &mut Flows,
        service: &str,
        kind: Option<&TopicType>,
    ) {
        let mut air = Air { now, radio, flows };
        match kind {
            Some(kind) => {
                let service = ServiceType {
                    service: service.to_owned(),
                    type_name: kind.type_name.clone(),
                    type_hash: kind.type_hash,
                    flavour: kind.flavour,
                    definition: kind.definition.clone(),
                };
                for (endpoint, depth) in self.calls.serve(&mut air, &service) {
                    self.become_client(&service, endpoint, depth);
                }
            }
            None => self.calls.gone(&mut air, service),
        }
        self.pass_on();
    }

    /// Calls the servers of this bus for a peer.
    fn become_client(&mut self, kind: &ServiceType, endpoint: EndpointId, depth: u16) {
        let open = u32::from(depth).clamp(1, 1024);
        let options = ClientOptions::default()
            .with_max_outstanding(open)
            .with_max_held((open * UNDER_WAY as u32).min(2048));
        match self.bus.client(kind.clone(), options) {
            Ok(client) => self.dispatcher.ask(Job::Use(endpoint, Arc::new(client))),
            Err(error) => tracing::error!(%error, service = kind.service, "cannot offer it to a peer"),
        }
    }

    /// Serves a peer's service on this bus.
    fn become_server(&mut self, endpoint: EndpointId) -> Result<(), CreateError> {
        let Some(kind) = self.calls.kind(endpoint) else {
            return Ok(());
        };
        let options = ServerOptions::default()
            .with_depth(QUEUE)
            .with_max_held(HELD)
            .with_wait_set(self.dispatcher.wait_set());
        let server = Arc::new(self.bus.server(kind.clone(), options)?);
        self.ids.insert(server.id());
        self.dispatcher.ask(Job::Serve(endpoint, server));
        Ok(())
    }

    /// Handles the latest datagrams, this host's callers and servers, and due timers.
    pub(crate) fn run(&mut self, now: Time, radio: &mut Radio<Outgoing>, flows: &mut Flows) {
        let mut air = Air { now, radio, flows };
        self.calls.hear(&mut air);
        self.pass_on();
        self.dispatcher.look(now, std::mem::take(&mut self.rang));
        while let Some(news) = self.dispatcher.next() {
            self.hear(&mut air, news);
        }
        self.calls.run(&mut air);
        self.pass_on();
    }

    /// Passes the news of this bus to the calls.
    fn hear(&mut self, air: &mut Air<'_>, news: News) {
        match news {
            News::Asked(endpoint, request) => {
                let Some(server) = self.dispatcher.server(endpoint) else {
                    // Its server is gone, which already notified its caller.
                    return;
                };
                let request = Arc::new(request);
                let asked = Asked {
                    endpoint,
                    timeout: request.time_left(),
                    caller: Caller {
                        server: server.clone(),
                        request: request.clone(),
                    },
                };
                self.calls
                    .ask(air, asked, |header| Outgoing::request(header, request));
            }
            News::Answered(ticket, Ok(reply)) => {
                // A failure is counted, and its caller learns of it.
                let _ = self.calls.reply(air, ticket, |header| {
                    Outgoing::reply(header, reply).inspect_err(|error| {
                        static LOST: clock::Quiet = clock::Quiet::new();
                        if let Some(more) = LOST.lets() {
                            tracing::warn!(%error, more, "cannot send a reply over the link");
                        }
                    })
                });
            }
            News::Answered(ticket, Err(error)) => {
                // The server may be another link's.
                let failure = Failure::of(&error).unwrap_or(match &error {
                    CallError::ServerDied { .. } => Failure::ServerDied,
                    CallError::NoServer { .. } => Failure::Unserved,
                    CallError::Timeout { .. } => Failure::TimedOut,
                    CallError::Dropped { .. } | CallError::TooMany { .. } | CallError::HoldLimit { .. } => {
                        Failure::Busy
                    }
                    _ => Failure::Dropped,
                });
                let text = match error {
                    CallError::Rejected { text, .. } => text,
                    // The caller's host has a text of its own.
                    CallError::ServerDied { .. } | CallError::NoServer { .. } => String::new(),
                    other => other.to_string(),
                };
                self.calls.fail(air, ticket, (failure, &text));
            }
            News::Serving(endpoint, serving) => {
                if let Err(error) = self.calls.serving(air, endpoint, serving) {
                    let service = self.calls.kind(endpoint).map_or("", |k| &k.service);
                    tracing::error!(%error, service, "cannot offer to peer");
                }
            }
        }
    }

    /// Passes what the calls decided to this bus.
    fn pass_on(&mut self) {
        while let Some(event) = self.calls.poll_event() {
            match event {
                Event::Up(endpoint) => {
                    if let Err(error) = self.become_server(endpoint) {
                        let service = self.calls.kind(endpoint).map_or("", |k| &k.service);
                        tracing::error!(%error, service, "cannot offer a peer's service here");
                        self.calls.fell(endpoint);
                    }
                }
                Event::Down(endpoint, callers) => {
                    let requests = callers.into_iter().map(|c| c.request).collect();
                    self.dispatcher.ask(Job::Unserve(endpoint, requests));
                }
                Event::Request {
                    endpoint,
                    ticket,
                    peer,
                    content,
                    timeout,
                } => self.dispatcher.ask(Job::Call {
                    endpoint,
                    ticket,
                    loan: content,
                    timeout,
                    origin: host_id(self.calls.peer(peer)),
                }),
                Event::Unused(endpoint) => self.dispatcher.ask(Job::Unuse(endpoint)),
                Event::Ended(Caller { server, request }, with) => self.dispatcher.ask(Job::Respond {
                    server,
                    request,
                    with: with.map_err(|failed| (failed.failure, failed.text)),
                }),
            }
        }
    }

    /// When [`Services::run`] is due, if nothing happens before.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let look = Some(self.dispatcher.next_look());
        [look, self.calls.next_timeout()].into_iter().flatten().min()
    }

    /// Adds the descriptors that the radio thread waits for.
    pub(crate) fn watch<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        self.dispatcher.watch(fds);
    }

    /// One of these descriptors is ready.
    pub(crate) fn rang(&mut self) {
        self.rang = true;
    }
}
