//! What a medium tells, and why it refuses.

use stats::{DropReason, Time};

/// What became of a packet. `at` is the ideal time, whenever the driver asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<P> {
    /// The packet reached its final host; a duplicate is delivered again.
    Delivered {
        /// When its last symbol (and the added delay) had passed.
        at: Time,
        /// The host that has it now.
        host: usize,
        /// The host that sent it first.
        from: usize,
        /// What was sent.
        payload: P,
    },
    /// The packet (or one copy of it) was lost for good.
    Dropped {
        /// When it was given up.
        at: Time,
        /// The host at which it was lost.
        host: usize,
        /// [`DropReason::Air`] after the last retry, [`DropReason::DeviceQueue`] at a full relay,
        /// [`DropReason::PathLoss`] behind the air, [`DropReason::Outage`] if host or link was down.
        reason: DropReason,
        /// What was sent.
        payload: P,
    },
}

impl<P> Event<P> {
    /// The ideal time of the event.
    pub fn at(&self) -> Time {
        match self {
            Event::Delivered { at, .. } | Event::Dropped { at, .. } => *at,
        }
    }
}

/// Why a packet was not taken; it carries the payload back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError<P> {
    /// The device queue is full ([`DropReason::DeviceQueue`]); counted in the statistics.
    #[error("the device queue of host {host} is full ({frames} frames)")]
    QueueFull {
        /// The sending host.
        host: usize,
        /// Frames in its queue.
        frames: usize,
        /// What should have been sent.
        payload: P,
    },
    /// One end is not there, or both are the same host.
    #[error("no way from host {from} to host {to} of {hosts}")]
    NoRoute {
        /// The sending host.
        from: usize,
        /// The host it should go to.
        to: usize,
        /// Hosts of the medium.
        hosts: usize,
        /// What should have been sent.
        payload: P,
    },
}
