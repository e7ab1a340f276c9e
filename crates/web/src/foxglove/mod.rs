//! The Foxglove WebSocket protocol: topics, services and settings of links for Foxglove, Lichtblick and PlotJuggler.
//!
//! The server accepts both names of the protocol, `foxglove.websocket.v1` and `foxglove.sdk.v1`, which are one protocol
//! (Lichtblick, pull request 819). A topic is taken from the bus only while a client watches it. Time and playback are
//! not offered: messages carry the time at which they were published.

mod assets;
mod body;
mod calls;
pub(crate) mod message;
mod options;
mod parameters;
mod publish;
mod session;
mod smaller;
mod video;
mod world;

pub use options::{Dialect, FoxgloveOptions};

use crate::{Client, Handler, Page, Request, Response, Site, Status};
use ropewalk::{Flavour, Node};
use session::Session;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use world::World;

/// The names of the protocol, the newest first.
const PROTOCOLS: [&str; 2] = ["foxglove.sdk.v1", "foxglove.websocket.v1"];
/// How often to look for topics and services.
const INTERVAL: Duration = Duration::from_millis(500);

/// Serves the bus by the Foxglove protocol; a [`Site`] for a [`Server`](crate::Server).
///
/// Dropping it, after the server, ends its thread.
#[derive(Debug)]
pub struct Foxglove {
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) node: Node,
    pub(crate) options: FoxgloveOptions,
    pub(crate) session_id: String,
    world: Mutex<Arc<World>>,
    sessions: Mutex<Vec<Weak<Session>>>,
    stopped: AtomicBool,
}

impl Foxglove {
    /// Serves the bus of `node`; looks for topics in a thread of its own.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(node: Node, options: FoxgloveOptions) -> std::io::Result<Self> {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let shared = Arc::new(Shared {
            node,
            options,
            session_id: format!("{:x}", since.unwrap_or_default().as_nanos()),
            world: Mutex::default(),
            sessions: Mutex::default(),
            stopped: AtomicBool::new(false),
        });
        shared.look();
        let of_thread = shared.clone();
        let thread = std::thread::Builder::new()
            .name("foxglove".into())
            .spawn(move || {
                while !of_thread.stopped.load(Ordering::Relaxed) {
                    std::thread::park_timeout(INTERVAL);
                    of_thread.look();
                }
            })?;
        Ok(Foxglove {
            shared,
            thread: Some(thread),
        })
    }
}

impl Drop for Foxglove {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

impl Shared {
    pub(crate) fn world(&self) -> Arc<World> {
        lock(&self.world).clone()
    }

    pub(crate) fn sessions(&self) -> Vec<Arc<Session>> {
        let mut sessions = lock(&self.sessions);
        sessions.retain(|session| session.strong_count() > 0);
        sessions.iter().filter_map(Weak::upgrade).collect()
    }

    /// Reads the bus and sends the changes to all clients.
    fn look(&self) {
        match self.world().look(&self.node, |topic| self.options.shows(topic)) {
            Ok(world) => *lock(&self.world) = Arc::new(world),
            Err(error) => tracing::warn!(%error, "cannot read the bus"),
        }
        for session in self.sessions() {
            session.update();
        }
    }
}

impl Site for Foxglove {
    fn page(&self, request: &Request) -> Response {
        let host = request.header("host").unwrap_or_default();
        let line = format!(
            "This is a Foxglove server. Open ws://{host} in Foxglove, Lichtblick or PlotJuggler (docs/guide/foxglove.md)."
        );
        Response::new(Status::UpgradeRequired, Page::Text(line))
    }

    fn protocol(&self, _: &Request, offered: &[String]) -> Result<Option<String>, Response> {
        let known = PROTOCOLS.iter().find(|name| offered.iter().any(|o| o == *name));
        known.map(|name| Some((*name).to_owned())).ok_or_else(|| {
            let line = format!("offer one of the subprotocols {}", PROTOCOLS.join(", "));
            Response::new(Status::BadRequest, Page::Text(line))
        })
    }

    fn open(&self, client: Arc<Client>) -> Option<Box<dyn Handler>> {
        let flavour = match self.shared.options.dialect {
            Dialect::Ros1 => Flavour::Ros1,
            Dialect::Ros2 => Flavour::Ros2,
            // PlotJuggler offers the new name only, is no page, and reads CDR only.
            Dialect::Auto if client.protocol.as_deref() == Some(PROTOCOLS[0]) && !client.is_page => {
                Flavour::Ros2
            }
            Dialect::Auto => Flavour::Ros1,
        };
        let session = Arc::new(Session::new(self.shared.clone(), client, flavour));
        session.begin();
        lock(&self.shared.sessions).push(Arc::downgrade(&session));
        Some(Box::new(session::SessionHandler(session)))
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
