//! Detects lost controllers and stops what they were moving.

use super::commands::Entry;
use super::core::Core;
use super::events::{ControllerEvent, LinkLost};
use super::{Context, Origin};
use crate::clock::now;
use crate::kind::CommandKind;
use crate::safety::{Gone, Which};
use crate::sync::lock;
use crate::transport::{Peer, TransportError};
use crate::{command, telemetry, types};
use prost::Message;
use stats::Time;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

impl Core {
    /// Starts the thread that looks for lost controllers. It sleeps until the next time at which one could be lost.
    pub(crate) fn begin_watching(self: &Arc<Self>) -> Result<(), TransportError> {
        let core = self.clone();
        let thread = std::thread::Builder::new().name("remote-watch".into());
        let watch = move || {
            while !core.has_ended() {
                core.wait_for_loss();
                core.end_twists();
                let lost = lock(&core.state).controllers.lose(now(), core.options.lost_after);
                for gone in lost {
                    core.lose(gone);
                }
            }
        };
        thread
            .spawn(watch)
            .map(drop)
            .map_err(|e| TransportError::Setup(format!("cannot start a thread: {e}")))
    }

    fn wait_for_loss(&self) {
        let mut state = lock(&self.state);
        while !self.has_ended() {
            let loss = state.controllers.next_loss(self.options.lost_after);
            let next = loss.into_iter().chain(state.twists.values().copied()).min();
            let left = next.map_or(Duration::MAX, |at| at.since(now()));
            if left.is_zero() {
                // A message at this very instant is still in time.
                drop(state);
                std::thread::sleep(Duration::from_millis(1));
                return;
            }
            state = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Notes that a command of a subsystem was executed. The lane is held.
    pub(super) fn note_motion(&self, entry: &Entry, subsystem: usize, body: &[u8], origin: &Origin) {
        let is_twist = entry.name == command::Twist::NAME && !entry.is_stop(body);
        let hold = self
            .options
            .twist_hold
            .filter(|_| is_twist && *origin != Origin::Robot);
        let mut state = lock(&self.state);
        match hold {
            Some(hold) => {
                let earlier = state.twists.insert(subsystem, now() + hold);
                // A twist that is prolonged wakes the thread at its old end; that costs less than one wake-up per
                // twist.
                if earlier.is_none() {
                    self.changed.notify_all();
                }
            }
            None => drop(state.twists.remove(&subsystem)),
        }
    }

    /// Stops subsystems whose twist has expired.
    fn end_twists(&self) {
        let over = |at: &Time| *at <= now();
        let due: Vec<usize> = (lock(&self.state).twists.iter())
            .filter(|(_, at)| over(at))
            .map(|(subsystem, _)| *subsystem)
            .collect();
        for subsystem in due {
            let lane = self.lane(subsystem);
            let _lane = lock(&lane);
            // Another twist may have arrived while this thread waited for the lane.
            let still = lock(&self.state).twists.get(&subsystem).is_some_and(over);
            if still && !self.has_ended() {
                lock(&self.state).twists.remove(&subsystem);
                tracing::debug!("{}: the twist has expired: stopping", self.name);
                stop_twists(self, subsystem);
            }
        }
    }

    /// Stops what a lost controller was moving.
    pub(crate) fn lose(&self, gone: Gone) {
        let held: Vec<(usize, String)> = {
            let state = lock(&self.state);
            let held = state
                .rights
                .all()
                .enumerate()
                .filter(|(_, (_, holder))| *holder == gone.id);
            held.map(|(number, (name, _))| (number, name.to_owned()))
                .collect()
        };
        for (subsystem, name) in held {
            let lane = self.lane(subsystem);
            let _lane = lock(&lane);
            {
                let mut state = lock(&self.state);
                let which = Which::One(subsystem);
                // The controller may have come back, or handed the right over, while another thread held the lane.
                if state.controllers.is_alive(gone.id) || state.rights.holder(which) != gone.id {
                    continue;
                }
                state.rights.release(gone.id, which);
            }
            tracing::warn!(
                "{}: {} held the right to move {name} and is lost",
                self.name,
                gone.name
            );
            let lost = LinkLost {
                core: self,
                subsystem,
                name: &name,
                controller: &gone.name,
            };
            let callback = self.events.link_lost.get();
            let done =
                callback.and_then(|f| self.counters.guarded("the callback for lost links", || f(&lost)));
            // Also if the callback panicked before it stopped the subsystem.
            if done.is_none() {
                lost.stop();
            }
        }
        self.notify(ControllerEvent::Lost {
            id: gone.id,
            name: gone.name,
            peer: gone.peer,
        });
    }

    /// A peer lost its permission: all its controllers are lost at once.
    pub(super) fn revoke(&self, peer: &Peer) {
        let gone = lock(&self.state).controllers.revoke(peer);
        for gone in gone {
            self.counters.dropped("controllers_revoked", 1);
            self.lose(gone);
        }
    }
}

/// Stops everything that moves a subsystem. Its lane is held.
pub(super) fn stop(core: &Core, subsystem: usize) {
    lock(&core.state).twists.remove(&subsystem);
    if !stop_those(core, subsystem, |_| true) {
        let name = lock(&core.state).rights.name(subsystem).to_owned();
        tracing::error!("{}: no handler stops {name}: set Robot::on_link_lost", core.name);
    }
}

/// Stops what twists move in a subsystem. Its lane is held.
fn stop_twists(core: &Core, subsystem: usize) {
    stop_those(core, subsystem, |entry| entry.name == command::Twist::NAME);
}

/// Sends each kind of command that moves a subsystem its stopping body. Returns whether any kind has one.
fn stop_those(core: &Core, subsystem: usize, which: impl Fn(&Entry) -> bool) -> bool {
    let mut stopped = false;
    let all = core.commands.all();
    for entry in all.iter().filter(|e| e.subsystem == Some(subsystem) && which(e)) {
        let Some(body) = entry.stop.clone().or_else(|| stopping(core, entry.name)) else {
            continue;
        };
        let context = Context {
            origin: Origin::Robot,
            sequence: 0,
            age: None,
            good_until: None,
        };
        match entry.handle(&core.counters, &body, &context) {
            Ok(()) => stopped = true,
            Err(rejection) => tracing::error!("{}: {} was not stopped: {rejection}", core.name, entry.name),
        }
    }
    stopped
}

/// Returns the body that stops one of the library's kinds: a twist without velocity; joints that hold their latest
/// reported positions.
fn stopping(core: &Core, kind: &str) -> Option<Vec<u8>> {
    if kind == command::Twist::NAME {
        let zero = Some(types::Vector3::default());
        return Some(
            types::Twist {
                header: None,
                linear: zero,
                angular: zero,
            }
            .encode_to_vec(),
        );
    }
    if kind == command::Joints::NAME {
        let body = core.streams.register::<telemetry::JointState>().ok()?.latest(0)?;
        let joints = types::JointState::decode(body).ok()?;
        let hold = types::JointCommand {
            velocity: vec![0.0; joints.name.len()],
            name: joints.name,
            position: joints.position,
            ..Default::default()
        };
        return Some(hold.encode_to_vec());
    }
    None
}
