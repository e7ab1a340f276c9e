//! What a robot's user wants to be told.

use super::core::Core;
use crate::callback::Slot;
use std::sync::Arc;

/// A controller came or went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControllerEvent {
    /// It said hello, or was heard again after it was lost.
    Found {
        /// Of its run.
        id: u64,
        /// As it calls itself.
        name: Arc<str>,
    },
    /// Nothing was heard of it for too long, or so many others came that it was forgotten.
    Lost {
        /// Of its run.
        id: u64,
        /// As it calls itself.
        name: Arc<str>,
    },
}

/// A controller wants the right to move, which another holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakeOver {
    /// What it wants to move; empty: the whole robot.
    pub subsystem: String,
    /// Who wants it: name and number of its run.
    pub by: (String, u64),
    /// Who holds it.
    pub from: (String, u64),
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
            ControllerEvent::Found { id, name } => {
                tracing::info!("{}: controller {name} ({id:x})", self.name)
            }
            ControllerEvent::Lost { id, name } => {
                tracing::warn!("{}: lost controller {name} ({id:x})", self.name);
            }
        }
        if let Some(callback) = self.events.controller.get() {
            callback(event);
        }
    }
}
