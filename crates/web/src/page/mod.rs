//! A page for operators: the live state of this host's links and bus, the priorities of topics, and recordings.
//!
//! The program contains the page's files; the page loads nothing from other sites. Everyone who may reach the server
//! gets the files, since they contain no secret. The page then opens two WebSockets, for which it needs a token if
//! tokens are set: one with the subprotocol `ropewalk.page.v1`, which sends the state of an [`Observer`], and one by
//! the [Foxglove protocol](crate::foxglove) for the messages of topics (decision 348).

mod files;
mod record;
mod session;

pub use record::{Progress, Recorder};

use crate::drive::{self, Drive, Fleet, SpeedLimits};
use crate::foxglove::{Foxglove, FoxgloveOptions, lock};
use crate::{Client, Handler, Page, Request, Response, Role, Site, Status};
use files::Files;
use observe::Observer;
use record::Recordings;
use ropewalk::Node;
use serde_json::{Value, json};
use session::{Session, SessionHandler};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// The subprotocol of the page.
const PROTOCOL: &str = "ropewalk.page.v1";
/// How long to wait for a picture before checking whether the server ends.
const PATIENCE: Duration = Duration::from_millis(500);

/// Options of the page.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DashboardOptions {
    /// Options for topics whose messages it shows.
    pub messages: FoxgloveOptions,
    /// A folder with the page's files, read at each request, to try changes of the page; `None`: those in the program.
    pub folder: Option<PathBuf>,
    /// Robots that clients with [`Role::Drive`] may drive; `None`: none.
    pub fleet: Option<Arc<dyn Fleet>>,
    /// Speed limits of the robots.
    pub limits: SpeedLimits,
    /// Records for clients with [`Role::Operate`]; `None`: the page cannot record.
    pub recorder: Option<Arc<dyn Recorder>>,
}

/// Serves the page; a [`Site`] for a [`Server`](crate::Server). Dropping it, after the server, ends its threads. Client
/// threads may keep it alive a moment longer than the server; [`Dashboard::end_recording`] does not wait for them.
#[derive(Debug)]
pub struct Dashboard {
    foxglove: Foxglove,
    files: Files,
    drive: Option<Drive>,
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) observer: Arc<Observer>,
    /// Whether this server drives robots.
    pub(crate) drives: bool,
    /// `None`: this server does not record.
    recordings: Option<Arc<Recordings>>,
    sessions: Mutex<Vec<Weak<Session>>>,
    stopped: AtomicBool,
}

impl Dashboard {
    /// Observes and serves the bus of `node`.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(node: Node, options: DashboardOptions) -> io::Result<Self> {
        let observer = Arc::new(Observer::start(node.clone())?);
        let recordings = options
            .recorder
            .map(|r| Arc::new(Recordings::new(r, observer.clone())));
        let shared = Arc::new(Shared {
            observer,
            drives: options.fleet.is_some(),
            recordings,
            sessions: Mutex::default(),
            stopped: AtomicBool::new(false),
        });
        let of_thread = shared.clone();
        let thread = std::thread::Builder::new()
            .name("page".into())
            .spawn(move || of_thread.tell_all())?;
        Ok(Dashboard {
            foxglove: Foxglove::start(node, options.messages)?,
            files: Files(options.folder),
            drive: match options.fleet {
                Some(fleet) => Some(Drive::start(fleet, options.limits)?),
                None => None,
            },
            shared,
            thread: Some(thread),
        })
    }

    /// Ends a recording and waits until its file is closed. No other recording can start afterwards.
    pub fn end_recording(&self) {
        if let Some(recordings) = &self.shared.recordings {
            recordings.end();
        }
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        self.end_recording();
        self.shared.stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Sends each new picture to all pages.
    fn tell_all(&self) {
        let mut number = 0;
        while !self.stopped.load(Ordering::Relaxed) {
            let Some((newer, picture)) = self.observer.wait(number, PATIENCE) else {
                continue;
            };
            number = newer;
            let mut sessions = lock(&self.sessions);
            sessions.retain(|session| session.strong_count() > 0);
            let all: Vec<_> = sessions.iter().filter_map(Weak::upgrade).collect();
            drop(sessions);
            for session in all {
                session.update(&picture);
            }
        }
    }
}

impl Site for Dashboard {
    fn page(&self, request: &Request) -> Response {
        let text = |status, line: &str| Response::new(status, Page::Text(line.into()));
        // The page asks for its role before it opens a WebSocket, because browsers do not report why a WebSocket was
        // refused.
        if request.path() == "/role" {
            let role = request.role().map_or("none", Role::name);
            return text(Status::Ok, role);
        }
        match self.files.get(request.path()) {
            Some((kind, content)) => Response::new(Status::Ok, Page::File(kind, content.into_owned()))
                .with_policy(policy(request.header("host").unwrap_or_default())),
            None => text(Status::NotFound, "there is no such page"),
        }
    }

    fn is_public(&self, request: &Request) -> bool {
        self.files.has(request.path())
    }

    fn protocol(&self, request: &Request, offered: &[String]) -> Result<Option<String>, Response> {
        if offered.iter().any(|name| name == PROTOCOL) {
            return Ok(Some(PROTOCOL.to_owned()));
        }
        if offered.iter().any(|name| name == drive::PROTOCOL) {
            return match (&self.drive, request.role()) {
                (None, _) => {
                    let line = "this server drives no robot: start it with --drive";
                    Err(Response::new(Status::NotFound, Page::Text(line.into())))
                }
                (Some(_), Some(Role::Drive)) => Ok(Some(drive::PROTOCOL.to_owned())),
                (Some(_), _) => {
                    let line = "driving needs a token with the role drive";
                    Err(Response::new(Status::Forbidden, Page::Text(line.into())))
                }
            };
        }
        self.foxglove.protocol(request, offered)
    }

    fn open(&self, client: Arc<Client>) -> Option<Box<dyn Handler>> {
        if client.protocol.as_deref() == Some(drive::PROTOCOL) {
            let opened = self.drive.as_ref()?.open(client);
            return opened
                .inspect_err(|error| tracing::warn!("driving: {error}"))
                .ok();
        }
        if client.protocol.as_deref() != Some(PROTOCOL) {
            return self.foxglove.open(client);
        }
        let session = Arc::new(Session::new(self.shared.clone(), client));
        session.begin();
        lock(&self.shared.sessions).push(Arc::downgrade(&session));
        Some(Box::new(SessionHandler(session)))
    }
}

/// The page's content security policy: run and show its own files, and connect to this server. Not every browser
/// accepts `'self'` for WebSockets of the same host.
fn policy(host: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || ".:-[]".contains(c);
    let sockets = match !host.is_empty() && host.chars().all(plain) {
        true => format!(" ws://{host} wss://{host}"),
        false => String::new(),
    };
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'{sockets}; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    )
}

/// A message to the page.
pub(crate) fn message(op: &str, fields: Value) -> Vec<u8> {
    let mut message = json!({ "op": op });
    if let (Some(message), Value::Object(fields)) = (message.as_object_mut(), fields) {
        message.extend(fields);
    }
    message.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_cannot_widen_the_policy() {
        assert!(policy("localhost:8766").contains(" ws://localhost:8766 "));
        for host in ["", "localhost:1; script-src *", "a b", "localhost:1'"] {
            let policy = policy(host);
            assert!(policy.contains("connect-src 'self';"), "{policy}");
        }
    }
}
