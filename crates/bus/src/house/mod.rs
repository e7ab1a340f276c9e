//! Housekeeping: one thread per bus that accepts, shakes hands, reserves memory ahead and notices the dead.
//!
//! It never waits for one peer: every socket is non-blocking, and every handshake has a deadline. Publishing and
//! taking never wait for it.

mod handshake;

use crate::config::BusConfig;
use crate::connection::Connection;
use crate::folder::{ByTopic, Folder};
use crate::frame::{Frame, MAX_FRAME, Role};
use crate::publisher::PubCore;
use crate::subscriber::SubCore;
use crate::sys::doorbell::Doorbell;
use crate::sys::epoll::Epoll;
use crate::sys::fork::Birth;
use crate::sys::process::death_watch;
use crate::sys::socket::{Listener, Received, Socket};
use handshake::{Outcome, Pending};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// What all parts of one bus share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: BusConfig,
    pub(crate) folder: Folder,
    pub(crate) birth: Birth,
    pub(crate) epoll: Epoll,
    commands: Mutex<Vec<Command>>,
    /// Doorbells of other processes, by the pipe's identity: several publishers ring one through one descriptor.
    doorbells: Mutex<BTreeMap<u64, Weak<Doorbell>>>,
    stop: AtomicBool,
}

/// What the housekeeping thread is asked to do.
#[derive(Debug)]
pub(crate) enum Command {
    /// Accept for an endpoint, and look for its peers.
    Add(u64, Listener, Core),
    /// The endpoint is gone.
    Remove(u64),
    /// A connection of a subscriber is gone.
    Forget(u64),
    /// Reserve memory ahead.
    Grow(Weak<PubCore>),
}

/// An endpoint of this process.
#[derive(Clone, Debug)]
pub(crate) enum Core {
    Publisher(Weak<PubCore>),
    Subscriber(Weak<SubCore>),
}

impl Shared {
    pub(crate) fn new(config: BusConfig, folder: Folder) -> io::Result<Self> {
        Ok(Shared {
            config,
            folder,
            birth: Birth::here()?,
            epoll: Epoll::new()?,
            commands: Mutex::default(),
            doorbells: Mutex::default(),
            stop: AtomicBool::new(false),
        })
    }

    /// Asks the housekeeping thread; does not wait.
    pub(crate) fn command(&self, command: Command) {
        self.commands
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(command);
        self.epoll.wake();
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.epoll.wake();
    }

    fn doorbell(&self, fds: &[OwnedFd]) -> io::Result<Arc<Doorbell>> {
        let mut bells = self.doorbells.lock().unwrap_or_else(PoisonError::into_inner);
        bells.retain(|_, bell| bell.strong_count() > 0);
        let fresh = Doorbell::open(fds)?;
        let identity = Doorbell::identity(fds)?;
        Ok(match bells.get(&identity).and_then(Weak::upgrade) {
            Some(bell) => bell,
            None => {
                let bell = Arc::new(fresh);
                bells.insert(identity, Arc::downgrade(&bell));
                bell
            }
        })
    }
}

/// The longest time between attempts to reach a peer whose socket exists but does not answer.
const MAX_BACKOFF: Duration = Duration::from_secs(5);
const MIN_BACKOFF: Duration = Duration::from_millis(50);
/// Handshakes in progress for one endpoint; the oldest goes first.
const MAX_PENDING: usize = 64;
/// Connections accepted in a row before others have their turn.
const BURST: usize = 16;

#[derive(Debug)]
struct Endpoint {
    listener: Listener,
    listener_token: u64,
    core: Core,
    /// When to look for peers again.
    scan_at: Option<Instant>,
    backoff: Duration,
    /// When to accept again, after running out of descriptors.
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

#[derive(Debug)]
struct Watch {
    fd: OwnedFd,
    token: u64,
    users: usize,
}

/// The housekeeping thread's state.
#[derive(Debug)]
pub(crate) struct House {
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

impl House {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        House {
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

    /// New endpoints, whose peers are to be looked for, go to `fresh`.
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
            // It lives as long as messages of it, and forgets itself.
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
            Some(Source::Subscriber { .. }) => self.hear_subscriber(token),
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
                // Whatever is left of the watch would be readable for ever.
                self.end_watch(pid);
            }
        }
    }

    /// Frames of a connected subscriber.
    fn hear_subscriber(&mut self, token: u64) {
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

    /// The peer of a connection is gone, or broke the rules.
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
                    // Out of descriptors, most likely; the connection waits until there are some.
                    tracing::warn!("cannot accept a connection: {e}");
                    self.shared.epoll.remove(&endpoint.listener);
                    endpoint.resume_at = Some(Instant::now() + Duration::from_millis(100));
                    self.later.insert(id);
                    return;
                }
            }
        }
    }

    /// Connects to all peers that endpoints do not know yet. Reads the folder once for all of them: when many
    /// start together, reading it for each would take most of their time.
    fn scan(&mut self, ids: &[u64]) {
        if ids.is_empty() {
            return;
        }
        match self.shared.folder.by_topic() {
            Ok(names) => ids.iter().for_each(|id| self.connect_to_peers(*id, &names)),
            Err(e) => {
                tracing::warn!("cannot read the runtime folder: {e}");
                ids.iter().for_each(|id| self.scan_soon(*id));
            }
        }
    }

    fn connect_to_peers(&mut self, id: u64, names: &ByTopic) {
        let Some(endpoint) = self.endpoints.get_mut(&id) else {
            return;
        };
        endpoint.scan_at = None;
        let core = endpoint.core.clone();
        let (topic, role) = match &core {
            Core::Publisher(core) => (core.upgrade().map(|c| c.topic.topic.clone()), Role::Subscriber),
            Core::Subscriber(core) => (core.upgrade().map(|c| c.topic.topic.clone()), Role::Publisher),
        };
        let Some(topic) = topic else { return };
        for (name, path) in self.shared.folder.peers(names, &topic, role) {
            let known = self
                .endpoints
                .get(&id)
                .is_none_or(|e| e.mismatched.contains(&name.id))
                || core.is_connected(name.id)
                || self.pending_of(id).any(|(_, p)| p.peer_id == Some(name.id));
            if known {
                continue;
            }
            match self.shared.folder.connect(path) {
                Ok(socket) => {
                    crate::hooks::step("connected");
                    match Pending::connected(&self.shared, id, core.clone(), socket, name.id) {
                        Ok(pending) => self.add_pending(pending),
                        Err(true) => self.mismatch(id, name.id),
                        Err(false) => self.scan_soon(id),
                    }
                }
                // Dead, and removed; or gone since the scan.
                Err(e)
                    if matches!(
                        e.kind(),
                        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound
                    ) => {}
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                    let reason = format!("not permitted to connect to {}: {e}", path.display());
                    core.refuse(crate::topic::Refusal {
                        pid: name.pid as i32,
                        uid: u32::MAX,
                        reason,
                    });
                    self.mismatch(id, name.id);
                }
                // Its queue of connections is full, or we are out of descriptors.
                Err(_) => self.scan_soon(id),
            }
        }
    }

    fn scan_soon(&mut self, id: u64) {
        if let Some(endpoint) = self.endpoints.get_mut(&id)
            && endpoint.scan_at.is_none()
        {
            endpoint.scan_at = Some(Instant::now() + endpoint.backoff);
            endpoint.backoff = (endpoint.backoff * 2).min(MAX_BACKOFF);
            self.later.insert(id);
        }
    }

    fn mismatch(&mut self, id: u64, peer: u64) {
        if let Some(endpoint) = self.endpoints.get_mut(&id) {
            if endpoint.mismatched.len() >= 1024 {
                endpoint.mismatched.clear();
            }
            endpoint.mismatched.insert(peer);
        }
    }

    fn add_pending(&mut self, pending: Pending) {
        let endpoint = pending.endpoint;
        let count = self.pending_of(endpoint).count();
        let oldest = self.pending_of(endpoint).map(|(token, _)| token).next();
        if let Some(oldest) = oldest.filter(|_| count >= MAX_PENDING) {
            self.forget(oldest);
        }
        let token = self.token();
        if pending
            .socket()
            .is_some_and(|s| self.shared.epoll.add(s, token).is_ok())
        {
            self.sources.insert(token, Source::Pending(Box::new(pending)));
            self.pending.insert((endpoint, token));
        }
    }

    /// The handshakes in progress of an endpoint, oldest first.
    fn pending_of(&self, endpoint: u64) -> impl Iterator<Item = (u64, &Pending)> {
        let tokens = self.pending.range((endpoint, 0)..=(endpoint, u64::MAX));
        tokens.filter_map(|(_, token)| match self.sources.get(token) {
            Some(Source::Pending(p)) => Some((*token, &**p)),
            _ => None,
        })
    }

    fn shake_hands(&mut self, token: u64) {
        let Some(Source::Pending(pending)) = self.sources.get(&token) else {
            return;
        };
        let endpoint = pending.endpoint;
        // Another handshake with the same subscriber may be further on.
        let rivals: Vec<u64> = self
            .pending_of(endpoint)
            .filter(|(t, p)| *t != token && p.awaits_attach())
            .filter_map(|(_, p)| p.peer_id)
            .collect();
        let Some(Source::Pending(pending)) = self.sources.get_mut(&token) else {
            return;
        };
        match pending.advance(&self.shared, &rivals) {
            Outcome::Wait => {}
            Outcome::Done => drop(self.forget(token)),
            Outcome::Failed => self.end(token),
            Outcome::Never(peer) => {
                self.forget(token);
                if let Some(peer) = peer {
                    self.mismatch(endpoint, peer);
                }
            }
            Outcome::Subscriber {
                subscriber,
                peer,
                socket,
            } => {
                self.replace(
                    token,
                    Source::Subscriber {
                        publisher: endpoint,
                        subscriber,
                        pid: peer,
                        socket,
                    },
                );
                self.watch(token, peer);
                self.reset_backoff(endpoint);
            }
            Outcome::Publisher { connection, peer } => {
                connection.token.store(token, Ordering::Release);
                let core = match self.endpoints.get(&endpoint).map(|e| &e.core) {
                    Some(Core::Subscriber(core)) => core.upgrade(),
                    _ => None,
                };
                let source = Source::Publisher {
                    subscriber: endpoint,
                    pid: peer,
                    connection: Arc::downgrade(&connection),
                };
                self.replace(token, source);
                self.watch(token, peer);
                match core {
                    Some(core) => core.add(connection),
                    None => drop(connection),
                }
                self.reset_backoff(endpoint);
                self.handle(token);
            }
        }
    }

    /// The socket of a handshake stays in the set when the handshake becomes a connection.
    fn replace(&mut self, token: u64, source: Source) {
        if let Some(Source::Pending(p)) = self.sources.insert(token, source) {
            self.pending.remove(&(p.endpoint, token));
        }
    }

    fn reset_backoff(&mut self, id: u64) {
        if let Some(endpoint) = self.endpoints.get_mut(&id) {
            endpoint.backoff = MIN_BACKOFF;
        }
    }

    /// Watches for the end of the process behind a connection.
    fn watch(&mut self, token: u64, pid: i32) {
        if let Some(watch) = self.processes.get_mut(&pid) {
            watch.users += 1;
            return;
        }
        let Some(fd) = death_watch(pid) else { return };
        let watch_token = self.token();
        if self.shared.epoll.add(&fd, watch_token).is_ok() {
            self.sources.insert(watch_token, Source::Process(pid));
            self.processes.insert(
                pid,
                Watch {
                    fd,
                    token: watch_token,
                    users: 1,
                },
            );
        }
        debug_assert!(self.sources.contains_key(&token));
    }

    fn unwatch(&mut self, pid: i32) {
        if let Some(watch) = self.processes.get_mut(&pid) {
            watch.users -= 1;
            if watch.users == 0 {
                self.end_watch(pid);
            }
        }
    }

    fn end_watch(&mut self, pid: i32) {
        if let Some(watch) = self.processes.remove(&pid) {
            self.sources.remove(&watch.token);
            // A forked child may hold the descriptor too, so that closing it would leave it in the set.
            self.shared.epoll.remove(&watch.fd);
        }
    }

    /// Watches a source no longer, and gives what it was.
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

    /// When a handshake must be over.
    fn deadline(&self, token: u64) -> Option<Instant> {
        match self.sources.get(&token) {
            Some(Source::Pending(p)) => Some(p.deadline),
            _ => None,
        }
    }

    fn handle_deadlines(&mut self) {
        let now = Instant::now();
        let late = self.pending.iter().map(|(_, token)| *token);
        let late = late.filter(|token| self.deadline(*token).is_some_and(|at| at <= now));
        for token in late.collect::<Vec<_>>() {
            // What came while this thread was busy, or had no processor, is not late: a publisher that has let us in
            // counts on us.
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

impl Core {
    /// Whether the endpoint is connected to `peer`, or gone itself.
    fn is_connected(&self, peer: u64) -> bool {
        match self {
            Core::Publisher(core) => core.upgrade().is_none_or(|c| c.is_attached(peer)),
            Core::Subscriber(core) => core.upgrade().is_none_or(|c| c.is_connected(peer)),
        }
    }

    fn refuse(&self, refusal: crate::topic::Refusal) {
        match self {
            Core::Publisher(core) => core
                .upgrade()
                .into_iter()
                .for_each(|c| c.refusals.add(refusal.clone())),
            Core::Subscriber(core) => core
                .upgrade()
                .into_iter()
                .for_each(|c| c.refusals.add(refusal.clone())),
        }
    }
}
