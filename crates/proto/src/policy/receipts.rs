//! A medium of unknown rate: receipts clock the sending until the rate has been estimated.

use super::{Estimate, Flight, Others, Pacer, Policy};
use crate::airtime::AirtimeModel;
use crate::config::PeerConfig;
use crate::peer::Peer;
use crate::statistics::RateSource;
use core::time::Duration;

#[derive(Debug)]
pub(super) struct Receipts {
    /// The policy for peers whose rate has been estimated.
    rated: Box<dyn Policy>,
}

impl Receipts {
    pub(super) fn new(rated: Box<dyn Policy>) -> Self {
        Receipts { rated }
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
        // Over a relay, datagrams that were sent together need not arrive one service time apart.
        (peer.hops == 1).then(|| Estimate::new(guess))
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
}
