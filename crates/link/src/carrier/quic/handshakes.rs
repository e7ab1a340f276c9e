//! How connections begin and end: who is let in, whom we dial, and whose certificate counts.

use super::congestion::Counters;
use super::connections::Link;
use super::pieces::Joiner;
use super::{CONTROL, CarrierError, PeerIndex, QuicCarrier, RECHECK, code};
use crate::carrier::team::dial::MAX_ATTEMPTS;
use crate::carrier::team::incoming::Verdict;
use crate::carrier::team::standing::{Standing, needless};
use crate::carrier::team::{counts, tell_of_stranger};
use crate::keys::names;
use bytes::Bytes;
use noq_proto::{Connection, ConnectionError, ConnectionHandle, EndpointEvent, Incoming, VarInt};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

impl QuicCarrier {
    pub(super) fn incoming(
        &mut self,
        incoming: Incoming,
        from: SocketAddr,
        reply: &mut Vec<u8>,
        now: Instant,
    ) -> Result<(), CarrierError> {
        let known = self.peers.iter().any(|p| p.known.address == from);
        let half_open = self.connections.half_open(from.ip());
        let validated = incoming.remote_address_validated();
        // A validated address has knocked: only then do we tell it how to validate.
        let knocked = validated || self.tls.knock.accepts(&incoming.orig_dst_cid());
        match self.incoming.decide(knocked, validated, known, half_open, now) {
            Verdict::Ignore => {
                self.endpoint.ignore(incoming);
                self.refused += 1;
            }
            Verdict::Retry => {
                if let Ok(transmit) = self.endpoint.retry(incoming, reply) {
                    // If the socket is full the client asks again.
                    self.socket.send(transmit.destination, CONTROL, reply)?;
                }
            }
            Verdict::Accept => {
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
        };
        self.next_id += 1;
        self.connections.0.insert(handle.0, link);
        self.drive(handle, now);
    }

    /// A handshake is done: the certificate counts, and says who it is.
    pub(super) fn established(&mut self, handle: ConnectionHandle, now: Instant) {
        let Some(link) = self.connections.get(handle) else {
            return;
        };
        let shown = link.certificate();
        let peer = link.standing.peer.or_else(|| {
            let shown = shown.as_ref()?;
            self.peers.iter().position(|p| names(shown, &p.known.name))
        });
        let Some(link) = self.connections.get(handle) else {
            return;
        };
        let Some(peer) = peer else {
            tracing::warn!(from = %link.standing.from, "a host of the team that is no peer of this one was refused");
            link.conn
                .close(now, VarInt::from_u32(code::NO_PEER), Bytes::new());
            self.refused += 1;
            return;
        };
        link.standing.peer = Some(peer);
        link.standing.up = Some(now);
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
            tell_of_stranger(&mut self.told, from, reason, now);
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
            peer.known.dial.refused(now);
        }
        if refused {
            let text = reason.to_string();
            if peer.known.said.is_new(&text, now) {
                tracing::warn!(peer = peer.known.name, reason = text, "connection closed");
            }
        }
    }

    /// Drops a connection without a word.
    pub(super) fn forget(&mut self, handle: ConnectionHandle) {
        if self.connections.0.remove(&handle.0).is_some() {
            self.endpoint.handle_event(handle, EndpointEvent::drained());
        }
    }

    pub(super) fn dial(&mut self, now: Instant) {
        for index in 0..self.peers.len() {
            let mut attempts: Vec<_> = self
                .connections
                .0
                .iter_mut()
                .filter(|(_, l)| l.standing.attempts(index) && !l.conn.is_closed())
                .map(|(h, l)| (l.standing.started, *h, l.conn.stats().udp_rx.datagrams > 0))
                .collect();
            let alive = self
                .connections
                .open(index)
                .filter_map(|(_, l)| l.standing.alive())
                .max();
            let answered = attempts.iter().any(|(_, _, answered)| *answered);
            let peer = &mut self.peers[index];
            if !peer.known.dial.due(now, alive, answered) {
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

    /// Takes renewed keys, and closes connections whose certificate counts no longer.
    pub(super) fn renew(&mut self, now: Instant) {
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
            let verdict = counts(&self.tls.verifier, link.certificate().as_ref());
            if let Err(verdict) = verdict {
                let peer = link
                    .standing
                    .peer
                    .and_then(|p| self.peers.get(p))
                    .map(|p| &p.known.name);
                tracing::warn!(
                    peer,
                    %verdict,
                    "the certificate counts no longer: connection closed"
                );
                link.conn
                    .close(now, VarInt::from_u32(code::NOT_VALID), Bytes::new());
                link.dirty = true;
            }
        }
    }
}
