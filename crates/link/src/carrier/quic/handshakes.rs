//! How connections begin and end: which peers are accepted, which are dialled, and which certificates are
//! valid.

use super::congestion::Counters;
use super::connections::Link;
use super::pieces::Joiner;
use super::{CONTROL, CarrierError, LEAST, PeerIndex, QuicCarrier, RECHECK, START, code, parts};
use crate::carrier::team::incoming::{Verdict, surplus};
use crate::carrier::team::standing::{Standing, needless};
use crate::carrier::team::{self, counts, log_refused_host};
use crate::keys::names;
use noq_proto::{Connection, ConnectionError, ConnectionHandle, EndpointEvent, Incoming, VarInt};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

impl QuicCarrier {
    pub(super) fn incoming(
        &mut self,
        incoming: Incoming,
        (from, parted): (SocketAddr, bool),
        reply: &mut Vec<u8>,
        now: Instant,
    ) -> Result<(), CarrierError> {
        let validated = incoming.remote_address_validated();
        // A validated address has presented its admission token. Other senders must not even learn how to
        // validate.
        if !validated && !self.is_admitted(&incoming) {
            if let Some(peer) = self.peers.iter_mut().find(|p| p.known.address == from) {
                peer.known.meets(team::OTHER_TEAM, now);
            }
            self.endpoint.ignore(incoming);
            self.refused += 1;
            return Ok(());
        }
        let expected = team::expected(self.peers.iter().map(|p| &p.known), from.ip());
        // A peer at its expected address saves a round trip, for one handshake at a time because an address may be
        // forged.
        let spared = self
            .peers
            .iter()
            .any(|p| p.known.address == from || p.seen == Some(from))
            && !self.connections.is_half_open(from.ip());
        match self
            .incoming
            .decide(from.ip(), validated || spared, expected, now)
        {
            Verdict::Ignore => {
                self.endpoint.ignore(incoming);
                self.refused += 1;
            }
            Verdict::Retry => {
                if let Ok(transmit) = self.endpoint.retry(incoming, reply) {
                    // If the socket is full, the client asks again.
                    self.socket.send(transmit.destination, CONTROL, reply)?;
                }
            }
            Verdict::Accept => {
                let all = self.connections.0.iter().map(|(h, l)| (*h, &l.standing));
                if let Some(handle) = surplus(all, from.ip(), expected) {
                    self.forget(ConnectionHandle(handle));
                    self.refused += 1;
                }
                // A connection that starts in parts is answered in parts.
                let counters = self.counters(parted);
                let config = self.tls.server(counters.clone());
                match self.endpoint.accept(incoming, now, reply, Some(config)) {
                    Ok((handle, conn)) => {
                        self.add(handle, conn, counters, None, from.ip(), now);
                        if let Some(link) = self.connections.get(handle) {
                            link.standing.expected = expected > 0;
                        }
                    }
                    Err(error) => {
                        tracing::debug!(%from, error = %error.cause, "a handshake failed");
                        self.refused += 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// Counters of a connection that starts in parts, or with whole packets.
    fn counters(&self, parted: bool) -> Arc<Counters> {
        let size = self.fixed.unwrap_or(if parted { LEAST } else { START });
        Counters::new(size).into()
    }

    /// Returns whether the sender of a first packet knows the team's secret, and is the first to use this
    /// token.
    fn is_admitted(&mut self, incoming: &Incoming) -> bool {
        let id = incoming.orig_dst_cid();
        self.tls.admission.accepts(&id)
            && (id.first_chunk()).is_some_and(|token| self.incoming.is_fresh(token))
    }

    pub(super) fn add(
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
            standing: Standing::new(peer, from, now),
            dirty: true,
            joiner: Joiner::default(),
            hurry: false,
        };
        self.next_id += 1;
        self.connections.0.insert(handle.0, link);
        self.drive(handle, now);
    }

    /// A handshake is complete: if the certificate is valid now, it names the peer. TLS verified it with the
    /// keys at the start of the handshake, which may have been renewed since.
    pub(super) fn established(&mut self, handle: ConnectionHandle, now: Instant) {
        let Some(link) = self.connections.get(handle) else {
            return;
        };
        let shown = link.certificate();
        if let Err(verdict) = counts(&self.tls.verifier, shown.as_ref()) {
            log_refused_host(link.standing.from, &verdict);
            link.end(now, code::NOT_VALID);
            self.refused += 1;
            return;
        }
        let peer = link.standing.peer.or_else(|| {
            let shown = shown.as_ref()?;
            self.peers.iter().position(|p| names(shown, &p.known.name))
        });
        let Some(link) = self.connections.get(handle) else {
            return;
        };
        let Some(peer) = peer else {
            team::log_unlisted_host(link.standing.from, shown.as_ref());
            link.end(now, code::NO_PEER);
            self.refused += 1;
            return;
        };
        link.standing.peer = Some(peer);
        link.standing.up = Some(now);
        if self.fixed.is_none() {
            link.mtu().search(now);
        }
        self.peers[peer].known.proven = Some(link.standing.from);
        tracing::debug!(
            peer = self.peers[peer].known.name,
            dialed = link.standing.dialed,
            "QUIC connection established"
        );
        let all = self.connections.0.iter().map(|(h, l)| (*h, &l.standing));
        let open = self.connections.open(peer).map(|(h, l)| (h, &l.standing));
        let over = needless(all, open, peer);
        for handle in over {
            self.forget(ConnectionHandle(handle));
        }
    }

    pub(super) fn lost(&mut self, handle: ConnectionHandle, reason: &ConnectionError, now: Instant) {
        let Some(link) = self.connections.get(handle) else {
            return;
        };
        let (peer, up, from) = (link.standing.peer, link.standing.up.is_some(), link.standing.from);
        let Some(peer) = peer.and_then(|p| self.peers.get_mut(p)) else {
            log_refused_host(from, &in_words(reason));
            self.refused += 1;
            return;
        };
        let refused = matches!(
            reason,
            ConnectionError::TransportError(_)
                | ConnectionError::ConnectionClosed(_)
                | ConnectionError::ApplicationClosed(_)
        );
        let is_another = matches!(reason, ConnectionError::ApplicationClosed(c)
            if c.error_code == VarInt::from_u32(code::ANOTHER_HOST));
        if refused && (!up || is_another) {
            peer.known.dial.refused(now);
        }
        if refused {
            let text = match is_another {
                true => team::IS_ANOTHER.to_owned(),
                false => in_words(reason),
            };
            peer.known.meets(text.clone(), now);
            if peer.known.last_logged.is_new(&text, now) {
                tracing::warn!(peer = peer.known.name, reason = text, "connection closed");
            }
        }
    }

    /// Closes the connection that delivered the last datagram: it leads to another host with the name and the
    /// keys of `peer`.
    pub(super) fn end_last(&mut self, peer: PeerIndex, now: Instant) {
        let Some(link) = self.last.take().and_then(|handle| self.connections.get(handle)) else {
            return;
        };
        let from = link.standing.from;
        link.end(now, code::ANOTHER_HOST);
        self.refused += 1;
        if let Some(p) = self.peers.get_mut(peer) {
            p.seen = None;
            p.known.log_other_host(from, now);
        }
    }

    /// Drops a connection silently.
    pub(super) fn forget(&mut self, handle: ConnectionHandle) {
        if self.connections.0.remove(&handle.0).is_some() {
            self.endpoint.handle_event(handle, EndpointEvent::drained());
        }
    }

    pub(super) fn dial(&mut self, now: Instant) {
        for index in 0..self.peers.len() {
            let mut attempts = self.connections.0.values_mut();
            let answered =
                attempts.any(|l| l.standing.attempts(index) && !l.conn.is_closed() && l.answered());
            let alive = self
                .connections
                .open(index)
                .filter_map(|(_, l)| l.standing.alive())
                .max();
            let peer = &mut self.peers[index];
            if !peer.known.dial.due(now, alive, answered) {
                continue;
            }
            // A path that took whole packets is more likely to return than to have changed.
            let takes_whole = self
                .connections
                .open(index)
                .any(|(_, l)| l.mtu().passes() >= START);
            let parted = !takes_whole && parts::is_for_attempt(self.peers[index].attempts);
            let counters = self.counters(parted);
            let config = self.tls.client(counters.clone());
            let peer = &mut self.peers[index];
            // A peer that moved is tried at its last seen and its configured address in turn.
            let address = peer
                .seen
                .filter(|_| peer.attempts % 2 == 1)
                .unwrap_or(peer.known.address);
            peer.attempts += 1;
            match self.endpoint.connect(now, config, address, &peer.known.name) {
                Ok((handle, conn)) => {
                    self.add(handle, conn, counters, Some(index), address.ip(), now);
                }
                Err(error) => tracing::debug!(%error, peer = peer.known.name, "cannot dial"),
            }
        }
    }

    /// Applies renewed keys. Closes connections whose certificate is no longer valid, and drops handshakes in
    /// progress, which verify with the keys from their start.
    pub(super) fn renew(&mut self, now: Instant) {
        let renewed = self.watch.renewed();
        if renewed.is_none() && now < self.recheck {
            return;
        }
        if let Some(tls) = renewed {
            self.tls = tls;
            self.endpoint
                .set_server_config(Some(self.tls.server(self.counters(false))));
            let under_way = self.connections.0.iter().filter(|(_, l)| l.standing.up.is_none());
            let under_way: Vec<usize> = under_way.map(|(handle, _)| *handle).collect();
            for handle in under_way {
                self.forget(ConnectionHandle(handle));
            }
        }
        self.recheck = now + RECHECK;
        for link in self.connections.0.values_mut().filter(|l| l.open()) {
            let Err(verdict) = counts(&self.tls.verifier, link.certificate().as_ref()) else {
                continue;
            };
            let peer = link.standing.peer.and_then(|p| self.peers.get(p));
            let peer = peer.map(|p| &p.known.name);
            tracing::warn!(peer, %verdict, "the certificate is no longer valid: connection closed");
            link.end(now, code::NOT_VALID);
        }
    }
}

/// Why a connection ended, and how to fix it if possible.
fn in_words(reason: &ConnectionError) -> String {
    let code = |code: u64| (0x100..0x200).contains(&code).then_some(code as u8);
    let alert = match reason {
        ConnectionError::TransportError(e) => {
            code(e.code.into()).map(|a| ("this host ended the handshake", a))
        }
        ConnectionError::ConnectionClosed(c) => {
            code(c.error_code.into()).map(|a| ("the other end ended the handshake", a))
        }
        ConnectionError::ApplicationClosed(c) => {
            return match u32::try_from(c.error_code.into_inner()) {
                Ok(code::GOING) => "its link ended".into(),
                Ok(code::NO_PEER) => "it does not list this host under `peers`".into(),
                Ok(code::NOT_VALID) => {
                    "it does not accept this host's certificate: create a new one with `ropewalk keys host`"
                        .into()
                }
                Ok(code::ANOTHER_HOST) => team::IS_ANOTHER.into(),
                _ => reason.to_string(),
            };
        }
        _ => None,
    };
    alert.map_or_else(
        || reason.to_string(),
        |(who, alert)| format!("{who}: {}", team::alert(alert)),
    )
}
