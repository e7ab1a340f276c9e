//! Requests of one class that are under way, and who waits for their answers: a thread of the end's own, or one that waits for one of them.

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

/// So many requests of one class may be without an answer.
pub(super) const MOST: u32 = 256;

/// For one class.
pub(super) struct Caller {
    client: Client,
    under_way: Mutex<UnderWay>,
    /// Rings when the thread has to receive itself again.
    freed: Condvar,
    /// Wakes who receives.
    wake: OwnedFd,
}

#[derive(Default)]
struct UnderWay {
    closed: bool,
    calls: Vec<Call>,
    /// Until when whoever receives sleeps if nothing comes.
    asleep_until: Option<Time>,
    /// Somebody who waits for an answer receives instead of the thread, which then touches neither client nor descriptors.
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
            wake: wake.map_err(|e| setup(format_args!("cannot make an eventfd: {e}")))?,
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
        // Under the lock, so that who receives knows of the call before its answer can come.
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
        // An answer wakes by itself; only an earlier end of somebody's time has to be told.
        if under_way.asleep_until.is_none_or(|until| until > deadline) {
            under_way.asleep_until = Some(deadline);
            drop(under_way);
            self.wake();
        }
        Ok(())
    }

    /// Lets whoever receives look at once.
    pub(super) fn wake(&self) {
        // A full counter is as good a wake-up as any.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Ends what is under way; nothing more is sent.
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

    /// Hands answers up until it is closed; `connected` is told whenever servers come or go.
    pub(super) fn run(&self, gate: &Gate, mut connected: impl FnMut(bool)) {
        let mut buffer = Vec::new();
        let mut served = false;
        let mut rang = false;
        loop {
            let mut under_way = lock(&self.under_way);
            while under_way.borrowed && !under_way.closed {
                // What rang is for who receives.
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
                // The descriptor does not tell any more of what happened before; a closed gate is told nothing.
                Looked::Nothing(_) if self.client.bus().has_server() != served && !gate.is_closed() => {}
                Looked::Nothing(until) => rang = self.sleep(until),
            }
        }
    }

    /// Hands answers up in this thread, until `over` says so: see [`ControllerEnd::receive`](crate::transport::ControllerEnd::receive).
    pub(super) fn receive(&self, timeout: Duration, over: &dyn Fn() -> bool) {
        let until = clock::monotonic() + timeout;
        {
            let mut under_way = lock(&self.under_way);
            if under_way.borrowed {
                return;
            }
            under_way.borrowed = true;
        }
        // Given back also if a callback panics.
        let _borrowed = Borrowed(self);
        let mut buffer = Vec::new();
        let mut rang = false;
        while !over() && clock::monotonic() < until {
            if std::mem::take(&mut rang) {
                self.clear();
            }
            let under_way = lock(&self.under_way);
            // That a server is gone, the thread tells.
            if under_way.closed || under_way.calls.is_empty() || !self.client.bus().has_server() {
                return;
            }
            match self.look(under_way) {
                Looked::Over(ended) => ended.into_iter().for_each(|(c, r)| hand(c, r, &mut buffer)),
                Looked::Nothing(due) => rang = self.sleep(Some(due.map_or(until, |due| due.min(until)))),
            }
        }
    }

    /// Takes the calls of which the end is known; if there are none, lets the descriptors tell of the next.
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
        // A call that is over leaves its time: the next, which is likely to wait as long, then needs to wake nobody.
        under_way.asleep_until = until.or(under_way.asleep_until.filter(|t| *t > clock::monotonic()));
        Looked::Nothing(under_way.asleep_until)
    }

    /// Sleeps until something happens; whether somebody rang, which [`Caller::clear`] forgets.
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

/// What a look at the calls found.
enum Looked {
    Over(Vec<(Call, Result<Reply, CallError>)>),
    /// And until when nothing is due.
    Nothing(Option<Time>),
}

/// Receiving, lent to who waits; dropping it gives it back to the thread.
struct Borrowed<'a>(&'a Caller);

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        lock(&self.0.under_way).borrowed = false;
        self.0.freed.notify_all();
    }
}

impl UnderWay {
    /// The calls of which the end is known.
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
            .map_err(|error| TransportError::Unreachable(format!("its answer is none: {error}")))
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
