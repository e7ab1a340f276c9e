//! The thread that owns a robot's sockets: passes requests to the sink, and answers and telemetry to controllers.

use super::super::doors::Doors;
use super::super::envelope::{ToController, ToRobot};
use super::super::listeners::Peer;
use super::super::order::{self, Orders};
use super::super::ways::{ANSWERS, ASK};
use super::super::zap::Gate;
use super::super::{LINGER, ceil_ms, guarded};
use super::list::{LOOK, List};
use super::{Answer, MAX_UNANSWERED, Shared, Way};
use crate::sync::lock;
use crate::transport::{self, Reply, RobotSink, TransportError, Wire};
use ::zmq::{DONTWAIT, Message, POLLIN, PollItem, SNDMORE, Socket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

pub(super) struct Ends {
    pub(super) router: Socket,
    pub(super) gate: Option<Gate>,
    pub(super) doors: Option<Doors>,
}

/// The thread that owns the sockets.
pub(super) struct Loop {
    pub(super) ends: Ends,
    pub(super) shared: Arc<Shared>,
    pub(super) sink: Arc<dyn RobotSink>,
    pub(super) orders: Orders,
    pub(super) last_sent: Option<Instant>,
    pub(super) trim: Trim,
    /// The source of the allowed keys, if they come from a file.
    pub(super) list: Option<List>,
}

/// A socket with `ZMQ_IMMEDIATE` loses unread data when its connection ends, so the end waits this long after the last
/// answer.
const PARTING: Duration = Duration::from_millis(20);

/// When the heap is to return the memory that was used for peers that read nothing.
#[derive(Default)]
pub(super) struct Trim {
    was_much: bool,
    at: Option<Instant>,
}

/// ZeroMQ frees the memory of a closed connection a moment later.
const FREED: Duration = Duration::from_millis(500);

/// Maximum requests that are passed on before answers and telemetry are sent again.
const BATCH: usize = 32;

impl Loop {
    pub(super) fn run(mut self) {
        let mut until = None;
        loop {
            self.renew_keys();
            self.send_given();
            self.ask();
            let telemetry_left = self.send_telemetry();
            let stopping = self.shared.stopping.load(Ordering::SeqCst);
            let now = Instant::now();
            if stopping && until.is_none() {
                until = Some(now + LINGER);
            }
            let unanswered = self.shared.counts.unanswered.load(Ordering::SeqCst);
            if until.is_some_and(|until| unanswered == 0 || now >= until) {
                break;
            }
            self.shared.wake.lie_down();
            let (ready, asking) = {
                let listeners = lock(&self.shared.listeners);
                (listeners.ready(), listeners.ways.is_much())
            };
            let trim = self.trim.turn(asking, Instant::now());
            let idle = lock(&self.shared.given).queue.is_empty()
                && !telemetry_left
                && !ready
                && self.shared.stopping.load(Ordering::SeqCst) == stopping;
            let timeout = match until {
                _ if !idle => 0,
                Some(until) => ceil_ms(until - now),
                None if self.list.is_some() => ceil_ms(LOOK),
                None if asking => ceil_ms(ASK),
                None if trim => ceil_ms(FREED),
                None => -1,
            };
            let mut items = vec![PollItem::from_fd(self.shared.wake.raw(), POLLIN)];
            if !stopping {
                items.push(self.ends.router.as_poll_item(POLLIN));
            }
            if let Some(gate) = &self.ends.gate {
                items.push(gate.socket.as_poll_item(POLLIN));
            }
            if let Some(doors) = &self.ends.doors {
                items.push(doors.monitor.as_poll_item(POLLIN));
            }
            let polled = ::zmq::poll(&mut items, timeout);
            self.shared.wake.rise();
            if let Some(gate) = &self.ends.gate {
                gate.answer(&self.shared.counts.refused);
            }
            if let Some(doors) = &mut self.ends.doors {
                doors.turn(&self.shared.counts.displaced);
            }
            if let Err(error) = polled
                && error != ::zmq::Error::EINTR
            {
                tracing::error!(%error, "ZeroMQ's poll failed: the robot's end has stopped");
                break;
            }
            if !stopping {
                self.receive();
            }
        }
        self.shared.ended.store(true, Ordering::SeqCst);
        if self.last_sent.is_some_and(|at| at.elapsed() < PARTING) {
            std::thread::sleep(PARTING);
        }
    }

    fn receive(&mut self) {
        for _ in 0..BATCH {
            let Some(mut parts) = receive_parts(&self.ends.router) else {
                return;
            };
            self.renew_keys();
            if self.shared.stopping.load(Ordering::SeqCst) {
                return;
            }
            let peer = parts.remove(0).to_vec();
            let Some(identity) = self.identity(&mut parts) else {
                self.shared.counts.revoked.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            let known = match self.shared.wire {
                Wire::Own => self.own(&peer, &identity, &parts),
                Wire::V6 => self.v6(&peer, parts),
            };
            if !known {
                self.shared.counts.malformed.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(
                    at = self.shared.at(),
                    "dropped a message that does not follow the wire format"
                );
            }
            self.send_given();
        }
    }

    /// The newest list of keys applies to everything that is received from here on.
    fn renew_keys(&mut self) {
        let newer = lock(&self.shared.newer).take();
        let newer = newer.or_else(|| self.list.as_mut().and_then(List::look));
        let (Some(newer), Some(gate)) = (newer, &mut self.ends.gate) else {
            return;
        };
        for identity in gate.allow(newer) {
            tracing::warn!(at = self.shared.at(), %identity, "its key was removed from the list: it may not command any more");
            lock(&self.shared.listeners).revoke(&identity);
            let sink = &self.sink;
            guarded(|| sink.revoked(&identity));
        }
    }

    /// Returns the sender of a message, as its connection proved in the handshake; `None`: the sender's key is not on
    /// the newest list.
    fn identity(&self, parts: &mut [Message]) -> Option<transport::Peer> {
        let Some(gate) = &self.ends.gate else {
            return Some(transport::Peer::Unproven);
        };
        let key = parts.first_mut()?.gets("User-Id")?;
        gate.allowed().identity(key).cloned()
    }

    fn may_receive(&self, identity: &transport::Peer) -> bool {
        self.ends
            .gate
            .as_ref()
            .is_none_or(|gate| gate.allowed().has(identity))
    }

    /// Returns false if the message is malformed.
    fn own(&mut self, peer: &[u8], identity: &transport::Peer, parts: &[Message]) -> bool {
        let [message] = parts else { return false };
        match ToRobot::parse(message) {
            Some(ToRobot::Request { id, frame }) => {
                if !self.hand_up(peer, identity, Way::Id(id), frame) {
                    let busy = ToController::Busy { id }.encode();
                    let _ = self.deliver(peer, identity, busy);
                }
            }
            Some(ToRobot::Listen { epoch, filter }) => {
                if !lock(&self.shared.listeners).listen(peer, identity, epoch, filter) {
                    tracing::warn!(at = self.shared.at(), "refused a listener: there are too many");
                }
            }
            Some(ToRobot::Return { mark }) => lock(&self.shared.listeners).ways.returned(peer, mark),
            None => return false,
        }
        true
    }

    fn v6(&mut self, peer: &[u8], parts: Vec<Message>) -> bool {
        let Some((envelope, request)) = order::split(parts) else {
            return false;
        };
        match self.orders.ask(peer, envelope) {
            Some(ticket) => {
                if !self.hand_up(peer, &transport::Peer::Unproven, Way::Ticket(ticket), &request) {
                    self.orders.answer(peer, ticket, None);
                }
            }
            None => {
                self.shared.counts.busy.fetch_add(1, Ordering::Relaxed);
            }
        }
        true
    }

    fn hand_up(&self, peer: &[u8], identity: &transport::Peer, way: Way, frame: &[u8]) -> bool {
        let counts = &self.shared.counts;
        if counts.unanswered.fetch_add(1, Ordering::SeqCst) >= MAX_UNANSWERED {
            counts.unanswered.fetch_sub(1, Ordering::SeqCst);
            counts.busy.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        let mut asker = Asker {
            shared: self.shared.clone(),
            peer: peer.to_vec(),
            identity: identity.clone(),
            way,
            is_answered: false,
        };
        let reply = Reply::new(move |frame| asker.answer(frame));
        let sink = &self.sink;
        if !guarded(|| sink.request(frame, identity, reply)) {
            tracing::error!(
                at = self.shared.at(),
                "the sink dropped a request: it stays unanswered"
            );
        }
        true
    }

    fn send_given(&mut self) {
        loop {
            let answer = {
                let mut given = lock(&self.shared.given);
                let Some(answer) = given.queue.pop_front() else {
                    return;
                };
                given.bytes -= answer.frame.as_ref().map_or(0, Vec::len);
                answer
            };
            self.shared.counts.unanswered.fetch_sub(1, Ordering::SeqCst);
            let Answer {
                peer,
                identity,
                way,
                frame,
            } = answer;
            if frame.is_some() && !self.may_receive(&identity) {
                self.shared.counts.revoked.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            match (way, frame) {
                (Way::Id(_), None) => {}
                // Its number and tag are already at the front.
                (Way::Id(_), Some(frame)) => {
                    let sent = self.deliver(&peer, &identity, frame);
                    self.sent(sent);
                }
                (Way::Ticket(ticket), frame) => {
                    for (envelope, frame) in self.orders.answer(&peer, ticket, frame) {
                        self.sent(send(&self.ends.router, &peer, &envelope, frame));
                    }
                }
            }
        }
    }

    fn sent(&mut self, result: ::zmq::Result<()>) {
        self.last_sent = Some(Instant::now());
        if let Err(error) = result {
            self.shared.counts.undelivered.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(at = self.shared.at(), %error, "cannot deliver an answer");
        }
    }

    /// Sends an answer, unless its controller has left too much unread.
    fn deliver(&self, peer: &[u8], identity: &transport::Peer, frame: Vec<u8>) -> ::zmq::Result<()> {
        let fits = lock(&self.shared.listeners)
            .ways
            .fits(peer, identity, frame.len(), ANSWERS);
        if fits {
            self.send_counted(peer, identity, frame)
        } else {
            Err(::zmq::Error::EAGAIN)
        }
    }

    /// Sends a message of Ropewalk's own wire. It counts as in transit until a mark sent after it comes back.
    fn send_counted(&self, peer: &[u8], identity: &transport::Peer, message: Vec<u8>) -> ::zmq::Result<()> {
        let len = message.len();
        let sent = send(&self.ends.router, peer, &[], message);
        let mark = match sent {
            Ok(()) => lock(&self.shared.listeners).ways.sent(peer, identity, len),
            Err(::zmq::Error::EHOSTUNREACH) => {
                lock(&self.shared.listeners).forget(peer);
                None
            }
            Err(_) => None,
        };
        if let Some(mark) = mark {
            self.send_mark(peer, mark);
        }
        sent
    }

    fn send_mark(&self, peer: &[u8], mark: u64) {
        let mark = ToController::Mark { mark }.encode();
        if send(&self.ends.router, peer, &[], mark) == Err(::zmq::Error::EHOSTUNREACH) {
            lock(&self.shared.listeners).forget(peer);
        }
    }

    /// Finds closed connections, if the data in transit to them could block other connections.
    fn ask(&self) {
        let asked = lock(&self.shared.listeners).ways.ask(Instant::now());
        for (peer, mark) in asked {
            self.send_mark(&peer, mark);
        }
    }

    /// Sends one round of telemetry. Returns true if more may be sent at once.
    fn send_telemetry(&self) -> bool {
        if self.shared.wire == Wire::V6 {
            return false;
        }
        let round = lock(&self.shared.listeners).round();
        let any = !round.is_empty();
        for (peer, identity, message) in round {
            match self.send_counted(&peer, &identity, message) {
                Ok(()) | Err(::zmq::Error::EHOSTUNREACH) => {}
                Err(_) => {
                    lock(&self.shared.listeners).untaken(&peer);
                    self.shared.counts.telemetry_lost.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        any
    }
}

impl Trim {
    /// Returns whether to trim soon.
    fn turn(&mut self, is_much: bool, now: Instant) -> bool {
        if std::mem::replace(&mut self.was_much, is_much) && !is_much {
            self.at = Some(now + FREED);
        }
        if self.at.is_some_and(|at| at <= now) {
            self.at = None;
            bus::return_free_memory();
        }
        self.at.is_some()
    }
}

/// Receives one message, with its sender as the first part. Parts beyond those of any valid message are discarded.
fn receive_parts(socket: &Socket) -> Option<Vec<Message>> {
    let mut parts = Vec::new();
    let mut flags = DONTWAIT;
    loop {
        let part = socket.recv_msg(flags).ok()?;
        let more = part.get_more();
        if parts.len() < 16 {
            parts.push(part);
        }
        if !more {
            return Some(parts);
        }
        flags = 0;
    }
}

fn send(router: &Socket, peer: &[u8], envelope: &[Vec<u8>], frame: Vec<u8>) -> ::zmq::Result<()> {
    // Only the first part can fail: it addresses the rest.
    router.send(peer, DONTWAIT | SNDMORE)?;
    for part in envelope {
        router.send(&part[..], DONTWAIT | SNDMORE)?;
    }
    router.send(frame, DONTWAIT)
}

/// A controller that waits for an answer.
struct Asker {
    shared: Arc<Shared>,
    peer: Peer,
    identity: transport::Peer,
    way: Way,
    is_answered: bool,
}

impl Asker {
    fn answer(&mut self, frame: &[u8]) -> Result<(), TransportError> {
        if self.shared.ended.load(Ordering::SeqCst) {
            return Err(TransportError::Ended);
        }
        let limits = &self.shared.limits;
        if frame.len() > limits.answer {
            return Err(TransportError::TooLong {
                len: frame.len(),
                most: limits.answer,
            });
        }
        let frame = match self.way {
            Way::Id(id) => ToController::Answer { id, frame }.encode(),
            Way::Ticket(_) => frame.to_vec(),
        };
        self.give(Some(frame))
    }

    fn give(&mut self, frame: Option<Vec<u8>>) -> Result<(), TransportError> {
        let mut given = lock(&self.shared.given);
        let len = frame.as_ref().map_or(0, Vec::len);
        if len > 0 && given.bytes > 0 && given.bytes + len > self.shared.limits.given_bytes {
            return Err(TransportError::Busy(given.queue.len()));
        }
        self.is_answered = true;
        given.bytes += len;
        given.queue.push_back(Answer {
            peer: std::mem::take(&mut self.peer),
            identity: self.identity.clone(),
            way: self.way,
            frame,
        });
        drop(given);
        self.shared.wake.ring();
        Ok(())
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        if !self.is_answered {
            let _ = self.give(None);
        }
    }
}
