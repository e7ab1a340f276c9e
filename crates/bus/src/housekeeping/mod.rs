//! Housekeeping: one thread per bus that accepts connections, performs handshakes, reserves memory ahead of
//! time and detects dead processes.
//!
//! It never waits for a single peer: every socket is non-blocking, and every handshake has a deadline.
//! Publishing and taking never wait for this thread.

mod handshake;
mod progress;
mod scan;
mod shared;
mod watch;

pub(crate) use shared::{Command, Core, Shared};

use crate::connection::Connection;
use crate::frame::{Frame, MAX_FRAME};
use crate::sys::socket::{Listener, Received, Socket};
use handshake::Pending;
use scan::MIN_BACKOFF;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};
use watch::Watch;

/// Connections accepted in a row before other events are handled.
const BURST: usize = 16;

#[derive(Debug)]
struct Endpoint {
    listener: Listener,
    listener_token: u64,
    core: Core,
    /// When to look for peers again.
    scan_at: Option<Instant>,
    backoff: Duration,
    /// When to accept again after running out of descriptors.
    resume_at: Option<Instant>,
    /// Peers that will never match.
    mismatched: BTreeSet<u64>,
}

#[derive(Debug)]
enum Source {
    Listener(u64),
    Pending(Box<Pending>),
    Subscriber {
        publisher: u64,
        subscriber: u64,
        pid: i32,
        socket: Arc<Socket>,
    },
    Publisher {
        subscriber: u64,
        pid: i32,
        connection: Weak<Connection>,
    },
    Process(i32),
}

/// The housekeeping thread's state.
#[derive(Debug)]
pub(crate) struct Housekeeping {
    shared: Arc<Shared>,
    endpoints: BTreeMap<u64, Endpoint>,
    sources: BTreeMap<u64, Source>,
    /// The handshakes in progress among the sources, as (endpoint, token).
    pending: BTreeSet<(u64, u64)>,
    /// Endpoints that have something to do later.
    later: BTreeSet<u64>,
    next_token: u64,
    processes: BTreeMap<i32, Watch>,
}

impl Housekeeping {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Housekeeping {
            shared,
            endpoints: BTreeMap::new(),
            sources: BTreeMap::new(),
            pending: BTreeSet::new(),
            later: BTreeSet::new(),
            next_token: 1,
            processes: BTreeMap::new(),
        }
    }

    /// Runs until [`Shared::stop`].
    pub(crate) fn run(mut self) {
        self.shared.folder.sweep();
        crate::sys::sweep();
        let mut tokens = Vec::new();
        while !self.shared.stop.load(Ordering::Acquire) {
            let timeout = self
                .next_deadline()
                .map(|d| d.saturating_duration_since(Instant::now()));
            if let Err(e) = self.shared.epoll.wait(timeout, &mut tokens) {
                tracing::error!("the housekeeping thread of the bus cannot wait: {e}");
                std::thread::sleep(Duration::from_millis(100));
            }
            for token in tokens.drain(..) {
                self.handle(token);
            }
            let commands = std::mem::take(
                &mut *self
                    .shared
                    .commands
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner),
            );
            let mut fresh = vec![];
            for command in commands {
                self.obey(command, &mut fresh);
            }
            self.scan(&fresh);
            self.handle_deadlines();
        }
    }

    /// Executes a command. New endpoints, whose peers must be looked for, are added to `fresh`.
    fn obey(&mut self, command: Command, fresh: &mut Vec<u64>) {
        match command {
            Command::Add(id, listener, core) => {
                let token = self.token();
                if let Err(e) = self.shared.epoll.add(&listener, token) {
                    tracing::error!("an endpoint cannot accept connections: {e}");
                }
                self.sources.insert(token, Source::Listener(id));
                let endpoint = Endpoint {
                    listener,
                    listener_token: token,
                    core,
                    scan_at: None,
                    backoff: MIN_BACKOFF,
                    resume_at: None,
                    mismatched: BTreeSet::new(),
                };
                self.endpoints.insert(id, endpoint);
                fresh.push(id);
            }
            Command::Remove(id) => self.remove_endpoint(id),
            Command::Forget(token) => drop(self.forget(token)),
            Command::Grow(core) => {
                if let Some(core) = core.upgrade() {
                    core.grow_ahead();
                }
            }
        }
    }

    fn remove_endpoint(&mut self, id: u64) {
        let Some(endpoint) = self.endpoints.remove(&id) else {
            return;
        };
        self.shared.epoll.remove(&endpoint.listener);
        let own = self.sources.iter().filter(|(_, s)| match s {
            Source::Listener(e) | Source::Subscriber { publisher: e, .. } => *e == id,
            Source::Pending(p) => p.endpoint == id,
            // It lives as long as messages of it exist, and removes itself.
            Source::Publisher { .. } | Source::Process(_) => false,
        });
        for token in own.map(|(t, _)| *t).collect::<Vec<_>>() {
            self.forget(token);
        }
    }

    fn handle(&mut self, token: u64) {
        match self.sources.get_mut(&token) {
            None => {}
            Some(Source::Listener(id)) => {
                let id = *id;
                self.accept(id);
            }
            Some(Source::Pending(_)) => self.shake_hands(token),
            Some(Source::Subscriber { .. }) => self.receive_from_subscriber(token),
            Some(Source::Publisher { connection, .. }) => {
                let alive = connection.upgrade().is_some_and(|c| c.pump());
                if !alive {
                    self.end(token);
                }
            }
            Some(Source::Process(pid)) => {
                let pid = *pid;
                let of_pid = self.sources.iter().filter(|(_, s)| match s {
                    Source::Subscriber { pid: p, .. } | Source::Publisher { pid: p, .. } => *p == pid,
                    Source::Pending(p) => p.peer.pid == pid,
                    Source::Listener(_) | Source::Process(_) => false,
                });
                for token in of_pid.map(|(t, _)| *t).collect::<Vec<_>>() {
                    self.end(token);
                }
                // The remaining watch would stay readable forever.
                self.end_watch(pid);
            }
        }
    }

    /// Handles frames of a connected subscriber.
    fn receive_from_subscriber(&mut self, token: u64) {
        let Some(Source::Subscriber {
            publisher,
            subscriber,
            socket,
            ..
        }) = self.sources.get(&token)
        else {
            return;
        };
        let (socket, id) = (socket.clone(), *subscriber);
        let core = match self.endpoints.get(publisher).map(|e| &e.core) {
            Some(Core::Publisher(core)) => core.upgrade(),
            _ => None,
        };
        let mut buffer = [0; MAX_FRAME];
        for _ in 0..BURST {
            let alive = match (socket.receive(&mut buffer), &core) {
                (Ok(Received::Nothing), _) => return,
                (Ok(Received::Message(n, fds)), Some(core)) => {
                    fds.is_empty() && Frame::decode(&buffer[..n]).is_ok_and(|frame| core.hear(id, &frame))
                }
                _ => false,
            };
            if !alive {
                return self.end(token);
            }
        }
    }

    /// Ends a connection whose peer is gone or broke the protocol.
    fn end(&mut self, token: u64) {
        match self.forget(token) {
            Some(Source::Subscriber {
                publisher,
                subscriber,
                socket,
                ..
            }) => {
                socket.hang_up();
                if let Some(Endpoint {
                    core: Core::Publisher(core),
                    ..
                }) = self.endpoints.get(&publisher)
                    && let Some(core) = core.upgrade()
                {
                    core.detach(subscriber);
                }
                self.scan_soon(publisher);
            }
            Some(Source::Publisher {
                subscriber,
                connection,
                ..
            }) => {
                if let Some(connection) = connection.upgrade() {
                    connection.end();
                }
                if let Some(Endpoint {
                    core: Core::Subscriber(core),
                    ..
                }) = self.endpoints.get(&subscriber)
                    && let Some(core) = core.upgrade()
                {
                    core.publisher_ended();
                }
                self.scan_soon(subscriber);
            }
            Some(Source::Pending(pending)) => self.scan_soon(pending.endpoint),
            _ => {}
        }
    }

    fn accept(&mut self, id: u64) {
        for _ in 0..BURST {
            let Some(endpoint) = self.endpoints.get_mut(&id) else {
                return;
            };
            match endpoint.listener.accept() {
                Ok(Some(socket)) => {
                    crate::hooks::step("accepted");
                    let core = endpoint.core.clone();
                    if let Some(pending) = Pending::accepted(&self.shared, id, core, socket) {
                        self.add_pending(pending);
                    }
                }
                Ok(None) => return,
                Err(e) => {
                    // Most likely out of descriptors; the connection waits until some are free.
                    tracing::warn!("cannot accept a connection: {e}");
                    self.shared.epoll.remove(&endpoint.listener);
                    endpoint.resume_at = Some(Instant::now() + Duration::from_millis(100));
                    self.later.insert(id);
                    return;
                }
            }
        }
    }

    /// Stops watching a source, and returns it.
    fn forget(&mut self, token: u64) -> Option<Source> {
        let source = self.sources.remove(&token)?;
        match &source {
            Source::Pending(p) => {
                self.pending.remove(&(p.endpoint, token));
                p.socket().into_iter().for_each(|s| self.shared.epoll.remove(s));
            }
            Source::Subscriber { pid, socket, .. } => {
                self.shared.epoll.remove(&**socket);
                self.unwatch(*pid);
            }
            Source::Publisher { pid, connection, .. } => {
                if let Some(connection) = connection.upgrade() {
                    self.shared.epoll.remove(connection.socket());
                }
                self.unwatch(*pid);
            }
            Source::Listener(_) | Source::Process(_) => {}
        }
        Some(source)
    }

    fn next_deadline(&self) -> Option<Instant> {
        let pending = self.pending.iter().filter_map(|(_, t)| self.deadline(*t));
        self.later
            .iter()
            .filter_map(|id| self.endpoints.get(id))
            .flat_map(|e| [e.scan_at, e.resume_at])
            .flatten()
            .chain(pending)
            .min()
    }

    fn handle_deadlines(&mut self) {
        let now = Instant::now();
        let late = self.pending.iter().map(|(_, token)| *token);
        let late = late.filter(|token| self.deadline(*token).is_some_and(|at| at <= now));
        for token in late.collect::<Vec<_>>() {
            // A frame that arrived while this thread was busy, or was not scheduled, is not late: a publisher
            // that has accepted this subscriber relies on it.
            self.shake_hands(token);
            if let Some(Source::Pending(p)) = self.sources.get(&token) {
                tracing::debug!(
                    pid = p.peer.pid,
                    "a peer was silent for too long in the handshake"
                );
                self.end(token);
            }
        }
        let mut due = vec![];
        let endpoints = &mut self.endpoints;
        let epoll = &self.shared.epoll;
        self.later.retain(|id| {
            let Some(endpoint) = endpoints.get_mut(id) else {
                return false;
            };
            if endpoint.resume_at.take_if(|at| *at <= now).is_some() {
                let _ = epoll.add(&endpoint.listener, endpoint.listener_token);
            }
            if endpoint.scan_at.take_if(|at| *at <= now).is_some() {
                due.push(*id);
            }
            endpoint.resume_at.is_some() || endpoint.scan_at.is_some()
        });
        self.scan(&due);
    }

    fn token(&mut self) -> u64 {
        let token = self.next_token;
        self.next_token += 1;
        token
    }
}
