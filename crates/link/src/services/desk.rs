//! Callers and servers of this host's bus, for the radio's thread: nothing here waits for them. What would, since a
//! bus waits for a handshake that is not over, goes to a thread of its own.

use crate::daemon::LinkError;
use crate::inbound::Ids;
use bus::{Bus, CallError, Client, Loan, Pending, Reply, Request, Server, WaitSet};
use clock::{PollFd, PollFlags};
use stats::Time;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// How often it is looked whether servers are there, if nothing tells of it.
const ROUND: Duration = Duration::from_millis(200);
/// How long servers that hold all they may are left alone.
const HOLD_OFF: Duration = Duration::from_millis(2);
/// So many requests are taken at a time; those beyond stay in their queues, whose bound the bus tells callers of.
const MOST_TAKEN: usize = 512;

/// A service of a peer that is served here: its number, never used again.
pub(crate) type Place = u64;

/// What the tables' owner asks for.
pub(crate) enum Job {
    /// Requests to this server are to be told.
    Serve(Place, Arc<Server>),
    /// They are not any more: the server ends, and then these requests with it, so that callers are told that it did.
    Unserve(Place, Arc<Server>, Vec<Arc<Request>>),
    /// Whether this client has a server is to be told.
    Use(Place, Arc<Client>),
    /// It is not any more; its requests are cancelled.
    Unuse(Place),
    /// A request of a peer to a server of this host.
    Call {
        place: Place,
        ticket: u64,
        loan: Loan,
        timeout: Duration,
        /// The host that asks.
        origin: u64,
    },
    /// The end of a request of this host.
    Respond {
        server: Arc<Server>,
        request: Arc<Request>,
        /// The answer, or what is wrong.
        with: Result<Loan, String>,
    },
}

/// What its owner is told.
pub(crate) enum Event {
    /// A caller of this host asks.
    Asked(Place, Request),
    /// What became of a [`Job::Call`].
    Answered(u64, Result<Reply, CallError>),
    /// Whether a client has a server now.
    Serving(Place, bool),
}

/// Talks to callers and servers.
pub(crate) struct Desk {
    /// For servers whose requests it is to tell.
    wait_set: WaitSet,
    served: BTreeMap<Place, Arc<Server>>,
    used: BTreeMap<Place, Used>,
    events: VecDeque<Event>,
    /// Servers hold all they may until then.
    held_until: Option<Time>,
    next_round: Time,
    late: Sender<Late>,
}

struct Used {
    client: Arc<Client>,
    serving: bool,
    pending: Vec<(u64, Time, Pending)>,
}

/// What may wait.
enum Late {
    /// Its server ended.
    Ended(Arc<Server>, Vec<Arc<Request>>),
    Answer(Arc<Server>, Request, Result<Loan, String>),
}

impl Desk {
    /// Starts it. Servers that have ended are removed from `ids`.
    ///
    /// # Errors
    /// If the system gives no descriptor or no thread.
    pub(crate) fn start(bus: &Bus, ids: Ids) -> Result<Self, LinkError> {
        let (late, rest) = channel();
        let thread = std::thread::Builder::new().name("link-calls".into());
        // It ends with the sender.
        let started = thread.spawn(move || finish(&rest, &ids));
        started.map_err(|source| LinkError::System {
            doing: "start a thread",
            source,
        })?;
        Ok(Desk {
            wait_set: WaitSet::new(bus)?,
            served: BTreeMap::new(),
            used: BTreeMap::new(),
            events: VecDeque::new(),
            held_until: None,
            next_round: Time::ZERO,
            late,
        })
    }

    /// Through which servers are to wake its owner.
    pub(crate) fn wait_set(&self) -> &WaitSet {
        &self.wait_set
    }

    /// Does something; never blocks.
    pub(crate) fn ask(&mut self, job: Job) {
        match job {
            Job::Serve(place, server) => drop(self.served.insert(place, server)),
            Job::Unserve(place, server, requests) => {
                self.served.remove(&place);
                self.later(Late::Ended(server, requests));
            }
            Job::Use(place, client) => {
                let used = Used {
                    client,
                    serving: false,
                    pending: Vec::new(),
                };
                self.used.insert(place, used);
                self.next_round = Time::ZERO;
            }
            Job::Unuse(place) => drop(self.used.remove(&place)),
            Job::Call {
                place,
                ticket,
                loan,
                timeout,
                origin,
            } => {
                let Some(used) = self.used.get_mut(&place) else {
                    return;
                };
                match used.client.send_for(origin, loan, timeout) {
                    Ok(pending) => used.pending.push((ticket, clock::monotonic() + timeout, pending)),
                    Err(error) => self.events.push_back(Event::Answered(ticket, Err(error))),
                }
            }
            Job::Respond {
                server,
                request,
                with,
            } => {
                // The radio lets a request go before its end is told.
                let Ok(request) = Arc::try_unwrap(request) else {
                    tracing::error!("a request is over, and the radio still has it");
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
        // The thread ends with the desk only.
        let _ = self.late.send(late);
    }

    /// Looks what happened. `rang` says whether a descriptor of [`Desk::watch`] did since the last time.
    pub(crate) fn look(&mut self, now: Time, rang: bool) {
        let is_round = now >= self.next_round;
        if is_round {
            self.next_round = now + ROUND;
        }
        for (place, used) in &mut self.used {
            let is_late = used.pending.iter().any(|(_, deadline, _)| *deadline <= now);
            if rang || is_round || is_late {
                used.look(*place, &mut self.events);
            }
        }
        let goes_on = self.held_until.take_if(|t| *t <= now).is_some();
        if (rang || is_round || goes_on) && self.held_until.is_none() && self.take() {
            self.held_until = Some(now + HOLD_OFF);
        }
    }

    /// Takes requests; true if a server could not be emptied.
    fn take(&mut self) -> bool {
        loop {
            let (mut held, before) = (false, self.events.len());
            for (place, server) in &self.served {
                while self.events.len() < MOST_TAKEN {
                    match server.take() {
                        Ok(Some(request)) => self.events.push_back(Event::Asked(*place, request)),
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
                // It is a request to a server that is to be told no more, or not yet.
                return true;
            }
        }
    }

    /// The next thing that happened.
    pub(crate) fn next(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// What its owner is to wait for.
    pub(crate) fn watch<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        let mut watch = |fd: BorrowedFd<'a>| fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
        if self.held_until.is_none() {
            watch(self.wait_set.as_fd());
        }
        self.used.values().for_each(|used| watch(used.client.as_fd()));
    }

    /// When [`Desk::look`] is due, if nothing rings before.
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
    /// Whether there is a server, and what became of requests; the descriptor then waits for more.
    fn look(&mut self, place: Place, events: &mut VecDeque<Event>) {
        loop {
            let mut over = Vec::new();
            self.pending.retain_mut(|(ticket, _, pending)| {
                let outcome = pending.poll();
                let waits = outcome.is_none();
                over.extend(outcome.map(|o| Event::Answered(*ticket, o)));
                waits
            });
            let more = self.client.rearm().unwrap_or(false) && !over.is_empty();
            let serving = self.client.has_server();
            if serving != self.serving {
                self.serving = serving;
                // Before the ends of requests: those of a server that is gone are told at once, by its end.
                events.push_back(Event::Serving(place, serving));
            }
            events.extend(over);
            if !more {
                return;
            }
        }
    }
}

/// Does what may wait, until the desk is gone.
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

fn answer(server: &Server, request: Request, with: Result<Loan, String>) {
    let told = match with {
        Ok(loan) => server.respond(request, loan),
        Err(text) => server.reject(request, &text),
    };
    if let Err(error) = told {
        tracing::debug!(%error, service = server.service().service, "a caller was not told");
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

    /// The next event, waited for as the radio's thread does.
    fn event(desk: &mut Desk) -> Event {
        let until = clock::monotonic() + LONG;
        loop {
            if let Some(event) = desk.next() {
                return event;
            }
            assert!(clock::monotonic() < until, "it was never told");
            let due = desk.next_look();
            let mut fds = Vec::new();
            desk.watch(&mut fds);
            let rang = clock::wait(&mut fds, Some(due), Duration::ZERO).expect("waits");
            desk.look(clock::monotonic(), rang);
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
        let mut desk = Desk::start(&own, Ids::default()).expect("starts");
        // For a caller of this host, which may be quicker than the word of its server.
        let options = ServerOptions::default().with_wait_set(desk.wait_set());
        let server = Arc::new(own.server(kind("/served"), options).expect("serves"));
        let client = other.client(kind("/served"), ClientOptions::default());
        let client = client.expect("a client");
        assert!(client.wait_for_server(LONG).expect("waits"));
        let send = || {
            let loan = client.loan(0, &[]).expect("a loan");
            client.send(loan, LONG).expect("is sent")
        };
        let answered = send();
        desk.look(clock::monotonic(), true);
        assert!(desk.next().is_none());
        desk.ask(Job::Serve(1, server.clone()));
        let asked = |desk: &mut Desk| match event(desk) {
            Event::Asked(1, request) => Arc::new(request),
            _ => panic!("nothing else happens"),
        };
        let respond = |request, with| Job::Respond {
            server: server.clone(),
            request,
            with,
        };
        let request = asked(&mut desk);
        desk.ask(respond(request, Ok(server.loan(3, &[]).expect("a loan"))));
        assert_eq!(answered.wait().expect("an answer").control().len(), 3);
        let rejected = send();
        let request = asked(&mut desk);
        desk.ask(respond(request, Err("no".into())));
        assert!(matches!(rejected.wait(), Err(CallError::Rejected { text }) if text == "no"));
        let died = send();
        let request = asked(&mut desk);
        desk.ask(Job::Unserve(1, server, vec![request]));
        assert!(matches!(died.wait(), Err(CallError::ServerDied { .. })));
        // And for a server of this host.
        let client = own.client(kind("/used"), ClientOptions::default());
        let client = Arc::new(client.expect("a client"));
        desk.ask(Job::Use(2, client.clone()));
        let served = other.server(kind("/used"), ServerOptions::default());
        let served = served.expect("serves");
        assert!(matches!(event(&mut desk), Event::Serving(2, true)));
        let call = |ticket, timeout| Job::Call {
            place: 2,
            ticket,
            loan: client.loan(0, &[]).expect("a loan"),
            timeout,
            origin: 77,
        };
        desk.ask(call(7, LONG));
        let request = served.take_timeout(LONG).expect("takes").expect("a request");
        assert_eq!(request.on_behalf_of(), Some(77), "the host that asks");
        assert_eq!(request.message().sender().1, std::process::id());
        let loan = served.loan(4, &[]).expect("a loan");
        served.respond(request, loan).expect("is sent");
        assert!(matches!(event(&mut desk), Event::Answered(7, Ok(r)) if r.control().len() == 4));
        desk.ask(call(8, Duration::from_millis(20)));
        assert!(matches!(
            event(&mut desk),
            Event::Answered(8, Err(CallError::Timeout { .. }))
        ));
        desk.ask(call(9, LONG));
        drop(served);
        assert!(matches!(event(&mut desk), Event::Serving(2, false)));
        assert!(matches!(event(&mut desk), Event::Answered(9, Err(_))));
        desk.ask(Job::Unuse(2));
        assert!(desk.used.is_empty() && desk.served.is_empty());
    }
}
