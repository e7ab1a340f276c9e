//! Standard input, through which the orchestrator says when.

use std::io::BufRead;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// What was said so far; a thread that sleeps in `read` listens.
#[derive(Clone)]
pub(crate) struct Gate(Arc<(Mutex<State>, Condvar)>);

#[derive(Clone, Copy, Default)]
struct State {
    go: bool,
    stop: bool,
}

impl Gate {
    pub(crate) fn watch() -> std::io::Result<Gate> {
        let gate = Gate(Arc::default());
        let inside = gate.clone();
        std::thread::Builder::new().name("stdin".into()).spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                match line.trim() {
                    "go" => inside.set(|s| s.go = true),
                    "stop" => break,
                    _ => {}
                }
            }
            inside.set(|s| s.stop = true);
        })?;
        Ok(gate)
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.0.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.1.notify_all();
    }

    fn wait_while(&self, condition: impl Fn(&State) -> bool) -> State {
        let state = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.0.1.wait_while(state, |s| condition(s));
        *state.unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks until `go`; false if it is `stop` or the end instead.
    pub(crate) fn wait_for_go(&self) -> bool {
        !self.wait_while(|s| !s.go && !s.stop).stop
    }

    /// Blocks until `stop` or the end.
    pub(crate) fn wait_for_stop(&self) {
        self.wait_while(|s| !s.stop);
    }

    /// Whether it is over.
    pub(crate) fn stopped(&self) -> bool {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).stop
    }
}
