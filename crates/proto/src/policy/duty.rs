//! A medium on which each host may transmit for a share of the time only, such as LoRa in the 868 MHz band, where ETSI
//! EN 300 220 allows 0.1 to 10 % (decision 355).
//!
//! After each datagram the host is silent for so long that the share holds from then on: over any time, the host has
//! transmitted for at most its share of it, plus one datagram of each priority that went ahead at once.

use super::tuning::tuning;
use super::{Flight, Pacer, Policy};
use crate::config::RadioConfig;
use crate::peer::Peer;
use core::time::Duration;
use stats::Time;

#[derive(Debug)]
pub(super) struct Duty {
    in_flight: u32,
    share: f64,
    /// Least interval of what is sent again and again.
    interval: Duration,
}

impl Duty {
    pub(super) fn new(config: &RadioConfig) -> Self {
        let control = config.airtime.airtime(tuning().duty_control, 1);
        Duty {
            in_flight: config.in_flight,
            share: config.duty,
            interval: control.div_f64(config.duty) * tuning().duty_rests,
        }
    }

    fn with_silence(&self, air: Duration) -> Duration {
        air.div_f64(self.share)
    }
}

impl Policy for Duty {
    fn pacer(&self) -> Pacer {
        Pacer::strict()
    }

    fn flight(&self) -> Flight {
        Flight::new(self.in_flight).with_own_delay()
    }

    fn slot(&self, _: &Peer, air: Duration, _: Duration) -> Duration {
        self.with_silence(air)
    }

    fn makes_room(&self, _: &Peer) -> bool {
        // An urgent message goes ahead at once, and no host would hear that this one left the air free.
        false
    }

    fn late_at(&self, _: Time, peer: &Peer, start: Time, hops: u32) -> Time {
        // The peer's receipt waits for the end of the peer's silence, which follows a full datagram at worst.
        let full = peer.airtime.airtime(peer.config.max_datagram, hops);
        start + self.with_silence(full) * tuning().frames_ahead
    }

    fn ahead(&self, _: &Peer, _: Duration, _: Duration, _: bool) -> Option<Duration> {
        // Receipts are late because the peer is silent, not because a queue is long.
        None
    }

    fn least_interval(&self) -> Duration {
        self.interval
    }
}
