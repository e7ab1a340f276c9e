//! A sample on its way to one address.

use crate::account::Charge;
use crate::wire::encode::{self, Route};
use crate::wire::ids::{EntityId, GuidPrefix};
use crate::wire::inline::InlineQos;
use crate::wire::number::NumberSet;
use crate::wire::submessage::Payload;
use crate::wire::time::Timestamp;
use std::net::SocketAddrV4;
use std::sync::Arc;

/// A sample, written once and sent to many.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) sequence: i64,
    pub(crate) payload: Arc<[u8]>,
    /// Whether the payload is only the key of a disposed instance.
    pub(crate) key: bool,
    pub(crate) inline: InlineQos,
    pub(crate) timestamp: Option<Timestamp>,
}

/// A participant and one of its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    pub(crate) address: SocketAddrV4,
    /// All zero for every participant that listens there.
    pub(crate) prefix: GuidPrefix,
}

/// Sends a sample, or some fragments of it, piece by piece.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) target: Target,
    pub(crate) route: Route,
    pub(crate) change: Arc<Change>,
    /// Send only these fragments.
    pub(crate) only: Option<NumberSet>,
    /// Whether a heartbeat follows the last piece.
    pub(crate) heartbeat: bool,
    /// Whether it is a retransmission.
    pub(crate) repair: bool,
    /// Number of fragments sent, or the last one considered.
    sent: u32,
    _charge: Charge,
}

/// Charge of a queued job to its participant, in addition to the sample.
pub(crate) const JOB: usize = 256;

/// Maximum size of a submessage without its payload: header, timestamps, inline QoS with two identities.
const OVERHEAD: usize = 160;

impl Job {
    pub(crate) fn new(target: Target, route: Route, change: Arc<Change>, charge: Charge) -> Self {
        Job {
            target,
            route,
            change,
            only: None,
            heartbeat: false,
            repair: false,
            sent: 0,
            _charge: charge,
        }
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.sent > 0
    }

    /// Approximate length of its next piece, in bytes.
    pub(super) fn next_len(&self, fragment: u16) -> usize {
        self.change.payload.len().min(usize::from(fragment)) + OVERHEAD
    }

    /// Appends the next piece. Returns `true` if it was the last.
    pub(super) fn put(&mut self, out: &mut Vec<u8>, fragment: u16) -> bool {
        let change = &self.change;
        let payload = if change.key {
            Payload::Key(&change.payload)
        } else {
            Payload::Data(&change.payload)
        };
        if change.payload.len() <= usize::from(fragment) {
            encode::data(out, self.route, &change.inline, payload);
            return true;
        }
        let all = change.payload.len().div_ceil(usize::from(fragment.max(1))) as u32;
        let next = |after: u32| match &self.only {
            None => Some(after + 1).filter(|n| *n <= all),
            Some(set) => set
                .iter()
                .filter_map(|n| u32::try_from(n).ok())
                .find(|n| *n > after && *n <= all),
        };
        let Some(number) = next(self.sent) else {
            return true;
        };
        encode::data_frag(out, self.route, &change.inline, number, fragment, payload);
        let last = next(number).is_none();
        self.sent = number;
        last
    }
}

/// The writer and the reader of a job's sample.
pub(crate) fn route(writer: EntityId, reader: EntityId, change: &Change) -> Route {
    Route {
        reader,
        writer,
        sequence: change.sequence,
    }
}
