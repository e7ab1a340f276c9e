//! The QUIC carrier: datagrams in TLS 1.3 between hosts of one team.
//!
//! `noq-proto` is a state machine without I/O and runs on the radio thread. In one call, a datagram goes from
//! [`Carrier::send`] through encryption to the socket, so that nothing can queue in between. The carrier uses
//! only unreliable datagrams (RFC 9221). Streams are off, as is everything in QUIC that would hold or pace
//! datagrams (decision 070).

mod congestion;
mod connections;
mod handshakes;
mod packets;
pub(crate) mod parts;
pub(crate) mod pieces;
mod tls;

use super::path_mtu::{LEAST, MOST, START};
use super::socket::{MAX_PAYLOAD, Socket};
use super::team::incoming::Incoming;
use super::team::watch::Watch;
use super::team::{HANDSHAKE, Known, RECHECK, RENEWAL, TeamPeer};
use super::{Carrier, CarrierError, Path, PeerIndex, Received, Sent};
use crate::keys::Bundle;
use bytes::{Bytes, BytesMut};
use congestion::Counters;
use connections::{Connections, Link};
use noq_proto::{ConnectionHandle, Endpoint, EndpointConfig, RandomConnectionIdGenerator, VarInt};
use parts::Parts;
use pieces::{Cutter, MAX_DATAGRAM};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tls::{Habits, Tls};

/// Bytes that QUIC adds on the wire: header 1 + 4 + 2, frame type 1, tag 16.
const QUIC: usize = 24;
/// Length of a connection id, in bytes.
const ID: usize = 4;
/// The priority of acknowledgements and handshakes.
const CONTROL: u8 = 127;
/// Packets read before other work has its turn.
const BATCH: usize = 64;
/// Packets that noq makes at once on a wire: as many as the system takes at once.
const TOGETHER: NonZeroUsize = NonZeroUsize::new(44).unwrap();

/// Length of an acknowledgement of several ranges, in bytes.
const RIDER: usize = 32;

/// Close codes, as seen by the other end.
mod code {
    pub(super) const GOING: u32 = 0;
    pub(super) const NO_PEER: u32 = 1;
    pub(super) const NOT_VALID: u32 = 2;
    pub(super) const ANOTHER_HOST: u32 = 3;
}

/// Configuration of a QUIC carrier.
#[derive(Clone, Debug)]
pub struct QuicConfig {
    /// The local address. Port 0 selects a free port.
    pub bind: SocketAddr,
    /// The peers, in the order of their indices.
    pub peers: Vec<TeamPeer>,
    /// Number of packets that one acknowledgement covers. The first of them waits for about 25 ms at most, or
    /// a round trip. Default 60.
    pub ack_every: u32,
    /// The path is a wire: the carrier sends datagrams in batches. Default false.
    pub wire: bool,
    /// Size of the largest IP packet on the path to the peers, in bytes; `None` to discover it. Default none.
    pub mtu: Option<u16>,
    /// Split long datagrams into several packets, which requires `wire`. Default false.
    pub joins: bool,
}

impl QuicConfig {
    /// Defaults for `peers` at `bind`.
    pub fn new(bind: SocketAddr, peers: Vec<TeamPeer>) -> Self {
        QuicConfig {
            bind,
            peers,
            ack_every: 60,
            wire: false,
            mtu: None,
            joins: false,
        }
    }
}

struct Peer {
    known: Known,
    /// Its last seen address, if it differs from the configured one.
    seen: Option<SocketAddr>,
    /// Number of attempts so far.
    attempts: u64,
    /// The path MTU last logged.
    reported_mtu: Option<usize>,
}

/// A packet that the socket did not take yet.
struct Pending {
    to: SocketAddr,
    priority: u8,
    packet: Vec<u8>,
    /// On a wire it may hold several packets, of this many bytes each.
    segment: usize,
}

/// Datagrams in TLS 1.3 between hosts of one team.
pub struct QuicCarrier {
    socket: Socket,
    endpoint: Endpoint,
    tls: Tls,
    watch: Watch<Tls>,
    connections: Connections,
    peers: Vec<Peer>,
    incoming: Incoming,
    /// Packets of one send call, or the parts of one packet.
    pending: VecDeque<Pending>,
    parts: Parts,
    /// Counts packets sent in parts.
    cut: u16,
    /// Bytes of UDP payload that a configured path MTU leaves.
    fixed: Option<u16>,
    /// Connections with received datagrams.
    readable: VecDeque<ConnectionHandle>,
    /// The connection that delivered the last datagram.
    last: Option<ConnectionHandle>,
    packet: Vec<u8>,
    cutter: Cutter,
    joins: bool,
    buffer: BytesMut,
    next_id: u64,
    recheck: Instant,
    refused: u64,
}

impl QuicCarrier {
    /// Binds, and starts a thread that notices changes of the keys. `bundle` identifies this host.
    ///
    /// # Errors
    /// [`CarrierError::Bind`], or [`CarrierError::Keys`] if TLS rejects the keys.
    pub fn bind(config: QuicConfig, bundle: Bundle) -> Result<Self, CarrierError> {
        let socket = if config.wire {
            Socket::bind_to_wire(config.bind)?
        } else {
            Socket::bind(config.bind)?
        };
        socket.set_whole(config.mtu.is_none());
        let headers = socket.headers() as u16;
        let fixed = config
            .mtu
            .map(|mtu| mtu.saturating_sub(headers).clamp(LEAST, MOST));
        let now = Instant::now();
        let habits = Habits {
            ack_every: config.ack_every,
            wire: config.wire,
        };
        let tls = Tls::new(&bundle, habits)?;
        let mut endpoint = EndpointConfig::default();
        endpoint
            .cid_generator(Arc::new(|| Box::new(RandomConnectionIdGenerator::new(ID))))
            // This bit distinguishes parts from packets.
            .grease_quic_bit(false);
        let server = tls.server(Counters::new(START).into());
        let peer = |p: TeamPeer| Peer {
            known: Known::new(p, bundle.host(), now),
            seen: None,
            attempts: 0,
            reported_mtu: None,
        };
        Ok(QuicCarrier {
            peers: config.peers.into_iter().map(peer).collect(),
            endpoint: Endpoint::new(Arc::new(endpoint), Some(server), false),
            watch: Watch::start(bundle, move |b| Tls::new(b, habits)).map_err(|source| {
                CarrierError::Socket {
                    doing: "starting a thread",
                    source,
                }
            })?,
            socket,
            tls,
            connections: Connections::default(),
            incoming: Incoming::new(now),
            pending: VecDeque::new(),
            parts: Parts::default(),
            cut: 0,
            fixed,
            readable: VecDeque::new(),
            last: None,
            packet: Vec::with_capacity(MAX_PAYLOAD),
            cutter: Cutter::default(),
            joins: config.wire && config.joins,
            buffer: BytesMut::new(),
            next_id: 1,
            recheck: now + RECHECK,
            refused: 0,
        })
    }

    /// The bound address.
    pub fn local(&self) -> SocketAddr {
        self.socket.local()
    }

    /// Returns whether `peer` is connected, with a valid certificate.
    pub fn connected(&self, peer: PeerIndex) -> bool {
        self.connections.open(peer).next().is_some()
    }

    /// Number of connections in any state, including those of unknown hosts.
    pub fn connections(&self) -> usize {
        self.connections.0.len()
    }

    /// Moves to another local address, as after a change of network. Connections continue.
    ///
    /// # Errors
    /// [`CarrierError::Bind`] if the address cannot be used; the old one stays.
    pub fn rebind(&mut self, local: SocketAddr) -> Result<(), CarrierError> {
        self.socket = match self.socket.batch() {
            Some(_) => Socket::bind_to_wire(local)?,
            None => Socket::bind(local)?,
        };
        self.socket.set_whole(self.fixed.is_none());
        for link in self.connections.0.values_mut() {
            link.conn.handle_network_change(None, Instant::now());
            link.dirty = true;
        }
        Ok(())
    }

    /// The connection for datagrams to `peer`.
    fn way(&self, peer: PeerIndex) -> Option<&Link> {
        let first = self.peers.get(peer)?.known.first;
        let handle = self.connections.current(peer, first, Instant::now())?;
        self.connections.0.get(&handle)
    }

    fn is_wire(&self) -> bool {
        self.socket.batch().is_some()
    }
}

impl Carrier for QuicCarrier {
    fn max_datagram(&self) -> usize {
        if self.joins { pieces::PIECE } else { MAX_DATAGRAM }
    }

    fn max_datagram_to(&self, peer: PeerIndex) -> usize {
        let most = self.way(peer).map_or(MAX_DATAGRAM, Link::max_datagram);
        most.saturating_sub(if self.joins { pieces::HEAD } else { 0 })
    }

    fn path_mtu(&self, peer: PeerIndex) -> Option<usize> {
        Some(usize::from(self.way(peer)?.mtu().size()) + self.socket.headers())
    }

    fn trouble(&self, peer: PeerIndex) -> Option<String> {
        self.peers.get(peer)?.known.trouble()
    }

    fn leads_elsewhere(&mut self, peer: PeerIndex, elsewhere: bool) {
        if let Some(p) = self.peers.get_mut(peer) {
            p.known.dial.leads_elsewhere(Instant::now(), elsewhere);
        }
    }

    fn joined(&self) -> usize {
        if self.joins { pieces::MOST_PIECES } else { 1 }
    }

    fn overhead(&self) -> usize {
        self.socket.headers() + QUIC
    }

    fn holds(&self) -> usize {
        self.socket.holds()
    }

    fn ready(&mut self) -> bool {
        // An error occurs again, and is reported, at the next call that can report it.
        self.socket.ready()
            && (self.pending.is_empty() || matches!(self.send_waiting(Instant::now()), Ok(true)))
    }

    fn send(&mut self, peer: PeerIndex, priority: u8, datagram: &[u8]) -> Result<Sent, CarrierError> {
        let now = Instant::now();
        if !self.ready() {
            return Ok(Sent::NotReady);
        }
        let first = self.peers.get(peer).is_some_and(|p| p.known.first);
        let Some(handle) = self.connections.current(peer, first, now) else {
            return Ok(Sent::Lost);
        };
        let most = self.connections.0.get(&handle).map_or(0, Link::max_datagram);
        if self.is_wire() || datagram.len() + RIDER <= most {
            self.let_ride(ConnectionHandle(handle), now);
        }
        let Some(link) = self.connections.0.get_mut(&handle) else {
            return Ok(Sent::Lost);
        };
        // A datagram longer than the path's packets, but not than QUIC's, is sent in parts.
        let most = if self.joins { most } else { MAX_DATAGRAM };
        let marked = matches!(datagram.first(), Some(&(pieces::MARK | pieces::PROBE)));
        let is_one = datagram.len() <= most && !marked;
        // While noq validates a new path it sends nothing. The held datagram goes first, and this one is
        // lost.
        if !is_one && (!self.joins || datagram.len() > pieces::MOST) || link.holds() {
            return Ok(Sent::Lost);
        }
        let mut datagrams = link.conn.datagrams();
        let sent = if is_one {
            datagrams.send(Bytes::copy_from_slice(datagram), false)
        } else {
            let mut pieces = self.cutter.cut(datagram, most.saturating_sub(pieces::HEAD));
            pieces.try_for_each(|piece| datagrams.send(piece, false))
        };
        if sent.is_err() {
            return Ok(Sent::Lost);
        }
        link.dirty = true;
        // On a wire, noq is asked for packets only once per batch.
        let all = !self.is_wire();
        self.transmit(ConnectionHandle(handle), priority, now, all)?;
        Ok(Sent::Taken)
    }

    fn receive<'a>(&'a mut self, _: &'a mut [u8]) -> Result<Option<Received<'a>>, CarrierError> {
        // Bounded, so that a flood of foreign packets cannot keep the caller here.
        let mut taken = 0;
        while taken < BATCH {
            if let Some(of) = self.next_datagram() {
                return Ok(self.found(of));
            }
            match self.take_packets()? {
                0 => return Ok(None),
                n => taken += n,
            }
        }
        Ok(self.next_datagram().and_then(|of| self.found(of)))
    }

    fn turn_away(&mut self, peer: PeerIndex) {
        self.end_last(peer, Instant::now());
    }

    fn readable(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn writable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn service(&mut self) -> Result<Option<Duration>, CarrierError> {
        let now = Instant::now();
        self.renew(now);
        self.timers(now);
        self.dial(now);
        self.probe(now)?;
        let all_sent = self.send_waiting(now)?;
        self.socket.flush()?;
        if !self.readable.is_empty() || self.socket.has_more() {
            return Ok(Some(Duration::ZERO));
        }
        let probes = self.connections.0.values().filter(|l| l.open());
        let probes = probes.filter_map(|l| l.mtu().next(l.rtt()));
        let probes: Vec<Instant> = probes.collect();
        let timeouts = self.connections.0.values_mut().filter_map(Link::next_timeout);
        let dials = self.peers.iter().map(|p| p.known.dial.next());
        let next = timeouts
            .chain(dials)
            .chain(probes)
            .min()
            .map(|t| t.saturating_duration_since(now));
        // A full socket is awaited by its descriptor, not by time.
        let next = next.filter(|d| all_sent || !d.is_zero()).unwrap_or(RENEWAL);
        Ok(Some(next.min(RENEWAL)))
    }

    fn refused(&self) -> u64 {
        self.refused
    }

    fn batch(&self) -> Option<usize> {
        self.socket.batch()
    }

    fn flush(&mut self) -> Result<(), CarrierError> {
        if self.socket.batch().is_some() {
            self.send_waiting(Instant::now())?;
        }
        self.socket.flush().map(drop)
    }

    fn held(&self) -> usize {
        usize::from(!self.pending.is_empty()) + self.socket.gathered()
    }

    fn path(&self, peer: PeerIndex) -> Option<Path> {
        let link = self.way(peer)?;
        let count = |n: &std::sync::atomic::AtomicU64| n.load(Ordering::Relaxed);
        Some(Path {
            connection: link.id,
            sent_bytes: count(&link.counters.sent),
            acked_bytes: count(&link.counters.acked),
            lost_bytes: count(&link.counters.lost),
            in_flight_bytes: count(&link.counters.in_flight),
            rtt: link.rtt(),
        })
    }
}

impl Drop for QuicCarrier {
    /// Notifies the peers, so that they need not wait for a timeout.
    fn drop(&mut self) {
        let now = Instant::now();
        for link in self.connections.0.values_mut() {
            link.conn.close(now, VarInt::from_u32(code::GOING), Bytes::new());
            link.dirty = true;
        }
        let _ = self.send_waiting(now);
        let _ = self.socket.flush();
    }
}

#[cfg(test)]
mod tests;
