//! The thread that talks to callers and servers of this host's bus, beside the radio's, which waits for neither.

use crate::daemon::LinkError;
use crate::worker::Worker;
use bus::{Bus, CallError, Client, Loan, Pending, Reply, Request, Server, WaitSet};
use clock::{PollFd, PollFlags};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often the thread looks whether servers are there, and whether it is to end.
const ROUND: Duration = Duration::from_millis(200);
/// How long a server that holds all it may is left alone.
const HOLD_OFF: Duration = Duration::from_millis(2);
/// So many events may wait for the radio's thread; requests beyond stay in their queues, whose bound the bus tells
/// callers of.
const MOST_EVENTS: usize = 512;

/// A service of a peer that is served here: its number, never used again.
pub(crate) type Place = u64;

/// What the radio's thread asks for.
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
    },
    /// The end of a request of this host.
    Respond {
        server: Arc<Server>,
        request: Arc<Request>,
        /// The answer, or what is wrong.
        with: Result<Loan, String>,
    },
}

/// What it is told.
pub(crate) enum Event {
    /// A caller of this host asks.
    Asked(Place, Request),
    /// What became of a [`Job::Call`].
    Answered(u64, Result<Reply, CallError>),
    /// Whether a client has a server now.
    Serving(Place, bool),
}

struct Shared {
    jobs: Mutex<VecDeque<Job>>,
    events: Mutex<VecDeque<Event>>,
    wake: OwnedFd,
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread, for the radio's.
pub(crate) struct Desk {
    shared: Arc<Shared>,
    /// For servers whose requests it is to tell.
    wait_set: WaitSet,
    _worker: Worker,
}

impl Desk {
    /// Starts it; `wake` is called after events.
    ///
    /// # Errors
    /// If the system gives no descriptor or no thread.
    pub(crate) fn start(bus: &Bus, wake: impl Fn() + Send + 'static) -> Result<Self, LinkError> {
        let system = |doing: &'static str| move |source: std::io::Error| LinkError::System { doing, source };
        let wait_set = WaitSet::new(bus)?;
        let eventfd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let shared = Arc::new(Shared {
            jobs: Mutex::default(),
            events: Mutex::default(),
            wake: eventfd.map_err(|e| system("make an eventfd")(e.into()))?,
        });
        let mut clerk = Clerk {
            shared: shared.clone(),
            wait_set: wait_set.clone(),
            served: BTreeMap::new(),
            used: BTreeMap::new(),
        };
        let worker = Worker::start("link-calls", move || {
            if clerk.round() {
                wake();
            }
            Some(Duration::ZERO)
        });
        Ok(Desk {
            shared,
            wait_set,
            _worker: worker.map_err(system("start a thread"))?,
        })
    }

    /// Through which servers are to wake it.
    pub(crate) fn wait_set(&self) -> &WaitSet {
        &self.wait_set
    }

    /// Asks for something; it is done soon.
    pub(crate) fn ask(&self, job: Job) {
        lock(&self.shared.jobs).push_back(job);
        // A full counter is as good a wake-up as any.
        let _ = rustix::io::write(&self.shared.wake, &1u64.to_ne_bytes());
    }

    /// The next thing that happened.
    pub(crate) fn next(&self) -> Option<Event> {
        lock(&self.shared.events).pop_front()
    }
}

/// What the thread has.
struct Clerk {
    shared: Arc<Shared>,
    wait_set: WaitSet,
    served: BTreeMap<Place, Arc<Server>>,
    used: BTreeMap<Place, Used>,
}

struct Used {
    client: Arc<Client>,
    serving: bool,
    pending: Vec<(u64, Pending)>,
}

impl Clerk {
    /// Does what there is to do, then waits for more, but not for ever. Whether there are events.
    fn round(&mut self) -> bool {
        let mut events = VecDeque::new();
        let jobs = std::mem::take(&mut *lock(&self.shared.jobs));
        for job in jobs {
            self.carry_out(job, &mut events);
        }
        for (place, used) in &mut self.used {
            used.look(*place, &mut events);
        }
        let held = self.take(&mut events);
        let found = !events.is_empty();
        if found {
            lock(&self.shared.events).append(&mut events);
        } else {
            self.wait(held);
        }
        found
    }

    fn carry_out(&mut self, job: Job, events: &mut VecDeque<Event>) {
        match job {
            Job::Serve(place, server) => drop(self.served.insert(place, server)),
            Job::Unserve(place, server, requests) => {
                self.served.remove(&place);
                drop(server);
                drop(requests);
            }
            Job::Use(place, client) => {
                let used = Used {
                    client,
                    serving: false,
                    pending: Vec::new(),
                };
                self.used.insert(place, used);
            }
            Job::Unuse(place) => drop(self.used.remove(&place)),
            Job::Call {
                place,
                ticket,
                loan,
                timeout,
            } => {
                let Some(used) = self.used.get_mut(&place) else {
                    return;
                };
                match used.client.send(loan, timeout) {
                    Ok(pending) => used.pending.push((ticket, pending)),
                    Err(error) => events.push_back(Event::Answered(ticket, Err(error))),
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
                let told = match with {
                    Ok(loan) => server.respond(request, loan),
                    Err(text) => server.reject(request, &text),
                };
                if let Err(error) = told {
                    tracing::debug!(%error, service = server.service().service, "a caller was not told");
                }
            }
        }
    }

    /// Takes requests; true if a server could not be emptied.
    fn take(&self, events: &mut VecDeque<Event>) -> bool {
        let waiting = lock(&self.shared.events).len();
        loop {
            let (mut held, before) = (false, events.len());
            for (place, server) in &self.served {
                while waiting + events.len() < MOST_EVENTS {
                    match server.take() {
                        Ok(Some(request)) => events.push_back(Event::Asked(*place, request)),
                        Ok(None) => break,
                        Err(_) => {
                            held = true;
                            break;
                        }
                    }
                }
            }
            let full = waiting + events.len() >= MOST_EVENTS;
            if held || full || !self.wait_set.rearm().unwrap_or(false) {
                return held || full;
            }
            if events.len() == before {
                // It is a request to a server of which this thread is told in a moment.
                return true;
            }
        }
    }

    fn wait(&self, held: bool) {
        let deadlines = self.used.values().flat_map(|u| &u.pending);
        let now = Instant::now();
        let left = deadlines.filter_map(|(_, p)| Some(p.deadline()?.saturating_duration_since(now)));
        let most = if held { HOLD_OFF } else { ROUND };
        let until = clock::monotonic() + left.min().unwrap_or(most).min(most);
        let wake = self.shared.wake.as_fd();
        let mut fds = vec![PollFd::from_borrowed_fd(wake, PollFlags::IN)];
        if !held {
            fds.push(PollFd::from_borrowed_fd(self.wait_set.as_fd(), PollFlags::IN));
        }
        // A client's descriptor is of use only with requests that can be asked for.
        for used in self.used.values().filter(|u| !u.pending.is_empty()) {
            fds.push(PollFd::from_borrowed_fd(used.client.as_fd(), PollFlags::IN));
        }
        if clock::wait(&mut fds, Some(until), Duration::ZERO).is_err() {
            std::thread::sleep(HOLD_OFF);
        }
        let _ = rustix::io::read(wake, &mut [0u8; 8]);
    }
}

impl Used {
    /// Whether there is a server, and what became of requests.
    fn look(&mut self, place: Place, events: &mut VecDeque<Event>) {
        let mut over = Vec::new();
        self.pending.retain_mut(|(ticket, pending)| {
            let outcome = pending.poll();
            let waits = outcome.is_none();
            over.extend(outcome.map(|o| Event::Answered(*ticket, o)));
            waits
        });
        let serving = self.client.has_server();
        if serving != self.serving {
            self.serving = serving;
            // Before the ends of requests: those of a server that is gone are told at once, by its end.
            events.push_back(Event::Serving(place, serving));
        }
        events.extend(over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bus::{BusConfig, ClientOptions, ServerOptions, ServiceType};

    #[test]
    fn a_request_may_come_before_its_server_is_known() {
        const LONG: Duration = Duration::from_secs(30);
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::Builder::new()
            .prefix("rwl")
            .tempdir()
            .expect("a folder");
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).expect("sets");
        let bus = Bus::open(BusConfig::new(folder.path())).expect("opens");
        let kind = ServiceType {
            service: "/add".into(),
            type_name: "t/Add".into(),
            type_hash: [1; 16],
            definition: "".into(),
        };
        let desk = Desk::start(&bus, || {}).expect("starts");
        let options = ServerOptions::default().with_wait_set(desk.wait_set());
        let server = bus.server(kind.clone(), options).expect("serves");
        let client = bus.client(kind, ClientOptions::default()).expect("a client");
        assert!(client.wait_for_server(LONG).expect("waits"));
        let pending = client.send(client.loan(0, &[]).expect("a loan"), LONG);
        // The thread is woken by it, and finds no server that it knows.
        std::thread::sleep(Duration::from_millis(50));
        desk.ask(Job::Serve(1, Arc::new(server)));
        let start = Instant::now();
        while !matches!(desk.next(), Some(Event::Asked(1, _))) {
            assert!(start.elapsed() < LONG, "it was never told");
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(pending);
    }
}
