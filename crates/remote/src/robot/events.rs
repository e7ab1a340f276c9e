//! Events of a robot, for its user.

use super::core::Core;
use crate::callback::Slot;
use crate::transport::Peer;
use std::sync::Arc;

/// A controller was found or lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControllerEvent {
    /// A controller said hello, or was heard again after it was lost.
    Found {
        /// The number by which the robot knows it. Each run of the controller gets another; it is not a secret.
        id: u64,
        /// The name that it gives itself, without proof.
        name: Arc<str>,
        /// Its identity, as its transport proves it.
        peer: Peer,
    },
    /// A controller was silent for too long, was forgotten because too many others arrived, or lost its permission.
    Lost {
        /// The number by which the robot knows it.
        id: u64,
        /// The name that it gives itself.
        name: Arc<str>,
        /// Its identity, as its transport proves it.
        peer: Peer,
    },
}

/// A controller requests the right to move, which another one holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakeOver {
    /// The subsystem that it wants to move; empty: the whole robot.
    pub subsystem: String,
    /// The requester: the name that it gives itself, and the number by which the robot knows it.
    pub by: (String, u64),
    /// The requester's identity, as its transport proves it. Decide by this: a controller can give itself any name.
    pub by_peer: Peer,
    /// The holder, in the same form.
    pub from: (String, u64),
    /// The holder's identity, as its transport proves it; [`Peer::Unproven`] also if the robot no longer knows it.
    pub from_peer: Peer,
}

/// The controller that held the right to move a subsystem was lost. Nothing else moves the subsystem until the callback
/// returns.
pub struct LinkLost<'a> {
    pub(super) core: &'a Core,
    pub(super) subsystem: usize,
    pub(super) name: &'a str,
    pub(super) controller: &'a str,
}

impl LinkLost<'_> {
    /// Returns the subsystem that the lost controller held.
    pub fn subsystem(&self) -> &str {
        self.name
    }

    /// Returns the name of the lost controller.
    pub fn controller(&self) -> &str {
        self.controller
    }

    /// Stops the subsystem as the robot does if no callback is set: the handler of twists receives a zero twist, that
    /// of joints their latest [`JointState`](crate::telemetry::JointState) to hold, and that of a user's own kind its
    /// [`CommandKind::stop`](crate::CommandKind::stop). These commands come from
    /// [`Origin::Robot`](super::Origin::Robot).
    pub fn stop(&self) {
        super::lost::stop(self.core, self.subsystem);
    }
}

impl std::fmt::Debug for LinkLost<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LinkLost({}, {})", self.name, self.controller)
    }
}

type Callback<A, R> = Arc<dyn Fn(A) -> R + Send + Sync>;
type OnLinkLost = Arc<dyn Fn(&LinkLost<'_>) + Send + Sync>;

#[derive(Default)]
pub(crate) struct Events {
    pub(crate) controller: Slot<Callback<ControllerEvent, ()>>,
    pub(crate) take_over: Slot<Callback<TakeOver, bool>>,
    pub(crate) link_lost: Slot<OnLinkLost>,
    pub(crate) log_level: Slot<Callback<u32, ()>>,
}

impl Events {
    pub(crate) fn clear(&self) {
        self.controller.set(None);
        self.take_over.set(None);
        self.link_lost.set(None);
        self.log_level.set(None);
    }
}

impl Core {
    pub(crate) fn notify(&self, event: ControllerEvent) {
        match &event {
            ControllerEvent::Found { id, name, peer } => {
                tracing::info!("{}: controller {name} ({id:x}), {peer}", self.name)
            }
            ControllerEvent::Lost { id, name, peer } => {
                tracing::warn!("{}: lost controller {name} ({id:x}), {peer}", self.name);
            }
        }
        if let Some(callback) = self.events.controller.get() {
            self.counters
                .guarded("the callback for controllers", || callback(event));
        }
    }
}
