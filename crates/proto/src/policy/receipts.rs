//! A medium of unknown rate: receipts clock the sending until the rate has been estimated.

use super::tuning::tuning;
use super::{Estimate, Flight, Others, Pacer, Policy};
use crate::airtime::AirtimeModel;
use crate::config::PeerConfig;
use crate::peer::Peer;
use crate::statistics::RateSource;
use core::time::Duration;
use stats::Time;

#[derive(Debug)]
pub(super) struct Receipts {
    /// The policy for peers whose rate has been estimated.
    rated: Box<dyn Policy>,
    least: usize,
}

impl Receipts {
    pub(super) fn new(rated: Box<dyn Policy>, least: u32) -> Self {
        Receipts {
            rated,
            least: least as usize,
        }
    }
}

impl Policy for Receipts {
    fn pacer(&self) -> Pacer {
        self.rated.pacer()
    }

    fn flight(&self) -> Flight {
        self.rated.flight()
    }

    fn estimate(&self, peer: &PeerConfig, guess: AirtimeModel) -> Option<Estimate> {
        Some(Estimate::new(guess, peer.hops))
    }

    fn is_shared(&self) -> bool {
        self.rated.is_shared()
    }

    fn rate_source(&self, peer: &Peer) -> RateSource {
        match self.is_clocked(peer) {
            true => RateSource::Guessed,
            false => RateSource::Estimated,
        }
    }

    fn is_clocked(&self, peer: &Peer) -> bool {
        !peer.estimate.as_ref().is_some_and(|e| e.airtime().1)
    }

    fn listens(&self, peer: &Peer, alone: bool) -> Option<Duration> {
        match self.is_clocked(peer) {
            true => None,
            false => self.rated.listens(peer, alone),
        }
    }

    fn longest(&self, max: usize) -> usize {
        self.rated.longest(max)
    }

    fn gap(&self, peer: &Peer, others: Others) -> Duration {
        self.rated.gap(peer, others)
    }

    fn receipt_air(&self, peer: &Peer) -> Duration {
        self.rated.receipt_air(peer)
    }

    fn opened(&self, peer: &Peer, _alone: bool) -> usize {
        match self.is_clocked(peer) {
            true => peer.opening.get(),
            false => 0,
        }
    }

    fn receipt_came(&self, now: Time, peer: &mut Peer, round_trip: Duration, asked: usize, filled: bool) {
        if self.is_clocked(peer) && 2 * asked >= peer.config.max_datagram {
            let jitter = match peer.flight.path_delay(peer.full_air()).is_zero() {
                true => Duration::ZERO,
                false => peer.flight.varies() * tuning().opening_varies,
            };
            peer.opening.receipt(now, round_trip, jitter, self.least, filled);
        }
    }
}
