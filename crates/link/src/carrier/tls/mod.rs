//! The TLS carrier: datagrams in a stream of TLS 1.3 over TCP between hosts of one team, for cables.
//!
//! Over a cable a host is slowed by what each packet costs it, and TCP's packets are the kernel's and the network card's
//! work: a message of three packets is encrypted once and given to the system in one call with others. What it costs is that
//! a lost packet holds up what was sent behind it, so it is not for radios ([`crate::Config`] refuses it there).
//!
//! Nothing queues here that the scheduler could still order: what the socket does not take at once keeps the carrier from
//! being ready, and the socket itself takes no more than [`UNSENT`] bytes beyond what is on its way to the peer.

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

/// What the scheduler reckons with as one datagram. Longer ones are made of [`JOINED`] such at most.
const MAX_DATAGRAM: usize = 1438;
const JOINED: usize = 11;
const _: () = assert!(MAX_DATAGRAM * JOINED <= MOST);
/// What TCP and IP add to each packet, with TCP's time stamps, and of TLS what falls upon a packet of a full record's.
const TCP_TLS: usize = 52 + HEAD + 3;
/// Bytes that are gathered before they are given to the system.
const BATCH: usize = 62_000;
/// Bytes that wait in a socket beyond what is on its way.
const UNSENT: u32 = 128 << 10;
/// Bytes that are read at once.
const READ: usize = 128 << 10;
/// Datagrams that may wait here: what TCP holds for a late reader.
const HOLDS: usize = 1024;
/// A peer whose socket takes nothing for so long no longer holds up the others.
const PATIENCE: Duration = Duration::from_millis(5);
/// What was sent and not acknowledged for so long ends a connection.
const VANISHED: Duration = Duration::from_secs(10);
/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;
/// Reads, of all connections together, before others have their turn.
const READS: usize = 8;
/// Marks the listener's events.
const LISTENER: u64 = 0;

/// What follows from the keys.
struct Tls {
    client: Arc<rustls::ClientConfig>,
    server: Arc<rustls::ServerConfig>,
    verifier: Arc<dyn rustls::server::danger::ClientCertVerifier>,
    knock: team::knock::Knock,
}

impl Tls {
    fn new(bundle: &Bundle) -> Result<Self, KeysError> {
        let mutual = Mutual::new(bundle)?;
        Ok(Tls {
            client: Arc::new(mutual.client),
            server: Arc::new(mutual.server),
            verifier: mutual.verifier,
            knock: mutual.knock,
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
    /// By number, which is that of their events.
    connections: BTreeMap<u64, Connection>,
    next_number: u64,
    peers: Vec<Known>,
    incoming: Incoming,
    /// Connections that may have datagrams for us.
    readable: VecDeque<u64>,
    /// Over which a datagram was given out last.
    last: Option<u64>,
    /// Connections in which something waits to be given to the system.
    unsent: Vec<u64>,
    recheck: Instant,
    /// Nobody is let in until then.
    deaf_until: Option<Instant>,
    refused: u64,
}

impl TlsCarrier {
    /// Listens at `local`, and starts a thread that notices when the keys change. `bundle` says who this host is.
    ///
    /// # Errors
    /// [`CarrierError::Bind`], or [`CarrierError::Keys`] if TLS refuses the keys.
    pub fn bind(local: SocketAddr, peers: Vec<TeamPeer>, bundle: Bundle) -> Result<Self, CarrierError> {
        let bind = |source| CarrierError::Bind {
            address: local,
            source,
        };
        let failed = |doing| move |source| CarrierError::Socket { doing, source };
        let listener = TcpListener::bind(local).map_err(bind)?;
        listener.set_nonblocking(true).map_err(bind)?;
        // What the system keeps while this thread is busy: a peer that finds no room there tries again after a second.
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

    /// Lets no IP packet be longer than `mtu` bytes, as far as TCP makes them of what is sent here.
    #[must_use]
    pub fn with_mtu(mut self, mtu: Option<u16>) -> Self {
        self.mtu = mtu;
        // What is accepted has it from the listener.
        if let Some(most) = self.segment() {
            let _ = socket2::SockRef::from(&self.listener).set_tcp_mss(most);
        }
        self
    }

    /// Bytes of TCP's payload in an IP packet, if they are set.
    fn segment(&self) -> Option<u32> {
        let headers = if self.local.is_ipv4() { 40 } else { 60 };
        self.mtu.map(|mtu| u32::from(mtu).saturating_sub(headers))
    }

    /// The bound address.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Whether `peer` is connected, by a certificate that counts.
    pub fn connected(&self, peer: PeerIndex) -> bool {
        self.open(peer).next().is_some()
    }

    /// Connections in whatever state, those of unknown hosts included.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// The open connections to `peer`.
    fn open(&self, peer: PeerIndex) -> impl Iterator<Item = (u64, &Connection)> {
        let all = self.connections.iter().map(|(n, c)| (*n, c));
        all.filter(move |(_, c)| c.standing.peer == Some(peer) && c.open())
    }

    /// Where datagrams for `peer` go.
    fn current(&self, peer: PeerIndex, now: Instant) -> Option<u64> {
        let first = self.peers.get(peer)?.first;
        standing::current(self.open(peer).map(|(n, c)| (n, &c.standing)), first, now)
    }

    /// Whether the others wait for what a connection's socket did not take. With a single peer they wait, so that the scheduler does
    /// not count as lost what it could send later. A connection that another one has replaced holds up nobody: its path may be gone.
    fn holds_up(&self, number: u64, connection: &Connection, now: Instant) -> bool {
        let patient = |t: Instant| self.peers.len() < 2 || now.saturating_duration_since(t) < PATIENCE;
        let counts = || {
            let current = connection.standing.peer.and_then(|p| self.current(p, now));
            current.is_none_or(|n| n == number)
        };
        connection.full.is_some_and(patient) && counts()
    }

    /// Gives the system what waits. True if nothing is left that holds up others.
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

    /// Finds the next datagram of those that were read, and says which connection has it.
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

    /// What [`TlsCarrier::next_datagram`] found.
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
        // While datagrams are gathered, one more is taken.
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
        // Bounded, so that a flood of strangers cannot keep the caller here.
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
    /// Tells the peers, so that they need not wait for silence.
    fn drop(&mut self) {
        let now = Instant::now();
        for connection in self.connections.values_mut() {
            connection.say_goodbye(now);
        }
    }
}

#[cfg(test)]
mod tests;
