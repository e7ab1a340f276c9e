//! A message that waits, or is partly sent.

use crate::body::{Body, Message};
use crate::fountain::Shape;
use crate::geometry::Geometry;
use stats::Time;

/// A message of up to this many bytes is short: a dozen fragments, of which one that is not full would cost much.
const SHORT: u64 = 16 << 10;
/// Least number of bytes to send of a message that is still arriving, except the last: a frame costs as much as many
/// bytes.
const PIECE: u32 = 600;

/// A message that waits or is partly sent.
pub(crate) struct Pending<B> {
    pub(crate) message: Message<B>,
    pub(crate) geometry: Geometry,
    /// Order of arrival over all topics.
    pub(crate) arrival: u64,
    pub(crate) offered_at: Time,
    /// Radio hops that it still has to go; 0: as many as the peer is away.
    pub(crate) hops: u32,
    /// How it is cut, if it is sent as symbols.
    pub(crate) shape: Option<Shape>,
}

impl<B> Pending<B> {
    pub(crate) fn bytes(&self) -> u64 {
        self.geometry.total_len().into()
    }

    pub(crate) fn is_short(&self) -> bool {
        self.bytes() <= SHORT
    }
}

impl<B: Body> Pending<B> {
    /// Number of its bytes that are available from the start; `None` if it will never be complete.
    pub(super) fn ready(&self) -> Option<u32> {
        let total = self.geometry.total_len();
        match self.message.body.arriving() {
            None => Some(total),
            Some(a) => a.ready().map(|n| n.min(total)),
        }
    }

    /// Whether enough of it is available for the fragment from `at` on.
    pub(super) fn is_ready(&self, at: u32) -> bool {
        let enough = |n: u32| n >= self.geometry.total_len() || n.saturating_sub(at) >= PIECE;
        self.ready().is_some_and(enough)
    }

    /// Whether some of it is still missing.
    pub(crate) fn still_comes(&self) -> bool {
        self.ready().is_none_or(|n| n < self.geometry.total_len())
    }
}

/// The message that is partly sent.
pub(crate) struct Sending<B> {
    pub(crate) pending: Pending<B>,
    pub(crate) seq: u64,
    /// Flat offset of the next fragment.
    pub(crate) at: u32,
}
