//! The pacer's estimate of what one datagram costs (decision 359).

use crate::policy::tuning::tuning;
use core::time::Duration;

/// The sender's estimate of how long one datagram occupies the medium.
///
/// It is an estimate, kept separate from the medium's behaviour: a rate may be wrong, and a radio need not be Wi-Fi.
/// [`AirtimeModel::wifi`] uses the terms of 802.11a; a test checks that they equal those of the `medium` crate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AirtimeModel {
    /// Rate of the medium in bit/s; 0 means that nothing is paced.
    pub rate_bits: u64,
    /// Time per datagram whatever its size: spaces, preambles, acknowledgement, mean back-off.
    pub per_frame: Duration,
    /// Bytes around each datagram: carrier, UDP, IP and MAC headers.
    pub extra_bytes: u32,
    /// Bits around each frame (OFDM: SERVICE and tail).
    pub extra_bits: u32,
    /// Data is sent in whole symbols of this duration; zero for a medium without symbols.
    pub symbol: Duration,
    /// Factor on the whole: air that other traffic uses (reports, acknowledgements, collisions), and a margin that
    /// drains the device queue. Below 1.0 the queue grows. `None`: a little, more over several hops.
    pub gain: Option<f64>,
}

/// The default gain over `hops` hops, so that what collisions and others leave in a queue drains. The measurements are in
/// `docs/decisions/359-the-air.md`.
fn default_gain(hops: u32) -> f64 {
    match hops {
        0 | 1 => tuning().gain,
        _ => tuning().hops_gain,
    }
}

impl AirtimeModel {
    /// 802.11a (OFDM at 5 GHz) at `rate_bits`, carrying UDP over IPv4.
    pub fn wifi(rate_bits: u64) -> Self {
        const SIFS_DIFS: u64 = 16_000 + 34_000;
        const PLCP: u64 = 20_000;
        const SYMBOL: u64 = 4_000;
        // 7.5 slots of 9 µs: half of the smallest contention window.
        const MEAN_BACK_OFF: u64 = 67_500;
        const ACK_BITS: u128 = 22 + 8 * 14;
        // The basic rates; below the lowest, the frame's own rate.
        let ack_rate = match rate_bits / 1_000_000 {
            24.. => 24_000_000,
            12.. => 12_000_000,
            6.. => 6_000_000,
            _ => u128::from(rate_bits.max(1)),
        };
        let ack_symbols = (ACK_BITS * 1_000_000_000).div_ceil(ack_rate * u128::from(SYMBOL)) as u64;
        let ack = PLCP.saturating_add(ack_symbols.saturating_mul(SYMBOL));
        AirtimeModel {
            rate_bits,
            per_frame: Duration::from_nanos((SIFS_DIFS + PLCP + MEAN_BACK_OFF).saturating_add(ack)),
            // UDP 8, IPv4 20, MAC, LLC and checksum 36.
            extra_bytes: 64,
            extra_bits: 22,
            symbol: Duration::from_nanos(SYMBOL),
            gain: None,
        }
    }

    /// A medium that carries bytes one after another at `rate_bits`, with `extra_bytes` around each datagram: a serial
    /// line, Ethernet.
    pub fn bytes(rate_bits: u64, extra_bytes: u32) -> Self {
        AirtimeModel {
            rate_bits,
            per_frame: Duration::ZERO,
            extra_bytes,
            extra_bits: 0,
            symbol: Duration::ZERO,
            gain: None,
        }
    }

    /// LoRa with explicit header and checksum: `spreading` 7 to 12, `bandwidth` in Hz, and `coding` 1 to 4 for the coding
    /// rates 4/5 to 4/8. The time on air is that of the SX1276's data sheet, section 4.1.1.7, rounded up by at most one
    /// block of symbols.
    pub fn lora(spreading: u32, bandwidth: u32, coding: u32) -> Self {
        let (spreading, coding) = (spreading.clamp(7, 12), coding.clamp(1, 4));
        let symbol = Duration::from_secs(1 << spreading) / bandwidth.max(1);
        // Of long symbols, two bits carry nothing: the clocks might drift within one.
        let slow = u32::from(symbol > Duration::from_millis(16));
        let (bits, block) = (4 * (spreading - 2 * slow), symbol * (4 + coding));
        AirtimeModel {
            rate_bits: (f64::from(bits) / block.as_secs_f64()) as u64,
            // The preamble, and the first block, which always has 8 symbols.
            per_frame: symbol * 81 / 4,
            extra_bytes: 0,
            // The checksum and the header, less what the first block carries.
            extra_bits: 44_u32.saturating_sub(4 * spreading),
            symbol: block,
            gain: Some(1.0),
        }
    }

    /// Whether this is an [`AirtimeModel::bytes`] medium with a rate, on which nobody contends.
    pub(crate) fn is_cable(&self) -> bool {
        self.rate_bits > 0 && self.per_frame.is_zero() && self.symbol.is_zero()
    }

    /// Whether a sender waits for its turn among others.
    pub(crate) fn contends(&self) -> bool {
        !self.per_frame.is_zero()
    }

    /// No pacing at all.
    pub fn unlimited() -> Self {
        Self::bytes(0, 0)
    }

    /// The same with an explicit gain, for any number of hops.
    pub fn with_gain(self, gain: f64) -> Self {
        AirtimeModel {
            gain: Some(gain),
            ..self
        }
    }

    /// Airtime of a datagram of `bytes` that the medium forwards over `hops` hops, including the gain.
    pub fn airtime(&self, bytes: usize, hops: u32) -> Duration {
        if self.rate_bits == 0 {
            return Duration::ZERO;
        }
        let bits = (bytes as u128 + u128::from(self.extra_bytes)) * 8 + u128::from(self.extra_bits);
        let rate = u128::from(self.rate_bits);
        let nanos = match self.symbol.as_nanos() {
            0 => (bits * 1_000_000_000).div_ceil(rate),
            symbol => (bits * 1_000_000_000).div_ceil(rate * symbol) * symbol,
        };
        let one = self
            .per_frame
            .saturating_add(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)));
        let all =
            one.as_nanos() as f64 * f64::from(hops.max(1)) * self.gain.unwrap_or_else(|| default_gain(hops));
        // `as` saturates, and turns a gain of NaN into no pacing (`Radio::new` refuses it).
        Duration::from_nanos(all.round() as u64)
    }

    /// The same medium at another rate.
    pub(crate) fn at_rate(&self, rate_bits: u64) -> Self {
        let rate_bits = rate_bits.max(1);
        let Self {
            extra_bytes, gain, ..
        } = *self;
        if self.symbol.is_zero() {
            AirtimeModel { rate_bits, ..*self }
        } else {
            AirtimeModel {
                extra_bytes,
                gain,
                ..Self::wifi(rate_bits)
            }
        }
    }

    /// The rate at which a datagram of `bytes` occupies the medium for `service`.
    fn rate_of(&self, bytes: usize, service: Duration) -> u64 {
        const MOST: f64 = 1e11;
        let bits = (bytes as f64 + f64::from(self.extra_bytes)) * 8.0 + f64::from(self.extra_bits);
        // The cost per frame depends slightly on the rate: two rounds are close enough.
        (0..2).fold(self.rate_bits, |rate, _| {
            let rest = service.saturating_sub(self.at_rate(rate).per_frame);
            (bits / rest.as_secs_f64()).clamp(1.0, MOST) as u64
        })
    }

    /// The medium on which a datagram of `bytes` takes `service`. What is faster than any radio of these symbols carries
    /// bytes one after another, as far as anybody can tell.
    pub(crate) fn of(&self, bytes: usize, service: Duration) -> Self {
        let fastest = self.at_rate(54_000_000).with_gain(1.0);
        if !self.symbol.is_zero() && service < fastest.airtime(bytes, 1) {
            let cable = AirtimeModel {
                gain: self.gain,
                ..Self::bytes(1, self.extra_bytes)
            };
            return cable.at_rate(cable.rate_of(bytes, service));
        }
        self.at_rate(self.rate_of(bytes, service))
    }

    /// Length of the longest datagram, at most `max`, whose airtime is within `budget`; `None` if none is.
    pub(crate) fn longest(&self, budget: Duration, hops: u32, max: usize) -> Option<usize> {
        let (mut low, mut high) = (0, max + 1);
        if self.airtime(0, hops) > budget {
            return None;
        }
        while high - low > 1 {
            let middle = low.midpoint(high);
            if self.airtime(middle, hops) <= budget {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(low)
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.gain.is_none_or(|g| (0.1..=100.0).contains(&g))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wifi_is_the_medium_s_own_timing() {
        for rate in [1, 6, 9, 12, 18, 24, 36, 48, 54].map(|m| m * 1_000_000) {
            let model = AirtimeModel::wifi(rate).with_gain(1.0);
            let phy = medium::Phy::new(rate).expect("a rate");
            for n in 0..1473 {
                assert_eq!(model.airtime(n, 1), phy.frame_airtime(n + 28), "{n} B at {rate}");
            }
        }
    }

    #[test]
    fn lora_has_the_time_on_air_of_the_data_sheet() {
        // Spreading factor, bytes, milliseconds at 125 kHz and 4/5.
        for (spreading, bytes, millis) in [
            (7, 10, 41.216),
            (7, 51, 102.656),
            (7, 222, 348.416),
            (10, 51, 616.448),
            (12, 51, 2465.792),
        ] {
            let model = AirtimeModel::lora(spreading, 125_000, 1);
            let air = model.airtime(bytes, 1).as_secs_f64() * 1e3;
            let block = model.symbol.as_secs_f64() * 1e3;
            assert!(
                (-0.01..=block + 0.01).contains(&(air - millis)),
                "{spreading} {bytes}: {air}"
            );
        }
    }

    #[test]
    fn hops_and_gain_multiply_and_nothing_overflows() {
        let m = AirtimeModel::bytes(8_000, 0).with_gain(1.5);
        assert_eq!(m.airtime(1000, 2), Duration::from_secs(3));
        assert_eq!(AirtimeModel::unlimited().airtime(1 << 20, 3), Duration::ZERO);
        let worst = AirtimeModel {
            rate_bits: 1,
            ..AirtimeModel::wifi(u64::MAX)
        };
        assert!(worst.airtime(usize::MAX, u32::MAX) > Duration::from_secs(1));
        assert!(!AirtimeModel::wifi(1).with_gain(f64::NAN).is_valid());
        AirtimeModel::wifi(0);
    }
}
