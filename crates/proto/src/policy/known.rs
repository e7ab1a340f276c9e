//! A radio of known rate: datagrams go by their airtime, and hosts contend for it.

use super::tuning::{DEFERENCE_GAP, DEFERENCE_GAP_AT_ANY_TIME, DEFERRING_QUARTERS, LISTENING};
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
        listens.then(|| peer.full_air() / LISTENING)
    }

    fn longest(&self, max: usize) -> usize {
        max / 4 * DEFERRING_QUARTERS
    }

    fn gap(&self, peer: &Peer, others: Others) -> Duration {
        let part = match others {
            Others::Foreseen => DEFERENCE_GAP,
            Others::AtAnyTime => DEFERENCE_GAP_AT_ANY_TIME,
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
