//! Carriers, which transport a link's datagrams.

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

/// A peer of a carrier: its index in the list of peers that the carrier was created with.
pub type PeerIndex = usize;

/// The fate of a datagram passed to [`Carrier::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is on its way.
    Taken,
    /// The carrier is not ready and took nothing. Offer the datagram again once [`Carrier::ready`].
    NotReady,
    /// This datagram could not be sent (no route, peer unreachable, too large for the path). The carrier
    /// continues.
    Lost,
}

/// A received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// Its sender.
    pub peer: PeerIndex,
    /// Its bytes, either at the start of the caller's buffer or still in the carrier's own memory.
    pub datagram: &'a [u8],
}

/// A carrier's knowledge of the path to a peer from its own acknowledgements, since the peer connected.
/// Counted in bytes of the carrier's packets, without IP and UDP. A new connection starts at 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// Counts connections, so that a reader notices when the counters restart.
    pub connection: u64,
    /// Bytes sent that request an acknowledgement.
    pub sent_bytes: u64,
    /// Bytes acknowledged.
    pub acked_bytes: u64,
    /// Bytes believed lost.
    pub lost_bytes: u64,
    /// Bytes neither acknowledged nor believed lost, as of the last acknowledgement and since.
    pub in_flight_bytes: u64,
    /// Smoothed round-trip time, minus the peer's acknowledgement delay.
    pub rtt: Duration,
}

/// A carrier that cannot continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CarrierError {
    /// The local address cannot be used.
    #[error("cannot bind {address}: {source}: choose a free address under `radio.bind`")]
    Bind {
        /// The requested address.
        address: std::net::SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// The serial line cannot be used.
    #[error("cannot {doing} the line {path}: {source}: check `radio.line` and `radio.baud`")]
    Line {
        /// The tty.
        path: std::path::PathBuf,
        /// What was being done.
        doing: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// The keys cannot be used.
    #[error(transparent)]
    Keys(#[from] crate::keys::KeysError),
    /// The socket failed permanently.
    #[error("the carrier's socket failed while {doing}: {source}")]
    Socket {
        /// What was being done.
        doing: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
}

/// Opens the carrier that a configuration names, for its peers in the same order.
///
/// # Errors
/// [`CarrierError`]: an unusable address or serial line, or invalid keys.
pub fn open_carrier(config: &Config) -> Result<Box<dyn Carrier>, CarrierError> {
    // Checked configurations contain these values, so the defaults are never used.
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

/// Transports datagrams between this host and its peers.
///
/// The contract that preserves priorities: a carrier holds **at most one** datagram that the medium has not
/// taken yet, and [`Carrier::ready`] is true only if it would accept exactly one more at once. A carrier
/// keeps queues inside its library empty by not being ready. All calls return at once.
///
/// On a wire, which is faster than its hosts, a carrier may batch datagrams until [`Carrier::flush`] and pass
/// them to the system together. Then it holds **at most one batch** that the medium has not taken.
pub trait Carrier: Send {
    /// Largest datagram, in bytes: at least 256. A carrier of shorter frames has to cut and join.
    fn max_datagram(&self) -> usize;

    /// Largest datagram that currently fits one packet to `peer`, in bytes. Longer ones, up to
    /// [`Carrier::max_datagram`], take several packets and cost accordingly.
    fn max_datagram_to(&self, peer: PeerIndex) -> usize {
        let _ = peer;
        self.max_datagram()
    }

    /// Size of the largest IP packet that fits the path to `peer`, in bytes, if known.
    fn path_mtu(&self, peer: PeerIndex) -> Option<usize> {
        let _ = peer;
        None
    }

    /// Why there is no connection to `peer` at present, if known, and how to fix it.
    fn trouble(&self, peer: PeerIndex) -> Option<String> {
        let _ = peer;
        None
    }

    /// Sets whether another way leads to `peer` at present. If so, the carrier tries a silent peer less
    /// often.
    fn leads_elsewhere(&mut self, peer: PeerIndex, elsewhere: bool) {
        let _ = (peer, elsewhere);
    }

    /// Number of datagrams that the carrier may join: up to this many times [`Carrier::max_datagram`] bytes
    /// may arrive as one datagram, and on a wire may be sent as one.
    fn joined(&self) -> usize {
        1
    }

    /// Bytes that the carrier and the layers below it add to every datagram, up to and including IP.
    fn overhead(&self) -> usize;

    /// Number of datagrams that can wait for [`Carrier::receive`] without loss; 0 if unknown.
    fn holds(&self) -> usize {
        0
    }

    /// Returns whether the carrier would accept exactly one more datagram.
    fn ready(&mut self) -> bool;

    /// Accepts one datagram for `peer`. `priority` (0–127) lets the carrier mark it for the network (DSCP).
    ///
    /// # Errors
    /// Only if the carrier cannot continue at all. A lost datagram is [`Sent::Lost`].
    fn send(&mut self, peer: PeerIndex, priority: u8, datagram: &[u8]) -> Result<Sent, CarrierError>;

    /// Returns the next received datagram, or `None`. A carrier without memory of its own for it uses
    /// `buffer`. Drops datagrams of unknown senders, which [`Carrier::refused`] counts.
    ///
    /// # Errors
    /// Only if the carrier cannot continue at all.
    fn receive<'a>(&'a mut self, buffer: &'a mut [u8]) -> Result<Option<Received<'a>>, CarrierError>;

    /// The last datagram that [`Carrier::receive`] returned for `peer` is from another host with the peer's
    /// name and keys: closes the connection over which it arrived. A carrier without connections has nothing
    /// to close.
    fn turn_away(&mut self, peer: PeerIndex) {
        let _ = peer;
    }

    /// A descriptor that is readable if [`Carrier::receive`] has a datagram, unless that datagram arrived
    /// together with the last one: call `receive` until it returns `None`.
    fn readable(&self) -> BorrowedFd<'_>;

    /// A descriptor that becomes writable while [`Carrier::ready`] is false; `None` if only time helps, as
    /// [`Carrier::service`] reports.
    fn writable(&self) -> Option<BorrowedFd<'_>>;

    /// Does the carrier's own timed work (acknowledgements, reconnection) and returns how soon to call it
    /// again. Call it after receiving and before waiting.
    ///
    /// # Errors
    /// Only if the carrier cannot continue at all.
    fn service(&mut self) -> Result<Option<Duration>, CarrierError> {
        Ok(None)
    }

    /// Number of datagrams dropped as garbage, as too large, or because their sender is unknown.
    fn refused(&self) -> u64;

    /// Approximate bytes of datagrams to batch before [`Carrier::flush`]; `None` if each datagram is sent by
    /// itself.
    fn batch(&self) -> Option<usize> {
        None
    }

    /// Passes the batch to the system. The carrier sends any rest once [`Carrier::ready`], and nothing else
    /// before that.
    ///
    /// # Errors
    /// As [`Carrier::send`].
    fn flush(&mut self) -> Result<(), CarrierError> {
        Ok(())
    }

    /// Number of accepted datagrams that have not been passed to the system; at most 1, except in a batch.
    fn held(&self) -> usize {
        0
    }

    /// Information about the path to `peer`; `None` if the carrier has no acknowledgements of its own, or the
    /// peer is not connected.
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
