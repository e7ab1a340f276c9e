//! A link that ends in a program's own process, with no bus and no daemon between its messages and the carrier.
//!
//! It speaks the daemons' protocol, so the other end may be a daemon or another program, and it uses the same
//! configuration. It supports services, called and served; topics, sent and received, by name or pattern;
//! rules and namespaces of peers. Only daemons support relays, compression, filters, and operators' services.
//!
//! A sender sends in its own thread. The link's only thread delivers incoming messages, or else the thread
//! that waits for an answer does ([`Direct::receive`]). This saves one thread switch at each end compared
//! with any process in between.

mod engine;
mod event;
mod inbox;

use crate::config::Config;
use crate::engine::calls::Ticket;
use crate::engine::calls::header::LEN;
use crate::error::LinkError;
use bus::{ServiceType, TopicType};
use clock::{PollFd, PollFlags, Soon};
use engine::{Engine, Rest};
use event::Event;
pub use event::{Answered, Content};
use rustix::event::{EventfdFlags, eventfd};
use stats::Time;
use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// Receives the link's events, on the link's thread.
pub trait Local: Send + Sync {
    /// A peer calls a service of this program.
    fn request(&self, service: &str, content: Content<'_>, asked: Asked);
    /// A message arrived on a topic.
    fn message(&self, topic: &str, content: Content<'_>);
    /// A peer now offers a service, or no longer does.
    fn offered(&self, service: &str, offered: bool);
}

/// How long `stop` waits for a thread that receives in place of the link's own.
const LAST: Duration = Duration::from_millis(100);

/// The link. Dropping it ends it.
pub struct Direct {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    engine: Mutex<Engine>,
    /// Notified when the link's thread has to receive again.
    freed: Condvar,
    /// The carrier's socket, until the link ends and frees the address.
    socket: Mutex<Option<Arc<OwnedFd>>>,
    wake: OwnedFd,
    /// Spin times for [`Direct::receive`].
    soon: Soon,
    local: Arc<dyn Local>,
}

impl Direct {
    /// Starts a link with the carrier that the configuration names.
    ///
    /// # Errors
    /// [`LinkError`]: the carrier cannot be opened, the radio rejects a setting, or no thread can start.
    pub fn open(config: Config, local: Arc<dyn Local>) -> Result<Self, LinkError> {
        let system = LinkError::system;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let wake = wake.map_err(|e| system("make an eventfd")(e.into()))?;
        let ring = wake.try_clone().map_err(system("copy an eventfd"))?;
        let engine = Engine::open(config, move || notify(&ring))?;
        let socket = engine.readable().map(|fd| fd.try_clone_to_owned()).transpose();
        let socket = socket.map_err(system("copy a carrier's descriptor"))?;
        let shared = Arc::new(Shared {
            engine: Mutex::new(engine),
            freed: Condvar::new(),
            socket: Mutex::new(socket.map(Arc::new)),
            wake,
            soon: Soon::default(),
            local,
        });
        let running = shared.clone();
        let thread = std::thread::Builder::new().name("link-direct".into());
        let thread = thread.spawn(move || running.run());
        Ok(Direct {
            shared,
            thread: Mutex::new(Some(thread.map_err(system("start a thread"))?)),
        })
    }

    /// Offers a configured service to the peers that may call it.
    ///
    /// # Errors
    /// [`LinkError::Filter`], with an explanation, if the configuration has no such service to serve;
    /// [`LinkError::Topic`].
    pub fn serve(&self, kind: ServiceType) -> Result<(), LinkError> {
        self.shared.act(|engine, now| engine.serve(now, &kind))
    }

    /// Calls a service of a peer. Never blocks. `done` may run before this returns.
    pub fn call(&self, service: &str, control: &[u8], parts: &[&[u8]], timeout: Duration, done: Answered) {
        self.shared
            .act(|engine, now| engine.call(now, service, (control, parts), timeout, done));
    }

    /// Announces a topic to peers before its first message, which then need not wait for their
    /// acknowledgement. Never blocks.
    ///
    /// # Errors
    /// As [`Direct::publish`].
    pub fn announce(&self, kind: &TopicType) -> Result<(), LinkError> {
        self.shared.act(|engine, now| engine.announce(now, kind))
    }

    /// Sends a message to the peers that the configuration names for its topic. Never blocks. The link counts
    /// lost messages.
    ///
    /// # Errors
    /// [`LinkError::Topic`] if the radio accepts no further topic.
    pub fn publish(&self, kind: &TopicType, control: &[u8], parts: &[&[u8]]) -> Result<(), LinkError> {
        self.shared
            .act(|engine, now| engine.publish(now, kind, control, parts))
    }

    /// Receives in the calling thread, in place of the link's own, until `over` returns true or `timeout` has
    /// passed. `over` is checked after each event. A thread that waits for a message then needs no wake-up by
    /// another thread. Returns early if another thread already receives, or the link ends.
    pub fn receive(&self, timeout: Duration, over: &dyn Fn() -> bool) {
        self.shared.receive(timeout, over);
    }

    /// Makes a running [`Direct::receive`] check `over` at once.
    pub fn wake(&self) {
        notify(&self.shared.wake);
    }

    /// Returns whether a peer offers a service at present.
    pub fn is_offered(&self, service: &str) -> bool {
        self.shared.lock().is_offered(service)
    }

    /// Ends the link. Open calls fail as if their server died. Idempotent.
    pub fn stop(&self) {
        self.shared.act(|engine, _| engine.stop());
        notify(&self.shared.wake);
        self.shared.freed.notify_all();
        self.shared.socket().take();
        self.shared.wait_for_borrower();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let own = std::thread::current().id();
        if let Some(thread) = thread.filter(|t| t.thread().id() != own) {
            let _ = thread.join();
        }
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Direct")
    }
}

fn notify(wake: &OwnedFd) {
    // If the counter is full, a wake-up is already pending.
    let _ = rustix::io::write(wake, &1u64.to_ne_bytes());
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `what` and sends what is due at once, in the calling thread.
    fn act<T>(self: &Arc<Self>, what: impl FnOnce(&mut Engine, Time) -> T) -> T {
        let mut engine = self.lock();
        let value = what(&mut engine, clock::monotonic());
        engine.send();
        let (events, wakes) = (engine.events(), engine.is_due_earlier());
        drop(engine);
        if wakes {
            notify(&self.wake);
        }
        self.hand_up(events);
        value
    }

    fn hand_up(self: &Arc<Self>, events: Vec<Event>) {
        for event in events {
            match event {
                Event::Request(service, from, received, ticket) => {
                    let asked = Asked {
                        shared: Arc::downgrade(self),
                        from,
                        ticket,
                        is_over: false,
                    };
                    self.local.request(&service, Content::of(&received, LEN), asked);
                }
                Event::Message(topic, received) => self.local.message(&topic, Content::of(&received, 0)),
                Event::Offered(service, offered) => self.local.offered(&service, offered),
                Event::Answered(done, result) => match result {
                    Ok(received) => done(Ok(Content::of(&received, LEN))),
                    Err(error) => done(Err(error)),
                },
            }
        }
    }

    /// Receives until the link is stopped.
    fn run(self: &Arc<Self>) {
        let mut rang = false;
        loop {
            let mut engine = self.lock();
            while let Some(rest) = engine.rest(clock::monotonic()) {
                // The wake-up was for the borrowing thread.
                rang = false;
                engine = match rest {
                    Rest::Notified => self.freed.wait(engine).unwrap_or_else(PoisonError::into_inner),
                    Rest::For(time) => {
                        let waited = self.freed.wait_timeout(engine, time);
                        waited.unwrap_or_else(PoisonError::into_inner).0
                    }
                };
            }
            if std::mem::take(&mut rang) {
                self.clear();
            }
            match self.turn(engine) {
                Turned::Over => {
                    self.socket().take();
                    return;
                }
                Turned::Busy => {}
                Turned::Idle(due, writable) => rang = self.sleep(due, writable),
            }
        }
    }

    /// Does the work of [`Shared::run`] until `over`, while that thread rests.
    fn receive(self: &Arc<Self>, timeout: Duration, over: &dyn Fn() -> bool) {
        let begun = clock::monotonic();
        let (until, awake) = (begun + timeout, self.soon.awake_until(begun));
        if !self.lock().borrow() {
            return;
        }
        // Dropped even if a callback panics.
        let _borrowed = Borrowed(self);
        let mut rang = false;
        loop {
            let now = clock::monotonic();
            if over() {
                return self.soon.came(now.since(begun));
            }
            if now >= until {
                return;
            }
            if std::mem::take(&mut rang) {
                self.clear();
            }
            match self.turn(self.lock()) {
                Turned::Over => return,
                Turned::Busy => {}
                Turned::Idle(..) if now < awake => std::hint::spin_loop(),
                Turned::Idle(due, writable) => {
                    let due = due.map_or(until, |due| due.min(until));
                    rang = self.sleep(Some(due), writable);
                }
            }
        }
    }

    /// Receives datagrams and delivers the resulting events.
    fn turn(self: &Arc<Self>, mut engine: MutexGuard<'_, Engine>) -> Turned {
        engine.turn();
        let events = engine.events();
        let next = engine.sleep(!events.is_empty());
        drop(engine);
        let found = !events.is_empty();
        self.hand_up(events);
        match next {
            None => Turned::Over,
            Some(_) if found => Turned::Busy,
            Some((due, writable)) => Turned::Idle(due, writable),
        }
    }

    /// Sleeps until something happens. Returns whether there was a wake-up, which [`Shared::clear`] resets.
    fn sleep(&self, due: Option<Time>, writable: bool) -> bool {
        let flags = match writable {
            true => PollFlags::IN | PollFlags::OUT,
            false => PollFlags::IN,
        };
        let wake = PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN);
        let socket = self.socket().clone();
        let socket = socket.iter();
        let socket = socket.map(|s| PollFd::from_borrowed_fd(s.as_fd(), flags));
        let mut fds: Vec<PollFd<'_>> = std::iter::once(wake).chain(socket).collect();
        if clock::wait(&mut fds, due, clock::SPIN).is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
        !fds[0].revents().is_empty()
    }

    fn socket(&self) -> MutexGuard<'_, Option<Arc<OwnedFd>>> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until another receiving thread has noticed the end. Does not wait for a thread that is in a
    /// callback.
    fn wait_for_borrower(&self) {
        let waits = |e: &mut Engine| e.is_lent();
        let waited = self.freed.wait_timeout_while(self.lock(), LAST, waits);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn clear(&self) {
        let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
    }
}

/// The outcome of a turn.
enum Turned {
    Over,
    Busy,
    /// Nothing happened: when something is due next, and whether to wait for the carrier to accept more.
    Idle(Option<Time>, bool),
}

/// The receiver role, borrowed by a waiting thread. Dropping it returns the role to the link's thread.
struct Borrowed<'a>(&'a Shared);

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        if self.0.lock().give_back() {
            self.0.freed.notify_all();
        }
    }
}

/// A call to answer. Dropping it unanswered rejects the call.
pub struct Asked {
    shared: Weak<Shared>,
    from: Arc<str>,
    ticket: Ticket,
    is_over: bool,
}

impl Asked {
    /// The calling host, as the link knows it: by its certificate, or on carriers without keys by its
    /// address.
    pub fn from(&self) -> &Arc<str> {
        &self.from
    }

    /// Answers. Never blocks.
    ///
    /// # Errors
    /// Why the reply is lost: the caller no longer waits or is gone, or the reply is too large for the link.
    pub fn respond(mut self, control: &[u8], parts: &[&[u8]]) -> Result<(), stats::DropReason> {
        self.is_over = true;
        let shared = self.shared.upgrade().ok_or(stats::DropReason::NoPeer)?;
        shared.act(|engine, now| engine.respond(now, self.ticket, control, parts))
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade().filter(|_| !self.is_over) {
            // If the rejection fails, the caller waits for its timeout.
            shared.act(|engine, now| engine.reject(now, self.ticket));
        }
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Asked").field(&self.ticket).finish()
    }
}
