//! The QUIC carrier: datagrams in TLS 1.3 between hosts of one team.
//!
//! `noq-proto` is a state machine without I/O, and it runs in the radio's thread: a datagram goes from
//! [`Carrier::send`] through encryption into the socket in one call, so that nothing can queue in between.
//! Only unreliable datagrams are used (RFC 9221); streams are off, and so is everything of QUIC that would
//! hold or pace datagrams.

mod congestion;
mod connections;
mod dial;
mod incoming;
mod knock;
pub(crate) mod pieces;
mod tls;
mod watch;

use super::socket::{Given, IP_UDP, MAX_PAYLOAD, Socket};
use super::{Carrier, CarrierError, Path, PeerIndex, Received, Sent};
use crate::keys::{Bundle, names};
use bytes::{Bytes, BytesMut};
use congestion::Counters;
use connections::{Connections, Link};
use dial::{Dial, MAX_ATTEMPTS};
use incoming::Incoming;
use noq_proto::{
    Connection, ConnectionError, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, EndpointEvent,
    Event, FourTuple, PathId, RandomConnectionIdGenerator, VarInt,
};
use pieces::{Cutter, Joiner};
use rustls::pki_types::UnixTime;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tls::{Habits, Tls};
use watch::Watch;

/// [`MAX_PAYLOAD`] less QUIC's header (1, connection id 4, packet number up to 4), tag (16) and the frame's head (9).
const MAX_DATAGRAM: usize = 1438;
/// What QUIC adds on the wire: header 1 + 4 + 2, frame's type 1, tag 16.
const QUIC: usize = 24;
/// Bytes of a connection id.
const ID: usize = 4;
/// A handshake that takes longer is given up.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Connections to one peer that are kept at once.
const MAX_OPEN: usize = 3;
/// How often certificates of open connections are looked at again, for those that expired meanwhile.
const RECHECK: Duration = Duration::from_secs(60);
/// How often renewed keys are asked for.
const RENEWAL: Duration = Duration::from_millis(250);
/// The priority at which acknowledgements and handshakes are marked.
const CONTROL: u8 = 127;
/// How long the log does not repeat what attempts bring up again and again.
const SILENT: Duration = Duration::from_secs(30);
/// Packets read before others have their turn.
const BATCH: usize = 64;
/// Packets that noq makes at once on a wire: as many as the system takes at once.
const TOGETHER: NonZeroUsize = NonZeroUsize::new(44).unwrap();

/// So much later than noq wants it, its timed work is done on an established connection, unless a datagram goes
/// there earlier: an acknowledgement that is due then rides in its packet. Alone it costs as much air as 250 bytes, and
/// contends with what the peer sends.
const RIDE: Duration = Duration::from_millis(75);

/// Reasons for closing, as the other end sees them.
mod code {
    pub(super) const GOING: u32 = 0;
    pub(super) const NO_PEER: u32 = 1;
    pub(super) const NOT_VALID: u32 = 2;
}

/// How a QUIC carrier is made.
#[derive(Clone, Debug)]
pub struct QuicConfig {
    /// The local address; port 0 takes a free one.
    pub bind: SocketAddr,
    /// The peers, in the order of their indices.
    pub peers: Vec<QuicPeer>,
    /// Packets that are acknowledged together; the first of them waits for about 25 ms at most, or a round trip.
    /// Default 60.
    pub ack_every: u32,
    /// The path is a wire: datagrams are gathered and sent in batches. Default false.
    pub wire: bool,
}

impl QuicConfig {
    /// Defaults for `peers` at `bind`.
    pub fn new(bind: SocketAddr, peers: Vec<QuicPeer>) -> Self {
        QuicConfig {
            bind,
            peers,
            ack_every: 60,
            wire: false,
        }
    }
}

/// A peer of a QUIC carrier.
#[derive(Clone, Debug)]
pub struct QuicPeer {
    /// The name in its certificate.
    pub name: String,
    /// Where to dial it. It may come from elsewhere.
    pub address: SocketAddr,
}

struct Peer {
    name: String,
    address: SocketAddr,
    /// Where it was seen last, if that is elsewhere.
    seen: Option<SocketAddr>,
    /// Attempts that were begun.
    attempts: u64,
    /// We are first by name.
    first: bool,
    dial: Dial,
    /// What was last said about it, and when.
    said: Option<(String, Instant)>,
}

/// A packet that the socket would not take yet.
struct Pending {
    to: SocketAddr,
    priority: u8,
    packet: Vec<u8>,
    /// On a wire it may be several, of so many bytes each.
    segment: usize,
}

/// Datagrams in TLS 1.3 between hosts of one team.
pub struct QuicCarrier {
    socket: Socket,
    endpoint: Endpoint,
    tls: Tls,
    watch: Watch,
    connections: Connections,
    peers: Vec<Peer>,
    incoming: Incoming,
    pending: Option<Pending>,
    /// Connections that have datagrams for us.
    readable: VecDeque<ConnectionHandle>,
    packet: Vec<u8>,
    cutter: Cutter,
    buffer: BytesMut,
    next_id: u64,
    recheck: Instant,
    /// When a refused stranger was last told of in the log.
    told: Option<Instant>,
    refused: u64,
}

impl QuicCarrier {
    /// Binds, and starts a thread that notices when the keys change. `bundle` says who this host is.
    ///
    /// # Errors
    /// [`CarrierError::Bind`], or [`CarrierError::Keys`] if TLS refuses the keys.
    pub fn bind(config: QuicConfig, bundle: Bundle) -> Result<Self, CarrierError> {
        let socket = if config.wire {
            Socket::bind_to_wire(config.bind)?
        } else {
            Socket::bind(config.bind)?
        };
        let now = Instant::now();
        let habits = Habits {
            ack_every: config.ack_every,
            wire: config.wire,
        };
        let tls = Tls::new(&bundle, habits)?;
        let mut endpoint = EndpointConfig::default();
        endpoint.cid_generator(Arc::new(|| Box::new(RandomConnectionIdGenerator::new(ID))));
        let server = tls.server(Arc::default());
        let peer = |p: QuicPeer| {
            let first = *bundle.host() < *p.name;
            Peer {
                dial: Dial::new(now, first),
                name: p.name,
                address: p.address,
                seen: None,
                attempts: 0,
                first,
                said: None,
            }
        };
        Ok(QuicCarrier {
            peers: config.peers.into_iter().map(peer).collect(),
            endpoint: Endpoint::new(Arc::new(endpoint), Some(server), false),
            watch: Watch::start(bundle, habits).map_err(|source| CarrierError::Socket {
                doing: "starting a thread",
                source,
            })?,
            socket,
            tls,
            connections: Connections::default(),
            incoming: Incoming::new(now),
            pending: None,
            readable: VecDeque::new(),
            packet: Vec::with_capacity(MAX_PAYLOAD),
            cutter: Cutter::default(),
            buffer: BytesMut::new(),
            next_id: 1,
            recheck: now + RECHECK,
            told: None,
            refused: 0,
        })
    }

    /// The bound address.
    pub fn local(&self) -> SocketAddr {
        self.socket.local()
    }

    /// Whether `peer` is connected, by a certificate that counts.
    pub fn connected(&self, peer: PeerIndex) -> bool {
        self.connections.open(peer).next().is_some()
    }

    /// Connections in whatever state, those of unknown hosts included.
    pub fn connections(&self) -> usize {
        self.connections.0.len()
    }

    /// Moves to another local address, as after a change of network; connections go on.
    ///
    /// # Errors
    /// [`CarrierError::Bind`] if the address cannot be used; the old one stays.
    pub fn rebind(&mut self, local: SocketAddr) -> Result<(), CarrierError> {
        self.socket = match self.socket.batch() {
            Some(_) => Socket::bind_to_wire(local)?,
            None => Socket::bind(local)?,
        };
        for link in self.connections.0.values_mut() {
            link.conn.handle_network_change(None, Instant::now());
            link.dirty = true;
        }
        Ok(())
    }

    fn is_wire(&self) -> bool {
        self.socket.batch().is_some()
    }

    /// Reads one packet, or on a wire those that came together, and says how many.
    fn take_packets(&mut self) -> Result<usize, CarrierError> {
        let now = Instant::now();
        let (mut taken, mut of) = (0, None);
        while let Some((len, from)) = self.socket.receive_into(&mut self.buffer)? {
            taken += 1;
            if let (Some(from), 1..=MAX_PAYLOAD) = (from, len) {
                let touched = self.take_packet(from, now)?;
                // Once for all of one connection.
                if let Some(before) = of.filter(|_| of != touched) {
                    self.drive(before, now);
                }
                of = touched;
            } else {
                self.refused += 1;
            }
            if !self.socket.has_more() {
                break;
            }
        }
        if let Some(handle) = of {
            self.drive(handle, now);
        }
        Ok(taken)
    }

    /// Takes the packet in the buffer, and says which connection is to be driven then.
    fn take_packet(
        &mut self,
        from: SocketAddr,
        now: Instant,
    ) -> Result<Option<ConnectionHandle>, CarrierError> {
        let packet = self.buffer.split();
        let mut of = None;
        let mut reply = std::mem::take(&mut self.packet);
        reply.clear();
        match self
            .endpoint
            .handle(now, FourTuple::from_remote(from), None, packet, &mut reply)
        {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(link) = self.connections.get(handle) {
                    link.conn.handle_event(event);
                    of = Some(handle);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                reply.clear();
                self.incoming(incoming, from, &mut reply, now)?;
            }
            // Whoever gets these is nobody we know: a wrong version, a forged token, an unknown connection.
            Some(DatagramEvent::Response(_)) | None => self.refused += 1,
        }
        self.packet = reply;
        Ok(of)
    }

    fn incoming(
        &mut self,
        incoming: noq_proto::Incoming,
        from: SocketAddr,
        reply: &mut Vec<u8>,
        now: Instant,
    ) -> Result<(), CarrierError> {
        let known = self.peers.iter().any(|p| p.address == from);
        let half_open = self.connections.half_open(from.ip());
        match self
            .incoming
            .judge(&incoming, known, half_open, &self.tls.knock, now)
        {
            incoming::Verdict::Ignore => {
                self.endpoint.ignore(incoming);
                self.refused += 1;
            }
            incoming::Verdict::Retry => {
                if let Ok(transmit) = self.endpoint.retry(incoming, reply) {
                    // If the socket is full the client asks again.
                    self.socket.send(transmit.destination, CONTROL, reply)?;
                }
            }
            incoming::Verdict::Accept => {
                let counters = Arc::<Counters>::default();
                let config = self.tls.server(counters.clone());
                match self.endpoint.accept(incoming, now, reply, Some(config)) {
                    Ok((handle, conn)) => self.add(handle, conn, counters, None, from.ip(), now),
                    Err(error) => {
                        tracing::debug!(%from, error = %error.cause, "a handshake failed");
                        self.refused += 1;
                    }
                }
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        handle: ConnectionHandle,
        mut conn: Connection,
        counters: Arc<Counters>,
        peer: Option<PeerIndex>,
        from: IpAddr,
        now: Instant,
    ) {
        let link = Link {
            room: conn.datagrams().send_buffer_space(),
            conn,
            counters,
            id: self.next_id,
            peer,
            dialed: peer.is_some(),
            from,
            started: now,
            up: None,
            heard: None,
            dirty: true,
            joiner: Joiner::default(),
        };
        self.next_id += 1;
        self.connections.0.insert(handle.0, link);
        self.drive(handle, now);
    }

    /// Lets a connection and the endpoint exchange what they have for each other, and acts on what happened.
    fn drive(&mut self, handle: ConnectionHandle, now: Instant) {
        let Some(link) = self.connections.get(handle) else {
            return;
        };
        link.dirty = true;
        while let Some(event) = link.conn.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(handle, event) {
                link.conn.handle_event(event);
            }
        }
        let (mut up, mut lost) = (false, None);
        while let Some(event) = link.conn.poll() {
            match event {
                Event::Connected => up = true,
                Event::ConnectionLost { reason } => lost = Some(reason),
                Event::DatagramReceived if !self.readable.contains(&handle) => {
                    self.readable.push_back(handle)
                }
                _ => {}
            }
        }
        if let Some(reason) = lost {
            self.lost(handle, &reason, now);
        } else if up {
            self.established(handle, now);
        }
        if self.connections.get(handle).is_some_and(|l| l.conn.is_drained()) {
            self.connections.0.remove(&handle.0);
        }
    }

    /// A handshake is done: the certificate counts, and says who it is.
    fn established(&mut self, handle: ConnectionHandle, now: Instant) {
        let Some(link) = self.connections.get(handle) else {
            return;
        };
        let shown = link.certificate();
        let peer = link.peer.or_else(|| {
            let shown = shown.as_ref()?;
            self.peers.iter().position(|p| names(shown, &p.name))
        });
        let Some(link) = self.connections.get(handle) else {
            return;
        };
        let Some(peer) = peer else {
            tracing::warn!(from = %link.from, "a host of the team that is no peer of this one was refused");
            link.conn
                .close(now, VarInt::from_u32(code::NO_PEER), Bytes::new());
            self.refused += 1;
            return;
        };
        link.peer = Some(peer);
        link.up = Some(now);
        tracing::debug!(
            peer = self.peers[peer].name,
            dialed = link.dialed,
            "QUIC connection established"
        );
        // Other attempts are over, and of many connections the one that is silent for the longest time.
        let attempts = self.connections.0.iter();
        let attempts = attempts.filter(|(_, l)| l.peer == Some(peer) && l.dialed && l.up.is_none());
        let mut over: Vec<usize> = attempts.map(|(h, _)| *h).collect();
        let mut open: Vec<_> = self.connections.open(peer).map(|(h, l)| (l.alive(), h)).collect();
        open.sort_unstable();
        over.extend(open.iter().rev().skip(MAX_OPEN).map(|(_, h)| *h));
        for handle in over {
            self.forget(ConnectionHandle(handle));
        }
    }

    fn lost(&mut self, handle: ConnectionHandle, reason: &ConnectionError, now: Instant) {
        let Some(link) = self.connections.get(handle) else {
            return;
        };
        let (peer, up, from) = (link.peer, link.up.is_some(), link.from);
        let Some(peer) = peer.and_then(|p| self.peers.get_mut(p)) else {
            // A flood of them is to fill no disk.
            if self
                .told
                .is_none_or(|t| now.saturating_duration_since(t) > SILENT)
            {
                self.told = Some(now);
                tracing::warn!(%from, %reason, "a host was refused");
            }
            self.refused += 1;
            return;
        };
        let refused = matches!(
            reason,
            ConnectionError::TransportError(_)
                | ConnectionError::ConnectionClosed(_)
                | ConnectionError::ApplicationClosed(_)
        );
        if refused && !up {
            peer.dial.refused(now);
        }
        if refused {
            let text = reason.to_string();
            let again = peer
                .said
                .as_ref()
                .is_some_and(|(said, at)| *said == text && now.saturating_duration_since(*at) < SILENT);
            if !again {
                tracing::warn!(peer = peer.name, reason = text, "connection closed");
                peer.said = Some((text, now));
            }
        }
    }

    /// Drops a connection without a word.
    fn forget(&mut self, handle: ConnectionHandle) {
        if self.connections.0.remove(&handle.0).is_some() {
            self.endpoint.handle_event(handle, EndpointEvent::drained());
        }
    }

    fn dial(&mut self, now: Instant) {
        for index in 0..self.peers.len() {
            let mut attempts: Vec<_> = self
                .connections
                .0
                .iter_mut()
                .filter(|(_, l)| l.peer == Some(index) && l.dialed && l.up.is_none() && !l.conn.is_closed())
                .map(|(h, l)| (l.started, *h, l.conn.stats().udp_rx.datagrams > 0))
                .collect();
            let alive = self.connections.open(index).filter_map(|(_, l)| l.alive()).max();
            let answered = attempts.iter().any(|(_, _, answered)| *answered);
            let peer = &mut self.peers[index];
            if !peer.dial.due(now, alive, answered) {
                continue;
            }
            attempts.sort_unstable();
            if attempts.len() >= MAX_ATTEMPTS {
                self.forget(ConnectionHandle(attempts[0].1));
            }
            let counters = Arc::<Counters>::default();
            let config = self.tls.client(counters.clone());
            let peer = &mut self.peers[index];
            // A peer that moved is sought where it was seen and where it should be, in turn.
            let address = peer
                .seen
                .filter(|_| peer.attempts % 2 == 1)
                .unwrap_or(peer.address);
            peer.attempts += 1;
            match self.endpoint.connect(now, config, address, &peer.name) {
                Ok((handle, conn)) => {
                    self.add(handle, conn, counters, Some(index), address.ip(), now);
                }
                Err(error) => tracing::debug!(%error, peer = peer.name, "cannot dial"),
            }
        }
    }

    /// Takes renewed keys, and closes connections whose certificate counts no longer.
    fn renew(&mut self, now: Instant) {
        let renewed = self.watch.renewed();
        if renewed.is_none() && now < self.recheck {
            return;
        }
        if let Some(tls) = renewed {
            self.tls = tls;
            self.endpoint
                .set_server_config(Some(self.tls.server(Arc::default())));
        }
        self.recheck = now + RECHECK;
        for link in self.connections.0.values_mut().filter(|l| l.open()) {
            let verdict = link
                .certificate()
                .map(|c| self.tls.verifier.verify_client_cert(&c, &[], UnixTime::now()));
            if !matches!(verdict, Some(Ok(_))) {
                let peer = link.peer.and_then(|p| self.peers.get(p)).map(|p| &p.name);
                tracing::warn!(
                    peer,
                    ?verdict,
                    "the certificate counts no longer: connection closed"
                );
                link.conn
                    .close(now, VarInt::from_u32(code::NOT_VALID), Bytes::new());
                link.dirty = true;
            }
        }
    }

    /// Sends what connections have to send, until the socket is full. True if nothing is left.
    fn send_waiting(&mut self, now: Instant) -> Result<bool, CarrierError> {
        if let Some(p) = &mut self.pending {
            if !self.socket.ready() {
                return Ok(false);
            }
            let given = self
                .socket
                .send_several(p.to, p.priority, &mut p.packet, p.segment)?;
            if given == Given::Full {
                return Ok(false);
            }
            self.pending = None;
        }
        let dirty: Vec<usize> = self
            .connections
            .0
            .iter()
            .filter(|(_, l)| l.dirty)
            .map(|(h, _)| *h)
            .collect();
        for handle in dirty {
            if !self.transmit(ConnectionHandle(handle), CONTROL, now, true)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sends what one connection has to send: all, or until noq holds no datagram. False if the socket is full.
    fn transmit(
        &mut self,
        handle: ConnectionHandle,
        priority: u8,
        now: Instant,
        all: bool,
    ) -> Result<bool, CarrierError> {
        let most = if self.is_wire() {
            TOGETHER
        } else {
            NonZeroUsize::MIN
        };
        let Some(link) = self.connections.0.get_mut(&handle.0) else {
            return Ok(true);
        };
        loop {
            self.packet.clear();
            let Some(transmit) = link.conn.poll_transmit(now, most, &mut self.packet) else {
                link.dirty = false;
                return Ok(true);
            };
            let to = transmit.destination;
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            let given = self
                .socket
                .send_several(to, priority, &mut self.packet, segment)?;
            if given == Given::Full {
                self.pending = Some(Pending {
                    to,
                    priority,
                    packet: std::mem::take(&mut self.packet),
                    segment,
                });
                return Ok(false);
            }
            if !all && !link.holds() {
                return Ok(true);
            }
        }
    }

    fn timers(&mut self, now: Instant) {
        let mut due = Vec::new();
        for (handle, link) in &mut self.connections.0 {
            let slow = link.up.is_none() && now.saturating_duration_since(link.started) > HANDSHAKE;
            if slow || link.next_timeout().is_some_and(|t| t <= now) {
                due.push((ConnectionHandle(*handle), slow));
            }
        }
        for (handle, slow) in due {
            if slow {
                self.forget(handle);
            } else if let Some(link) = self.connections.get(handle) {
                link.conn.handle_timeout(now);
                self.drive(handle, now);
            }
        }
    }

    /// A datagram is about to go: timed work that is due goes with it.
    fn let_ride(&mut self, handle: ConnectionHandle, now: Instant) {
        if let Some(link) = self.connections.get(handle)
            && link.conn.poll_timeout().is_some_and(|t| t <= now)
        {
            link.conn.handle_timeout(now);
            self.drive(handle, now);
        }
    }

    /// The next datagram that a connection has for us.
    fn next_datagram(&mut self, buffer: &mut [u8]) -> Option<Received> {
        while let Some(handle) = self.readable.front().copied() {
            let Some(link) = self.connections.0.get_mut(&handle.0) else {
                self.readable.pop_front();
                continue;
            };
            let Some(datagram) = link.conn.datagrams().recv() else {
                self.readable.pop_front();
                continue;
            };
            let Some(peer) = link.peer.filter(|_| link.up.is_some()) else {
                self.refused += 1;
                continue;
            };
            let whole = match link.joiner.take(&datagram) {
                Ok(Some(whole)) => whole,
                Ok(None) => continue,
                Err(_) => {
                    self.refused += 1;
                    continue;
                }
            };
            let Some(to) = buffer.get_mut(..whole.len()) else {
                self.refused += 1;
                continue;
            };
            to.copy_from_slice(whole);
            let len = whole.len();
            link.heard = Some(Instant::now());
            if let Some(p) = self.peers.get_mut(peer) {
                let from = link.conn.network_path(PathId::ZERO).map(|path| path.remote());
                p.seen = from.ok().filter(|a| *a != p.address);
            }
            return Some(Received { peer, len });
        }
        None
    }
}

impl Carrier for QuicCarrier {
    fn max_datagram(&self) -> usize {
        if self.is_wire() {
            pieces::PIECE
        } else {
            MAX_DATAGRAM
        }
    }

    fn joined(&self) -> usize {
        pieces::MOST_PIECES
    }

    fn overhead(&self) -> usize {
        IP_UDP + QUIC
    }

    fn ready(&mut self) -> bool {
        // An error shows again, and is told, at the next call that can tell it.
        self.socket.ready()
            && (self.pending.is_none() || matches!(self.send_waiting(Instant::now()), Ok(true)))
    }

    fn send(&mut self, peer: PeerIndex, priority: u8, datagram: &[u8]) -> Result<Sent, CarrierError> {
        let now = Instant::now();
        if !self.ready() {
            return Ok(Sent::NotReady);
        }
        let first = self.peers.get(peer).is_some_and(|p| p.first);
        let Some(handle) = self.connections.current(peer, first, now) else {
            return Ok(Sent::Lost);
        };
        self.let_ride(ConnectionHandle(handle), now);
        let Some(link) = self.connections.0.get_mut(&handle) else {
            return Ok(Sent::Lost);
        };
        let wire = self.socket.batch().is_some();
        let is_one = datagram.len() <= MAX_DATAGRAM && datagram.first() != Some(&pieces::MARK);
        // While a new path is validated noq sends nothing: what it holds goes first, and this one not at all.
        if !is_one && (!wire || datagram.len() > pieces::MOST) || link.holds() {
            return Ok(Sent::Lost);
        }
        let mut datagrams = link.conn.datagrams();
        let sent = if is_one {
            datagrams.send(Bytes::copy_from_slice(datagram), false)
        } else {
            let mut pieces = self.cutter.cut(datagram);
            pieces.try_for_each(|piece| datagrams.send(piece, false))
        };
        if sent.is_err() {
            return Ok(Sent::Lost);
        }
        link.dirty = true;
        // On a wire it is asked for more once for each batch.
        let all = !wire;
        self.transmit(ConnectionHandle(handle), priority, now, all)?;
        Ok(Sent::Taken)
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<Received>, CarrierError> {
        // Bounded, so that a flood of strangers cannot keep the caller here.
        let mut taken = 0;
        while taken < BATCH {
            if let Some(got) = self.next_datagram(buffer) {
                return Ok(Some(got));
            }
            match self.take_packets()? {
                0 => return Ok(None),
                n => taken += n,
            }
        }
        Ok(self.next_datagram(buffer))
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
        let all_sent = self.send_waiting(now)?;
        self.socket.flush()?;
        if !self.readable.is_empty() || self.socket.has_more() {
            return Ok(Some(Duration::ZERO));
        }
        let timeouts = self.connections.0.values_mut().filter_map(Link::next_timeout);
        let dials = self.peers.iter().map(|p| p.dial.next());
        let next = timeouts
            .chain(dials)
            .min()
            .map(|t| t.saturating_duration_since(now));
        // A full socket is waited for by its descriptor, not by time.
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
        usize::from(self.pending.is_some()) + self.socket.gathered()
    }

    fn path(&self, peer: PeerIndex) -> Option<Path> {
        let first = self.peers.get(peer)?.first;
        let handle = self.connections.current(peer, first, Instant::now())?;
        let link = self.connections.0.get(&handle)?;
        let count = |n: &std::sync::atomic::AtomicU64| n.load(Ordering::Relaxed);
        Some(Path {
            connection: link.id,
            sent_bytes: count(&link.counters.sent),
            acked_bytes: count(&link.counters.acked),
            lost_bytes: count(&link.counters.lost),
            in_flight_bytes: count(&link.counters.in_flight),
            rtt: link.conn.rtt(PathId::ZERO).unwrap_or_default(),
        })
    }
}

impl Drop for QuicCarrier {
    /// Tells the peers, so that they need not wait for silence.
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
