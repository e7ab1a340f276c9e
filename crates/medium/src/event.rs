//! Events of a medium, and its errors.

use stats::{DropReason, Time};

/// Outcome of a packet. `at` is the ideal time, whenever the driver polls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<P> {
    /// The packet reached its final host; a duplicate is delivered again.
    Delivered {
        /// When its last symbol (and the added delay) had passed.
        at: Time,
        /// The host that received it.
        host: usize,
        /// The host that sent it first.
        from: usize,
        /// The payload.
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
        /// The payload.
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

/// Why a packet was not accepted; it returns the payload.
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
        /// The payload.
        payload: P,
    },
    /// One end does not exist, or both are the same host.
    #[error("host {from} has no route to host {to} ({hosts} hosts)")]
    NoRoute {
        /// The sending host.
        from: usize,
        /// The host it was addressed to.
        to: usize,
        /// Number of hosts of the medium.
        hosts: usize,
        /// The payload.
        payload: P,
    },
}
