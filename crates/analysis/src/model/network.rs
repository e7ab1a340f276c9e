//! Time that a message takes on a medium: closed forms, with only one fitted factor.

use proto::AirtimeModel;

/// Payload of one datagram or segment.
const FRAGMENT: u64 = 1400;
/// Overhead of each fragment in addition to that in the airtime: headers of the systems and their transports.
const AROUND: usize = 40;
/// Overhead of each frame on a wire: preamble, Ethernet, gap, IP, transport.
const FRAME: f64 = 38.0 + 20.0 + 32.0;

/// Network between the hosts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Network {
    /// Shared memory of one host.
    Memory,
    /// Sockets without their own limit, or an unknown medium.
    Sockets,
    /// A full-duplex link.
    Wire {
        /// In bit/s.
        bits: u64,
    },
    /// A half-duplex channel that both directions and all hops share.
    Radio {
        /// In bit/s.
        bits: u64,
        /// Number from end to end.
        hops: u32,
    },
}

/// Selects a factor of efficiency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Of wires.
    Wire,
    /// Of radios.
    Radio,
}

impl Network {
    /// The network of a name in benchmarks: `bus`, `loopback`, `veth`, `100mbit`, `wifi-6`, `wifi-54-2hops`. Any other
    /// name is [`Network::Sockets`].
    pub fn named(name: &str) -> Network {
        let name = name.to_ascii_lowercase();
        if name == "bus" {
            return Network::Memory;
        }
        if let Some(rest) = name.strip_prefix("wifi-").or_else(|| name.strip_prefix("radio-")) {
            let (rate, hops) = rest.split_once('-').unwrap_or((rest, "1"));
            let hops = hops.trim_end_matches("hops").trim_end_matches("hop").parse();
            let rate = rate.trim_end_matches("mbit").parse::<f64>();
            if let (Ok(rate), Ok(hops @ 1..=16)) = (rate, hops)
                && (0.1..=1000.0).contains(&rate)
            {
                return Network::Radio {
                    bits: (rate * 1e6) as u64,
                    hops,
                };
            }
        }
        for (unit, factor) in [("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9)] {
            let number = name
                .strip_suffix("/s")
                .unwrap_or(&name)
                .strip_suffix(unit)
                .and_then(|n| n.parse::<f64>().ok());
            if let Some(bits) = number.map(|n| n * factor).filter(|b| (1e3..=1e12).contains(b)) {
                return Network::Wire { bits: bits as u64 };
            }
        }
        Network::Sockets
    }

    /// Whether the processes use sockets, which cost more than shared memory.
    pub fn is_sockets(&self) -> bool {
        *self != Network::Memory
    }

    /// The factor that applies.
    pub fn share(&self) -> Option<Share> {
        match self {
            Network::Wire { .. } => Some(Share::Wire),
            Network::Radio { .. } => Some(Share::Radio),
            Network::Memory | Network::Sockets => None,
        }
    }

    /// Time of a message of `bytes` from host to host over the idle medium, in seconds.
    pub fn one_way(&self, bytes: u64) -> f64 {
        match *self {
            Network::Memory | Network::Sockets => 0.0,
            Network::Wire { bits } => {
                let frames = bytes.div_ceil(FRAGMENT).max(1) as f64;
                (bytes as f64 + frames * FRAME) * 8.0 / bits as f64
            }
            Network::Radio { bits, hops } => {
                let air = AirtimeModel::wifi(bits).with_gain(1.0);
                let one = |n: u64| air.airtime(n as usize + AROUND, hops).as_secs_f64();
                let rest = bytes % FRAGMENT;
                let full = (bytes / FRAGMENT) as f64 * one(FRAGMENT);
                if rest > 0 || bytes == 0 {
                    full + one(rest)
                } else {
                    full
                }
            }
        }
    }

    /// Time for which a round trip occupies the shared resource: the air twice, each direction of a wire once. In
    /// seconds.
    pub fn occupied(&self, bytes: u64) -> f64 {
        match self {
            Network::Radio { .. } => 2.0 * self.one_way(bytes),
            _ => self.one_way(bytes),
        }
    }

    /// The same for one of many messages that share packets.
    pub fn occupied_together(&self, bytes: u64) -> f64 {
        self.occupied(bytes)
            .min(self.occupied(FRAGMENT) * packets(bytes as f64))
    }
}

/// The share of a packet that a message of this size fills, up to a whole packet.
pub(super) fn packet(bytes: f64) -> f64 {
    packets(bytes).min(1.0)
}

/// Number of packets that it fills together with others.
fn packets(bytes: f64) -> f64 {
    (bytes + AROUND as f64) / FRAGMENT as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_by_their_names() {
        assert_eq!(Network::named("bus"), Network::Memory);
        assert_eq!(Network::named("veth"), Network::Sockets);
        assert_eq!(Network::named("100mbit"), Network::Wire { bits: 100_000_000 });
        assert_eq!(Network::named("1Gbit/s"), Network::Wire { bits: 1_000_000_000 });
        let bits = 6_000_000;
        assert_eq!(Network::named("wifi-6"), Network::Radio { bits, hops: 1 });
        assert_eq!(Network::named("wifi-6-2hops"), Network::Radio { bits, hops: 2 });
        for odd in [
            "",
            "wifi-",
            "wifi-6-0hops",
            "wifi-1e99",
            "mbit",
            "-5mbit",
            "nanmbit",
            "wifi-6-x",
        ] {
            assert_eq!(Network::named(odd), Network::Sockets, "{odd}");
        }
    }

    #[test]
    fn times_are_those_of_the_medium() {
        // 1400 B at 6 Mbit/s with all overhead: the medium's own frame.
        let radio = Network::named("wifi-6");
        let phy = medium::Phy::new(6_000_000).expect("a rate");
        let frame = phy.frame_airtime(1400 + 40 + 28).as_secs_f64();
        assert!((radio.one_way(1400) - frame).abs() < 1e-9);
        assert!((radio.occupied(4200) - 6.0 * frame).abs() < 1e-9);
        let wire = Network::named("100mbit");
        assert!((wire.one_way(1400) - (1490.0 * 8.0 / 1e8)).abs() < 1e-12);
        assert_eq!(wire.occupied(1400), wire.one_way(1400));
        assert_eq!(Network::Memory.occupied(u64::MAX), 0.0);
        // 27 messages of 11 B with their overhead each fill a packet.
        let packet = radio.occupied(1400);
        assert!((radio.occupied_together(11) * 1400.0 / 51.0 - packet).abs() < 1e-12);
        assert!(radio.occupied_together(4250) <= radio.occupied(4250));
    }
}
