//! A cable, with or without a rate: nobody contends, and the path's delay is its own.

use super::tuning::tuning;
use super::{Flight, Pacer, Policy};
use crate::config::RadioConfig;
use crate::peer::Peer;
use crate::statistics::RateSource;
use core::time::Duration;
use stats::Time;

/// A cable of known rate: datagrams go by the time that their bytes take, and a few stand in the device queue of a fast
/// one (decision 359).
#[derive(Debug)]
pub(super) struct Rated {
    in_flight: u32,
    /// How long a full packet takes, unless the rate is only a guess.
    packet: Option<Duration>,
}

impl Rated {
    pub(super) fn new(config: &RadioConfig) -> Self {
        Rated {
            in_flight: config.in_flight,
            packet: (!config.auto_rate).then(|| config.airtime.airtime(tuning().packet, 1)),
        }
    }

    /// Datagrams that may be in flight while receipts clock the sending. On a fast cable they cover the time that hosts
    /// take to wake up.
    fn least_in_flight(&self) -> u32 {
        let within = self
            .packet
            .and_then(|p| tuning().cable_in_flight.as_nanos().checked_div(p.as_nanos()));
        let within = within.map_or(0, |n| u32::try_from(n).unwrap_or(u32::MAX));
        self.in_flight.max(within)
    }
}

impl Policy for Rated {
    fn pacer(&self) -> Pacer {
        Pacer::of_cable(self.packet)
    }

    fn flight(&self) -> Flight {
        let least = self.least_in_flight();
        let flight = match least > self.in_flight {
            true => asking_in_time(least),
            false => Flight::new(least),
        };
        flight.with_own_delay()
    }
}

/// A cable without a rate: nothing is paced, and receipts clock the sending (decision 359).
#[derive(Debug)]
pub(super) struct Unrated {
    in_flight: u32,
}

impl Unrated {
    pub(super) fn new(config: &RadioConfig) -> Self {
        Unrated {
            in_flight: config.in_flight,
        }
    }
}

impl Policy for Unrated {
    fn pacer(&self) -> Pacer {
        Pacer::of_cable(None)
    }

    fn flight(&self) -> Flight {
        asking_in_time(self.in_flight).with_own_delay()
    }

    fn rate_source(&self, _: &Peer) -> RateSource {
        RateSource::Unlimited
    }

    fn is_clocked(&self, _: &Peer) -> bool {
        true
    }

    fn opened(&self, peer: &Peer, alone: bool) -> usize {
        if alone { peer.breadth.get() } else { 0 }
    }

    fn service(&self, _: &Peer) -> Duration {
        // Receipts alone cannot distinguish a long cable from a slow one, and on a slow one the data on its way stands
        // in a queue.
        Duration::ZERO
    }

    fn fills_all(&self) -> bool {
        // A short datagram ends a batch.
        true
    }

    fn receipt_came(&self, now: Time, peer: &mut Peer, round_trip: Duration, _asked: usize, filled: bool) {
        peer.breadth.receipt(now, round_trip, filled);
    }
}

/// A limit of `least` datagrams, some of which ask in between: the sender need not stop for the receipt of the last.
fn asking_in_time(least: u32) -> Flight {
    let least = least.max(1);
    Flight::new(least).asking_every(least.div_ceil(tuning().asks_in_flight) as usize)
}
