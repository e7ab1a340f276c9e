//! 802.11a timing: how long one frame occupies the air.

use core::time::Duration;

/// Short interframe space of 802.11a.
pub const SIFS: Duration = Duration::from_micros(16);
/// Distributed interframe space of 802.11a.
pub const DIFS: Duration = Duration::from_micros(34);
/// Slot of 802.11a.
pub const SLOT: Duration = Duration::from_micros(9);

/// Smallest and largest contention window, in slots, counting from zero.
pub(crate) const CW_MIN: u32 = 15;
pub(crate) const CW_MAX: u32 = 1023;

const PLCP: Duration = Duration::from_micros(20);
const SYMBOL_NS: u64 = 4_000;
/// MAC header, LLC/SNAP and checksum around an IP packet.
const MAC_BYTES: u64 = 36;
const ACK_BYTES: u64 = 14;
/// SERVICE and tail bits that every OFDM frame carries.
const SERVICE_TAIL_BITS: u64 = 22;
const ACK_RATE_MAX: u64 = 24_000_000;

/// The rate is outside what the model can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "rate {bits} bit/s: give one from 100000 to 1000000000 bit/s (802.11a: 6, 9, 12, 18, 24, 36, 48, 54 Mbit/s)"
)]
pub struct RateError {
    /// The rate that was asked for, in bit/s.
    pub bits: u64,
}

/// Frame durations at one rate.
///
/// The rates of 802.11a are exact. Any other rate from 100 kbit/s to 1 Gbit/s is the same arithmetic
/// extrapolated, which suits "what if" questions but is no standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phy {
    rate_bits: u64,
}

impl Phy {
    /// The timing at `rate_bits` bit/s.
    ///
    /// # Errors
    /// [`RateError`] if the rate is outside 100 kbit/s to 1 Gbit/s.
    pub fn new(rate_bits: u64) -> Result<Phy, RateError> {
        if (100_000..=1_000_000_000).contains(&rate_bits) {
            Ok(Phy { rate_bits })
        } else {
            Err(RateError { bits: rate_bits })
        }
    }

    /// The rate in bit/s.
    pub fn rate_bits(&self) -> u64 {
        self.rate_bits
    }

    /// Duration of the frame itself: PLCP and symbols, for an IP packet of `ip_bytes`.
    pub fn data(&self, ip_bytes: usize) -> Duration {
        burst((ip_bytes as u64).saturating_add(MAC_BYTES), self.rate_bits)
    }

    /// Duration of the acknowledgement, sent at min(rate, 24 Mbit/s).
    pub fn ack(&self) -> Duration {
        burst(ACK_BYTES, self.rate_bits.min(ACK_RATE_MAX))
    }

    /// Frame, SIFS and acknowledgement: how long the channel is busy with it.
    pub fn exchange(&self, ip_bytes: usize) -> Duration {
        self.data(ip_bytes) + SIFS + self.ack()
    }

    /// What one frame costs a lone saturated sender on the mean: DIFS, mean back-off of the smallest
    /// window, frame, SIFS, acknowledgement.
    pub fn frame_airtime(&self, ip_bytes: usize) -> Duration {
        DIFS + SLOT * CW_MIN / 2 + self.exchange(ip_bytes)
    }
}

fn burst(bytes: u64, rate_bits: u64) -> Duration {
    let bits = u128::from(bytes) * 8 + u128::from(SERVICE_TAIL_BITS);
    let symbols = (bits * 1_000_000_000).div_ceil(u128::from(rate_bits) * u128::from(SYMBOL_NS));
    PLCP + Duration::from_nanos(
        u64::try_from(symbols)
            .unwrap_or(u64::MAX)
            .saturating_mul(SYMBOL_NS),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_the_standard() {
        let p = Phy::new(6_000_000).expect("a rate of 802.11a");
        // 1500 B of IP: (22 + 8·1536) / 24 bits a symbol = 513 symbols.
        assert_eq!(p.data(1500), Duration::from_micros(20 + 513 * 4));
        assert_eq!(p.ack(), Duration::from_micros(44));
        assert_eq!(p.frame_airtime(1500), Duration::from_nanos(2_233_500));
        let p = Phy::new(54_000_000).expect("a rate of 802.11a");
        assert_eq!(p.data(1500), Duration::from_micros(20 + 57 * 4));
        assert_eq!(p.ack(), Duration::from_micros(28), "at 24, not 54 Mbit/s");
    }

    #[test]
    fn rates_without_meaning_are_refused() {
        for bits in [0, 99_999, u64::MAX] {
            assert_eq!(Phy::new(bits), Err(RateError { bits }));
        }
    }
}
