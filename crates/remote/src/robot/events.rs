//! What a robot's user wants to be told.

use super::core::Core;
use crate::callback::Slot;
use crate::transport::Peer;
use std::sync::Arc;

/// A controller came or went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControllerEvent {
    /// It said hello, or was heard again after it was lost.
    Found {
        /// As the robot calls it: of its run, and known to all.
        id: u64,
        /// As it calls itself, whoever it is.
        name: Arc<str>,
        /// Who it is, as its transport proves.
        peer: Peer,
    },
    /// Nothing was heard of it for too long, so many others came that it was forgotten, or it may not speak any more.
    Lost {
        /// As the robot calls it.
        id: u64,
        /// As it calls itself.
        name: Arc<str>,
        /// Who it is, as its transport proves.
        peer: Peer,
    },
}

/// A controller wants the right to move, which another holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakeOver {
    /// What it wants to move; empty: the whole robot.
    pub subsystem: String,
    /// Who wants it: as it calls itself, and as the robot calls it.
    pub by: (String, u64),
    /// Who that is, as its transport proves: decide by this, since anyone may call itself anything.
    pub by_peer: Peer,
    /// Who holds it, in the same way.
    pub from: (String, u64),
    /// Who that is, as its transport proves; [`Peer::Unproven`] also where the robot does not know it any more.
    pub from_peer: Peer,
}

/// The holder of the right to move a subsystem was lost. Nothing else moves the subsystem until the callback returns.
pub struct LinkLost<'a> {
    pub(super) core: &'a Core,
    pub(super) subsystem: usize,
    pub(super) name: &'a str,
    pub(super) controller: &'a str,
}

impl LinkLost<'_> {
    /// What has nobody to move it now.
    pub fn subsystem(&self) -> &str {
        self.name
    }

    /// Who was lost.
    pub fn controller(&self) -> &str {
        self.controller
    }

    /// What is done where no callback is set: the handler of twists gets a zero one, that of joints their latest
    /// [`JointState`](crate::telemetry::JointState) to hold, that of a user's own kind its [`CommandKind::stop`](crate::CommandKind::stop). It comes from [`Origin::Robot`](super::Origin::Robot).
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
    pub(crate) fn tell(&self, event: ControllerEvent) {
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
                .guarded("the callback of controllers", || callback(event));
        }
    }
}
