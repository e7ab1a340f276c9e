//! Timing of 802.11 a, b and g: how long one frame occupies the air.

use core::fmt;
use core::time::Duration;

const fn us(n: u64) -> Duration {
    Duration::from_micros(n)
}

/// Rates of DSSS and CCK (802.11b), in bit/s.
const DSSS: [u64; 4] = [1_000_000, 2_000_000, 5_500_000, 11_000_000];
/// Rates of OFDM (802.11a and g), in bit/s.
const OFDM: [u64; 8] = [
    6_000_000, 9_000_000, 12_000_000, 18_000_000, 24_000_000, 36_000_000, 48_000_000, 54_000_000,
];
/// Rates of OFDM that every station must support.
const OFDM_MANDATORY: [u64; 3] = [6_000_000, 12_000_000, 24_000_000];

/// MAC header, LLC/SNAP and checksum around an IP packet: 24 + 8 + 4 B.
const MAC_BYTES: u64 = 36;
/// The QoS control field, which frames of EDCA carry.
const QOS_BYTES: u64 = 2;
const ACK_BYTES: u64 = 14;
/// OFDM: training symbols 16 µs and SIGNAL 4 µs.
const OFDM_PREAMBLE: Duration = us(20);
const SYMBOL_NS: u64 = 4_000;
/// SERVICE and tail bits that every OFDM frame carries.
const SERVICE_TAIL_BITS: u64 = 22;
/// 802.11g: silence after each OFDM frame, so that its SIFS of 10 µs leaves the decoder 16.
const SIGNAL_EXTENSION: Duration = us(6);

/// An amendment of 802.11, by its timing (IEEE 802.11-2016, clauses 15 to 18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standard {
    /// OFDM at 5 GHz. Rates other than those of the standard are extrapolated; see [`Phy`].
    A,
    /// DSSS and CCK at 2.4 GHz: 1, 2, 5.5 and 11 Mbit/s.
    B {
        /// Preamble of 96 instead of 192 µs at 2 Mbit/s and more.
        short_preamble: bool,
    },
    /// OFDM and DSSS at 2.4 GHz: 1, 2, 5.5 and 11 Mbit/s use the preambles of 802.11b.
    G {
        /// Slot of 9 µs; 20 µs where stations of 802.11b are present.
        short_slot: bool,
        /// Preamble of 96 instead of 192 µs at 2, 5.5 and 11 Mbit/s.
        short_preamble: bool,
    },
}

impl Standard {
    /// 802.11b with the long preamble.
    pub const B: Standard = Standard::B {
        short_preamble: false,
    };
    /// 802.11g without stations of 802.11b: short slot, and the long preamble at DSSS rates.
    pub const G: Standard = Standard::G {
        short_slot: true,
        short_preamble: false,
    };

    /// One slot of the back-off.
    pub fn slot(self) -> Duration {
        match self {
            Standard::A | Standard::G { short_slot: true, .. } => us(9),
            Standard::B { .. } | Standard::G { .. } => us(20),
        }
    }

    /// Short interframe space: between a frame and its acknowledgement.
    pub fn sifs(self) -> Duration {
        match self {
            Standard::A => us(16),
            Standard::B { .. } | Standard::G { .. } => us(10),
        }
    }

    /// Distributed interframe space: how long a sender has to find the channel idle before its back-off.
    pub fn difs(self) -> Duration {
        self.sifs() + self.slot() * 2
    }

    /// Smallest contention window in slots, counting from zero.
    pub fn cw_min(self) -> u32 {
        match self {
            Standard::B { .. } => 31,
            Standard::A | Standard::G { .. } => 15,
        }
    }

    /// Largest contention window in slots, counting from zero.
    pub fn cw_max(self) -> u32 {
        1023
    }

    /// The basic rates of a cell that names none, in bit/s: those that acknowledgements may use.
    pub fn basic_rates(self) -> &'static [u64] {
        match self {
            Standard::A => &OFDM_MANDATORY,
            Standard::B { .. } => &DSSS[..2],
            Standard::G { .. } => &DSSS,
        }
    }

    /// Whether frames of this rate are DSSS or CCK.
    fn is_dsss(self, rate_bits: u64) -> bool {
        self != Standard::A && DSSS.contains(&rate_bits)
    }

    fn allows(self, rate_bits: u64) -> bool {
        match self {
            Standard::A => (100_000..=1_000_000_000).contains(&rate_bits),
            Standard::B { .. } => DSSS.contains(&rate_bits),
            Standard::G { .. } => DSSS.contains(&rate_bits) || OFDM.contains(&rate_bits),
        }
    }

    /// IEEE 802.11-2016, 10.7.6.5: the highest basic rate of the same modulation that is not above the frame's,
    /// otherwise the highest mandatory one. Below all of them (extrapolated) it is the frame's own.
    fn ack_rate(self, rate_bits: u64, basic_rates: &[u64]) -> u64 {
        let dsss = self.is_dsss(rate_bits);
        let mandatory: &[u64] = if dsss { &DSSS } else { &OFDM_MANDATORY };
        let best = |rates: &[u64]| {
            let fits = |r: &u64| *r <= rate_bits && self.is_dsss(*r) == dsss;
            rates.iter().copied().filter(fits).max()
        };
        best(basic_rates).or_else(|| best(mandatory)).unwrap_or(rate_bits)
    }
}

impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Standard::A => "802.11a",
            Standard::B { .. } => "802.11b",
            Standard::G { .. } => "802.11g",
        })
    }
}

/// The standard has no such rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateError {
    /// The requested rate, in bit/s.
    pub bits: u64,
    /// The standard it was requested in.
    pub standard: Standard,
}

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RateError { bits, standard } = self;
        write!(f, "rate {bits} bit/s in {standard}: give ")?;
        f.write_str(match standard {
            Standard::A => {
                "one from 100000 to 1000000000 bit/s (the standard's: 6, 9, 12, 18, 24, 36, 48, 54 Mbit/s)"
            }
            Standard::B { .. } => "1, 2, 5.5 or 11 Mbit/s",
            Standard::G { .. } => "1, 2, 5.5, 11, 6, 9, 12, 18, 24, 36, 48 or 54 Mbit/s",
        })
    }
}

impl std::error::Error for RateError {}

/// Frame durations at one rate.
///
/// The rates of the standards are exact. Under [`Standard::A`] any other rate from 100 kbit/s to 1 Gbit/s is
/// extrapolated by the same arithmetic, which suits "what if" questions but is not standardized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phy {
    standard: Standard,
    rate_bits: u64,
    ack_bits: u64,
    qos: bool,
}

impl Phy {
    /// The timing of 802.11a at `rate_bits` bit/s.
    ///
    /// # Errors
    /// [`RateError`] if the rate is outside 100 kbit/s to 1 Gbit/s.
    pub fn new(rate_bits: u64) -> Result<Phy, RateError> {
        Phy::of(Standard::A, rate_bits, &[])
    }

    /// The timing of `standard` at `rate_bits` bit/s, acknowledged at the best of `basic_rates` (bit/s;
    /// empty: [`Standard::basic_rates`]).
    ///
    /// # Errors
    /// [`RateError`] if the standard has no such rate.
    pub fn of(standard: Standard, rate_bits: u64, basic_rates: &[u64]) -> Result<Phy, RateError> {
        let basic_rates = match basic_rates {
            [] => standard.basic_rates(),
            own => own,
        };
        for bits in basic_rates.iter().copied().chain([rate_bits]) {
            if !standard.allows(bits) {
                return Err(RateError { bits, standard });
            }
        }
        Ok(Phy {
            standard,
            rate_bits,
            ack_bits: standard.ack_rate(rate_bits, basic_rates),
            qos: false,
        })
    }

    /// The timing of frames to everyone: at the lowest of the basic rates, so that the farthest host receives them, or
    /// at `rate_bits` if that is lower still (IEEE 802.11-2016, 10.7.5.3, and what Linux does).
    ///
    /// # Errors
    /// [`RateError`] if the standard has no such rate.
    pub fn group(standard: Standard, rate_bits: u64, basic_rates: &[u64]) -> Result<Phy, RateError> {
        let basic = match basic_rates {
            [] => standard.basic_rates(),
            own => own,
        };
        let lowest = basic.iter().copied().min().unwrap_or(rate_bits);
        Phy::of(standard, rate_bits, basic_rates)?;
        Phy::of(standard, rate_bits.min(lowest), basic_rates)
    }

    /// The same with the QoS control field in every frame, as under EDCA.
    pub fn with_qos(self) -> Phy {
        Phy { qos: true, ..self }
    }

    /// The rate in bit/s.
    pub fn rate_bits(&self) -> u64 {
        self.rate_bits
    }

    /// The rate of acknowledgements in bit/s.
    pub fn ack_rate_bits(&self) -> u64 {
        self.ack_bits
    }

    /// The amendment of 802.11.
    pub fn standard(&self) -> Standard {
        self.standard
    }

    /// Duration of the frame itself, including the preamble, for an IP packet of `ip_bytes`.
    pub fn data(&self, ip_bytes: usize) -> Duration {
        let header = MAC_BYTES + if self.qos { QOS_BYTES } else { 0 };
        self.burst((ip_bytes as u64).saturating_add(header), self.rate_bits)
    }

    /// Duration of the acknowledgement.
    pub fn ack(&self) -> Duration {
        self.burst(ACK_BYTES, self.ack_bits)
    }

    /// Frame, SIFS and acknowledgement: how long the channel is busy with it.
    pub fn exchange(&self, ip_bytes: usize) -> Duration {
        self.data(ip_bytes) + self.standard.sifs() + self.ack()
    }

    /// Mean cost of one frame for a lone saturated sender: DIFS, mean back-off of the smallest window, frame, SIFS,
    /// acknowledgement.
    pub fn frame_airtime(&self, ip_bytes: usize) -> Duration {
        let s = self.standard;
        s.difs() + s.slot() * s.cw_min() / 2 + self.exchange(ip_bytes)
    }

    fn burst(&self, bytes: u64, rate_bits: u64) -> Duration {
        if self.standard.is_dsss(rate_bits) {
            return self.dsss_preamble(rate_bits) + us(steps(bytes.saturating_mul(8), rate_bits, 1_000));
        }
        let bits = bytes.saturating_mul(8).saturating_add(SERVICE_TAIL_BITS);
        let symbols = steps(bits, rate_bits, SYMBOL_NS);
        let extension = match self.standard {
            Standard::G { .. } => SIGNAL_EXTENSION,
            Standard::A | Standard::B { .. } => Duration::ZERO,
        };
        OFDM_PREAMBLE + Duration::from_nanos(symbols.saturating_mul(SYMBOL_NS)) + extension
    }

    /// The short preamble exists from 2 Mbit/s on.
    fn dsss_preamble(&self, rate_bits: u64) -> Duration {
        match self.standard {
            Standard::B { short_preamble: true }
            | Standard::G {
                short_preamble: true, ..
            } if rate_bits > DSSS[0] => us(96),
            _ => us(192),
        }
    }
}

/// Number of steps of `step_ns` that it takes to send `bits`, rounded up.
pub(crate) fn steps(bits: u64, rate_bits: u64, step_ns: u64) -> u64 {
    let n = (u128::from(bits) * 1_000_000_000).div_ceil(u128::from(rate_bits) * u128::from(step_ns));
    u64::try_from(n).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phy(standard: Standard, rate_bits: u64) -> Phy {
        Phy::of(standard, rate_bits, &[]).expect("a rate of the standard")
    }

    #[test]
    fn durations_are_those_of_the_standard() {
        let p = phy(Standard::A, 6_000_000);
        // 1500 B of IP: (22 + 8·1536) / 24 bits a symbol = 513 symbols.
        assert_eq!(p.data(1500), us(20 + 513 * 4));
        assert_eq!(p.ack(), us(44));
        assert_eq!(p.frame_airtime(1500), Duration::from_nanos(2_233_500));
        let p = phy(Standard::A, 54_000_000);
        assert_eq!(p.data(1500), us(20 + 57 * 4));
        assert_eq!(p.ack(), us(28), "at 24, not 54 Mbit/s");

        let p = phy(Standard::B, 11_000_000);
        assert_eq!(p.data(1500), us(192 + 1118), "8·1536/11 = 1117.1 µs, whole µs");
        assert_eq!(p.ack(), us(192 + 56), "at 2 Mbit/s");
        assert_eq!(Standard::B.difs(), us(50));
        let short = Standard::B { short_preamble: true };
        assert_eq!(phy(short, 11_000_000).data(1500), us(96 + 1118));
        assert_eq!(
            phy(short, 1_000_000).ack(),
            us(192 + 112),
            "1 Mbit/s has the long one"
        );

        let p = phy(Standard::G, 54_000_000);
        assert_eq!((p.data(1500), p.ack()), (us(26 + 57 * 4), us(34)));
        assert_eq!(Standard::G.difs(), us(28));
        let slow = phy(Standard::G, 1_000_000);
        assert_eq!(slow.data(1500), phy(Standard::B, 1_000_000).data(1500));
        assert_eq!(p.with_qos().data(1498), p.data(1500));
    }

    #[test]
    fn acknowledgements_use_the_basic_rates() {
        let ack = |s, mbit: u64| phy(s, mbit * 1_000_000).ack_rate_bits() / 1_000_000;
        let of_a = [6, 9, 12, 18, 24, 36, 48, 54].map(|r| ack(Standard::A, r));
        assert_eq!(of_a, [6, 6, 12, 12, 24, 24, 24, 24]);
        assert_eq!([1, 2, 11].map(|r| ack(Standard::B, r)), [1, 2, 2]);
        assert_eq!([1, 2, 6, 11, 54].map(|r| ack(Standard::G, r)), [1, 2, 6, 11, 24]);
        assert_eq!(ack(Standard::A, 2), 2, "extrapolated");
        let only_1 = Phy::of(Standard::B, 11_000_000, &[1_000_000]).expect("rates of 802.11b");
        assert_eq!(only_1.ack(), us(304));
    }

    #[test]
    fn frames_to_everyone_go_at_the_lowest_basic_rate() {
        let rate = |s, bits, basic: &[u64]| Phy::group(s, bits, basic).expect("a rate").rate_bits();
        assert_eq!(rate(Standard::A, 54_000_000, &[]), 6_000_000);
        assert_eq!(rate(Standard::A, 2_000_000, &[]), 2_000_000, "extrapolated");
        assert_eq!(rate(Standard::G, 54_000_000, &[]), 1_000_000);
        assert_eq!(
            rate(Standard::G, 54_000_000, &[24_000_000, 12_000_000]),
            12_000_000
        );
        assert!(Phy::group(Standard::B, 6_000_000, &[]).is_err());
    }

    #[test]
    fn rates_without_meaning_are_refused() {
        let standard = Standard::A;
        for bits in [0, 99_999, u64::MAX] {
            assert_eq!(Phy::new(bits), Err(RateError { bits, standard }));
        }
        assert!(Phy::of(Standard::B, 6_000_000, &[]).is_err());
        assert!(Phy::of(Standard::G, 7_000_000, &[]).is_err());
        let error = Phy::of(Standard::G, 6_000_000, &[3_000_000]).expect_err("refused");
        assert!(
            error.to_string().contains("3000000") && error.to_string().contains("802.11g"),
            "{error}"
        );
    }
}
