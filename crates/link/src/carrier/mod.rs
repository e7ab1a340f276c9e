//! What moves a link's datagrams.

mod batch;
#[cfg(test)]
mod conformance;
mod path_mtu;
pub(crate) mod quic;
pub(crate) mod serial;
mod socket;
mod source;
mod team;
pub(crate) mod tls;
mod udp;

pub use quic::{QuicCarrier, QuicConfig};
pub use serial::SerialCarrier;
pub use team::TeamPeer;
pub(crate) use team::watch::Watch;
pub use tls::TlsCarrier;
pub use udp::UdpCarrier;

use crate::config::{CarrierKind, Config};
use crate::keys::Bundle;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// A peer of a carrier: its index in the order in which the carrier was given its peers.
pub type PeerIndex = usize;

/// What became of a datagram handed to [`Carrier::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is on its way.
    Taken,
    /// The carrier is not ready; nothing was taken. Offer it again once [`Carrier::ready`].
    NotReady,
    /// This one could not be sent (no route, peer unreachable, too large for the path); the carrier goes on.
    Lost,
}

/// A datagram that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// From whom.
    pub peer: PeerIndex,
    /// Its bytes, which are at the start of the caller's buffer, or still where the carrier has them.
    pub datagram: &'a [u8],
}

/// What a carrier's own acknowledgements tell of the path to a peer, since the peer is connected. Counted in
/// bytes of the carrier's packets, without IP and UDP; a new connection starts again at 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// Counts connections, so that a reader notices when the counters started again.
    pub connection: u64,
    /// Bytes sent that ask for an acknowledgement.
    pub sent_bytes: u64,
    /// Bytes acknowledged.
    pub acked_bytes: u64,
    /// Bytes believed lost.
    pub lost_bytes: u64,
    /// Bytes that are neither acknowledged nor believed lost, as of the last acknowledgement and since.
    pub in_flight_bytes: u64,
    /// Smoothed round-trip time, less the peer's delay of acknowledgements.
    pub rtt: Duration,
}

/// A carrier that cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CarrierError {
    /// The local address cannot be used.
    #[error("cannot bind {address}: {source}; choose a free address under `radio.bind`")]
    Bind {
        /// The address asked for.
        address: std::net::SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The serial line cannot be used.
    #[error("cannot {doing} the line {path}: {source}; see `radio.line` and `radio.baud`")]
    Line {
        /// The tty.
        path: std::path::PathBuf,
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// The keys cannot be used.
    #[error(transparent)]
    Keys(#[from] crate::keys::KeysError),
    /// The socket failed for good.
    #[error("the carrier's socket failed while it was {doing}: {source}")]
    Socket {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Opens the carrier that a configuration names, for its peers in their order.
///
/// # Errors
/// [`CarrierError`]: an address or a line that cannot be used, or keys that do not count.
pub fn open_carrier(config: &Config) -> Result<Box<dyn Carrier>, CarrierError> {
    // What a checked configuration has, the defaults stand for nothing.
    let bind = config.radio.bind.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
    let addressed = config.peers.iter().filter_map(|p| Some((&p.name, p.address?)));
    Ok(match config.carrier() {
        CarrierKind::Udp => {
            let peers = addressed.map(|(_, a)| a).collect();
            let udp = if config.has_wire() {
                UdpCarrier::bind_to_wire(bind, peers)?
            } else {
                UdpCarrier::bind(bind, peers)?
            };
            Box::new(udp.with_mtu(config.radio.mtu))
        }
        CarrierKind::Serial => {
            let line = config.radio.line.as_deref().unwrap_or("".as_ref());
            Box::new(SerialCarrier::open(line, config.radio.baud.unwrap_or_default())?)
        }
        kind @ (CarrierKind::Quic | CarrierKind::Tls) => {
            let bundle = Bundle::load(config.keys.as_deref().unwrap_or("".as_ref()), &config.host)?;
            let peer = |(name, address): (&String, SocketAddr)| TeamPeer {
                name: name.clone(),
                address,
            };
            let peers = addressed.map(peer).collect();
            if kind == CarrierKind::Tls {
                return Ok(Box::new(
                    TlsCarrier::bind(bind, peers, bundle)?.with_mtu(config.radio.mtu),
                ));
            }
            let mut quic = QuicConfig::new(bind, peers);
            quic.wire = config.has_wire();
            quic.joins = config.is_wire();
            quic.mtu = config.radio.mtu;
            Box::new(QuicCarrier::bind(quic, bundle)?)
        }
    })
}

/// Moves datagrams between this host and its peers.
///
/// The contract that keeps priorities whole: a carrier holds **at most one** datagram that the medium has
/// not taken yet, and [`Carrier::ready`] is true only while it would take exactly one more at once. Queues
/// inside a carrier's library are to be kept empty by not being ready. All calls return at once.
///
/// On a wire, which is quicker than its hosts, a carrier may gather datagrams until [`Carrier::flush`], and give them to
/// the system together: there it is **at most one batch** that the medium has not taken.
pub trait Carrier: Send {
    /// The largest datagram in bytes.
    fn max_datagram(&self) -> usize;

    /// The largest datagram in bytes that goes to `peer` in one packet now. Longer ones, up to [`Carrier::max_datagram`], go in
    /// several, and cost as much.
    fn max_datagram_to(&self, peer: PeerIndex) -> usize {
        let _ = peer;
        self.max_datagram()
    }

    /// Bytes of the largest IP packet that passes on the way to `peer`, as far as that is known.
    fn path_mtu(&self, peer: PeerIndex) -> Option<usize> {
        let _ = peer;
        None
    }

    /// Why there is no way to `peer` at present, as far as that is known, with the mend.
    fn trouble(&self, peer: PeerIndex) -> Option<String> {
        let _ = peer;
        None
    }

    /// Whether another way leads to `peer` now: while it is silent here, it is sought less often then.
    fn leads_elsewhere(&mut self, peer: PeerIndex, elsewhere: bool) {
        let _ = (peer, elsewhere);
    }

    /// Datagrams of which it makes one: up to so many times [`Carrier::max_datagram`] bytes may come as one, and over a
    /// wire may be sent as one.
    fn joined(&self) -> usize {
        1
    }

    /// Bytes that the carrier and the layers below it add to every datagram, up to and with IP.
    fn overhead(&self) -> usize;

    /// Datagrams that wait here until [`Carrier::receive`] is called, without loss; 0 if that is not known.
    fn holds(&self) -> usize {
        0
    }

    /// Whether exactly one more datagram would be taken now.
    fn ready(&mut self) -> bool;

    /// Takes one datagram for `peer`. `priority` (0–127) lets the carrier mark it for the network (DSCP).
    ///
    /// # Errors
    /// Only where the carrier cannot go on at all; a lost datagram is [`Sent::Lost`].
    fn send(&mut self, peer: PeerIndex, priority: u8, datagram: &[u8]) -> Result<Sent, CarrierError>;

    /// The next datagram that came; `None` if there is none. A carrier that has no place of its own for it puts it into
    /// `buffer`. Datagrams of strangers are dropped here and counted by [`Carrier::refused`].
    ///
    /// # Errors
    /// Only where the carrier cannot go on at all.
    fn receive<'a>(&'a mut self, buffer: &'a mut [u8]) -> Result<Option<Received<'a>>, CarrierError>;

    /// What [`Carrier::receive`] gave last for `peer` is of another host, which has the peer's name and keys: the connection
    /// over which it came ends. A carrier without connections has nothing to end.
    fn turn_away(&mut self, peer: PeerIndex) {
        let _ = peer;
    }

    /// A descriptor that is readable when [`Carrier::receive`] has something, unless that came together with what it gave
    /// last: ask until there is nothing.
    fn readable(&self) -> BorrowedFd<'_>;

    /// A descriptor to wait on for writability while [`Carrier::ready`] is false; `None` if only time helps,
    /// which [`Carrier::service`] tells.
    fn writable(&self) -> Option<BorrowedFd<'_>>;

    /// Does the carrier's own timed work (acknowledgements, reconnection) and says how soon it wants to be
    /// called again. To be called after receiving and before waiting.
    ///
    /// # Errors
    /// Only where the carrier cannot go on at all.
    fn service(&mut self) -> Result<Option<Duration>, CarrierError> {
        Ok(None)
    }

    /// Datagrams dropped because they came from nobody this carrier knows, were too large, or were garbage.
    fn refused(&self) -> u64;

    /// Bytes of datagrams that are to be gathered before [`Carrier::flush`], about; `None` where each goes by itself.
    fn batch(&self) -> Option<usize> {
        None
    }

    /// Gives what was gathered to the system. What it does not take now goes once [`Carrier::ready`]; nothing else does
    /// until then.
    ///
    /// # Errors
    /// As [`Carrier::send`].
    fn flush(&mut self) -> Result<(), CarrierError> {
        Ok(())
    }

    /// Datagrams that were taken and have not been given to the system yet; at most 1, but for those that are gathered.
    fn held(&self) -> usize {
        0
    }

    /// What is known of the path to `peer`; `None` where the carrier has no acknowledgements of its own, or
    /// the peer is not connected.
    fn path(&self, peer: PeerIndex) -> Option<Path> {
        let _ = peer;
        None
    }
}

impl<C: Carrier + ?Sized> Carrier for Box<C> {
    fn max_datagram(&self) -> usize {
        (**self).max_datagram()
    }

    fn max_datagram_to(&self, peer: PeerIndex) -> usize {
        (**self).max_datagram_to(peer)
    }

    fn path_mtu(&self, peer: PeerIndex) -> Option<usize> {
        (**self).path_mtu(peer)
    }

    fn trouble(&self, peer: PeerIndex) -> Option<String> {
        (**self).trouble(peer)
    }

    fn leads_elsewhere(&mut self, peer: PeerIndex, elsewhere: bool) {
        (**self).leads_elsewhere(peer, elsewhere);
    }

    fn joined(&self) -> usize {
        (**self).joined()
    }

    fn overhead(&self) -> usize {
        (**self).overhead()
    }

    fn holds(&self) -> usize {
        (**self).holds()
    }

    fn ready(&mut self) -> bool {
        (**self).ready()
    }

    fn send(&mut self, peer: PeerIndex, priority: u8, datagram: &[u8]) -> Result<Sent, CarrierError> {
        (**self).send(peer, priority, datagram)
    }

    fn receive<'a>(&'a mut self, buffer: &'a mut [u8]) -> Result<Option<Received<'a>>, CarrierError> {
        (**self).receive(buffer)
    }

    fn turn_away(&mut self, peer: PeerIndex) {
        (**self).turn_away(peer);
    }

    fn readable(&self) -> BorrowedFd<'_> {
        (**self).readable()
    }

    fn writable(&self) -> Option<BorrowedFd<'_>> {
        (**self).writable()
    }

    fn service(&mut self) -> Result<Option<Duration>, CarrierError> {
        (**self).service()
    }

    fn refused(&self) -> u64 {
        (**self).refused()
    }

    fn batch(&self) -> Option<usize> {
        (**self).batch()
    }

    fn flush(&mut self) -> Result<(), CarrierError> {
        (**self).flush()
    }

    fn held(&self) -> usize {
        (**self).held()
    }

    fn path(&self, peer: PeerIndex) -> Option<Path> {
        (**self).path(peer)
    }
}
