//! A radio of known rate: datagrams go by their airtime, and hosts contend for it.

use super::tuning::tuning;
use super::{Flight, Others, Pacer, Policy};
use crate::config::RadioConfig;
use crate::peer::Peer;
use core::time::Duration;

#[derive(Debug)]
pub(super) struct Known {
    in_flight: u32,
}

impl Known {
    pub(super) fn new(config: &RadioConfig) -> Self {
        Known {
            in_flight: config.in_flight,
        }
    }
}

impl Policy for Known {
    fn pacer(&self) -> Pacer {
        Pacer::new()
    }

    fn flight(&self) -> Flight {
        Flight::new(self.in_flight)
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn listens(&self, peer: &Peer, alone: bool) -> Option<Duration> {
        // Where there are relays, this host and its peer are not alone on the air. A receipt that comes with the peer's
        // data takes no turn of its own.
        let listens = alone
            && peer.config.hops == 1
            && peer.airtime.contends()
            && peer.flight.receipt_comes()
            && !peer.receipts_ride;
        listens.then(|| peer.full_air() / tuning().listening)
    }

    fn longest(&self, max: usize) -> usize {
        max / 4 * tuning().deferring_quarters
    }

    fn gap(&self, peer: &Peer, others: Others) -> Duration {
        let part = match others {
            Others::Foreseen => tuning().deference_gap,
            Others::AtAnyTime => tuning().deference_gap_at_any_time,
        };
        peer.full_air() / part
    }

    fn receipt_air(&self, peer: &Peer) -> Duration {
        match peer.airtime.contends() && !peer.receipts_ride {
            true => peer.receipt_air(),
            false => Duration::ZERO,
        }
    }
}
