//! Lets calls into a sink until an end stops, and then waits for the calls that have started.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Gate(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    closed: bool,
    inside: usize,
}

/// A call that is inside; dropping it leaves.
pub(super) struct Pass(Gate);

impl Gate {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters; `None` once the gate is closed.
    pub(super) fn enter(&self) -> Option<Pass> {
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        state.inside += 1;
        Some(Pass(self.clone()))
    }

    /// Returns whether the gate is closed.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Closes the gate: no call enters any more.
    pub(super) fn close(&self) {
        self.lock().closed = true;
    }

    /// Returns whether no call is inside.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().inside == 0
    }

    /// Waits until all calls have left, at most `patience`.
    pub(super) fn wait_empty(&self, patience: Duration) {
        let wait = self
            .0
            .1
            .wait_timeout_while(self.lock(), patience, |s| s.inside > 0);
        drop(wait.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let gate = &self.0;
        let mut state = gate.lock();
        state.inside -= 1;
        if state.inside == 0 {
            gate.0.1.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_gate_waits_for_those_inside_and_admits_no_more() {
        let gate = Gate::default();
        let pass = gate.enter().expect("is open");
        gate.close();
        assert!(gate.is_closed() && gate.enter().is_none());
        let leaver = std::thread::spawn(move || drop(pass));
        gate.wait_empty(Duration::from_secs(60));
        assert_eq!(gate.lock().inside, 0);
        leaver.join().expect("no panic");
    }
}
