//! The callers and servers of this host's bus, for the radio thread, which must not wait for them. Operations
//! that may wait, since a bus waits for a handshake in progress, run on a thread of their own.

use crate::blocks::{IDLE, Ids, KEPT};
use crate::engine::calls::{EndpointId, Failure, Ticket};
use crate::error::LinkError;
use bus::{Bus, CallError, Client, Loan, Pending, Reply, Request, Server, WaitSet};
use clock::{PollFd, PollFlags};
use stats::Time;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Interval at which to check for servers if no notification arrives.
const ROUND: Duration = Duration::from_millis(200);
/// How long no requests are taken from a server that has reached its limit of held requests.
const HOLD_OFF: Duration = Duration::from_millis(2);
/// Most requests taken at a time. Others stay in their queues, whose limit the bus reports to callers.
const MOST_TAKEN: usize = 512;

/// A task for the `Dispatcher`.
pub(crate) enum Job {
    /// Report requests to this server.
    Serve(EndpointId, Arc<Server>),
    /// Stop reporting them. The server ends, and these requests with it, so that callers are notified of its end.
    Unserve(EndpointId, Vec<Arc<Request>>),
    /// Report whether this client has a server.
    Use(EndpointId, Arc<Client>),
    /// Stop reporting it, and cancel its requests.
    Unuse(EndpointId),
    /// A request of a peer to a server of this host.
    Call {
        endpoint: EndpointId,
        ticket: Ticket,
        loan: Loan,
        timeout: Duration,
        /// The calling host.
        origin: u64,
    },
    /// The end of a request of this host.
    Respond {
        server: Arc<Server>,
        request: Arc<Request>,
        /// The reply, or why there is none.
        with: Result<Loan, (Failure, String)>,
    },
}

/// A report to the owner of the `Dispatcher`.
pub(crate) enum News {
    /// A caller on this host sent a request.
    Asked(EndpointId, Request),
    /// The outcome of a [`Job::Call`].
    Answered(Ticket, Result<Reply, CallError>),
    /// Whether a client has a server.
    Serving(EndpointId, bool),
}

/// Communicates with callers and servers.
pub(crate) struct Dispatcher {
    /// Wakes the owner for servers whose requests it reports.
    wait_set: WaitSet,
    served: BTreeMap<EndpointId, Served>,
    used: BTreeMap<EndpointId, Used>,
    events: VecDeque<News>,
    /// Until when to skip servers that have reached their limit of held requests.
    held_until: Option<Time>,
    next_round: Time,
    late: Sender<Late>,
}

struct Served {
    server: Arc<Server>,
    /// When the last message for it arrived.
    last: Time,
}

struct Used {
    client: Arc<Client>,
    last: Time,
    serving: bool,
    pending: Vec<(Ticket, Time, Pending)>,
}

/// A task that may wait.
enum Late {
    /// A server has ended.
    Ended(Arc<Server>, Vec<Arc<Request>>),
    Answer(Arc<Server>, Request, Result<Loan, (Failure, String)>),
}

impl Dispatcher {
    /// Starts it. It removes ended servers from `ids`.
    ///
    /// # Errors
    /// If the system provides no descriptor or no thread.
    pub(crate) fn start(bus: &Bus, ids: Ids) -> Result<Self, LinkError> {
        let (late, rest) = channel();
        let thread = std::thread::Builder::new().name("link-calls".into());
        // The thread ends with the sender.
        let started = thread.spawn(move || finish(&rest, &ids));
        started.map_err(LinkError::system("start a thread"))?;
        Ok(Dispatcher {
            wait_set: WaitSet::new(bus)?,
            served: BTreeMap::new(),
            used: BTreeMap::new(),
            events: VecDeque::new(),
            held_until: None,
            next_round: Time::ZERO,
            late,
        })
    }

    /// The wait set by which servers wake the owner.
    pub(crate) fn wait_set(&self) -> &WaitSet {
        &self.wait_set
    }

    /// Executes a job. Never blocks.
    pub(crate) fn ask(&mut self, job: Job) {
        match job {
            Job::Serve(endpoint, server) => {
                let last = Time::ZERO;
                self.served.insert(endpoint, Served { server, last });
            }
            Job::Unserve(endpoint, requests) => {
                // Without it, its callers already know.
                if let Some(served) = self.served.remove(&endpoint) {
                    self.later(Late::Ended(served.server, requests));
                }
            }
            Job::Use(endpoint, client) => {
                let used = Used {
                    client,
                    last: Time::ZERO,
                    serving: false,
                    pending: Vec::new(),
                };
                self.used.insert(endpoint, used);
                self.next_round = Time::ZERO;
            }
            Job::Unuse(endpoint) => drop(self.used.remove(&endpoint)),
            Job::Call {
                endpoint,
                ticket,
                loan,
                timeout,
                origin,
            } => {
                let Some(used) = self.used.get_mut(&endpoint) else {
                    return;
                };
                match used.client.send_for(origin, loan, timeout) {
                    Ok(pending) => used.pending.push((ticket, clock::monotonic() + timeout, pending)),
                    Err(error) => self.events.push_back(News::Answered(ticket, Err(error))),
                }
            }
            Job::Respond {
                server,
                request,
                with,
            } => {
                // The radio releases a request before it reports its end.
                let Ok(request) = Arc::try_unwrap(request) else {
                    tracing::error!("a request has ended, but the radio still holds it");
                    return;
                };
                match server.can_answer(&request) {
                    true => answer(&server, request, with),
                    false => self.later(Late::Answer(server, request, with)),
                }
            }
        }
    }

    fn later(&self, late: Late) {
        // The thread ends only with the `Dispatcher`.
        let _ = self.late.send(late);
    }

    /// The server of an endpoint.
    pub(crate) fn server(&self, endpoint: EndpointId) -> Option<&Arc<Server>> {
        self.served.get(&endpoint).map(|s| &s.server)
    }

    /// The client of an endpoint.
    pub(crate) fn client(&self, endpoint: EndpointId) -> Option<&Arc<Client>> {
        self.used.get(&endpoint).map(|u| &u.client)
    }

    /// A message for an endpoint arrived.
    pub(crate) fn is_in_use(&mut self, endpoint: EndpointId, now: Time) {
        let of_served = self.served.get_mut(&endpoint).map(|s| &mut s.last);
        let of_used = self.used.get_mut(&endpoint).map(|u| &mut u.last);
        of_served.into_iter().chain(of_used).for_each(|last| *last = now);
    }

    /// Frees the memory of received messages after a while without any.
    fn sweep(&self, now: Time) {
        let is_idle = |last: Time, reserved: u64| last + IDLE <= now && reserved > KEPT;
        let served = self.served.values();
        let servers = served.filter(|s| is_idle(s.last, s.server.reserved()));
        servers.for_each(|s| s.server.trim());
        let used = self.used.values();
        let clients = used.filter(|u| is_idle(u.last, u.client.reserved()));
        clients.for_each(|u| u.client.trim());
    }

    /// Checks for events. `rang` says whether a descriptor of [`Dispatcher::watch`] was ready since the last check.
    pub(crate) fn look(&mut self, now: Time, rang: bool) {
        let is_round = now >= self.next_round;
        if is_round {
            self.next_round = now + ROUND;
            self.sweep(now);
        }
        for (endpoint, used) in &mut self.used {
            let is_late = used.pending.iter().any(|(_, deadline, _)| *deadline <= now);
            if rang || is_round || is_late {
                used.look(*endpoint, &mut self.events);
            }
        }
        let goes_on = self.held_until.take_if(|t| *t <= now).is_some();
        if (rang || is_round || goes_on) && self.held_until.is_none() && self.take() {
            self.held_until = Some(now + HOLD_OFF);
        }
    }

    /// Takes requests. Returns true if a server could not be emptied.
    fn take(&mut self) -> bool {
        loop {
            let (mut held, before) = (false, self.events.len());
            for (endpoint, Served { server, .. }) in &self.served {
                while self.events.len() < MOST_TAKEN {
                    match server.take() {
                        Ok(Some(request)) => self.events.push_back(News::Asked(*endpoint, request)),
                        Ok(None) => break,
                        Err(_) => {
                            held = true;
                            break;
                        }
                    }
                }
            }
            let full = self.events.len() >= MOST_TAKEN;
            if held || full || !self.wait_set.rearm().unwrap_or(false) {
                return held || full;
            }
            if self.events.len() == before {
                // The wake-up is for a server that is not reported any longer, or not yet.
                return true;
            }
        }
    }

    /// The next event.
    pub(crate) fn next(&mut self) -> Option<News> {
        self.events.pop_front()
    }

    /// Adds the descriptors that the owner waits for.
    pub(crate) fn watch<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        let mut watch = |fd: BorrowedFd<'a>| fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
        if self.held_until.is_none() {
            watch(self.wait_set.as_fd());
        }
        self.used.values().for_each(|used| watch(used.client.as_fd()));
    }

    /// When [`Dispatcher::look`] is due, if no descriptor is ready before.
    pub(crate) fn next_look(&self) -> Time {
        let pending = self.used.values().flat_map(|u| &u.pending);
        let deadlines = pending.map(|(_, deadline, _)| *deadline);
        let most = self
            .held_until
            .map_or(self.next_round, |t| t.min(self.next_round));
        deadlines.fold(most, Time::min)
    }
}

impl Used {
    /// Checks for a server and for the outcomes of requests. The descriptor then waits for more.
    fn look(&mut self, endpoint: EndpointId, events: &mut VecDeque<News>) {
        loop {
            let mut over = Vec::new();
            self.pending.retain_mut(|(ticket, _, pending)| {
                let outcome = pending.poll();
                let waits = outcome.is_none();
                over.extend(outcome.map(|o| News::Answered(*ticket, o)));
                waits
            });
            let more = self.client.rearm().unwrap_or(false) && !over.is_empty();
            let serving = self.client.has_server();
            if serving != self.serving {
                self.serving = serving;
                // Before the ends of requests: the end of a server notifies its callers at once.
                events.push_back(News::Serving(endpoint, serving));
            }
            events.extend(over);
            if !more {
                return;
            }
        }
    }
}

/// Executes tasks that may wait, until the `Dispatcher` is gone.
fn finish(rest: &Receiver<Late>, ids: &Ids) {
    for late in rest {
        match late {
            Late::Ended(server, requests) => {
                let id = server.id();
                drop(server);
                ids.remove(id);
                drop(requests);
            }
            Late::Answer(server, request, with) => answer(&server, request, with),
        }
    }
}

fn answer(server: &Server, request: Request, with: Result<Loan, (Failure, String)>) {
    let sent = match with {
        Ok(loan) => server.respond(request, loan),
        Err((failure, text)) => server.reject_as(request, failure.code(), &text),
    };
    if let Err(error) = sent {
        tracing::debug!(%error, service = server.service().service, "cannot answer a caller");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bus::{BusConfig, ClientOptions, ServerOptions, ServiceType};

    const LONG: Duration = Duration::from_secs(30);

    fn kind(name: &str) -> ServiceType {
        ServiceType {
            service: name.into(),
            type_name: "t/Add".into(),
            type_hash: [1; 16],
            flavour: Default::default(),
            definition: "".into(),
        }
    }

    /// The next event, awaited as by the radio thread.
    fn event(dispatcher: &mut Dispatcher) -> News {
        let until = clock::monotonic() + LONG;
        loop {
            if let Some(event) = dispatcher.next() {
                return event;
            }
            assert!(clock::monotonic() < until, "no event arrived");
            let due = dispatcher.next_look();
            let mut fds = Vec::new();
            dispatcher.watch(&mut fds);
            let rang = clock::wait(&mut fds, Some(due), Duration::ZERO).expect("waits");
            dispatcher.look(clock::monotonic(), rang);
        }
    }

    #[test]
    fn one_thread_serves_and_calls() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::Builder::new()
            .prefix("rwl")
            .tempdir()
            .expect("a folder");
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).expect("sets");
        let bus = || Bus::open(BusConfig::new(folder.path())).expect("opens");
        let (own, other) = (bus(), bus());
        let mut dispatcher = Dispatcher::start(&own, Ids::default()).expect("starts");
        // For a caller on this host, which may be faster than the report of its server.
        let options = ServerOptions::default().with_wait_set(dispatcher.wait_set());
        let server = Arc::new(own.server(kind("/served"), options).expect("serves"));
        let client = other.client(kind("/served"), ClientOptions::default());
        let client = client.expect("a client");
        assert!(client.wait_for_server(LONG).expect("waits"));
        let send = || {
            let loan = client.loan(0, &[]).expect("a loan");
            client.send(loan, LONG).expect("is sent")
        };
        let answered = send();
        dispatcher.look(clock::monotonic(), true);
        assert!(dispatcher.next().is_none());
        dispatcher.ask(Job::Serve(1, server.clone()));
        let asked = |dispatcher: &mut Dispatcher| match event(dispatcher) {
            News::Asked(1, request) => Arc::new(request),
            _ => panic!("nothing else happens"),
        };
        let respond = |request, with| Job::Respond {
            server: server.clone(),
            request,
            with,
        };
        let request = asked(&mut dispatcher);
        dispatcher.ask(respond(request, Ok(server.loan(3, &[]).expect("a loan"))));
        assert_eq!(answered.wait().expect("an answer").control().len(), 3);
        let rejected = send();
        let request = asked(&mut dispatcher);
        dispatcher.ask(respond(request, Err((Failure::Busy, "no".into()))));
        let error = rejected.wait().map(drop).expect_err("is rejected");
        assert_eq!(Failure::of(&error), Some(Failure::Busy));
        assert_eq!(error.to_string(), "the call failed between hosts: no");
        let died = send();
        let request = asked(&mut dispatcher);
        drop(server);
        dispatcher.ask(Job::Unserve(1, vec![request]));
        assert!(matches!(died.wait(), Err(CallError::ServerDied { .. })));
        // And for a server on this host.
        let client = own.client(kind("/used"), ClientOptions::default());
        let client = Arc::new(client.expect("a client"));
        dispatcher.ask(Job::Use(2, client.clone()));
        let served = other.server(kind("/used"), ServerOptions::default());
        let served = served.expect("serves");
        assert!(matches!(event(&mut dispatcher), News::Serving(2, true)));
        let call = |ticket, timeout| Job::Call {
            endpoint: 2,
            ticket,
            loan: client.loan(0, &[]).expect("a loan"),
            timeout,
            origin: 77,
        };
        dispatcher.ask(call(7, LONG));
        let request = served.take_timeout(LONG).expect("takes").expect("a request");
        assert_eq!(request.on_behalf_of(), Some(77), "the calling host");
        assert_eq!(request.message().sender().1, std::process::id());
        let loan = served.loan(4, &[]).expect("a loan");
        served.respond(request, loan).expect("is sent");
        assert!(matches!(event(&mut dispatcher), News::Answered(7, Ok(r)) if r.control().len() == 4));
        dispatcher.ask(call(8, Duration::from_millis(20)));
        assert!(matches!(
            event(&mut dispatcher),
            News::Answered(8, Err(CallError::Timeout { .. }))
        ));
        dispatcher.ask(call(9, LONG));
        drop(served);
        assert!(matches!(event(&mut dispatcher), News::Serving(2, false)));
        assert!(matches!(event(&mut dispatcher), News::Answered(9, Err(_))));
        dispatcher.ask(Job::Unuse(2));
        assert!(dispatcher.used.is_empty() && dispatcher.served.is_empty());
    }
}
