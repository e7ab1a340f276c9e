//! The coordinator's lines to an agent.

use super::lines::Lines;
use super::protocol::{self, BEAT, LONGEST, Line, Order, Report, SILENT};
use crate::kit::error::Error;
use rustix::process::{Pid, getppid};
use stats::Time;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of orders that wait: the coordinator waits for the answer to each.
const WAITING: usize = 16;
/// How long an agent may take to end what it started when the session is over.
const CLEAR: Duration = Duration::from_secs(40);

/// An order with its number.
pub(super) type Numbered = (u64, Order);

/// The received orders. Threads read input, send heartbeats, and end this process when it is no longer needed.
#[derive(Clone)]
pub(super) struct Inbox(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    parent: Option<Pid>,
}

#[derive(Default)]
struct State {
    orders: VecDeque<Numbered>,
    over: Option<Over>,
    heard: Time,
}

/// Why the session is over.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Over {
    /// The coordinator is gone, or has ended this agent.
    Ended,
    /// Nothing was received for a while.
    Silent,
    /// The parent of this process has ended.
    Orphaned,
    /// An invalid line was received.
    Odd(String),
}

impl Inbox {
    /// Starts to read standard input.
    pub(super) fn watch() -> Result<Inbox, Error> {
        let inbox = Inbox(Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            parent: getppid(),
        }));
        inbox.lock().heard = clock::monotonic();
        type Work = fn(&Inbox);
        for (name, work) in [("orders", Inbox::listen as Work), ("watch", Inbox::guard)] {
            let inbox = inbox.clone();
            thread(name, move || work(&inbox))?;
        }
        Ok(inbox)
    }

    /// Starts to send heartbeats.
    pub(super) fn beat(&self) -> Result<(), Error> {
        thread("beat", || {
            while say(&Report::Beat) {
                std::thread::sleep(BEAT);
            }
        })
    }

    /// Returns the next order; `None`: the session is over.
    pub(super) fn next(&self) -> Option<Numbered> {
        let mut state = self.lock();
        loop {
            if state.over.is_some() {
                return None;
            }
            if let Some(order) = state.orders.pop_front() {
                return Some(order);
            }
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns whether [`Inbox::next`] would not wait.
    pub(super) fn has_news(&self) -> bool {
        let state = self.lock();
        state.over.is_some() || !state.orders.is_empty()
    }

    /// Returns why the session is over, if it is.
    pub(super) fn over(&self) -> Option<Over> {
        self.lock().over.clone()
    }

    /// Returns whether the parent of this process has ended, which may be the reason for the end of the session, or
    /// have followed it.
    pub(super) fn is_orphaned(&self) -> bool {
        getppid() != self.0.parent
    }

    fn end(&self, why: Over) {
        self.lock().over.get_or_insert(why);
        self.0.changed.notify_all();
    }

    fn listen(&self) {
        let (mut lines, mut bytes) = (Lines::new(LONGEST), vec![0; 64 << 10]);
        let mut input = std::io::stdin().lock();
        loop {
            match input.read(&mut bytes) {
                Ok(0) => return self.end(Over::Ended),
                Ok(n) => lines.push(&bytes[..n]),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => return self.end(Over::Ended),
            }
            self.lock().heard = clock::monotonic();
            loop {
                match lines
                    .next()
                    .and_then(|line| line.map(|l| Line::parse(&l)).transpose())
                {
                    Ok(None) => break,
                    Ok(Some(Line::Beat)) => {}
                    Ok(Some(Line::Order { number, order })) => {
                        let mut state = self.lock();
                        if state.orders.len() == WAITING {
                            drop(state);
                            return self.end(Over::Odd("more orders than answers are awaited".into()));
                        }
                        state.orders.push_back((number, order));
                        self.0.changed.notify_all();
                    }
                    Err(why) => return self.end(Over::Odd(why)),
                }
            }
        }
    }

    fn guard(&self) {
        loop {
            std::thread::sleep(BEAT);
            if self.is_orphaned() {
                self.end(Over::Orphaned);
            }
            if clock::monotonic().since(self.lock().heard) > SILENT {
                self.end(Over::Silent);
            }
            if self.over().is_some() {
                std::thread::sleep(CLEAR);
                // The parent process ends the remaining processes.
                std::process::exit(1);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends a line; returns false if the reader is gone.
pub(super) fn say(report: &Report) -> bool {
    let line = protocol::written(report);
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_ok()
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let started = std::thread::Builder::new().name(name.into()).spawn(work);
    started.map(drop).map_err(|source| Error::System {
        doing: "starting a thread",
        source,
    })
}
