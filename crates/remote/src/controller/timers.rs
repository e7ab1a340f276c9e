//! The thread for a controller's timed work: heartbeats, retries, giving up, and noticing silence.

use super::core::{Connection, Core};
use crate::clock::now;
use crate::own::{self, Outcome, request};
use crate::sync::lock;
use crate::transport::TransportError;
use stats::Time;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

/// Maximum number of heartbeats in flight: further ones give no information.
const BEATS: u32 = 8;

impl Core {
    pub(crate) fn start_timers(self: &Arc<Self>) -> Result<(), TransportError> {
        let core = self.clone();
        let run = move || {
            while !core.has_ended() {
                core.wait_until_due();
                core.greet();
                core.beat();
                core.look_at_parked();
                core.look_for_silence();
            }
        };
        let thread = std::thread::Builder::new().name("remote-timers".into());
        thread
            .spawn(run)
            .map(drop)
            .map_err(|e| TransportError::Setup(format!("cannot start a thread: {e}")))
    }

    fn wait_until_due(&self) {
        let mut state = lock(&self.state);
        while !self.has_ended() {
            let greet = match (&state.known, state.greeting) {
                (None, false) => Some(state.greet_at.unwrap_or(Time::ZERO)),
                _ => None,
            };
            let beat = state.known.as_ref().and(state.beat_at);
            let silence = state
                .heard
                .filter(|_| state.found)
                .map(|h| h + state.patience(self.period));
            let parked = state
                .parked
                .iter()
                .map(|(call, retry)| call.give_up_at().min(retry.unwrap_or(Time::MAX)));
            let due = [greet, beat, silence].into_iter().flatten().chain(parked).min();
            let left = due.map_or(Duration::MAX, |at| at.since(now()));
            if left.is_zero() {
                return;
            }
            state = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Sends a heartbeat, and measures the round trip by its answer.
    fn beat(self: &Arc<Self>) {
        let now = now();
        {
            let mut state = lock(&self.state);
            let due = state.known.is_some() && state.beat_at.is_some_and(|at| at <= now);
            if !due {
                return;
            }
            state.beat_at = Some(now + self.period);
            if state.beats_under_way >= BEATS {
                return;
            }
            state.beats_under_way += 1;
        }
        let timeout = (self.period * BEATS).max(Duration::from_secs(5));
        if self.speaks_v6() {
            let core: Weak<Core> = Arc::downgrade(self);
            return self.beat_v6(timeout, move |heard| {
                let Some(core) = core.upgrade() else { return };
                let arrived = crate::clock::now();
                {
                    let mut state = lock(&core.state);
                    state.beats_under_way -= 1;
                    if heard {
                        state.round_trip(arrived.since(now));
                    }
                }
                if heard {
                    core.mark_heard(arrived);
                }
            });
        }
        let period_ms = u32::try_from(self.period.as_millis()).unwrap_or(u32::MAX);
        let core: Weak<Core> = Arc::downgrade(self);
        let what = request::What::Heartbeat(own::Heartbeat { period_ms });
        self.ask(what, timeout, move |result| {
            let Some(core) = core.upgrade() else { return };
            let arrived = crate::clock::now();
            lock(&core.state).beats_under_way -= 1;
            let Some(response) = result.ok().and_then(|frame| core.heard_response(frame)) else {
                return;
            };
            match response.outcome() {
                Outcome::Executed => lock(&core.state).round_trip(arrived.since(now)),
                Outcome::UnknownController => core.forget_meeting(),
                _ => {}
            }
        });
    }

    fn look_at_parked(self: &Arc<Self>) {
        let now = now();
        let (mut again, mut over) = (Vec::new(), Vec::new());
        lock(&self.state).parked.retain(|(call, retry)| {
            if retry.is_some_and(|at| at <= now) {
                again.push(call.clone());
            } else if call.give_up_at() <= now {
                over.push(call.clone());
            } else {
                return true;
            }
            false
        });
        for call in over {
            call.give_up();
        }
        for call in again {
            self.dispatch(call);
        }
    }

    fn look_for_silence(&self) {
        let lost = {
            let mut state = lock(&self.state);
            let patience = state.patience(self.period);
            let silent = state.heard.is_some_and(|heard| now().since(heard) >= patience);
            silent && std::mem::replace(&mut state.found, false)
        };
        if lost {
            self.notify(Connection::Lost);
        }
    }
}
