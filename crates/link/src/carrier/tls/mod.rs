//! The TLS carrier: datagrams in a stream of TLS 1.3 over TCP between hosts of one team, for cables.
//!
//! On a cable, the cost per packet slows a host down, and TCP's packets are the work of the kernel and the
//! network card: a message of three packets is encrypted once and passed to the system in one call with
//! others. In return, a lost packet holds up everything behind it (head-of-line blocking), so this carrier is
//! not for radios ([`crate::Config`] refuses it there).
//!
//! Nothing queues here that the scheduler could still order: if the socket does not take everything at once,
//! the carrier is not ready, and the socket itself holds at most [`UNSENT`] bytes beyond those in flight to
//! the peer (decision 260).

mod connection;
mod doors;
pub(crate) mod frames;

use super::team::incoming::Incoming;
use super::team::standing;
use super::team::watch::Watch;
use super::team::{self, Known, Mutual, RECHECK, RENEWAL, TeamPeer};
use super::{Carrier, CarrierError, PeerIndex, Received, Sent};
use crate::keys::{Bundle, KeysError};
use connection::Connection;
use frames::{HEAD, MOST, Malformed};
use rustix::event::epoll;
use std::collections::{BTreeMap, VecDeque};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The size that the scheduler treats as one datagram. Longer ones are made of at most [`JOINED`] of these.
const MAX_DATAGRAM: usize = 1438;
const JOINED: usize = 11;
const _: () = assert!(MAX_DATAGRAM * JOINED <= MOST);
/// Bytes that TCP and IP add to each packet, including TCP's time stamps, plus the share of TLS for a packet
/// of a full record.
const TCP_TLS: usize = 52 + HEAD + 3;
/// Bytes that are batched before they are passed to the system.
const BATCH: usize = 62_000;
/// Bytes that may wait in a socket beyond those in flight.
const UNSENT: u32 = 128 << 10;
/// Bytes read at once.
const READ: usize = 128 << 10;
/// Datagrams that may wait here: those that TCP holds for a late reader.
const HOLDS: usize = 1024;
/// After its socket was full for this long, a peer no longer holds up the others.
const PATIENCE: Duration = Duration::from_millis(5);
/// A connection ends when sent bytes stay unacknowledged for this long.
const VANISHED: Duration = Duration::from_secs(10);
/// Most connections that may wait to be accepted.
const BACKLOG: i32 = 4096;
/// Reads, over all connections, before other work has its turn.
const READS: usize = 8;
/// Marks the listener's events.
const LISTENER: u64 = 0;

/// The parts of the carrier that depend on the keys.
struct Tls {
    client: Arc<rustls::ClientConfig>,
    server: Arc<rustls::ServerConfig>,
    verifier: Arc<dyn rustls::server::danger::ClientCertVerifier>,
    admission: team::admission::AdmissionKey,
}

impl Tls {
    fn new(bundle: &Bundle) -> Result<Self, KeysError> {
        let mutual = Mutual::new(bundle)?;
        Ok(Tls {
            client: Arc::new(mutual.client),
            server: Arc::new(mutual.server),
            verifier: mutual.verifier,
            admission: mutual.admission,
        })
    }
}

/// Datagrams in TLS 1.3 over TCP between hosts of one team.
pub struct TlsCarrier {
    listener: TcpListener,
    local: SocketAddr,
    mtu: Option<u16>,
    epoll: OwnedFd,
    tls: Tls,
    watch: Watch<Tls>,
    /// By number, which also identifies their events.
    connections: BTreeMap<u64, Connection>,
    next_number: u64,
    peers: Vec<Known>,
    incoming: Incoming,
    /// Connections that may have received datagrams.
    readable: VecDeque<u64>,
    /// The connection that delivered the last datagram.
    last: Option<u64>,
    /// Connections with bytes that wait to be passed to the system.
    unsent: Vec<u64>,
    recheck: Instant,
    /// No connection is accepted until then.
    deaf_until: Option<Instant>,
    refused: u64,
}

impl TlsCarrier {
    /// Listens at `local`, and starts a thread that notices changes of the keys. `bundle` identifies this
    /// host.
    ///
    /// # Errors
    /// [`CarrierError::Bind`], or [`CarrierError::Keys`] if TLS rejects the keys.
    pub fn bind(local: SocketAddr, peers: Vec<TeamPeer>, bundle: Bundle) -> Result<Self, CarrierError> {
        let bind = |source| CarrierError::Bind {
            address: local,
            source,
        };
        let failed = |doing| move |source| CarrierError::Socket { doing, source };
        let listener = TcpListener::bind(local).map_err(bind)?;
        listener.set_nonblocking(true).map_err(bind)?;
        // The system keeps these while this thread is busy. A peer that finds no room tries again after a
        // second.
        rustix::net::listen(&listener, BACKLOG).map_err(|e| bind(e.into()))?;
        let local = listener.local_addr().map_err(bind)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|e| failed("making an epoll descriptor")(e.into()))?;
        epoll::add(
            &epoll,
            &listener,
            epoll::EventData::new_u64(LISTENER),
            epoll::EventFlags::IN,
        )
        .map_err(|e| failed("watching the listener")(e.into()))?;
        let now = Instant::now();
        let tls = Tls::new(&bundle)?;
        let peer = |p| Known::new(p, bundle.host(), now);
        Ok(TlsCarrier {
            peers: peers.into_iter().map(peer).collect(),
            listener,
            local,
            mtu: None,
            epoll,
            tls,
            watch: Watch::start(bundle, Tls::new).map_err(failed("starting a thread"))?,
            connections: BTreeMap::new(),
            next_number: LISTENER + 1,
            incoming: Incoming::new(now),
            readable: VecDeque::new(),
            last: None,
            unsent: Vec::new(),
            recheck: now + RECHECK,
            deaf_until: None,
            refused: 0,
        })
    }

    /// Limits IP packets to `mtu` bytes, as far as TCP builds them on this host.
    #[must_use]
    pub fn with_mtu(mut self, mtu: Option<u16>) -> Self {
        self.mtu = mtu;
        // Accepted connections inherit it from the listener.
        if let Some(most) = self.segment() {
            let _ = socket2::SockRef::from(&self.listener).set_tcp_mss(most);
        }
        self
    }

    /// Bytes of TCP payload in an IP packet, if configured.
    fn segment(&self) -> Option<u32> {
        let headers = if self.local.is_ipv4() { 40 } else { 60 };
        self.mtu.map(|mtu| u32::from(mtu).saturating_sub(headers))
    }

    /// The bound address.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Returns whether `peer` is connected, with a valid certificate.
    pub fn connected(&self, peer: PeerIndex) -> bool {
        self.open(peer).next().is_some()
    }

    /// Number of connections in any state, including those of unknown hosts.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// The open connections to `peer`.
    fn open(&self, peer: PeerIndex) -> impl Iterator<Item = (u64, &Connection)> {
        let all = self.connections.iter().map(|(n, c)| (*n, c));
        all.filter(move |(_, c)| c.standing.peer == Some(peer) && c.open())
    }

    /// The connection for datagrams to `peer`.
    fn current(&self, peer: PeerIndex, now: Instant) -> Option<u64> {
        let first = self.peers.get(peer)?.first;
        standing::current(self.open(peer).map(|(n, c)| (n, &c.standing)), first, now)
    }

    /// Returns whether the other connections wait for a full socket. With a single peer they wait, so that
    /// the scheduler does not count messages as lost that it could send later. A replaced connection holds up
    /// nothing, since its path may be gone.
    fn holds_up(&self, number: u64, connection: &Connection, now: Instant) -> bool {
        let patient = |t: Instant| self.peers.len() < 2 || now.saturating_duration_since(t) < PATIENCE;
        let counts = || {
            let current = connection.standing.peer.and_then(|p| self.current(p, now));
            current.is_none_or(|n| n == number)
        };
        connection.full.is_some_and(patient) && counts()
    }

    /// Passes waiting bytes to the system. Returns true if nothing is left that holds up others.
    fn send_waiting(&mut self, now: Instant) -> bool {
        if self.unsent.is_empty() {
            return true;
        }
        for number in std::mem::take(&mut self.unsent) {
            let Some(connection) = self.connections.get_mut(&number) else {
                continue;
            };
            if let Err(error) = connection.flush(now) {
                self.lost(number, &error, now);
                continue;
            }
            if connection.full.is_some() {
                self.unsent.push(number);
            }
        }
        let waits = |n: &u64| (self.connections.get(n)).is_some_and(|c| self.holds_up(*n, c, now));
        !self.unsent.iter().any(waits)
    }

    /// Finds the next received datagram and returns its connection.
    fn next_datagram(&mut self, now: Instant) -> Option<u64> {
        while let Some(number) = self.readable.front().copied() {
            let found = match self.connections.get_mut(&number) {
                Some(c) if c.open() => c.next(now),
                _ => Ok(false),
            };
            match found {
                Ok(true) => {
                    self.last = Some(number);
                    return Some(number);
                }
                Ok(false) => drop(self.readable.pop_front()),
                Err(error) => {
                    let malformed = error.get_ref().is_some_and(|e| e.is::<Malformed>());
                    self.refused += u64::from(malformed);
                    self.lost(number, &error, now);
                }
            }
        }
        None
    }

    /// The datagram that [`TlsCarrier::next_datagram`] found.
    fn found(&mut self, number: u64) -> Option<Received<'_>> {
        let connection = self.connections.get_mut(&number)?;
        Some(Received {
            peer: connection.standing.peer?,
            datagram: connection.datagram(),
        })
    }
}

impl Carrier for TlsCarrier {
    fn max_datagram(&self) -> usize {
        MAX_DATAGRAM
    }

    fn joined(&self) -> usize {
        JOINED
    }

    fn overhead(&self) -> usize {
        TCP_TLS
    }

    fn holds(&self) -> usize {
        HOLDS
    }

    fn ready(&mut self) -> bool {
        // During a batch, one more datagram is accepted.
        let stuck = |c: &Connection| c.full.is_some();
        if !(self.unsent.iter()).any(|n| self.connections.get(n).is_some_and(stuck)) {
            return true;
        }
        self.send_waiting(Instant::now())
    }

    fn send(&mut self, peer: PeerIndex, _: u8, datagram: &[u8]) -> Result<Sent, CarrierError> {
        let now = Instant::now();
        let Some(number) = self.current(peer, now) else {
            return Ok(Sent::Lost);
        };
        let Some(connection) = self.connections.get_mut(&number) else {
            return Ok(Sent::Lost);
        };
        if datagram.is_empty() || datagram.len() > MAX_DATAGRAM * JOINED {
            return Ok(Sent::Lost);
        }
        if connection.full.is_some() {
            return Ok(match self.ready() {
                true => Sent::Lost,
                false => Sent::NotReady,
            });
        }
        if let Err(error) = connection.put(datagram) {
            self.lost(number, &error, now);
            return Ok(Sent::Lost);
        }
        if !self.unsent.contains(&number) {
            self.unsent.push(number);
        }
        Ok(Sent::Taken)
    }

    fn receive<'a>(&'a mut self, _: &'a mut [u8]) -> Result<Option<Received<'a>>, CarrierError> {
        let now = Instant::now();
        // Bounded, so that a flood of foreign connections cannot keep the caller here.
        for _ in 0..READS {
            if let Some(number) = self.next_datagram(now) {
                return Ok(self.found(number));
            }
            if !self.look(now)? {
                return Ok(None);
            }
        }
        Ok(self.next_datagram(now).and_then(|number| self.found(number)))
    }

    fn turn_away(&mut self, peer: PeerIndex) {
        self.end_last(peer, Instant::now());
    }

    fn readable(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn writable(&self) -> Option<BorrowedFd<'_>> {
        let full = |n: &&u64| self.connections.get(n).is_some_and(|c| c.full.is_some());
        let number = self.unsent.iter().find(full)?;
        self.connections.get(number).map(Connection::fd)
    }

    fn service(&mut self) -> Result<Option<Duration>, CarrierError> {
        let now = Instant::now();
        self.renew(now);
        self.give_up(now);
        self.listen_again(now);
        self.dial(now);
        let clear = self.send_waiting(now);
        if !self.readable.is_empty() {
            return Ok(Some(Duration::ZERO));
        }
        let dials = self.peers.iter().map(|p| p.dial.next()).min();
        let next = dials.map_or(RENEWAL, |t| t.saturating_duration_since(now).min(RENEWAL));
        Ok(Some(if clear { next } else { next.min(PATIENCE) }))
    }

    fn trouble(&self, peer: PeerIndex) -> Option<String> {
        self.peers.get(peer)?.trouble()
    }

    fn leads_elsewhere(&mut self, peer: PeerIndex, elsewhere: bool) {
        if let Some(p) = self.peers.get_mut(peer) {
            p.dial.leads_elsewhere(Instant::now(), elsewhere);
        }
    }

    fn refused(&self) -> u64 {
        self.refused
    }

    fn batch(&self) -> Option<usize> {
        Some(BATCH)
    }

    fn flush(&mut self) -> Result<(), CarrierError> {
        self.send_waiting(Instant::now());
        Ok(())
    }

    fn held(&self) -> usize {
        let waits = |n: &&u64| (self.connections.get(n)).is_some_and(|c| c.gathers() || c.full.is_some());
        usize::from(self.unsent.iter().any(|n| waits(&n)))
    }
}

impl Drop for TlsCarrier {
    /// Notifies the peers, so that they need not wait for a timeout.
    fn drop(&mut self) {
        let now = Instant::now();
        for connection in self.connections.values_mut() {
            connection.say_goodbye(now);
        }
    }
}

#[cfg(test)]
mod tests;
