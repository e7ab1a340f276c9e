//! Output of the agents, for threads that wait for it.

use super::protocol::{Answer, Hello, Report};
use crate::kit::error::RunError;
use stats::Time;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a wait checks whether the user stopped it.
const LOOK: Duration = Duration::from_millis(50);

/// State of all agents of a session.
pub(super) struct Reports {
    states: Mutex<Vec<State>>,
    changed: Condvar,
}

/// State of one agent.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) hello: Option<Hello>,
    /// Why it is gone.
    pub(super) lost: Option<String>,
    /// Lines of the run's nodes that are not taken yet.
    pub(super) heard: VecDeque<(u32, String)>,
    /// Why the run failed.
    pub(super) failed: Option<String>,
    /// Answer to the last order.
    pub(super) answer: Option<Result<Answer, String>>,
    given: u64,
    run: Option<u64>,
    /// How many lines of the run's nodes may still arrive.
    room: usize,
}

impl Reports {
    pub(super) fn new(agents: usize) -> Reports {
        let mut states = Vec::new();
        states.resize_with(agents, State::default);
        Reports {
            states: Mutex::new(states),
            changed: Condvar::new(),
        }
    }

    /// Applies `change` to the state of one agent; `None` if there is no such agent.
    pub(super) fn with<T>(&self, who: usize, change: impl FnOnce(&mut State) -> T) -> Option<T> {
        let result = self.lock().get_mut(who).map(change);
        self.changed.notify_all();
        result
    }

    /// Waits until `look` returns a value; `None` if `deadline` passes first.
    ///
    /// # Errors
    /// The user stopped it.
    pub(super) fn wait<T>(
        &self,
        deadline: Time,
        stopped: &dyn Fn() -> bool,
        mut look: impl FnMut(&mut [State]) -> Option<T>,
    ) -> Result<Option<T>, RunError> {
        let mut states = self.lock();
        loop {
            if let Some(found) = look(&mut states) {
                return Ok(Some(found));
            }
            if stopped() {
                return Err(RunError::Stopped);
            }
            let left = deadline.since(clock::monotonic());
            if left.is_zero() {
                return Ok(None);
            }
            let waited = self.changed.wait_timeout(states, left.min(LOOK));
            states = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<State>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the number of a new order. Waiting for the previous order ends.
    pub(super) fn order(&mut self) -> u64 {
        self.given += 1;
        self.answer = None;
        self.given
    }

    /// Starts to store lines of this run's nodes, up to `room`.
    pub(super) fn begin(&mut self, run: u64, room: usize) {
        self.run = Some(run);
        self.room = room;
        self.heard.clear();
        self.failed = None;
    }

    /// Stores an agent's report.
    ///
    /// # Errors
    /// Why it is gone, or not an agent.
    pub(super) fn hear(&mut self, report: Report) -> Result<(), String> {
        let odd = |what: &str| Err(format!("it said {what}"));
        match report {
            Report::Bye { why } => return odd(&format!("that it ends: {why}")),
            Report::Hello(hello) if self.hello.is_none() => self.hello = Some(*hello),
            Report::Hello(_) => return odd("hello twice"),
            _ if self.hello.is_none() => return odd("something before its hello"),
            Report::Beat => {}
            // A late line belongs to a run that is over.
            Report::Said { run, .. } | Report::Failed { run, .. } if self.run != Some(run) => {}
            Report::Said { .. } if self.room == 0 => return odd("more than its nodes can print"),
            Report::Said { node, line, .. } => {
                self.room -= 1;
                self.heard.push_back((node, line));
            }
            Report::Failed { why, .. } => {
                self.failed.get_or_insert(why);
            }
            Report::Done { number, .. } | Report::Refused { number, .. } if number > self.given => {
                return odd("that it obeyed an order that was not given");
            }
            Report::Done { number, answer } => self.answered(number, Ok(answer)),
            Report::Refused { number, why } => self.answered(number, Err(why)),
        }
        Ok(())
    }

    fn answered(&mut self, number: u64, answer: Result<Answer, String>) {
        // Answers to earlier orders are no longer awaited.
        if number == self.given {
            self.answer = Some(answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeted() -> State {
        let mut state = State::default();
        assert_eq!(state.hear(Report::Hello(Box::default())), Ok(()));
        state
    }

    fn said(run: u64) -> Report {
        Report::Said {
            run,
            node: 1,
            line: "ready".into(),
        }
    }

    #[test]
    fn agents_that_send_no_hello_or_too_much_are_refused() {
        assert!(State::default().hear(Report::Beat).is_err());
        assert!(greeted().hear(Report::Hello(Box::default())).is_err());
        let mut state = greeted();
        assert_eq!(state.hear(said(1)), Ok(()));
        assert!(state.heard.is_empty(), "a line of no run");
        state.begin(1, 2);
        assert_eq!(
            [state.hear(said(1)), state.hear(said(0)), state.hear(said(1))],
            [Ok(()), Ok(()), Ok(())]
        );
        assert_eq!(state.heard.len(), 2);
        assert!(state.hear(said(1)).is_err_and(|e| e.contains("more than")));
    }

    #[test]
    fn answers_are_to_the_last_order() {
        let mut state = greeted();
        let done = |number| Report::Done {
            number,
            answer: Answer::Yes,
        };
        assert!(state.hear(done(1)).is_err_and(|e| e.contains("not given")));
        let (first, second) = (state.order(), state.order());
        assert_eq!((state.hear(done(first)), state.answer.take()), (Ok(()), None));
        assert_eq!(
            (state.hear(done(second)), state.answer.take()),
            (Ok(()), Some(Ok(Answer::Yes)))
        );
    }

    #[test]
    fn waits_end_by_what_is_said_or_the_deadline() {
        let reports = Reports::new(1);
        let found = reports.wait(clock::monotonic(), &|| false, |s| s[0].lost.clone());
        assert!(matches!(found, Ok(None)));
        assert_eq!(reports.with(1, |_| ()), None);
        reports.with(0, |s| s.lost = Some("gone".into()));
        let found = reports.wait(clock::monotonic(), &|| false, |s| s[0].lost.clone());
        assert!(matches!(found, Ok(Some(why)) if why == "gone"));
        let stopped = reports.wait(Time::MAX, &|| true, |s| s[0].failed.clone());
        assert!(matches!(stopped, Err(RunError::Stopped)));
    }
}
