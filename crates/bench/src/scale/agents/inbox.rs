//! What the coordinator says to an agent.

use super::lines::Lines;
use super::protocol::{self, BEAT, LONGEST, Line, Order, Report, SILENT};
use crate::ipc::Error;
use rustix::process::{Pid, getppid};
use stats::Time;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Orders that may wait: the coordinator waits for the answer to each.
const WAITING: usize = 16;
/// How long an agent may take to clear away what it started when it is over.
const CLEAR: Duration = Duration::from_secs(40);

/// An order with its number.
pub(super) type Numbered = (u64, Order);

/// The orders that came; threads listen, beat, and see that this process does not outlive its use.
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

/// Why no more will come.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Over {
    /// The coordinator has gone, or let this agent go.
    Ended,
    /// Nothing came for a while.
    Silent,
    /// Who started this process has ended.
    Orphaned,
    /// It said what is not understood.
    Odd(String),
}

impl Inbox {
    /// Listens to standard input from now on.
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

    /// Says from now on that this agent is still there.
    pub(super) fn beat(&self) -> Result<(), Error> {
        thread("beat", || {
            while say(&Report::Beat) {
                std::thread::sleep(BEAT);
            }
        })
    }

    /// The next order; none: it is over.
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

    /// Whether [`Inbox::next`] would not wait.
    pub(super) fn has_news(&self) -> bool {
        let state = self.lock();
        state.over.is_some() || !state.orders.is_empty()
    }

    /// Why it is over, if it is.
    pub(super) fn over(&self) -> Option<Over> {
        self.lock().over.clone()
    }

    /// Whether who started this process has ended, which may be why it is over, or have come after that.
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
                            return self.end(Over::Odd("more orders than anybody waits for".into()));
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
                // Its keeper ends what is left.
                std::process::exit(1);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says a line; false if nobody reads any more.
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
