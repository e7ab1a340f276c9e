//! The thread that owns a controller's sockets: passes requests to their lanes, and received messages to their
//! callbacks.

use super::super::envelope::{Filter, ToController, ToRobot};
use super::super::lane::{Change, Lane, Maker};
use super::super::listeners::Arrivals;
use super::super::{MAX_UNANSWERED, ceil_ms, guarded};
use super::{Asked, Inbox, Stage, lane_of};
use crate::transport::{Class, ControllerSink, Done, TransportError, Wire};
use ::zmq::{DONTWAIT, POLLIN, POLLOUT, PollItem};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The thread that owns the sockets.
pub(super) struct Loop {
    pub(super) wire: Wire,
    pub(super) address: String,
    pub(super) inbox: Arc<Inbox>,
    pub(super) sink: Arc<dyn ControllerSink>,
    pub(super) maker: Maker,
    pub(super) lanes: Vec<Lane>,
    pub(super) telemetry: Lane,
    pub(super) pending: HashMap<u64, Pending>,
    pub(super) deadlines: BTreeSet<(Instant, u64)>,
    pub(super) ids: u64,
    pub(super) arrivals: Arrivals,
    pub(super) filter: Filter,
}

pub(super) struct Pending {
    lane: usize,
    until: Instant,
    timeout: Duration,
    len: usize,
    is_sent: bool,
    done: Done,
}

/// Maximum messages of one socket before the others are served again.
const BATCH: usize = 64;

impl Loop {
    pub(super) fn run(mut self) {
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
                let waits = lane.mark.is_some() || (!lane.waiting.is_empty() && self.may_send(lane));
                let may_send = lane.is_connected && waits;
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
                tracing::error!(%error, "ZeroMQ's poll failed: the controller's end has stopped");
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
        next.map_or(-1, |next| ceil_ms(next.saturating_duration_since(Instant::now())))
    }

    fn take_asked(&mut self) {
        loop {
            let (asked, listen) = {
                let mut state = self.inbox.lock();
                (state.asked.pop_front(), state.listen.take())
            };
            if let Some(filter) = listen {
                self.filter = filter;
                self.send_listen();
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
                // The format of a REQ socket that correlates: four bytes, a delimiter, the request.
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

    /// A REP socket of version 6 gets one request at a time; requests that wait here may still be given up unsent.
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
        // Its messages are small and few, and later ones repeat their content.
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
                    false => "an earlier request is still unanswered",
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
                self.send_listen();
            }
        }
        self.telemetry.renew(&mut self.maker);
    }

    /// Answers to sent requests can no longer arrive.
    fn broken(&mut self, lane: usize) {
        // Answers that arrived before the connection broke are taken first.
        self.answers();
        let lost: Vec<u64> = self
            .pending
            .iter()
            .filter(|(_, p)| p.lane == lane && p.is_sent)
            .map(|(id, _)| *id)
            .collect();
        for id in lost {
            let text = format!(
                "the connection to {} broke before the answer arrived; the robot may have executed the request",
                self.address
            );
            self.end(id, Err(TransportError::Unreachable(text)));
        }
    }

    fn send_listen(&mut self) {
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
                            self.answered(lane, id, Err(TransportError::Busy(MAX_UNANSWERED)));
                        }
                        Some(ToController::Mark { mark }) => self.lanes[lane].mark = Some(mark),
                        _ => tracing::debug!(from = self.address, "dropped a message that is not an answer"),
                    },
                    (Wire::V6, [number, delimiter, frame]) if delimiter.is_empty() && number.len() == 4 => {
                        // The request in progress has this number, or else this is the late answer to a request that
                        // was given up.
                        let id = self.pending.iter().find(|(id, p)| {
                            p.is_sent && p.lane == lane && (**id as u32).to_be_bytes()[..] == number[..]
                        });
                        if let Some(id) = id.map(|(id, _)| *id) {
                            self.answered(lane, id, Ok(frame));
                        }
                    }
                    _ => tracing::debug!(from = self.address, "dropped a message that is not an answer"),
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
                tracing::debug!(from = self.address, "dropped telemetry of several parts");
                continue;
            }
            if self.wire == Wire::V6 {
                guarded(|| self.sink.telemetry(&message));
                continue;
            }
            let (epoch, lost, frame) = match ToController::parse(&message) {
                Some(ToController::Telemetry { epoch, lost, frame }) => (epoch, lost, frame),
                Some(ToController::Mark { mark }) => {
                    self.telemetry.mark = Some(mark);
                    while self.telemetry.flush().is_some() {}
                    continue;
                }
                _ => {
                    tracing::debug!(from = self.address, "dropped a message that is not telemetry");
                    continue;
                }
            };
            if epoch != self.arrivals.epoch {
                continue;
            }
            let lost = self.arrivals.arrived(lost);
            guarded(|| {
                if lost > 0 {
                    self.sink.lost(lost);
                }
                self.sink.telemetry(frame);
            });
        }
    }
}

fn call(done: Done, answer: Result<&[u8], TransportError>) {
    guarded(|| done(answer));
}
