//! Runs a participant over its sockets in a thread of its own.

use super::queue::Queues;
use super::sender::Sender;
use super::transport::{Transport, TransportConfig, TransportError};
use crate::config::{Config, ConfigError, EndpointConfig, EndpointError, WriteError};
use crate::event::Event;
use crate::participant::{Counters, Participant, WriteOptions};
use crate::wire::ids::{EntityId, Guid, GuidPrefix, SampleIdentity, VendorId};
use core::time::Duration;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// Maximum number of datagrams read from a socket before the others get their turn.
const AT_ONCE: usize = 64;
/// Maximum number of datagrams sent before the sockets are read again: a receive buffer fills within a millisecond.
const SENT_AT_ONCE: usize = 4;
/// Bytes per second to each address of this host, if the kernel does not report how full its buffer is.
const BLIND_RATE: u64 = 60_000_000;
/// Runs a participant until this is dropped; then the participant leaves its domain.
#[derive(Debug)]
pub struct Node {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

/// Controls the participant of a [`Node`], from any thread.
#[derive(Clone, Debug)]
pub struct Handle {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    participant: Mutex<Participant>,
    happened: Condvar,
    wake: OwnedFd,
    stop: AtomicBool,
    start: Instant,
}

/// Why a node cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// The settings of the participant are refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The sockets cannot be opened.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The system refused something.
    #[error("cannot start a thread for a participant: {0}")]
    Io(#[from] io::Error),
}

impl Node {
    /// Opens the sockets and runs a participant. `set` changes its settings before it starts.
    ///
    /// # Errors
    ///
    /// If the sockets or the thread cannot be created, or the settings are refused.
    pub fn open(transport: TransportConfig, set: impl FnOnce(&mut Config)) -> Result<Self, NodeError> {
        let transport = Transport::open(transport)?;
        let mut config = Config::new(random_prefix(), 0);
        transport.configure(&mut config);
        let queues = Queues::new(transport.port());
        if queues.is_none() {
            // Without a view of the receivers' buffers, send slowly enough that a receiver may go without a processor
            // for some milliseconds.
            config.loopback.rate = BLIND_RATE;
        }
        set(&mut config);
        let reach = config.reach.clone();
        let shared = Arc::new(Shared {
            participant: Mutex::new(Participant::new(config)?),
            happened: Condvar::new(),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from)?,
            stop: AtomicBool::new(false),
            start: Instant::now(),
        });
        let handle = Handle { shared };
        let runs = handle.clone();
        let mut sender = Sender::new(transport, queues, reach);
        let thread = std::thread::Builder::new()
            .name("rtps".to_owned())
            .spawn(move || {
                clock::nice_thread(clock::FORWARDING_NICE);
                runs.shared.run(&mut sender);
            })?;
        Ok(Node {
            handle,
            thread: Some(thread),
        })
    }

    /// Returns a handle that controls the participant.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

impl core::ops::Deref for Node {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.handle.shared.stop.store(true, Relaxed);
        self.handle.shared.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Handle {
    fn act<T>(&self, act: impl FnOnce(&mut Participant, Duration) -> T) -> T {
        let now = self.shared.now();
        let out = act(&mut self.shared.lock(), now);
        self.shared.ring();
        out
    }

    /// The participant's GUID.
    pub fn guid(&self) -> Guid {
        self.shared.lock().guid()
    }

    /// As [`Participant::add_writer`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn add_writer(&self, config: EndpointConfig) -> Result<EntityId, EndpointError> {
        self.act(|p, now| p.add_writer(now, config))
    }

    /// As [`Participant::add_reader`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn add_reader(&self, config: EndpointConfig) -> Result<EntityId, EndpointError> {
        self.act(|p, now| p.add_reader(now, config))
    }

    /// As [`Participant::remove`].
    pub fn remove(&self, local: EntityId) {
        self.act(|p, now| p.remove(now, local));
    }

    /// As [`Participant::write`]. It does not block.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn write(
        &self,
        writer: EntityId,
        payload: impl Into<Arc<[u8]>>,
        options: WriteOptions,
    ) -> Result<SampleIdentity, WriteError> {
        let payload = payload.into();
        self.act(|p, now| p.write(now, writer, payload, options))
    }

    /// As [`Participant::ready`].
    pub fn ready(&self, writer: EntityId) -> bool {
        self.shared.lock().ready(writer)
    }

    /// As [`Participant::matched`].
    pub fn matched(&self, local: EntityId) -> Vec<Guid> {
        self.shared.lock().matched(local)
    }

    /// As [`Participant::mutual`].
    pub fn mutual(&self, local: EntityId) -> Vec<Guid> {
        self.shared.lock().mutual(local)
    }

    /// Returns the next event; waits for it at most `timeout`. Events that are not taken stay charged to the
    /// participant that caused them, which eventually cannot send anything further.
    pub fn next_event(&self, timeout: Duration) -> Option<Event> {
        let participant = self.shared.lock();
        let waits = |p: &mut Participant| !p.has_events();
        let waited = self
            .shared
            .happened
            .wait_timeout_while(participant, timeout, waits);
        let (mut participant, _) = waited.unwrap_or_else(PoisonError::into_inner);
        participant.poll_event()
    }

    /// As [`Participant::counters`].
    pub fn counters(&self) -> Counters {
        self.shared.lock().counters()
    }

    /// As [`Participant::held`].
    pub fn held(&self) -> usize {
        self.shared.lock().held()
    }
}

impl Shared {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, Participant> {
        self.participant.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the thread. If the counter is full, the thread is awake anyway.
    fn ring(&self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    fn run(&self, sender: &mut Sender) {
        let mut buffer = vec![0; 65_536];
        while !self.stop.load(Relaxed) {
            self.receive(&sender.transport, &mut buffer);
            self.transmit(sender);
            let timeout = self.lock().next_timeout();
            let timeout = timeout.map(|at| at.saturating_sub(self.now()));
            self.wait(&sender.transport, timeout);
        }
        let now = self.now();
        self.lock().leave(now);
        while self.transmit(sender) {}
    }

    fn receive(&self, transport: &Transport, buffer: &mut [u8]) {
        for socket in transport.sockets() {
            for _ in 0..AT_ONCE {
                let Some((length, from)) = receive(socket, buffer) else {
                    break;
                };
                let Some(datagram) = buffer.get(..length) else {
                    break;
                };
                let now = self.now();
                let mut participant = self.lock();
                if let Err(error) = participant.handle(now, datagram, from) {
                    tracing::trace!(%from, %error, "cannot read a datagram");
                }
                if participant.has_events() {
                    self.happened.notify_one();
                }
            }
        }
    }

    /// Sends some of what is queued. Returns `true` if there may be more.
    fn transmit(&self, sender: &mut Sender) -> bool {
        let mut more = true;
        for _ in 0..SENT_AT_ONCE {
            let now = self.now();
            let to = self.lock().poll_transmit(now, &mut sender.datagram);
            let Some(to) = to else {
                more = false;
                break;
            };
            if let Err(error) = sender.send(to) {
                tracing::trace!(%to, %error, "cannot send a datagram");
            }
            if let Some(pause) = sender.pause(to) {
                let until = self.now() + pause;
                self.lock().pause(to, until);
            }
        }
        if self.lock().has_events() {
            self.happened.notify_one();
        }
        more
    }

    /// Waits for a datagram, a wake-up or the timeout.
    fn wait(&self, transport: &Transport, timeout: Option<Duration>) {
        let timeout = timeout.map(|t| Timespec {
            tv_sec: t.as_secs().min(3600) as i64,
            tv_nsec: t.subsec_nanos().into(),
        });
        let sockets = transport.sockets().map(|s| PollFd::new(s, PollFlags::IN));
        let mut all: Vec<_> = sockets.chain([PollFd::new(&self.wake, PollFlags::IN)]).collect();
        if poll(&mut all, timeout.as_ref()).is_ok() && all.last().is_some_and(|w| !w.revents().is_empty()) {
            let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        }
    }
}

/// Reads a datagram, if there is one.
fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> Option<(usize, SocketAddrV4)> {
    match socket.recv_from(buffer) {
        Ok((length, SocketAddr::V4(from))) => Some((length, from)),
        _ => None,
    }
}

/// Makes a unique prefix that is hard to guess: the vendor, then numbers from the system's random source.
fn random_prefix() -> GuidPrefix {
    let random = || {
        // Its keys are random, and differ from instance to instance.
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        hasher.write_u128(Instant::now().elapsed().as_nanos());
        hasher.finish().to_ne_bytes()
    };
    let mut out = GuidPrefix::default();
    let VendorId(vendor) = VendorId::OURS;
    let bytes = vendor.into_iter().chain(random()).chain(random());
    out.0.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    out
}
