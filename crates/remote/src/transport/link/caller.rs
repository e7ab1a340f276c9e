//! Requests of one class in progress, and the thread that receives their answers: one of the end's own, or one that
//! waits for an answer.

use super::gate::Gate;
use super::robot::setup;
use super::{errors, frame};
use crate::sync::lock;
use crate::transport::{Done, TransportError};
use clock::{PollFd, PollFlags};
use ropewalk::{CallError, Client, Pending, Reply, Time};
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum requests of one class without an answer.
pub(super) const MOST: u32 = 256;

/// For one class.
pub(super) struct Caller {
    client: Client,
    under_way: Mutex<UnderWay>,
    /// Notified when the end's own thread has to receive again.
    freed: Condvar,
    /// Wakes the thread that receives.
    wake: OwnedFd,
}

#[derive(Default)]
struct UnderWay {
    closed: bool,
    calls: Vec<Call>,
    /// Until when the receiving thread sleeps if nothing arrives.
    asleep_until: Option<Time>,
    /// A thread that waits for an answer receives in place of the end's own thread, which then touches neither client
    /// nor descriptors.
    borrowed: bool,
}

struct Call {
    pending: Pending,
    timeout: Duration,
    deadline: Time,
    done: Done,
}

impl Caller {
    pub(super) fn new(client: Client) -> Result<Self, TransportError> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(Caller {
            client,
            under_way: Mutex::default(),
            freed: Condvar::new(),
            wake: wake.map_err(|e| setup(format_args!("cannot create an eventfd: {e}")))?,
        })
    }

    /// Sends a request; never blocks.
    pub(super) fn request(&self, frame: &[u8], timeout: Duration, done: Done) {
        if let Err((error, done)) = self.send(frame, timeout, done) {
            done(Err(error));
        }
    }

    fn send(&self, frame: &[u8], timeout: Duration, done: Done) -> Result<(), (TransportError, Done)> {
        if frame.len() > frame::MAX {
            let (len, most) = (frame.len(), frame::MAX);
            return Err((TransportError::TooLong { len, most }, done));
        }
        let loan = frame::write(frame, |control, parts| self.client.loan(control, parts));
        let loan = match loan {
            Ok(loan) => loan,
            Err(error) => return Err((errors::loan(frame.len(), error), done)),
        };
        let mut under_way = lock(&self.under_way);
        if under_way.closed {
            return Err((TransportError::Ended, done));
        }
        // Send under the lock, so that the receiving thread knows of the call before its answer can arrive.
        let pending = match self.client.send(loan, timeout) {
            Ok(pending) => pending,
            Err(CallError::Call(error)) => return Err((errors::send(error), done)),
            Err(error) => return Err((TransportError::NotSent(error.to_string()), done)),
        };
        let deadline = clock::monotonic() + timeout;
        under_way.calls.push(Call {
            pending,
            timeout,
            deadline,
            done,
        });
        // An answer wakes the receiver itself; only an earlier deadline needs a wake-up.
        if under_way.asleep_until.is_none_or(|until| until > deadline) {
            under_way.asleep_until = Some(deadline);
            drop(under_way);
            self.wake();
        }
        Ok(())
    }

    /// Makes the receiving thread look at once.
    pub(super) fn wake(&self) {
        // The counter is full only if the thread is being woken already.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Ends the requests in progress; further ones are refused.
    pub(super) fn close(&self) {
        let mut under_way = lock(&self.under_way);
        under_way.closed = true;
        let calls = std::mem::take(&mut under_way.calls);
        drop(under_way);
        for call in calls {
            (call.done)(Err(TransportError::Ended));
        }
        self.freed.notify_all();
        self.wake();
    }

    /// Delivers answers until the gate is closed; calls `connected` whenever servers come or go.
    pub(super) fn run(&self, gate: &Gate, mut connected: impl FnMut(bool)) {
        let mut buffer = Vec::new();
        let mut served = false;
        let mut rang = false;
        loop {
            let mut under_way = lock(&self.under_way);
            while under_way.borrowed && !under_way.closed {
                // The wake-up is for the thread that receives.
                rang = false;
                under_way = self.freed.wait(under_way).unwrap_or_else(PoisonError::into_inner);
            }
            if under_way.closed {
                return;
            }
            if std::mem::take(&mut rang) {
                self.clear();
            }
            let serves = self.client.bus().has_server();
            if serves != served
                && let Some(_pass) = gate.enter()
            {
                drop(under_way);
                served = serves;
                connected(serves);
                continue;
            }
            match self.look(under_way) {
                Looked::Over(over) => over.into_iter().for_each(|(c, r)| hand(c, r, &mut buffer)),
                // The descriptor does not report earlier changes; a closed gate gets no call.
                Looked::Nothing(_) if self.client.bus().has_server() != served && !gate.is_closed() => {}
                Looked::Nothing(until) => rang = self.sleep(until),
            }
        }
    }

    /// Delivers answers in this thread, until `over` returns true: see
    /// [`ControllerEnd::receive`](crate::transport::ControllerEnd::receive).
    pub(super) fn receive(&self, timeout: Duration, over: &dyn Fn() -> bool) {
        let until = clock::monotonic() + timeout;
        {
            let mut under_way = lock(&self.under_way);
            if under_way.borrowed {
                return;
            }
            under_way.borrowed = true;
        }
        // Also given back if a callback panics.
        let _borrowed = Borrowed(self);
        let mut buffer = Vec::new();
        let mut rang = false;
        while !over() && clock::monotonic() < until {
            if std::mem::take(&mut rang) {
                self.clear();
            }
            let under_way = lock(&self.under_way);
            // The end's own thread reports that a server is gone.
            if under_way.closed || under_way.calls.is_empty() || !self.client.bus().has_server() {
                return;
            }
            match self.look(under_way) {
                Looked::Over(ended) => ended.into_iter().for_each(|(c, r)| hand(c, r, &mut buffer)),
                Looked::Nothing(due) => rang = self.sleep(Some(due.map_or(until, |due| due.min(until)))),
            }
        }
    }

    /// Takes the calls that have ended; if there are none, arms the descriptors for the next.
    fn look(&self, mut under_way: MutexGuard<'_, UnderWay>) -> Looked {
        loop {
            let over = under_way.take_over();
            if !over.is_empty() {
                return Looked::Over(over);
            }
            match self.client.bus().rearm() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    tracing::error!(%error, service = self.client.service(), "cannot wait for answers");
                    break;
                }
            }
        }
        let until = under_way.calls.iter().map(|c| c.deadline).min();
        // Keeps the deadline of an ended call: the next call probably waits as long, and then needs no wake-up.
        under_way.asleep_until = until.or(under_way.asleep_until.filter(|t| *t > clock::monotonic()));
        Looked::Nothing(under_way.asleep_until)
    }

    /// Sleeps until something happens. Returns whether there was a wake-up, which [`Caller::clear`] resets.
    fn sleep(&self, until: Option<Time>) -> bool {
        let mut fds = [
            PollFd::from_borrowed_fd(self.client.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN),
        ];
        if clock::wait(&mut fds, until, Duration::ZERO).is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
        !fds[1].revents().is_empty()
    }

    fn clear(&self) {
        let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
    }
}

/// Result of looking at the calls.
enum Looked {
    Over(Vec<(Call, Result<Reply, CallError>)>),
    /// With the time until which nothing is due.
    Nothing(Option<Time>),
}

/// Receiving, borrowed by a waiting thread; dropping it gives it back to the end's own thread.
struct Borrowed<'a>(&'a Caller);

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        lock(&self.0.under_way).borrowed = false;
        self.0.freed.notify_all();
    }
}

impl UnderWay {
    /// Takes the calls that have ended.
    fn take_over(&mut self) -> Vec<(Call, Result<Reply, CallError>)> {
        let mut over = Vec::new();
        let mut i = 0;
        while let Some(call) = self.calls.get_mut(i) {
            match call.pending.poll() {
                Some(result) => over.push((self.calls.remove(i), result)),
                None => i += 1,
            }
        }
        over
    }
}

fn hand(call: Call, result: Result<Reply, CallError>, buffer: &mut Vec<u8>) {
    let Call { timeout, done, .. } = call;
    let result = result.map_err(|error| failed(timeout, error));
    let frame = result.and_then(|reply| {
        frame::read(reply.bus().message(), buffer)
            .map_err(|error| TransportError::Unreachable(format!("malformed answer: {error}")))
    });
    done(frame);
}

fn failed(timeout: Duration, error: CallError) -> TransportError {
    match error {
        CallError::Call(error) => errors::call(timeout, error),
        other => TransportError::Unreachable(other.to_string()),
    }
}

/// Starts a caller's thread.
pub(super) fn start(
    caller: &Arc<Caller>,
    gate: &Gate,
    connected: impl FnMut(bool) + Send + 'static,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    let (caller, gate) = (caller.clone(), gate.clone());
    std::thread::Builder::new()
        .name("remote-answers".into())
        .spawn(move || caller.run(&gate, connected))
}
