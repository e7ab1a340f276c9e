//! What a participant is set up with.

use crate::qos::Qos;
use crate::wire::ids::{EntityId, GuidPrefix, VendorId};
use crate::wire::participant::{MAX_NAME, MAX_USER_DATA};
use core::time::Duration;
use std::net::{Ipv4Addr, SocketAddrV4};

/// How a participant calls itself, where it is reached, and what it takes of others.
#[derive(Clone, Debug)]
pub struct Config {
    /// First part of all its GUIDs: unlike every other in the domain, and hard to guess, since who knows it is believed to have
    /// heard this participant.
    pub prefix: GuidPrefix,
    /// Whose implementation it says it is.
    pub vendor: VendorId,
    /// Number of the domain; participants of others are not seen.
    pub domain: u32,
    /// Part of the domain; participants of others are not seen. Empty is what everybody has by default.
    pub domain_tag: String,
    /// Its name, at most 256 bytes.
    pub name: String,
    /// What it says of itself, at most 4,096 bytes; of ROS 2, `enclave=/;`.
    pub user_data: Vec<u8>,
    /// Where discovery reaches it.
    pub metatraffic: Vec<SocketAddrV4>,
    /// Where data reaches it.
    pub unicast: Vec<SocketAddrV4>,
    /// Where it announces itself: the group of the domain, addresses where participants may be.
    pub announce_to: Vec<SocketAddrV4>,
    /// Time between announcements, after the first five, which go every 100 ms.
    pub announce_period: Duration,
    /// How long others believe that it lives without an announcement.
    pub lease: Duration,
    /// To whom it sends.
    pub reach: Reach,
    /// How it sends to participants of this host.
    pub loopback: Pace,
    /// How it sends to others.
    pub network: Pace,
    /// What it takes of others.
    pub limits: Limits,
}

/// Which of the addresses that a participant announces are sent to. An announcement is no proof, so that without this
/// anybody could have data sent anywhere.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// This host's own addresses and the lengths of their networks' prefixes: participants there are reached, and those of
    /// 127.0.0.0/8 by participants of this host.
    pub networks: Vec<(Ipv4Addr, u8)>,
    /// Hosts beyond them.
    pub hosts: Vec<Ipv4Addr>,
}

/// How much goes to one address in which time, so that the buffer of its socket holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Bytes in a second, headers included.
    pub rate: u64,
    /// Bytes that go at once after a pause. A Linux socket holds about half of its 212,992 bytes in datagrams.
    pub burst: u32,
    /// Bytes of a fragment; what is longer than one is sent in several.
    pub fragment: u16,
    /// Short samples and messages go together in datagrams of at most this many bytes.
    pub gather: u16,
}

impl Default for Pace {
    fn default() -> Self {
        Pace {
            rate: 50_000_000,
            burst: 32 << 10,
            fragment: 16_000,
            gather: 1_400,
        }
    }
}

/// What all others together, one address and one participant can make a participant hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes in sum.
    pub memory: usize,
    /// Bytes of all participants that announced themselves from one address.
    pub address_memory: usize,
    /// Bytes of a participant: itself, its endpoints, what is on the way to them or from them, events not yet taken.
    pub participant_memory: usize,
    /// Bytes of a participant that has not shown yet that it heard this one.
    pub stranger_memory: usize,
    /// Participants in sum; half of them from one address.
    pub participants: usize,
    /// Of them, those that have not shown yet that they heard this one. One more costs the oldest.
    pub strangers: usize,
    /// Endpoints of a participant.
    pub endpoints: usize,
    /// Longest sample, in bytes; fragments of longer ones are refused.
    pub sample: u32,
    /// Longest lease: a longer one, or an infinite one, counts as this.
    pub lease: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            memory: 1 << 30,
            address_memory: 512 << 20,
            participant_memory: 192 << 20,
            stranger_memory: 64 << 10,
            participants: 512,
            strangers: 64,
            endpoints: 4_096,
            sample: 64 << 20,
            lease: Duration::from_secs(300),
        }
    }
}

impl Config {
    /// A participant of a domain that announces itself nowhere yet.
    pub fn new(prefix: GuidPrefix, domain: u32) -> Self {
        Config {
            prefix,
            vendor: VendorId::OURS,
            domain,
            domain_tag: String::new(),
            name: String::new(),
            user_data: Vec::new(),
            metatraffic: Vec::new(),
            unicast: Vec::new(),
            announce_to: Vec::new(),
            announce_period: Duration::from_secs(3),
            lease: Duration::from_secs(20),
            reach: Reach::default(),
            loopback: Pace {
                rate: 200_000_000,
                burst: 64 << 10,
                gather: 16_000,
                ..Pace::default()
            },
            network: Pace::default(),
            limits: Limits::default(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        for pace in [self.loopback, self.network] {
            if pace.rate == 0 || pace.burst == 0 || !(512..=65_000).contains(&pace.fragment) {
                return Err(ConfigError::Pace(pace));
            }
        }
        if self.user_data.len() > MAX_USER_DATA {
            return Err(ConfigError::UserData(self.user_data.len()));
        }
        if self.name.len() > MAX_NAME || self.domain_tag.len() > MAX_NAME {
            return Err(ConfigError::Name(self.name.len().max(self.domain_tag.len())));
        }
        Ok(())
    }

    pub(crate) fn pace(&self, address: SocketAddrV4) -> Pace {
        if self.reach.is_own(*address.ip()) {
            self.loopback
        } else {
            self.network
        }
    }
}

impl Reach {
    /// Whether an address is of this host.
    pub(crate) fn is_own(&self, ip: Ipv4Addr) -> bool {
        ip.is_loopback() || self.networks.iter().any(|(own, _)| *own == ip)
    }

    /// The first of a participant's addresses that may be sent to, those of this host before others. `from` is where its
    /// announcement came from.
    pub(crate) fn pick(&self, addresses: &[SocketAddrV4], from: Ipv4Addr) -> Option<SocketAddrV4> {
        let here = self.is_own(from);
        let own = addresses.iter().find(|a| here && self.is_own(*a.ip()));
        let known = |a: &&SocketAddrV4| {
            !a.ip().is_loopback() && (*a.ip() == from || self.hosts.contains(a.ip()) || self.is_near(*a.ip()))
        };
        own.or_else(|| addresses.iter().find(known)).copied()
    }

    fn is_near(&self, ip: Ipv4Addr) -> bool {
        self.networks.iter().any(|(own, length)| {
            let mask = u32::MAX
                .checked_shl(32 - u32::from((*length).min(32)))
                .unwrap_or(0);
            !own.is_loopback() && !ip.is_multicast() && (own.to_bits() ^ ip.to_bits()) & mask == 0
        })
    }
}

/// A local writer or reader.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Its topic, at most 1,024 bytes; of ROS 2, with a prefix such as `rt/`.
    pub topic: String,
    /// The name of its type, at most 1,024 bytes; others match only by the same.
    pub type_name: String,
    /// Its policies.
    pub qos: Qos,
    /// What it says of itself, at most 4,096 bytes; of ROS 2, `typehash=RIHS01_…;`.
    pub user_data: Vec<u8>,
    /// Of a writer: bytes of samples that it keeps at most. Older ones make room, or, if it keeps all, writing is refused.
    pub max_bytes: usize,
    /// Of a writer that keeps all: samples that it keeps at most.
    pub max_samples: usize,
}

impl EndpointConfig {
    /// An endpoint that keeps at most 64 MiB in 1,024 samples.
    pub fn new(topic: impl Into<String>, type_name: impl Into<String>, qos: Qos) -> Self {
        EndpointConfig {
            topic: topic.into(),
            type_name: type_name.into(),
            qos,
            user_data: Vec::new(),
            max_bytes: 64 << 20,
            max_samples: 1_024,
        }
    }
}

/// Why a participant cannot be set up so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Nothing could be sent at this pace, or no datagram holds a fragment.
    #[error("{0:?}: rate and burst must be more than 0, a fragment has 512 to 65,000 bytes")]
    Pace(Pace),
    /// The user data is too long.
    #[error("user data of {0} bytes; at most 4,096 are announced")]
    UserData(usize),
    /// The name or the domain tag is too long.
    #[error("a name of {0} bytes; at most 256 are announced")]
    Name(usize),
}

/// Why an endpoint cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The name of its topic, type or a partition is empty or too long.
    #[error("a {what} of {len} bytes; it has 1 to 1,024")]
    Name {
        /// Which name.
        what: &'static str,
        /// Its length.
        len: usize,
    },
    /// The user data is too long.
    #[error("user data of {0} bytes; at most 4,096 are announced")]
    UserData(usize),
    /// There are more partitions or data representations than are announced.
    #[error("{0} {1}: too many")]
    Many(usize, &'static str),
    /// All numbers for endpoints were used.
    #[error("this participant has had as many endpoints as it has numbers for")]
    Exhausted,
}

/// Why a sample was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// There is no such writer.
    #[error("this participant has no writer {0}")]
    NoSuchWriter(EntityId),
    /// A writer that keeps all has no room until a reader acknowledges; then comes [`crate::Event::Writable`].
    #[error("the writer keeps all and has no room until a reader acknowledges")]
    Full,
    /// The sample is longer than the writer keeps.
    #[error("a sample of {len} bytes; the writer keeps at most {most}")]
    TooLong {
        /// Its length.
        len: usize,
        /// The writer's `max_bytes`, at most 4 GiB.
        most: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddrV4 {
        text.parse().expect("an address")
    }

    #[test]
    fn only_addresses_within_reach_are_sent_to() {
        let reach = Reach {
            networks: vec![(Ipv4Addr::new(192, 0, 2, 2), 24), (Ipv4Addr::LOCALHOST, 8)],
            hosts: vec![Ipv4Addr::new(203, 0, 113, 9)],
        };
        let local = Ipv4Addr::LOCALHOST;
        let near = Ipv4Addr::new(192, 0, 2, 77);
        for (addresses, from, picked) in [
            (
                &["127.0.0.1:7411", "192.0.2.2:7411"][..],
                local,
                Some("127.0.0.1:7411"),
            ),
            (&["192.0.2.2:7411"], local, Some("192.0.2.2:7411")),
            (&["127.0.0.1:7411"], near, None),
            (
                &["10.0.0.1:7411", "192.0.2.77:7411"],
                near,
                Some("192.0.2.77:7411"),
            ),
            (&["10.0.0.1:7411"], near, None),
            (&["203.0.113.9:7411"], near, Some("203.0.113.9:7411")),
            (
                &["198.51.100.1:1"],
                Ipv4Addr::new(198, 51, 100, 1),
                Some("198.51.100.1:1"),
            ),
            (&["239.255.0.1:7400"], near, None),
        ] {
            let addresses: Vec<_> = addresses.iter().map(|a| at(a)).collect();
            assert_eq!(reach.pick(&addresses, from), picked.map(at), "{addresses:?}");
        }
        assert_eq!(Reach::default().pick(&[at("10.0.0.1:1")], near), None);
    }

    #[test]
    fn a_pace_at_which_nothing_goes_is_refused() {
        let mut config = Config::new(GuidPrefix([1; 12]), 0);
        assert_eq!(config.check(), Ok(()));
        config.network.rate = 0;
        assert!(matches!(config.check(), Err(ConfigError::Pace(_))));
    }
}
