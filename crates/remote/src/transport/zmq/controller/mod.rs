//! The controller's end: its interface, and the state that it shares with its thread.

mod serve;

use self::serve::Loop;
use super::address::Address;
use super::envelope::{Filter, MAX_STREAMS};
use super::keys::{KeyPair, PublicKey};
use super::lane::{Lane, Maker};
use super::listeners::Arrivals;
use super::wake::Wake;
use super::{ENVELOPE, Limits, MAX_ANSWER, MAX_REQUEST, MAX_TELEMETRY, Places, check_keys, wake};
use crate::sync::lock;
use crate::transport::{Class, ControllerEnd, ControllerSink, Done, Listen, TransportError, Wire};
use ::zmq::{DEALER, SUB};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{JoinHandle, ThreadId};
use std::time::{Duration, Instant};

/// Maximum requests in progress of one controller's end.
pub const MAX_REQUESTS: usize = 1024;
/// Maximum bytes of requests that wait for the thread or a connection.
const MAX_WAITING_BYTES: usize = 64 << 20;
/// Telemetry frames of upstream's PUB sockets that ZeroMQ keeps while the sink is busy; on Ropewalk's own wire the
/// window bounds it.
const V6_TELEMETRY_WAITING: i32 = 8;

/// Options of a controller's end over ZeroMQ; see [`ZmqController::own`] and [`ZmqController::plain_v6`].
#[derive(Clone, Debug)]
pub struct ZmqControllerOptions {
    wire: Wire,
    requests: String,
    telemetry: String,
    curve: Option<(KeyPair, PublicKey)>,
    insecure: bool,
}

impl ZmqControllerOptions {
    /// Encrypts, and connects only to the robot that has the secret key of `robot`.
    #[must_use]
    pub fn curve(mut self, key: KeyPair, robot: PublicKey) -> Self {
        self.curve = Some((key, robot));
        self
    }

    /// Commands whichever peer answers at an address of another host, and allows anyone on the path to read and change
    /// the traffic.
    #[must_use]
    pub fn insecure(mut self) -> Self {
        self.insecure = true;
        self
    }

    /// Checks all options; nothing is connected before [`ControllerEnd::start`].
    ///
    /// # Errors
    /// [`TransportError::Setup`], with how to fix it: a malformed address, another host without CURVE or
    /// [`insecure`](Self::insecure) on Ropewalk's own wire, no CURVE in the ZeroMQ library.
    pub fn open(self) -> Result<ZmqController, TransportError> {
        let places = Places::parse(self.wire, &self.requests, &self.telemetry)?;
        if let Some(address) = places.all().find(|a| matches!(a, Address::Tcp { port: 0, .. })) {
            return Err(TransportError::Setup(format!(
                "{address}: a robot cannot listen at port 0; use the port that the robot printed"
            )));
        }
        let requests = &places.requests;
        if self.curve.is_some() {
            check_keys(self.wire)?;
        } else if self.wire == Wire::Own && !requests.is_local() && !self.insecure {
            return Err(TransportError::Setup(format!(
                "{requests} is another host, and without keys any program there could pose as the robot: set keys (CURVE), or set `insecure`"
            )));
        }
        let inbox = Inbox {
            wake: wake()?,
            state: Mutex::default(),
        };
        Ok(ZmqController {
            options: self,
            places,
            inbox: Arc::new(inbox),
            thread: Mutex::new(None),
        })
    }
}

/// A controller's end over ZeroMQ.
pub struct ZmqController {
    options: ZmqControllerOptions,
    places: Places,
    inbox: Arc<Inbox>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Work for the thread.
struct Inbox {
    wake: Wake,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    stage: Stage,
    asked: VecDeque<Asked>,
    /// Requests without an answer, wherever they are.
    under_way: usize,
    waiting_bytes: usize,
    listen: Option<Filter>,
    owner: Option<ThreadId>,
}

#[derive(Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Not,
    Running,
    Stopping,
}

struct Asked {
    class: Class,
    frame: Vec<u8>,
    until: Instant,
    timeout: Duration,
    done: Done,
}

impl ZmqController {
    /// Ropewalk's own wire, to the robot's address; see [`ZmqRobot::own`](super::ZmqRobot::own).
    pub fn own(address: &str) -> ZmqControllerOptions {
        ZmqControllerOptions {
            wire: Wire::Own,
            requests: address.to_owned(),
            telemetry: String::new(),
            curve: None,
            insecure: false,
        }
    }

    /// Robot Remote Control's wire, version 6, to a robot of another vendor: its addresses for requests (REP) and
    /// telemetry (PUB). Neither encrypted nor authenticated.
    pub fn plain_v6(requests: &str, telemetry: &str) -> ZmqControllerOptions {
        ZmqControllerOptions {
            wire: Wire::V6,
            telemetry: telemetry.to_owned(),
            ..Self::own(requests)
        }
    }

    fn connect(&self) -> ::zmq::Result<(Maker, Vec<Lane>, Lane)> {
        let is_ipv6 =
            self.places.requests.is_v6() || self.places.telemetry.as_ref().is_some_and(Address::is_v6);
        let mut maker = Maker::new(self.options.curve.clone(), is_ipv6);
        let to = self.places.requests.to_string();
        let limits = Limits::of(self.options.wire);
        let mut lanes = Vec::new();
        for _ in CLASSES {
            lanes.push(Lane::open(
                &mut maker,
                DEALER,
                &to,
                limits.answer + ENVELOPE,
                limits.answers_waiting,
            )?);
        }
        let telemetry = match &self.places.telemetry {
            None => Lane::open(
                &mut maker,
                DEALER,
                &to,
                MAX_TELEMETRY.max(MAX_ANSWER) + ENVELOPE,
                256,
            )?,
            Some(at) => Lane::open(
                &mut maker,
                SUB,
                &at.to_string(),
                MAX_TELEMETRY,
                V6_TELEMETRY_WAITING,
            )?,
        };
        Ok((maker, lanes, telemetry))
    }
}

const CLASSES: [Class; 3] = [Class::Command, Class::Request, Class::File];

fn lane_of(class: Class) -> usize {
    match class {
        Class::Command => 0,
        Class::Request => 1,
        Class::File => 2,
    }
}

impl ControllerEnd for ZmqController {
    fn wire(&self) -> Wire {
        self.options.wire
    }

    fn start(&self, sink: Arc<dyn ControllerSink>) -> Result<(), TransportError> {
        let mut state = self.inbox.lock();
        match state.stage {
            Stage::Not => {}
            Stage::Running => {
                return Err(TransportError::Setup(format!(
                    "{} was already started",
                    self.describe()
                )));
            }
            Stage::Stopping => return Err(TransportError::Ended),
        }
        let (maker, lanes, telemetry) = self
            .connect()
            .map_err(|error| self.places.requests.failed("connect to", error, false))?;
        let thread = Loop {
            wire: self.options.wire,
            address: self.places.requests.to_string(),
            inbox: self.inbox.clone(),
            sink,
            maker,
            lanes,
            telemetry,
            pending: HashMap::new(),
            deadlines: BTreeSet::new(),
            ids: 0,
            arrivals: Arrivals::default(),
            filter: Filter::All,
        };
        let thread = std::thread::Builder::new()
            .name("zmq-controller".into())
            .spawn(move || thread.run())
            .map_err(|error| {
                TransportError::Setup(format!("cannot start a thread for {}: {error}", self.describe()))
            })?;
        state.stage = Stage::Running;
        state.owner = Some(thread.thread().id());
        *lock(&self.thread) = Some(thread);
        Ok(())
    }

    fn request(&self, class: Class, frame: &[u8], timeout: Duration, done: Done) {
        if frame.len() > MAX_REQUEST {
            return done(Err(TransportError::TooLong {
                len: frame.len(),
                most: MAX_REQUEST,
            }));
        }
        let mut state = self.inbox.lock();
        let refused = match state.stage {
            Stage::Not => Some(TransportError::Unreachable(
                "the transport was not started".into(),
            )),
            Stage::Stopping => Some(TransportError::Ended),
            Stage::Running if state.under_way >= MAX_REQUESTS => Some(TransportError::Busy(state.under_way)),
            Stage::Running if state.waiting_bytes + frame.len() > MAX_WAITING_BYTES => {
                Some(TransportError::Busy(state.under_way))
            }
            Stage::Running => None,
        };
        if let Some(refused) = refused {
            drop(state);
            return done(Err(refused));
        }
        state.under_way += 1;
        state.waiting_bytes += frame.len();
        let until = Instant::now() + timeout.min(Duration::from_secs(1 << 30));
        state.asked.push_back(Asked {
            class,
            frame: frame.to_vec(),
            until,
            timeout,
            done,
        });
        drop(state);
        self.inbox.wake.ring();
    }

    fn listen(&self, streams: Listen<'_>) {
        let filter = match streams {
            Listen::To(streams) if streams.len() <= MAX_STREAMS => {
                Filter::Only(streams.iter().map(|s| (s.kind.to_owned(), s.channel)).collect())
            }
            Listen::To(_) | Listen::All => Filter::All,
        };
        self.inbox.lock().listen = Some(filter);
        self.inbox.wake.ring();
    }

    fn stop(&self) {
        let owner = {
            let mut state = self.inbox.lock();
            state.stage = Stage::Stopping;
            state.owner
        };
        self.inbox.wake.ring();
        // If the sink stops its own end, this is that thread: the end stops after the sink returns.
        if owner == Some(std::thread::current().id()) {
            return;
        }
        let thread = lock(&self.thread).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of {} panicked", self.describe());
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
        format!("{wire}{security} to {}", self.places.requests)
    }
}

impl Drop for ZmqController {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}
