//! How connections begin and end: which peers are accepted, which are dialled, and which certificates are
//! valid.

use super::connection::{Came, Connection, Stage};
use super::{CarrierError, LISTENER, READ, TlsCarrier, UNSENT, VANISHED};
use crate::carrier::PeerIndex;
use crate::carrier::team::dial::PATIENCE;
use crate::carrier::team::incoming::{Verdict, oldest_of_most, surplus};
use crate::carrier::team::standing::needless;
use crate::carrier::team::{self, HANDSHAKE, IDLE, RECHECK, counts, log_refused_host};
use crate::keys::names;
use rustix::event::epoll;
use rustls::pki_types::ServerName;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// An incoming connection without a token is closed after this time.
const ADMISSION_TIMEOUT: Duration = Duration::from_secs(2);
/// Most connections kept without a token. A further one closes an older one. A peer's token arrives with its
/// connection, or right after it.
const MAX_UNADMITTED: usize = 128;
/// Connections accepted before other work has its turn.
const ACCEPTED: usize = 16;
/// Pause in accepting after the system refused a connection.
const DEAF: Duration = Duration::from_secs(1);
/// System events taken at once.
const EVENTS: usize = 32;

impl TlsCarrier {
    /// Processes pending system events, reading each connection once. Returns false if there were none.
    pub(super) fn look(&mut self, now: Instant) -> Result<bool, CarrierError> {
        let mut room = [const { MaybeUninit::uninit() }; EVENTS];
        let none = Default::default();
        let events = match epoll::wait(&self.epoll, &mut room, Some(&none)) {
            Ok((events, _)) => events,
            Err(rustix::io::Errno::INTR) => return Ok(true),
            Err(e) => {
                return Err(CarrierError::Socket {
                    doing: "waiting for connections",
                    source: e.into(),
                });
            }
        };
        for event in events.iter() {
            match event.data.u64() {
                LISTENER => self.accept(now),
                number => self.happened(number, now),
            }
        }
        Ok(!events.is_empty())
    }

    /// Handles an event of a connection.
    fn happened(&mut self, number: u64, now: Instant) {
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        if matches!(connection.stage(), Stage::Dialing) {
            let done = connection.dial_done(now);
            let fd = connection.fd();
            let data = epoll::EventData::new_u64(number);
            let watched = epoll::modify(&self.epoll, fd, data, epoll::EventFlags::IN);
            if let Err(error) = done.and(watched.map_err(io::Error::from)) {
                self.lost(number, &error, now);
            }
            return;
        }
        let came = connection.read(READ, now);
        self.came(number, came, now);
    }

    fn came(&mut self, number: u64, came: io::Result<Came>, now: Instant) {
        match came {
            Ok(Came::Nothing) => {}
            Ok(Came::Bytes) => self.has_some(number),
            Ok(Came::Up) => {
                self.has_some(number);
                self.established(number, now);
            }
            Ok(Came::Token) => {
                let began = self.judge(number, now);
                self.came(number, began, now);
            }
            Err(error) => self.lost(number, &error, now),
        }
    }

    fn has_some(&mut self, number: u64) {
        let full = self.connections.get(&number).is_some_and(|c| c.full.is_some());
        if full && !self.unsent.contains(&number) {
            self.unsent.push(number);
        }
        if !self.readable.contains(&number) {
            self.readable.push_back(number);
        }
    }

    /// Admits or rejects the owner of a token.
    fn judge(&mut self, number: u64, now: Instant) -> io::Result<Came> {
        let Some(connection) = self.connections.get_mut(&number) else {
            return Ok(Came::Nothing);
        };
        let Stage::Admission(token) = connection.stage() else {
            return Ok(Came::Nothing);
        };
        let fresh = |token| self.incoming.is_fresh(token);
        if !self.tls.admission.accepts(token) {
            let from = connection.standing.from.to_canonical();
            let at = |p: &&mut team::Known| p.address.ip().to_canonical() == from;
            let mut there = self.peers.iter_mut().filter(at);
            // If several peers share an address, it may be any of them.
            if let (Some(peer), None) = (there.next(), there.next()) {
                peer.meets(team::OTHER_TEAM, now);
            }
            return Err(ErrorKind::PermissionDenied.into());
        }
        if !token.first_chunk().is_some_and(fresh) {
            return Err(ErrorKind::PermissionDenied.into());
        }
        // TCP has proved that the sender receives at its address.
        let from = connection.standing.from;
        let expected = team::expected(self.peers.iter(), from);
        if self.incoming.decide(from, true, expected, now) != Verdict::Accept {
            return Err(ErrorKind::ResourceBusy.into());
        }
        let begun = (self.connections.iter())
            .filter(|(_, c)| matches!(c.stage(), Stage::Talking))
            .map(|(n, c)| (*n, &c.standing));
        if let Some(number) = surplus(begun, from, expected) {
            self.connections.remove(&number);
            self.refused += 1;
        }
        let Some(connection) = self.connections.get_mut(&number) else {
            return Ok(Came::Nothing);
        };
        connection.standing.expected = expected > 0;
        let server = rustls::ServerConnection::new(self.tls.server.clone());
        connection.let_in(server.map_err(io::Error::other)?, now)
    }

    fn accept(&mut self, now: Instant) {
        for _ in 0..ACCEPTED {
            let (socket, from) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {
                    continue;
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                // Usually for lack of a descriptor.
                Err(_) if self.make_room(1) => continue,
                Err(error) => return self.stop_listening(&error, now),
            };
            let socket = Socket::from(socket);
            // The system must not keep state of a closed connection either.
            if prepare(&socket)
                .and_then(|()| socket.set_linger(Some(Duration::ZERO)))
                .is_err()
            {
                continue;
            }
            self.make_room(MAX_UNADMITTED);
            let connection = Connection::dialed_by(socket.into(), from.ip(), now);
            let number = self.add(connection, epoll::EventFlags::IN);
            // A peer's token has usually arrived already.
            self.happened(number, now);
        }
    }

    /// Closes a connection without a token if there are `most` or more: the oldest of the address with the
    /// most. Returns false if there is none.
    fn make_room(&mut self, most: usize) -> bool {
        let unadmitted = (self.connections.iter())
            .filter(|(_, c)| matches!(c.stage(), Stage::Admission(_)))
            .map(|(n, c)| (*n, &c.standing));
        let Some(number) = oldest_of_most(unadmitted, most) else {
            return false;
        };
        self.connections.remove(&number);
        self.refused += 1;
        true
    }

    /// Stops accepting, usually for lack of a descriptor: a waiting connection would wake this thread over
    /// and over.
    pub(super) fn stop_listening(&mut self, error: &io::Error, now: Instant) {
        tracing::warn!(%error, "cannot accept connections for a while: check `ulimit -n`");
        self.listen_for(epoll::EventFlags::empty());
        self.deaf_until = Some(now + DEAF);
    }

    /// Resumes listening when it is time.
    pub(super) fn listen_again(&mut self, now: Instant) {
        if self.deaf_until.take_if(|until| *until <= now).is_some() {
            self.listen_for(epoll::EventFlags::IN);
        }
    }

    fn listen_for(&self, events: epoll::EventFlags) {
        // This can hardly fail, as the listener is registered from the start.
        let _ = epoll::modify(
            &self.epoll,
            &self.listener,
            epoll::EventData::new_u64(LISTENER),
            events,
        );
    }

    fn add(&mut self, connection: Connection, events: epoll::EventFlags) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        let data = epoll::EventData::new_u64(number);
        if epoll::add(&self.epoll, connection.fd(), data, events).is_ok() {
            self.connections.insert(number, connection);
        }
        number
    }

    /// A handshake is complete: if the certificate is valid now, it names the peer. TLS verified it with the
    /// keys at the start of the handshake, which may have been renewed since.
    fn established(&mut self, number: u64, now: Instant) {
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        let shown = connection.certificate();
        if let Err(verdict) = counts(&self.tls.verifier, shown.as_ref()) {
            log_refused_host(connection.standing.from, &verdict);
            connection.say_goodbye(now);
            self.connections.remove(&number);
            self.refused += 1;
            return;
        }
        let by_name = || {
            let shown = shown.as_ref()?;
            self.peers.iter().position(|p| names(shown, &p.name))
        };
        let Some(peer) = connection.standing.peer.or_else(by_name) else {
            team::log_unlisted_host(connection.standing.from, shown.as_ref());
            connection.say_goodbye(now);
            self.connections.remove(&number);
            self.refused += 1;
            return;
        };
        connection.standing.peer = Some(peer);
        self.peers[peer].proven = Some(connection.standing.from);
        tracing::debug!(
            peer = self.peers[peer].name,
            dialed = connection.standing.dialed,
            "TLS connection established"
        );
        let all = self.connections.iter().map(|(n, c)| (*n, &c.standing));
        let open = self.open(peer).map(|(n, c)| (n, &c.standing));
        let over = needless(all, open, peer);
        for number in over {
            self.connections.remove(&number);
        }
    }

    /// Closes the connection that delivered the last datagram: it leads to another host with the name and the
    /// keys of `peer`.
    pub(super) fn end_last(&mut self, peer: PeerIndex, now: Instant) {
        let Some(mut connection) = self.last.take().and_then(|n| self.connections.remove(&n)) else {
            return;
        };
        connection.say_goodbye(now);
        self.refused += 1;
        if let Some(p) = self.peers.get_mut(peer) {
            p.log_other_host(connection.standing.from, now);
        }
    }

    /// Handles the end of a connection.
    pub(super) fn lost(&mut self, number: u64, reason: &io::Error, now: Instant) {
        let Some(connection) = self.connections.remove(&number) else {
            return;
        };
        let Some(peer) = connection.standing.peer.and_then(|p| self.peers.get_mut(p)) else {
            log_refused_host(connection.standing.from, reason);
            self.refused += 1;
            return;
        };
        // Until the other end sends a datagram, it may still refuse this host's certificate.
        let talked = connection.open() && connection.standing.heard > connection.standing.up;
        if matches!(connection.stage(), Stage::Dialing) {
            tracing::debug!(peer = peer.name, %reason, "no connection");
            if reason.kind() == ErrorKind::ConnectionRefused {
                peer.meets(
                    "nobody listens there: start its link, or check address and port",
                    now,
                );
            }
            return;
        }
        if !talked {
            peer.dial.refused(now);
        }
        let text = match (reason.kind(), talked) {
            (ErrorKind::ConnectionAborted, true) => "the other end closed the connection".to_owned(),
            (ErrorKind::UnexpectedEof | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset, false) => {
                "the other end hung up: check that it lists this host under `peers`, and that both are of one team".to_owned()
            }
            _ => reason.to_string(),
        };
        peer.meets(text.clone(), now);
        if peer.last_logged.is_new(&text, now) {
            tracing::warn!(peer = peer.name, reason = text, "connection closed");
        }
    }

    pub(super) fn dial(&mut self, now: Instant) {
        for index in 0..self.peers.len() {
            if self.peers[index].dial.next() > now {
                continue;
            }
            let mut attempts = self.connections.values();
            let answered =
                attempts.any(|c| c.standing.attempts(index) && !matches!(c.stage(), Stage::Dialing));
            let alive = self.open(index).filter_map(|(_, c)| c.standing.alive()).max();
            let peer = &mut self.peers[index];
            if !peer.dial.due(now, alive, answered) {
                continue;
            }
            if let Err(error) = self.begin(index, now) {
                tracing::debug!(%error, peer = self.peers[index].name, "cannot dial");
            }
        }
    }

    fn begin(&mut self, index: PeerIndex, now: Instant) -> io::Result<()> {
        let peer = &self.peers[index];
        let socket = connect(self.local, peer.address, self.segment())?;
        let name = ServerName::try_from(peer.name.clone()).map_err(io::Error::other)?;
        let tls = rustls::ClientConnection::new(self.tls.client.clone(), name).map_err(io::Error::other)?;
        let (token, to) = (self.tls.admission.make(), peer.address.ip());
        let connection = Connection::dialing(socket, tls, token, index, to, now);
        self.add(connection, epoll::EventFlags::OUT);
        Ok(())
    }

    /// Ends connections that take too long or are silent.
    pub(super) fn give_up(&mut self, now: Instant) {
        let over = |c: &Connection| {
            let since = |t: Instant| now.saturating_duration_since(t);
            match (c.stage(), c.standing.alive().filter(|_| c.standing.up.is_some())) {
                (Stage::Admission(_), _) => since(c.standing.started) > ADMISSION_TIMEOUT,
                (Stage::Dialing, _) => since(c.standing.started) > PATIENCE,
                (_, None) => since(c.standing.started) > HANDSHAKE,
                (_, Some(alive)) => since(alive) > IDLE,
            }
        };
        let over: Vec<u64> = (self.connections.iter().filter(|(_, c)| over(c)))
            .map(|(n, _)| *n)
            .collect();
        for number in over {
            let gone = self.connections.remove(&number);
            self.refused += u64::from(gone.is_some_and(|c| c.standing.peer.is_none()));
        }
    }

    /// Applies renewed keys. Closes connections whose certificate is no longer valid, and drops handshakes in
    /// progress, which verify with the keys from their start. The new keys apply to tokens that are still to
    /// arrive.
    pub(super) fn renew(&mut self, now: Instant) {
        let renewed = self.watch.renewed();
        if renewed.is_none() && now < self.recheck {
            return;
        }
        if let Some(tls) = renewed {
            self.tls = tls;
            self.connections
                .retain(|_, c| c.open() || matches!(c.stage(), Stage::Admission(_)));
        }
        self.recheck = now + RECHECK;
        let verifier = &self.tls.verifier;
        let peers = &self.peers;
        self.connections.retain(|_, c| {
            if !c.open() {
                return true;
            }
            let Err(verdict) = counts(verifier, c.certificate().as_ref()) else {
                return true;
            };
            let peer = c.standing.peer.and_then(|p| peers.get(p)).map(|p| &p.name);
            tracing::warn!(peer, %verdict, "the certificate is no longer valid: connection closed");
            c.say_goodbye(now);
            false
        });
    }
}

/// Starts to connect, from the address that the peer knows.
fn connect(mut own: SocketAddr, to: SocketAddr, segment: Option<u32>) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    if !own.ip().is_unspecified() {
        // Includes the device, for a link-local address.
        own.set_port(0);
        socket.bind(&own.into())?;
    }
    prepare(&socket)?;
    if let Some(most) = segment {
        socket.set_tcp_mss(most)?;
    }
    match socket.connect(&to.into()) {
        Ok(()) => {}
        Err(e) if e.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {}
        Err(e) => return Err(e),
    }
    Ok(socket.into())
}

fn prepare(socket: &Socket) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    // A batch must not wait for the answer to the one before.
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_notsent_lowat(UNSENT)?;
    socket.set_tcp_user_timeout(Some(VANISHED))
}
