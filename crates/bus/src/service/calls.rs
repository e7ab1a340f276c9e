//! The unanswered requests of one client, and the threads that wait for their replies.
//!
//! One of the waiting threads, the leader, sleeps on the doorbell and distributes incoming replies. The
//! others are parked until their own reply arrives, or until the leader leaves and one of them takes over.

use super::correlation::{Correlation, Kind};
use super::{CallError, ClientStats, MAX_REJECTION, partner};
use crate::loan::Loan;
use crate::message::Message;
use crate::publisher::{Directed, PublishError, Publisher};
use crate::subscriber::{Subscriber, TakeError};
use crate::sys;
use stats::DropReason;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Replies taken in a row before other work gets a turn.
const BURST: usize = 1024;

/// The result of a request.
pub(super) type Outcome = Result<Message, CallError>;

/// A client's two endpoints and its unanswered requests.
#[derive(Debug)]
pub(super) struct Calls {
    pub(super) service: String,
    pub(super) requests: Publisher,
    pub(super) replies: Subscriber,
    pub(super) max_outstanding: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    calls: BTreeMap<u64, Call>,
    /// The server that it currently uses.
    server: Option<u64>,
    /// Whether a thread sleeps on the doorbell.
    led: bool,
    followers: Vec<Follower>,
    tickets: u64,
    /// The event count that was last examined.
    examined: Option<u64>,
    /// Whether replies wait that cannot be taken before others are dropped.
    stuck: bool,
    stats: ClientStats,
}

#[derive(Debug)]
struct Call {
    /// The server's subscriber for requests.
    server: u64,
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    deadline: u64,
    /// How many requests of this client the server had refused when the call began.
    refused: u64,
    cancelled: bool,
    outcome: Option<Outcome>,
}

#[derive(Debug)]
struct Follower {
    ticket: u64,
    /// The request whose reply the thread waits for; `None` if it waits for a server.
    number: Option<u64>,
    thread: Thread,
}

impl Calls {
    pub(super) fn new(
        service: String,
        requests: Publisher,
        replies: Subscriber,
        max_outstanding: usize,
    ) -> Self {
        Calls {
            service,
            requests,
            replies,
            max_outstanding,
            state: Mutex::default(),
        }
    }

    /// Sends a request, on behalf of `origin` if given, and returns its number.
    pub(super) fn send(&self, loan: Loan, timeout: Duration, origin: Option<u64>) -> Result<u64, CallError> {
        self.check_fork()?;
        let now = sys::monotonic_ns();
        let mut guard = self.lock();
        let state = &mut *guard;
        if !state.led {
            self.settle(state)?;
        }
        state.calls.retain(|_, c| !c.cancelled || c.deadline > now);
        if state.calls.len() >= self.max_outstanding {
            return Err(CallError::TooMany {
                service: self.service.clone(),
                outstanding: state.calls.len(),
            });
        }
        let server = self.server(state).ok_or_else(|| self.no_server())?;
        let number = state.last + 1;
        let deadline = now.saturating_add(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
        let header = Correlation {
            kind: Kind::Request,
            client: self.requests.id(),
            number,
            deadline,
            code: 0,
        };
        match self.requests.publish_to(server, loan, &header.encode(), origin)? {
            Directed::Queued => {}
            Directed::Absent => return Err(self.no_server()),
            Directed::Refused(reason) => {
                state.stats.refused += 1;
                return Err(self.dropped(reason));
            }
        }
        state.last = number;
        state.stats.sent += 1;
        let call = Call {
            server,
            deadline,
            refused: self.replies.losses_from(partner(server)).total(),
            cancelled: false,
            outcome: None,
        };
        state.calls.insert(number, call);
        Ok(number)
    }

    /// Blocks until request `number` is answered, or until `deadline`.
    pub(super) fn wait(&self, number: u64, deadline: Option<Instant>, timeout: Duration) -> Outcome {
        self.check_fork()?;
        match self.sleep(Some(number), deadline, |state| state.finish(number)) {
            Ok(Some(outcome)) => outcome,
            Ok(None) => Err(self.give_up(number, timeout)),
            Err(e) => {
                self.cancel(number);
                Err(e.into())
            }
        }
    }

    /// Returns the result of request `number`, if it is known. Never blocks. If there is none, the descriptor
    /// stays silent until the next event.
    pub(super) fn poll(&self, number: u64, timeout: Duration) -> Result<Option<Outcome>, CallError> {
        self.check_fork()?;
        let mut guard = self.lock();
        let state = &mut *guard;
        // The rest of a continuous stream is left to the next poll; the descriptor stays readable for it.
        for _ in 0..4 {
            let seen = if state.led {
                None
            } else {
                Some(self.settle(state)?)
            };
            if let Some(outcome) = state.finish(number) {
                return Ok(Some(outcome));
            }
            let quiet = seen
                .is_none_or(|seen| !self.replies.arm_for_next() && self.replies.waiter().events() == seen);
            if quiet {
                break;
            }
        }
        let late = state
            .calls
            .get(&number)
            .is_some_and(|c| c.deadline <= sys::monotonic_ns());
        drop(guard);
        Ok(late.then(|| Err(self.give_up(number, timeout))))
    }

    /// If [`Calls::poll`] would find nothing, silences the descriptor until the next event and returns false.
    pub(super) fn rearm(&self) -> Result<bool, CallError> {
        self.check_fork()?;
        let mut guard = self.lock();
        let state = &mut *guard;
        // A continuous stream leaves the descriptor readable, as in `poll`.
        for _ in 0..4 {
            if state.led {
                return Ok(false);
            }
            let seen = self.settle(state)?;
            if state.calls.values().any(|c| c.outcome.is_some() && !c.cancelled) {
                return Ok(true);
            }
            if !self.replies.arm_for_next() && self.replies.waiter().events() == seen {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Cancels the wait for request `number`.
    pub(super) fn cancel(&self, number: u64) {
        if self.requests.is_foreign() {
            return;
        }
        let mut state = self.lock();
        let answered = state.calls.get_mut(&number).is_some_and(|call| {
            call.cancelled = true;
            call.outcome.is_some()
        });
        if answered {
            state.calls.remove(&number);
        }
    }

    /// Blocks until a server is connected. Returns false if `deadline` passes first.
    pub(super) fn wait_for_server(&self, deadline: Option<Instant>) -> Result<bool, CallError> {
        self.check_fork()?;
        let found = self.sleep(None, deadline, |state| self.server(state))?;
        Ok(found.is_some())
    }

    pub(super) fn has_server(&self) -> bool {
        !self.requests.is_foreign() && self.server(&mut self.lock()).is_some()
    }

    pub(super) fn stats(&self) -> ClientStats {
        if self.requests.is_foreign() {
            return ClientStats::default();
        }
        let state = self.lock();
        ClientStats {
            outstanding: state.calls.len(),
            ..state.stats
        }
    }

    /// Returns the current server while it lives, otherwise the first that is connected in both directions.
    fn server(&self, state: &mut State) -> Option<u64> {
        let works = |id| self.replies.hears(partner(id));
        let kept = state.server;
        state.server = kept
            .and_then(|server| self.requests.find_subscriber(|id| id == server && works(id)))
            .or_else(|| self.requests.find_subscriber(works));
        state.server
    }

    /// Waits until `done` returns a value, as the leader or as a follower.
    fn sleep<T>(
        &self,
        number: Option<u64>,
        deadline: Option<Instant>,
        mut done: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<Option<T>, TakeError> {
        let mut state = self.lock();
        let result = loop {
            let mut seen = 0;
            if !state.led {
                match self.settle(&mut state) {
                    Ok(events) => seen = events,
                    Err(e) => break Err(e),
                }
            }
            if let Some(found) = done(&mut state) {
                break Ok(Some(found));
            }
            let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                break Ok(None);
            }
            if state.led {
                let ticket = state.follow(number);
                drop(state);
                match left {
                    Some(left) => std::thread::park_timeout(left),
                    None => std::thread::park(),
                }
                state = self.lock();
                state.followers.retain(|f| f.ticket != ticket);
            } else {
                state.led = true;
                drop(state);
                let slept = self.replies.sleep(seen, deadline);
                state = self.lock();
                state.led = false;
                if let Err(e) = slept {
                    break Err(e);
                }
            }
        };
        // A leader that leaves appoints the next one.
        if !state.led
            && let Some(next) = state.followers.first()
        {
            next.thread.unpark();
        }
        result
    }

    /// Distributes the replies that have arrived, and ends the requests of servers that are gone. Returns the
    /// event count up to which it has seen everything.
    fn settle(&self, state: &mut State) -> Result<u64, TakeError> {
        loop {
            let seen = self.replies.waiter().events();
            let mut dead = Vec::new();
            if state.examined != Some(seen) {
                // Replies that a dead server queued while it lived are taken below, before its requests end.
                dead.extend(
                    state
                        .calls
                        .values()
                        .filter(|c| c.outcome.is_none())
                        .map(|c| c.server),
                );
                dead.sort_unstable();
                dead.dedup();
                dead.retain(|server| !self.replies.hears(partner(*server)));
                state.wake(None);
            }
            let left_one = self.drain(state)?;
            if !state.stuck {
                state.bury(&dead, &self.service);
                state.examined = Some(seen);
            }
            if !left_one {
                return Ok(seen);
            }
            state.examined = None;
        }
    }

    /// Takes replies. Returns true if it disconnected a server that broke the protocol.
    fn drain(&self, state: &mut State) -> Result<bool, TakeError> {
        state.stuck = false;
        let mut left_one = false;
        for _ in 0..BURST {
            match self.replies.take_busy() {
                Ok(Some(message)) => left_one |= self.deliver(state, message),
                Ok(None) => break,
                Err(TakeError::HoldLimit { .. }) => {
                    state.stuck = true;
                    break;
                }
                Err(e) => return Err(e),
            }
        }
        Ok(left_one)
    }

    /// Assigns a reply to its request. Returns true if it disconnected the reply's server for breaking the
    /// protocol.
    fn deliver(&self, state: &mut State, message: Message) -> bool {
        let header = message.correlation().and_then(|bytes| Correlation::parse(&bytes));
        let ours = |c: &Correlation| c.kind != Kind::Request && c.client == self.requests.id();
        let Some(header) = header.filter(ours) else {
            state.stats.malformed += 1;
            self.replies
                .distrust(message.publisher(), "a reply without a valid correlation header");
            return true;
        };
        let call = state.calls.get_mut(&header.number);
        let Some(call) = call.filter(|c| partner(c.server) == message.publisher() && c.outcome.is_none())
        else {
            state.stats.late += 1;
            return false;
        };
        if call.cancelled {
            state.calls.remove(&header.number);
            state.stats.late += 1;
            return false;
        }
        call.outcome = Some(match header.kind {
            Kind::Rejection => {
                let control = message.control();
                let text = &control[..control.len().min(MAX_REJECTION)];
                Err(CallError::Rejected {
                    code: header.code,
                    text: String::from_utf8_lossy(text).into_owned(),
                })
            }
            Kind::Reply | Kind::Request => Ok(message),
        });
        state.stats.answered += 1;
        state.wake(Some(header.number));
        false
    }

    /// Returns why there is no reply after the deadline passed.
    fn give_up(&self, number: u64, timeout: Duration) -> CallError {
        let mut state = self.lock();
        let stuck = state.stuck;
        let call = state.calls.remove(&number);
        if let Some(call) = call {
            let losses = self.replies.losses_from(partner(call.server));
            if losses.total() > call.refused {
                state.stats.refused += 1;
                let full = losses.count(DropReason::QueueFull) > 0;
                return self.dropped(if full {
                    DropReason::QueueFull
                } else {
                    DropReason::HoldLimit
                });
            }
        }
        state.stats.timed_out += 1;
        if stuck {
            return CallError::HoldLimit {
                service: self.service.clone(),
            };
        }
        CallError::Timeout {
            service: self.service.clone(),
            waited: timeout,
        }
    }

    fn no_server(&self) -> CallError {
        let refusals = [self.requests.refusals(), self.replies.refusals()].concat();
        CallError::NoServer {
            service: self.service.clone(),
            refusal: refusals.last().map_or_else(String::new, |r| r.reason.clone()),
        }
    }

    fn dropped(&self, reason: DropReason) -> CallError {
        CallError::Dropped {
            service: self.service.clone(),
            reason,
        }
    }

    /// A forked child must not touch the lock: another thread of the parent may have held it.
    fn check_fork(&self) -> Result<(), CallError> {
        if self.requests.is_foreign() {
            return Err(PublishError::Forked.into());
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the result of request `number` and forgets the request.
    fn finish(&mut self, number: u64) -> Option<Outcome> {
        self.calls.get(&number)?.outcome.as_ref()?;
        self.calls.remove(&number)?.outcome
    }

    /// Ends the requests to servers that are gone.
    fn bury(&mut self, dead: &[u64], service: &str) {
        if dead.is_empty() {
            return;
        }
        let mut ended = Vec::new();
        self.calls.retain(|number, call| {
            let over = call.outcome.is_none() && dead.binary_search(&call.server).is_ok();
            if over && !call.cancelled {
                call.outcome = Some(Err(CallError::ServerDied {
                    service: service.to_owned(),
                }));
                ended.push(*number);
            }
            !(over && call.cancelled)
        });
        self.stats.server_died += ended.len() as u64;
        ended.into_iter().for_each(|number| self.wake(Some(number)));
    }

    fn follow(&mut self, number: Option<u64>) -> u64 {
        self.tickets += 1;
        self.followers.push(Follower {
            ticket: self.tickets,
            number,
            thread: std::thread::current(),
        });
        self.tickets
    }

    /// Wakes the thread that waits for request `number`, or those that wait for a server.
    fn wake(&self, number: Option<u64>) {
        let awaits = self.followers.iter().filter(|f| f.number == number);
        awaits.for_each(|f| f.thread.unpark());
    }
}
