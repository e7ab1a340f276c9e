//! The sockets of a participant, on the well-known ports (DDSI-RTPS 2.5, section 9.6.2.3).

use super::interfaces::{self, Interface};
use super::spread;
use crate::config::{Config, Reach};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};

/// Discovery multicast group of every domain.
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);
/// Port of domain 0, ports per domain, ports per participant.
const PORT_BASE: u32 = 7400;
const DOMAIN_GAIN: u32 = 250;
const PARTICIPANT_GAIN: u32 = 2;
/// Port offsets: discovery multicast, discovery unicast, data unicast.
const D0: u32 = 0;
const D1: u32 = 10;
const D3: u32 = 11;
/// Largest participant number on a host whose ports lie within the domain's.
const MAX_PARTICIPANT_ID: u32 = 119;
/// Number of participant ports per host that receive announcements unasked.
const ANNOUNCED_IDS: u32 = 32;
/// Desired size of receive buffers, in bytes.
const RECEIVE_BUFFER: usize = 8 << 20;

/// Where to look for participants, as `ROS_AUTOMATIC_DISCOVERY_RANGE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Range {
    /// Nowhere.
    Off,
    /// On this host: no other address is bound.
    #[default]
    Localhost,
    /// On the networks of the selected interfaces.
    Subnet,
}

/// Which sockets a participant has.
#[derive(Clone, Debug, Default)]
pub struct TransportConfig {
    /// Number of the domain, 0 to 232.
    pub domain: u32,
    /// Where to look for participants.
    pub range: Range,
    /// With [`Range::Subnet`]: addresses of the interfaces to use; empty for all.
    pub interfaces: Vec<Ipv4Addr>,
    /// Hosts on which to look for participants, wherever they are. Ignored with [`Range::Off`].
    pub peers: Vec<Ipv4Addr>,
    /// Size of a receive buffer for data, in bytes; `None` is as much as the system permits (`net.core.rmem_max`), at
    /// most 8 MiB. If that is less than 4 MiB, several sockets share the port.
    pub receive_buffer: Option<usize>,
}

/// Why the sockets cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The domain's ports would lie beyond 65,535.
    #[error("domain {0} has no ports: use 0 to 232")]
    Domain(u32),
    /// All ports of participants of the domain are taken on this host.
    #[error("all ports of participants of domain {0} are taken on this host")]
    NoPort(u32),
    /// A selected interface does not exist.
    #[error("this host has no interface with the address {0}")]
    NoInterface(Ipv4Addr),
    /// The system refused something.
    #[error("{what}: {error}")]
    Io {
        /// What failed.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

/// The sockets of a participant.
#[derive(Debug)]
pub struct Transport {
    metatraffic: UdpSocket,
    /// All on one port.
    data: Vec<UdpSocket>,
    multicast: Option<UdpSocket>,
    /// One for each interface.
    multicast_out: Vec<UdpSocket>,
    participant_id: u32,
    config: TransportConfig,
    used: Vec<Interface>,
    own: Vec<Interface>,
}

fn failed(what: &'static str) -> impl FnOnce(io::Error) -> TransportError {
    move |error| TransportError::Io { what, error }
}

impl Transport {
    /// Opens the sockets, with the lowest participant number whose two ports are free on this host.
    ///
    /// # Errors
    ///
    /// If the domain has no ports, all are taken, an interface does not exist, or the system refuses.
    pub fn open(config: TransportConfig) -> Result<Self, TransportError> {
        if config.domain > 232 {
            return Err(TransportError::Domain(config.domain));
        }
        let own = interfaces::all().map_err(failed("the interfaces of this host"))?;
        let used = chosen(&config, &own)?;
        let bound = match config.range {
            Range::Subnet => Ipv4Addr::UNSPECIFIED,
            Range::Off | Range::Localhost => Ipv4Addr::LOCALHOST,
        };
        let (participant_id, metatraffic, data) = bind_pair(&config, bound)?;
        let mut out = Transport {
            metatraffic,
            data,
            multicast: None,
            multicast_out: Vec::new(),
            participant_id,
            config,
            used,
            own,
        };
        if out.config.range != Range::Off {
            // Without multicast, participants on this host still find each other.
            match out.join() {
                Ok(()) => {}
                Err(error) if out.config.range == Range::Localhost => {
                    tracing::debug!(%error, "no multicast on the loopback interface");
                }
                Err(error) => return Err(failed("multicast of discovery")(error)),
            }
        }
        Ok(out)
    }

    /// Joins the group on each interface. The socket ignores groups that other sockets joined.
    fn join(&mut self) -> io::Result<()> {
        let port = port(self.config.domain, D0);
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(true)?;
        socket.set_multicast_all_v4(false)?;
        socket.bind(&SockAddr::from(SocketAddrV4::new(GROUP, port)))?;
        socket.set_nonblocking(true)?;
        for interface in self.used.iter().filter(|i| i.multicast) {
            socket.join_multicast_v4(&GROUP, &interface.address)?;
            let sender = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
            sender.set_multicast_if_v4(&interface.address)?;
            sender.bind(&SockAddr::from(SocketAddrV4::new(interface.address, 0)))?;
            sender.set_nonblocking(true)?;
            self.multicast_out.push(sender.into());
        }
        self.multicast = Some(socket.into());
        Ok(())
    }

    /// Configures a participant for these sockets: its domain, its addresses, where it announces itself, and where it
    /// may send.
    pub fn configure(&self, config: &mut Config) {
        let domain = self.config.domain;
        let ports = |id| SocketAddrV4::new(Ipv4Addr::LOCALHOST, unicast_port(domain, D1, id));
        config.domain = domain;
        let at = |d| {
            let port = unicast_port(domain, d, self.participant_id);
            let addresses = self.used.iter().map(move |i| SocketAddrV4::new(i.address, port));
            // Others would take the loopback address for their own.
            let far = addresses.clone().filter(|a| !a.ip().is_loopback());
            let far: Vec<_> = far.collect();
            if far.is_empty() { addresses.collect() } else { far }
        };
        config.metatraffic = at(D1);
        config.unicast = at(D3);
        config.announce_to = Vec::new();
        let mut hosts = self.config.peers.clone();
        match self.config.range {
            Range::Off => hosts.clear(),
            Range::Localhost => config.announce_to.extend((0..ANNOUNCED_IDS).map(ports)),
            Range::Subnet => {}
        }
        if self.multicast.is_some() {
            let group = SocketAddrV4::new(GROUP, port(domain, D0));
            config.announce_to.push(group);
        }
        for host in &hosts {
            let all = (0..ANNOUNCED_IDS).map(ports);
            let there = all.map(|a| SocketAddrV4::new(*host, a.port()));
            config.announce_to.extend(there);
        }
        let networks = match self.config.range {
            Range::Subnet => self.used.iter().map(|i| (i.address, i.prefix)).collect(),
            // This host's other addresses are its own; their networks are out of reach.
            Range::Off | Range::Localhost => self.own.iter().map(|i| (i.address, 32)).collect(),
        };
        config.reach = Reach { networks, hosts };
    }

    /// Number of the participant on this host, which determines its ports.
    pub fn participant_id(&self) -> u32 {
        self.participant_id
    }

    /// The port that samples are sent from.
    pub(super) fn port(&self) -> u16 {
        unicast_port(self.config.domain, D3, self.participant_id)
    }

    /// Sockets to receive from, in non-blocking mode.
    pub(super) fn sockets(&self) -> impl Iterator<Item = &UdpSocket> {
        [&self.metatraffic]
            .into_iter()
            .chain(&self.data)
            .chain(self.multicast.as_ref())
    }

    /// Sends a datagram; to a group, on each interface. Fails with `WouldBlock` if the system's buffer is full.
    ///
    /// # Errors
    ///
    /// Errors of the system. A datagram that it refuses is lost, as on a network.
    pub(super) fn send(&self, datagram: &[u8], to: SocketAddrV4) -> io::Result<()> {
        if !to.ip().is_multicast() {
            return self.sender().send_to(datagram, SocketAddr::V4(to)).map(drop);
        }
        let mut last = Ok(());
        for socket in &self.multicast_out {
            last = socket.send_to(datagram, SocketAddr::V4(to)).map(drop);
        }
        last
    }

    /// The socket that sends samples, to wait until it is writable.
    pub(super) fn sender(&self) -> &UdpSocket {
        self.data.first().unwrap_or(&self.metatraffic)
    }
}

/// The interfaces that a range uses.
fn chosen(config: &TransportConfig, own: &[Interface]) -> Result<Vec<Interface>, TransportError> {
    if config.range != Range::Subnet {
        return Ok(own
            .iter()
            .filter(|i| i.address == Ipv4Addr::LOCALHOST)
            .copied()
            .collect());
    }
    if config.interfaces.is_empty() {
        return Ok(own.to_vec());
    }
    let find = |address: &Ipv4Addr| {
        let found = own.iter().find(|i| i.address == *address).copied();
        found.ok_or(TransportError::NoInterface(*address))
    };
    config.interfaces.iter().map(find).collect()
}

fn port(domain: u32, offset: u32) -> u16 {
    u16::try_from(PORT_BASE + DOMAIN_GAIN * domain + offset).unwrap_or(u16::MAX)
}

fn unicast_port(domain: u32, offset: u32, participant: u32) -> u16 {
    port(domain, offset + PARTICIPANT_GAIN * participant)
}

fn bind_pair(
    config: &TransportConfig,
    address: Ipv4Addr,
) -> Result<(u32, UdpSocket, Vec<UdpSocket>), TransportError> {
    let at = |offset, id| SocketAddrV4::new(address, unicast_port(config.domain, offset, id));
    let metatraffic = |id| -> io::Result<UdpSocket> {
        let socket = UdpSocket::bind(at(D1, id))?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    let buffer = config.receive_buffer.unwrap_or(RECEIVE_BUFFER);
    for id in 0..=MAX_PARTICIPANT_ID {
        // Domain 232 has few ports.
        if PORT_BASE + DOMAIN_GAIN * config.domain + D3 + PARTICIPANT_GAIN * id > 65_535 {
            break;
        }
        match metatraffic(id).and_then(|m| Ok((m, spread::bind(at(D3, id), buffer)?))) {
            Ok((metatraffic, data)) => return Ok((id, metatraffic, data)),
            Err(e) if e.kind() == io::ErrorKind::AddrInUse => {}
            Err(e) => return Err(failed("the ports of a participant")(e)),
        }
    }
    Err(TransportError::NoPort(config.domain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ids::GuidPrefix;

    #[test]
    fn ports_are_the_well_known_ones() {
        assert_eq!(port(0, D0), 7400);
        assert_eq!((unicast_port(0, D1, 0), unicast_port(0, D3, 0)), (7410, 7411));
        assert_eq!((unicast_port(1, D1, 3), unicast_port(1, D3, 3)), (7666, 7667));
    }

    #[test]
    fn two_participants_of_a_host_have_different_ports_and_stay_on_it() {
        let open = || {
            Transport::open(TransportConfig {
                domain: 93,
                ..TransportConfig::default()
            })
        };
        let (first, second) = (open().expect("sockets"), open().expect("sockets"));
        assert_ne!(first.participant_id(), second.participant_id());
        let mut config = Config::new(GuidPrefix([1; 12]), 0);
        first.configure(&mut config);
        assert_eq!(config.domain, 93);
        let local = config.metatraffic.iter().chain(&config.unicast);
        assert!(local.clone().count() == 2 && local.clone().all(|a| a.ip().is_loopback()));
        assert!(
            config
                .announce_to
                .iter()
                .all(|a| a.ip().is_loopback() || a.ip().is_multicast())
        );
        assert!(config.reach.networks.iter().all(|(_, length)| *length == 32));
        assert!(matches!(
            Transport::open(TransportConfig {
                domain: 233,
                ..TransportConfig::default()
            }),
            Err(TransportError::Domain(233))
        ));
        assert!(matches!(
            Transport::open(TransportConfig {
                range: Range::Subnet,
                interfaces: vec![Ipv4Addr::new(203, 0, 113, 1)],
                ..TransportConfig::default()
            }),
            Err(TransportError::NoInterface(_))
        ));
    }
}
