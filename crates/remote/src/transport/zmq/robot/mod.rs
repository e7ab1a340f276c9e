//! The robot's end: its interface, and the state that it shares with its thread.

mod list;
mod serve;

use self::list::List;
use self::serve::{Ends, Loop, Trim};
use super::address::Address;
use super::doors::Doors;
use super::keys::{AllowedKeys, KeyPair};
use super::listeners::{Listeners, Peer};
use super::order::Orders;
use super::publisher::Publisher;
use super::wake::Wake;
use super::zap::Gate;
use super::{Limits, Places, check_keys, tune, wake};
use crate::sync::lock;
use crate::transport::{self, RobotEnd, RobotSink, Stream, TransportError, Wire};
use ::zmq::{Context, ROUTER};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

/// Maximum unanswered requests at a time, of all controllers.
pub const MAX_UNANSWERED: usize = 1024;

/// Options of a robot's end over ZeroMQ; see [`ZmqRobot::own`] and [`ZmqRobot::plain_v6`].
#[derive(Clone, Debug)]
pub struct ZmqRobotOptions {
    wire: Wire,
    requests: String,
    telemetry: String,
    curve: Option<(KeyPair, AllowedKeys)>,
    list: Option<PathBuf>,
    insecure: bool,
    waiting_bytes: usize,
}

impl ZmqRobotOptions {
    /// Binds requests and telemetry of version 6 to these addresses, instead of to this host only.
    #[must_use]
    pub fn bind_v6(mut self, requests: &str, telemetry: &str) -> Self {
        (self.requests, self.telemetry) = (requests.to_owned(), telemetry.to_owned());
        self
    }

    /// Encrypts, proves the robot to controllers by `key`, and accepts only these controllers. Only Ropewalk's own wire
    /// supports this.
    #[must_use]
    pub fn curve(mut self, key: KeyPair, allowed: AllowedKeys) -> Self {
        self.curve = Some((key, allowed));
        self
    }

    /// As [`curve`](Self::curve), with the list of controllers in a file ([`AllowedKeys::read`]), which is read again
    /// when it changes. A controller that is removed from the list is cut off within half a second, and what it moves
    /// stops. If the changed file cannot be read, the previous list still applies, and the error is logged.
    ///
    /// # Errors
    /// [`TransportError::Setup`], as for [`AllowedKeys::read`].
    pub fn curve_file(mut self, key: KeyPair, allowed: &Path) -> Result<Self, TransportError> {
        self.curve = Some((key, AllowedKeys::read(allowed)?));
        self.list = Some(allowed.to_owned());
        Ok(self)
    }

    /// Lets anyone who can reach an address that is open to other hosts listen to the robot and command it.
    #[must_use]
    pub fn insecure(mut self) -> Self {
        self.insecure = true;
        self
    }

    /// Maximum bytes of telemetry that wait for listeners slower than the robot, for all of them together (64 MiB
    /// unless set). Each listener has an equal share, and always room for one frame of any length. On Ropewalk's own
    /// wire, up to 8 MiB per listener are in transit in addition.
    #[must_use]
    pub fn waiting_bytes(mut self, most: usize) -> Self {
        self.waiting_bytes = most;
        self
    }

    /// Checks all options; nothing is bound before [`RobotEnd::start`].
    ///
    /// # Errors
    /// [`TransportError::Setup`], with how to fix it: a malformed address, one that other hosts can reach without CURVE
    /// or [`insecure`](Self::insecure), no CURVE in the ZeroMQ library.
    pub fn open(self) -> Result<ZmqRobot, TransportError> {
        let places = Places::parse(self.wire, &self.requests, &self.telemetry)?;
        if self.curve.is_some() {
            check_keys(self.wire)?;
        } else if let Some(open) = places.all().find(|a| !a.is_local() && !self.insecure) {
            return Err(TransportError::Setup(format!(
                "{open} accepts commands from any host: set keys (CURVE), bind to 127.0.0.1, or set `insecure`"
            )));
        }
        for address in places.all() {
            address.bind_ip()?;
        }
        let limits = Limits::of(self.wire);
        let shared = Shared {
            wake: wake()?,
            wire: self.wire,
            given: Mutex::default(),
            newer: Mutex::default(),
            listeners: Mutex::new(Listeners::new(self.waiting_bytes)),
            stopping: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            counts: Counts::default(),
            limits,
            bound: OnceLock::new(),
        };
        Ok(ZmqRobot {
            options: self,
            places,
            shared: Arc::new(shared),
            running: Mutex::new(Running::Not),
        })
    }
}

/// A robot's end over ZeroMQ.
pub struct ZmqRobot {
    options: ZmqRobotOptions,
    places: Places,
    shared: Arc<Shared>,
    running: Mutex<Running>,
}

enum Running {
    Not,
    Yes { thread: JoinHandle<()> },
    Over,
}

struct Shared {
    wake: Wake,
    wire: Wire,
    given: Mutex<Given>,
    /// A newer list of keys that is to be applied.
    newer: Mutex<Option<AllowedKeys>>,
    listeners: Mutex<Listeners>,
    stopping: AtomicBool,
    ended: AtomicBool,
    counts: Counts,
    limits: Limits,
    bound: OnceLock<Bound>,
}

struct Bound {
    requests: String,
    publisher: Option<Publisher>,
}

/// Answers for the thread to send.
#[derive(Default)]
struct Given {
    queue: VecDeque<Answer>,
    bytes: usize,
}

struct Answer {
    peer: Peer,
    identity: transport::Peer,
    way: Way,
    /// `None`: the sink dropped the request.
    frame: Option<Vec<u8>>,
}

#[derive(Clone, Copy)]
enum Way {
    Id(u64),
    Ticket(u64),
}

#[derive(Default)]
struct Counts {
    malformed: AtomicU64,
    refused: Arc<AtomicU64>,
    revoked: AtomicU64,
    busy: AtomicU64,
    displaced: AtomicU64,
    undelivered: AtomicU64,
    telemetry_lost: Arc<AtomicU64>,
    unanswered: AtomicUsize,
}

/// Counters of a robot's end since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZmqRobotStatistics {
    /// Messages that do not follow the wire format.
    pub malformed: u64,
    /// Handshakes with keys that are not allowed.
    pub refused: u64,
    /// Messages of controllers whose key is not allowed any more, and answers to them.
    pub revoked: u64,
    /// Requests that came while the maximum was unanswered.
    pub busy: u64,
    /// Connections that were closed because their address had too many.
    pub displaced: u64,
    /// Answers whose requester was gone, or read too slowly.
    pub undelivered: u64,
    /// Telemetry frames that were dropped for listeners that were too slow, counted for each listener.
    pub telemetry_lost: u64,
}

impl ZmqRobot {
    /// Ropewalk's own wire, at one address for requests and telemetry. `address` is `tcp://IP:PORT` (`*` for any port)
    /// or `ipc:///PATH`.
    pub fn own(address: &str) -> ZmqRobotOptions {
        ZmqRobotOptions {
            wire: Wire::Own,
            requests: address.to_owned(),
            telemetry: String::new(),
            curve: None,
            list: None,
            insecure: false,
            waiting_bytes: 64 << 20,
        }
    }

    /// Robot Remote Control's wire, version 6, for controllers of other vendors: neither encrypted nor authenticated,
    /// for this host only, at the ports of their examples (7001 and 7002) unless [bound](ZmqRobotOptions::bind_v6)
    /// elsewhere.
    pub fn plain_v6() -> ZmqRobotOptions {
        ZmqRobotOptions {
            wire: Wire::V6,
            ..Self::own("tcp://127.0.0.1:7001")
        }
        .bind_v6("tcp://127.0.0.1:7001", "tcp://127.0.0.1:7002")
    }

    /// Replaces the list of allowed controllers. No message received after this counts for any other controller, even
    /// if it is part of something that began before, and what other controllers move stops. Has no effect on an end
    /// without CURVE.
    pub fn allow(&self, allowed: AllowedKeys) {
        *lock(&self.shared.newer) = Some(allowed);
        self.shared.wake.ring();
    }

    /// Returns where controllers send requests, once started: the address with its port.
    pub fn requests_address(&self) -> Option<&str> {
        self.shared.bound.get().map(|bound| bound.requests.as_str())
    }

    /// Returns where controllers of version 6 receive telemetry, once started.
    pub fn telemetry_address(&self) -> Option<String> {
        let publisher = self.shared.bound.get()?.publisher.as_ref()?;
        Some(publisher.address().to_string())
    }

    /// Returns the counters.
    pub fn statistics(&self) -> ZmqRobotStatistics {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = &self.shared.counts;
        ZmqRobotStatistics {
            malformed: read(&counts.malformed),
            refused: read(&counts.refused),
            revoked: read(&counts.revoked),
            busy: read(&counts.busy),
            displaced: read(&counts.displaced),
            undelivered: read(&counts.undelivered),
            telemetry_lost: read(&counts.telemetry_lost),
        }
    }

    fn bind(&self) -> Result<Ends, TransportError> {
        let at = &self.places.requests;
        let failed = |error: ::zmq::Error| at.failed("bind", error, error == ::zmq::Error::EADDRINUSE);
        let context = Context::new();
        let gate = match &self.options.curve {
            Some((_, allowed)) => Some(Gate::open(&context, allowed.clone()).map_err(failed)?),
            None => None,
        };
        let router = context.socket(ROUTER).map_err(failed)?;
        let limits = &self.shared.limits;
        tune(
            &router,
            at.is_v6(),
            limits.request,
            limits.requests_waiting,
            limits.answers_waiting,
        )
        .map_err(failed)?;
        router.set_router_mandatory(true).map_err(failed)?;
        if let Some((key, _)) = &self.options.curve {
            router
                .set_curve_server(true)
                .and_then(|()| router.set_curve_secretkey(&key.secret))
                .and_then(|()| router.set_zap_domain("ropewalk"))
                .map_err(failed)?;
        }
        let doors = match at {
            Address::Tcp { .. } => Doors::open(&context, &router).map_err(failed)?,
            Address::Ipc(_) => None,
        };
        router.bind(&wildcard(at)).map_err(failed)?;
        let bound = router
            .get_last_endpoint()
            .map_err(failed)?
            .unwrap_or_else(|_| at.to_string());
        let publisher = match &self.places.telemetry {
            Some(telemetry) => {
                let lost = self.shared.counts.telemetry_lost.clone();
                Some(Publisher::open(telemetry, self.options.waiting_bytes, lost)?)
            }
            None => None,
        };
        let _ = self.shared.bound.set(Bound {
            requests: bound,
            publisher,
        });
        Ok(Ends { router, gate, doors })
    }
}

/// ZeroMQ's notation for any port.
fn wildcard(address: &Address) -> String {
    match address {
        Address::Tcp { port: 0, .. } => format!("{}*", address.to_string().trim_end_matches('0')),
        address => address.to_string(),
    }
}

impl RobotEnd for ZmqRobot {
    fn wire(&self) -> Wire {
        self.options.wire
    }

    fn start(&self, sink: Arc<dyn RobotSink>) -> Result<(), TransportError> {
        let mut running = lock(&self.running);
        match *running {
            Running::Not => {}
            Running::Yes { .. } => {
                return Err(TransportError::Setup(format!(
                    "{} was already started",
                    self.describe()
                )));
            }
            Running::Over => return Err(TransportError::Ended),
        }
        let ends = self.bind()?;
        let (shared, list) = (self.shared.clone(), self.options.list.clone());
        let thread = std::thread::Builder::new()
            .name("zmq-robot".into())
            .spawn(move || {
                Loop {
                    ends,
                    shared,
                    sink,
                    orders: Orders::default(),
                    last_sent: None,
                    trim: Trim::default(),
                    list: list.map(List::new),
                }
                .run()
            })
            .map_err(|error| {
                TransportError::Setup(format!("cannot start a thread for {}: {error}", self.describe()))
            })?;
        *running = Running::Yes { thread };
        Ok(())
    }

    fn publish(&self, stream: Stream<'_>, frame: &[u8]) -> Result<(), TransportError> {
        if self.shared.stopping.load(Ordering::SeqCst) {
            return Err(TransportError::Ended);
        }
        self.shared.limits.telemetry_fits(frame.len())?;
        match (self.options.wire, self.shared.bound.get()) {
            (_, None) => {}
            (
                _,
                Some(Bound {
                    publisher: Some(publisher),
                    ..
                }),
            ) => publisher.publish(stream, frame),
            (_, Some(Bound { publisher: None, .. })) => {
                let mut listeners = lock(&self.shared.listeners);
                let lost = listeners.publish(stream, frame);
                let ready = listeners.ready();
                drop(listeners);
                self.shared
                    .counts
                    .telemetry_lost
                    .fetch_add(lost, Ordering::Relaxed);
                if ready {
                    self.shared.wake.ring();
                }
            }
        }
        Ok(())
    }

    fn stop(&self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.shared.wake.ring();
        let before = std::mem::replace(&mut *lock(&self.running), Running::Over);
        let is_own_thread = match before {
            // If the sink stops its own end, this is that thread: the end stops after the sink returns.
            Running::Yes { thread } if thread.thread().id() == std::thread::current().id() => true,
            Running::Yes { thread } => {
                if thread.join().is_err() {
                    tracing::error!("the thread of {} panicked", self.describe());
                }
                false
            }
            Running::Not | Running::Over => false,
        };
        if let Some(publisher) = self.shared.bound.get().and_then(|bound| bound.publisher.as_ref()) {
            publisher.stop();
        }
        if !is_own_thread {
            self.shared.ended.store(true, Ordering::SeqCst);
        }
    }

    fn describe(&self) -> String {
        let wire = if self.options.wire == Wire::V6 {
            "zmq version 6"
        } else {
            "zmq"
        };
        let security = if self.options.curve.is_some() {
            " with CURVE"
        } else {
            ""
        };
        let at = self
            .requests_address()
            .map_or_else(|| self.places.requests.to_string(), str::to_owned);
        format!("{wire}{security} {at}")
    }
}

impl Drop for ZmqRobot {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn at(&self) -> &str {
        self.bound.get().map_or("", |bound| &bound.requests)
    }
}
