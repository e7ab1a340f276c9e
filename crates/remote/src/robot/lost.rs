//! Watching who is still there, and stopping what has lost its controller.

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
use std::sync::{Arc, PoisonError};
use std::time::Duration;

impl Core {
    /// Starts the thread that looks for lost controllers: it sleeps until one could be.
    pub(crate) fn begin_watching(self: &Arc<Self>) -> Result<(), TransportError> {
        let core = self.clone();
        let thread = std::thread::Builder::new().name("remote-watch".into());
        let watch = move || {
            while !core.has_ended() {
                core.wait_for_loss();
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
            let next = state.controllers.next_loss(self.options.lost_after);
            let left = next.map_or(Duration::MAX, |at| at.since(now()));
            if left.is_zero() {
                // The instant itself is still in time.
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

    /// A controller is gone: what it was moving stops.
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
                // It may have come back, or handed it over, while the lane was another's.
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
                callback.and_then(|f| self.counters.guarded("the callback of lost links", || f(&lost)));
            // Also where the callback did not get as far as stopping.
            if done.is_none() {
                lost.stop();
            }
        }
        self.tell(ControllerEvent::Lost {
            id: gone.id,
            name: gone.name,
            peer: gone.peer,
        });
    }

    /// This peer may not speak any more: its controllers are lost at once.
    pub(super) fn revoke(&self, peer: &Peer) {
        let gone = lock(&self.state).controllers.revoke(peer);
        for gone in gone {
            self.counters.dropped("controllers_revoked", 1);
            self.lose(gone);
        }
    }
}

/// Stops what moves a subsystem. Its lane is held.
pub(super) fn stop(core: &Core, subsystem: usize) {
    let mut stopped = false;
    for entry in core
        .commands
        .all()
        .iter()
        .filter(|e| e.subsystem == Some(subsystem))
    {
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
    if !stopped {
        let name = lock(&core.state).rights.name(subsystem).to_owned();
        tracing::error!(
            "{}: nothing here stops {name}: set Robot::on_link_lost",
            core.name
        );
    }
}

/// What stops the library's kinds: no velocity; joints stay where they were last told to be.
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
        let told = core.streams.told::<telemetry::JointState>().ok()?.latest(0)?;
        let joints = types::JointState::decode(told).ok()?;
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
