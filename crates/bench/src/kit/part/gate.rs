//! Standard input, through which the orchestrator sends its commands.

use std::io::BufRead;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// The commands so far; a thread blocks in `read`.
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

    /// Blocks until `go`; returns false on `stop` or the end of input.
    pub(crate) fn wait_for_go(&self) -> bool {
        !self.wait_while(|s| !s.go && !s.stop).stop
    }

    /// Blocks until `stop` or the end of input.
    pub(crate) fn wait_for_stop(&self) {
        self.wait_while(|s| !s.stop);
    }

    /// Returns whether the run is over.
    pub(crate) fn stopped(&self) -> bool {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).stop
    }
}
