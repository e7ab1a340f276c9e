//! Settings of a participant and its endpoints.

use crate::qos::Qos;
use crate::wire::ids::{EntityId, GuidPrefix, VendorId};
use crate::wire::participant::{MAX_NAME, MAX_USER_DATA};
use core::time::Duration;
use std::net::{Ipv4Addr, SocketAddrV4};

/// How a participant identifies itself, where others reach it, and what it accepts from them.
#[derive(Clone, Debug)]
pub struct Config {
    /// First part of all its GUIDs. It must be unique in the domain and hard to guess: a peer that knows it counts as
    /// having received messages of this participant.
    pub prefix: GuidPrefix,
    /// Vendor that it announces.
    pub vendor: VendorId,
    /// Domain ID; participants of other domains are ignored.
    pub domain: u32,
    /// Domain tag; participants with another tag are ignored. Empty is DDS' default.
    pub domain_tag: String,
    /// Its name, at most 256 bytes.
    pub name: String,
    /// User data that it announces, at most 4,096 bytes; in ROS 2, `enclave=/;`.
    pub user_data: Vec<u8>,
    /// Addresses that discovery reaches it at.
    pub metatraffic: Vec<SocketAddrV4>,
    /// Addresses that data reaches it at.
    pub unicast: Vec<SocketAddrV4>,
    /// Destinations of its announcements: the domain's group, and addresses where participants may be.
    pub announce_to: Vec<SocketAddrV4>,
    /// Time between announcements. The first five are 100 ms apart.
    pub announce_period: Duration,
    /// How long others consider it alive without an announcement.
    pub lease: Duration,
    /// Addresses that it may send to.
    pub reach: Reach,
    /// Pace at which it sends to participants on this host.
    pub loopback: Pace,
    /// Pace at which it sends to others.
    pub network: Pace,
    /// Limits on what others can make it hold.
    pub limits: Limits,
}

/// Which of a participant's announced addresses may be sent to. An announcement proves nothing: without this check,
/// anyone could have data sent anywhere.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// This host's own addresses, with the prefix lengths of their networks. Participants there can be reached, and
    /// participants of this host at 127.0.0.0/8.
    pub networks: Vec<(Ipv4Addr, u8)>,
    /// Hosts outside these networks.
    pub hosts: Vec<Ipv4Addr>,
}

/// Rate limit towards one address, so that the buffer of its socket holds what arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Bytes per second, headers included.
    pub rate: u64,
    /// Bytes that may be sent at once after a pause. A Linux socket holds datagrams of about half its 212,992 bytes.
    pub burst: u32,
    /// Size of a fragment in bytes; longer samples are split into several.
    pub fragment: u16,
    /// Short samples and messages share datagrams of at most this many bytes.
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

/// How much all others together, one address, and one participant can make a participant hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes in total.
    pub memory: usize,
    /// Bytes for all participants that announce themselves from one address.
    pub address_memory: usize,
    /// Bytes for a participant: itself, its endpoints, samples on the way to or from them, and events not yet taken.
    pub participant_memory: usize,
    /// Bytes for an unconfirmed participant, that is, one that has not shown yet that it received messages of this one.
    pub unconfirmed_memory: usize,
    /// Participants in total; at most half of them from one address.
    pub participants: usize,
    /// Unconfirmed participants. A further one displaces the oldest.
    pub unconfirmed: usize,
    /// Endpoints of a participant.
    pub endpoints: usize,
    /// Longest sample in bytes; fragments of longer ones are refused.
    pub sample: u32,
    /// Longest lease; longer and infinite leases are cut to this.
    pub lease: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            memory: 1 << 30,
            address_memory: 512 << 20,
            participant_memory: 192 << 20,
            unconfirmed_memory: 64 << 10,
            participants: 512,
            unconfirmed: 64,
            endpoints: 4_096,
            sample: 64 << 20,
            lease: Duration::from_secs(300),
        }
    }
}

impl Config {
    /// Settings of a participant in this domain, without addresses to announce itself to.
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
    /// Whether an address belongs to this host.
    pub(crate) fn is_own(&self, ip: Ipv4Addr) -> bool {
        ip.is_loopback() || self.networks.iter().any(|(own, _)| *own == ip)
    }

    /// Returns the first of a participant's addresses that may be sent to, preferring those of this host. `from` is the
    /// source of its announcement.
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
    /// Topic name, at most 1,024 bytes; in ROS 2, with a prefix such as `rt/`.
    pub topic: String,
    /// Type name, at most 1,024 bytes; only endpoints with the same name match.
    pub type_name: String,
    /// Its policies.
    pub qos: Qos,
    /// User data that it announces, at most 4,096 bytes; in ROS 2, `typehash=RIHS01_…;`.
    pub user_data: Vec<u8>,
    /// For a writer: maximum number of bytes of samples to keep. Beyond it, older ones are dropped; with keep-all
    /// history, writing fails.
    pub max_bytes: usize,
    /// For a writer with keep-all history: maximum number of samples to keep.
    pub max_samples: usize,
}

impl EndpointConfig {
    /// Settings that keep at most 64 MiB in 1,024 samples.
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

/// Why the settings of a participant are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// This pace could send nothing, or no datagram can hold a fragment.
    #[error("{0:?} is not valid: give a rate and a burst above 0, and fragments of 512 to 65,000 bytes")]
    Pace(Pace),
    /// The user data is too long.
    #[error("user data has {0} bytes, more than the limit of 4,096")]
    UserData(usize),
    /// The name or the domain tag is too long.
    #[error("a name has {0} bytes, more than the limit of 256")]
    Name(usize),
}

/// Why an endpoint cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The name of the topic, the type or a partition is empty or too long.
    #[error("a {what} has {len} bytes: give 1 to 1,024")]
    Name {
        /// Which name.
        what: &'static str,
        /// Its length.
        len: usize,
    },
    /// The user data is too long.
    #[error("user data has {0} bytes, more than the limit of 4,096")]
    UserData(usize),
    /// More partitions or data representations than can be announced.
    #[error("an endpoint has too many {1}: {0}")]
    Many(usize, &'static str),
    /// All endpoint numbers are used up.
    #[error("this participant has used up all endpoint numbers")]
    Exhausted,
}

/// Why a sample is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The writer does not exist.
    #[error("this participant has no writer {0}")]
    NoSuchWriter(EntityId),
    /// The writer has keep-all history and no room until a reader acknowledges. [`crate::Event::Writable`] follows
    /// then.
    #[error("the writer keeps all samples and has no room until a reader acknowledges some")]
    Full,
    /// The sample is longer than the writer's limit.
    #[error("a sample has {len} bytes, but the writer keeps at most {most}")]
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
