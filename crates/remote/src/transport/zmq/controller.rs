//! The controller's end: a connection for each class of requests, and one for telemetry.

use super::address::Address;
use super::envelope::{Filter, MAX_STREAMS, ToController, ToRobot};
use super::keys::{KeyPair, PublicKey, check_curve};
use super::lane::{Change, Lane, Maker};
use super::listeners::Arrivals;
use super::wake::Wake;
use super::{ENVELOPE, Limits, MAX_ANSWER, MAX_REQUEST, MAX_TELEMETRY};
use crate::transport::{Class, ControllerEnd, ControllerSink, Done, Listen, TransportError, Wire};
use ::zmq::{DEALER, DONTWAIT, POLLIN, POLLOUT, PollItem, SUB};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, ThreadId};
use std::time::{Duration, Instant};

/// Most requests under way of one controller's end.
pub const MAX_REQUESTS: usize = 1024;
/// Bytes of requests that wait for the thread or a connection, at most.
const MAX_WAITING_BYTES: usize = 64 << 20;
/// Telemetry frames that ZeroMQ keeps while the sink is busy, of upstream's PUB sockets; on the own wire the window bounds it.
const V6_TELEMETRY_WAITING: i32 = 8;

/// How a controller reaches its robot over ZeroMQ; see [`ZmqController::own`] and [`ZmqController::plain_v6`].
#[derive(Clone, Debug)]
pub struct ZmqControllerOptions {
    wire: Wire,
    requests: String,
    telemetry: String,
    curve: Option<(KeyPair, PublicKey)>,
    insecure: bool,
}

impl ZmqControllerOptions {
    /// Encrypts, and speaks to nobody but the robot that has the secret part of `robot`.
    #[must_use]
    pub fn curve(mut self, key: KeyPair, robot: PublicKey) -> Self {
        self.curve = Some((key, robot));
        self
    }

    /// Commands whoever answers at an address of another host, and lets everyone on the way read and change it.
    #[must_use]
    pub fn insecure(mut self) -> Self {
        self.insecure = true;
        self
    }

    /// Checks it all; nothing is connected before [`ControllerEnd::start`].
    ///
    /// # Errors
    /// [`TransportError::Setup`] with the mend: a malformed address, another host without CURVE or [`insecure`](Self::insecure) on the own wire, no CURVE in
    /// the ZeroMQ library.
    pub fn open(self) -> Result<ZmqController, TransportError> {
        let requests = Address::parse(&self.requests)?;
        let telemetry = match self.wire {
            Wire::Own => None,
            Wire::V6 => Some(Address::parse(&self.telemetry)?),
        };
        for address in [Some(&requests), telemetry.as_ref()].into_iter().flatten() {
            if matches!(address, Address::Tcp { port: 0, .. }) {
                return Err(TransportError::Setup(format!(
                    "{address}: port 0 is no robot's; give the port that the robot printed"
                )));
            }
        }
        if self.curve.is_some() {
            check_curve()?;
            if self.wire == Wire::V6 {
                return Err(TransportError::Setup(
                    "version 6 has no CURVE; use the own wire, or leave the keys away".into(),
                ));
            }
        } else if self.wire == Wire::Own && !requests.is_local() && !self.insecure {
            return Err(TransportError::Setup(format!(
                "{requests} is another host, and nothing tells its robot from someone else: give keys (CURVE), or say `insecure`"
            )));
        }
        let inbox = Inbox {
            wake: Wake::new().map_err(|error| TransportError::Setup(format!("no eventfd: {error}")))?,
            state: Mutex::default(),
        };
        Ok(ZmqController {
            options: self,
            requests,
            telemetry,
            inbox: Arc::new(inbox),
            thread: Mutex::new(None),
        })
    }
}

/// A controller's end over ZeroMQ.
pub struct ZmqController {
    options: ZmqControllerOptions,
    requests: Address,
    telemetry: Option<Address>,
    inbox: Arc<Inbox>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What others leave for the thread.
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
    /// The own wire, to the address that the robot has; see [`ZmqRobot::own`](super::ZmqRobot::own).
    pub fn own(address: &str) -> ZmqControllerOptions {
        ZmqControllerOptions {
            wire: Wire::Own,
            requests: address.to_owned(),
            telemetry: String::new(),
            curve: None,
            insecure: false,
        }
    }

    /// Robot Remote Control's wire, version 6, to a robot of another maker: its addresses for requests (REP) and telemetry (PUB).
    /// Neither encrypted nor authenticated.
    pub fn plain_v6(requests: &str, telemetry: &str) -> ZmqControllerOptions {
        ZmqControllerOptions {
            wire: Wire::V6,
            telemetry: telemetry.to_owned(),
            ..Self::own(requests)
        }
    }

    fn connect(&self) -> ::zmq::Result<(Maker, Vec<Lane>, Lane)> {
        let is_ipv6 = self.requests.is_v6() || self.telemetry.as_ref().is_some_and(Address::is_v6);
        let mut maker = Maker::new(self.options.curve.clone(), is_ipv6);
        let to = self.requests.to_string();
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
        let telemetry = match &self.telemetry {
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
                    "{} is started already",
                    self.describe()
                )));
            }
            Stage::Stopping => return Err(TransportError::Ended),
        }
        let (maker, lanes, telemetry) = self
            .connect()
            .map_err(|error| self.requests.failed("connect to", error, false))?;
        let thread = Loop {
            wire: self.options.wire,
            address: self.requests.to_string(),
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
            .map_err(|error| TransportError::Setup(format!("no thread for {}: {error}", self.describe())))?;
        state.stage = Stage::Running;
        state.owner = Some(thread.thread().id());
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
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
        // A sink that stops its own end is on that thread: the end follows its return.
        if owner == Some(std::thread::current().id()) {
            return;
        }
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
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
        format!("{wire}{security} to {}", self.requests)
    }
}

impl Drop for ZmqController {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that owns the sockets.
struct Loop {
    wire: Wire,
    address: String,
    inbox: Arc<Inbox>,
    sink: Arc<dyn ControllerSink>,
    maker: Maker,
    lanes: Vec<Lane>,
    telemetry: Lane,
    pending: HashMap<u64, Pending>,
    deadlines: BTreeSet<(Instant, u64)>,
    ids: u64,
    arrivals: Arrivals,
    filter: Filter,
}

struct Pending {
    lane: usize,
    until: Instant,
    timeout: Duration,
    len: usize,
    is_sent: bool,
    done: Done,
}

/// Messages of one socket before the others are looked at again.
const BATCH: usize = 64;

impl Loop {
    fn run(mut self) {
        loop {
            self.take_asked();
            self.changes();
            self.time_out();
            self.flush();
            self.inbox.wake.lie_down();
            let (stopping, idle) = {
                let state = self.inbox.lock();
                (
                    state.stage == Stage::Stopping,
                    state.asked.is_empty() && state.listen.is_none(),
                )
            };
            if stopping {
                break;
            }
            let timeout = if idle { self.timeout() } else { 0 };
            let mut items = vec![PollItem::from_fd(self.inbox.wake.raw(), POLLIN)];
            for lane in self.lanes.iter().chain([&self.telemetry]) {
                let may_send = !lane.waiting.is_empty() && self.may_send(lane);
                items.push(
                    lane.socket
                        .as_poll_item(if may_send { POLLIN | POLLOUT } else { POLLIN }),
                );
                items.push(lane.monitor.as_poll_item(POLLIN));
            }
            let polled = ::zmq::poll(&mut items, timeout);
            self.inbox.wake.rise();
            if let Err(error) = polled
                && error != ::zmq::Error::EINTR
            {
                tracing::error!(%error, "ZeroMQ's poll failed: the controller's end is over");
                self.inbox.lock().stage = Stage::Stopping;
                break;
            }
            self.answers();
            self.frames();
        }
        let ids: Vec<u64> = self.pending.keys().copied().collect();
        ids.into_iter()
            .for_each(|id| self.end(id, Err(TransportError::Ended)));
        let asked = std::mem::take(&mut self.inbox.lock().asked);
        asked
            .into_iter()
            .for_each(|asked| call(asked.done, Err(TransportError::Ended)));
    }

    fn timeout(&self) -> i64 {
        let renewals = self.lanes.iter().chain([&self.telemetry]).filter_map(Lane::again);
        let next = self
            .deadlines
            .first()
            .map(|(until, _)| *until)
            .into_iter()
            .chain(renewals)
            .min();
        next.map_or(-1, |next| {
            super::ceil_ms(next.saturating_duration_since(Instant::now()))
        })
    }

    fn take_asked(&mut self) {
        loop {
            let (asked, listen) = {
                let mut state = self.inbox.lock();
                (state.asked.pop_front(), state.listen.take())
            };
            if let Some(filter) = listen {
                self.filter = filter;
                self.say_listen();
            }
            let Some(Asked {
                class,
                frame,
                until,
                timeout,
                done,
            }) = asked
            else {
                return;
            };
            self.ids += 1;
            let (id, len) = (self.ids, frame.len());
            let parts = match self.wire {
                Wire::Own => vec![ToRobot::Request { id, frame: &frame }.encode()],
                // What a REQ socket that correlates sends: four bytes, a delimiter, the request.
                Wire::V6 => vec![(id as u32).to_be_bytes().to_vec(), Vec::new(), frame],
            };
            let lane = lane_of(class);
            self.pending.insert(
                id,
                Pending {
                    lane,
                    until,
                    timeout,
                    len,
                    is_sent: false,
                    done,
                },
            );
            self.deadlines.insert((until, id));
            self.lanes[lane].waiting.push_back((id, parts));
        }
    }

    /// One at a time to a REP socket of version 6; what waits behind it here may still be given up unsent.
    fn may_send(&self, lane: &Lane) -> bool {
        self.wire == Wire::Own
            || !self
                .pending
                .values()
                .any(|p| p.is_sent && std::ptr::eq(&self.lanes[p.lane], lane))
    }

    fn flush(&mut self) {
        for lane in 0..self.lanes.len() {
            while self.may_send(&self.lanes[lane]) {
                let Some(id) = self.lanes[lane].flush() else { break };
                if let Some(pending) = self.pending.get_mut(&id) {
                    pending.is_sent = true;
                    self.inbox.lock().waiting_bytes -= pending.len;
                }
            }
        }
        // Its messages are small and few, and the next ones say the same.
        while self.telemetry.flush().is_some() {}
    }

    fn time_out(&mut self) {
        let now = Instant::now();
        while let Some((_, id)) = self.deadlines.first().copied().filter(|(until, _)| *until <= now) {
            let Some(pending) = self.pending.get(&id) else {
                continue;
            };
            let error = if pending.is_sent {
                TransportError::TimedOut(pending.timeout)
            } else {
                let why = match self.may_send(&self.lanes[pending.lane]) {
                    true => self.lanes[pending.lane].why(),
                    false => "it waited behind a request that the robot did not answer",
                };
                TransportError::Unreachable(format!(
                    "nothing was sent to {} within {:?}: {why}",
                    self.address, pending.timeout
                ))
            };
            self.end(id, Err(error));
        }
    }

    fn changes(&mut self) {
        for at in 0..self.lanes.len() {
            while let Some(change) = self.lanes[at].change() {
                if at == lane_of(Class::Command) {
                    self.sink.connected(change == Change::Connected);
                }
                if change == Change::Broken {
                    self.broken(at);
                }
            }
            self.lanes[at].renew(&mut self.maker);
        }
        while let Some(change) = self.telemetry.change() {
            if change == Change::Connected {
                self.arrivals.begin();
                self.say_listen();
            }
        }
        self.telemetry.renew(&mut self.maker);
    }

    /// Answers to what was sent do not come any more.
    fn broken(&mut self, lane: usize) {
        // Those that had come before it broke are taken first.
        self.answers();
        let lost: Vec<u64> = self
            .pending
            .iter()
            .filter(|(_, p)| p.lane == lane && p.is_sent)
            .map(|(id, _)| *id)
            .collect();
        for id in lost {
            let text = format!(
                "the connection to {} broke before the answer came; it may have been carried out",
                self.address
            );
            self.end(id, Err(TransportError::Unreachable(text)));
        }
    }

    fn say_listen(&mut self) {
        if self.wire == Wire::Own && self.telemetry.is_connected {
            let listen = ToRobot::Listen {
                epoch: self.arrivals.epoch,
                filter: self.filter.clone(),
            };
            self.telemetry.waiting.push_back((0, vec![listen.encode()]));
        }
    }

    fn answers(&mut self) {
        for lane in 0..self.lanes.len() {
            for _ in 0..BATCH {
                let Ok(first) = self.lanes[lane].socket.recv_msg(DONTWAIT) else {
                    break;
                };
                let mut parts = vec![first];
                while parts.last().is_some_and(|part| part.get_more()) {
                    match self.lanes[lane].socket.recv_msg(0) {
                        Ok(part) if parts.len() < 4 => parts.push(part),
                        Ok(part) => parts[3] = part,
                        Err(_) => break,
                    }
                }
                match (self.wire, &parts[..]) {
                    (Wire::Own, [message]) => match ToController::parse(message) {
                        Some(ToController::Answer { id, frame }) => self.answered(lane, id, Ok(frame)),
                        Some(ToController::Busy { id }) => {
                            self.answered(lane, id, Err(TransportError::Busy(super::MAX_UNANSWERED)));
                        }
                        _ => tracing::debug!(from = self.address, "a message that is no answer was dropped"),
                    },
                    (Wire::V6, [number, delimiter, frame]) if delimiter.is_empty() && number.len() == 4 => {
                        // The one under way has this number, or this is the late answer of one that was given up.
                        let id = self.pending.iter().find(|(id, p)| {
                            p.is_sent && p.lane == lane && (**id as u32).to_be_bytes()[..] == number[..]
                        });
                        if let Some(id) = id.map(|(id, _)| *id) {
                            self.answered(lane, id, Ok(frame));
                        }
                    }
                    _ => tracing::debug!(from = self.address, "a message that is no answer was dropped"),
                }
            }
        }
    }

    fn answered(&mut self, lane: usize, id: u64, answer: Result<&[u8], TransportError>) {
        if self
            .pending
            .get(&id)
            .is_some_and(|pending| pending.is_sent && pending.lane == lane)
        {
            self.end(id, answer);
        }
    }

    fn end(&mut self, id: u64, answer: Result<&[u8], TransportError>) {
        let Some(pending) = self.pending.remove(&id) else {
            return;
        };
        self.deadlines.remove(&(pending.until, id));
        {
            let mut state = self.inbox.lock();
            state.under_way -= 1;
            if !pending.is_sent {
                state.waiting_bytes -= pending.len;
            }
        }
        if !pending.is_sent {
            self.lanes[pending.lane]
                .waiting
                .retain(|(waiting, _)| *waiting != id);
        }
        call(pending.done, answer);
    }

    fn frames(&mut self) {
        for _ in 0..BATCH {
            let Ok(message) = self.telemetry.socket.recv_msg(DONTWAIT) else {
                return;
            };
            let mut is_single = !message.get_more();
            while self.telemetry.socket.get_rcvmore() == Ok(true) {
                is_single = false;
                if self.telemetry.socket.recv_msg(0).is_err() {
                    break;
                }
            }
            if !is_single {
                tracing::debug!(from = self.address, "telemetry of several parts was dropped");
                continue;
            }
            if self.wire == Wire::V6 {
                guarded(|| self.sink.telemetry(&message));
                continue;
            }
            let Some(ToController::Telemetry { epoch, lost, frame }) = ToController::parse(&message) else {
                tracing::debug!(from = self.address, "a message that is no telemetry was dropped");
                continue;
            };
            if epoch != self.arrivals.epoch {
                continue;
            }
            let lost = self.arrivals.arrived(lost, frame.len());
            guarded(|| {
                if lost > 0 {
                    self.sink.lost(lost);
                }
                self.sink.telemetry(frame);
            });
            if let Some((frames, bytes)) = self.arrivals.due() {
                let credit = ToRobot::Credit { epoch, frames, bytes }.encode();
                self.telemetry.waiting.push_back((0, vec![credit]));
                while self.telemetry.flush().is_some() {}
            }
        }
    }
}

fn call(done: Done, answer: Result<&[u8], TransportError>) {
    guarded(|| done(answer));
}

/// Others' requests do not end with a callback that panics.
fn guarded(callback: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(callback)).is_err() {
        tracing::error!("a callback of the transport's user panicked");
    }
}
