//! The connections of a carrier, and which of them leads to a peer.

use super::RIDE;
use super::congestion::Counters;
use super::pieces::Joiner;
use crate::carrier::PeerIndex;
use crate::carrier::team::rank;
use noq_proto::{Connection, ConnectionHandle};
use rustls::pki_types::CertificateDer;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One QUIC connection, established or on the way there.
pub(super) struct Link {
    pub(super) conn: Connection,
    pub(super) counters: Arc<Counters>,
    /// Counts connections.
    pub(super) id: u64,
    /// Whose it is: dialled, or proved by its certificate.
    pub(super) peer: Option<PeerIndex>,
    /// We made it.
    pub(super) dialed: bool,
    pub(super) from: IpAddr,
    pub(super) started: Instant,
    /// When it was established.
    pub(super) up: Option<Instant>,
    /// When the last datagram of the peer came on it.
    pub(super) heard: Option<Instant>,
    /// Something may be to be sent.
    pub(super) dirty: bool,
    /// What of a long datagram came on it.
    pub(super) joiner: Joiner,
    /// noq's room for datagrams when it holds none.
    pub(super) room: usize,
}

impl Link {
    /// Whether datagrams may go through it.
    pub(super) fn open(&self) -> bool {
        self.up.is_some() && self.peer.is_some() && !self.conn.is_closed()
    }

    /// When its timed work is to be done at the latest.
    pub(super) fn next_timeout(&mut self) -> Option<Instant> {
        let patience = if self.open() { RIDE } else { Duration::ZERO };
        self.conn.poll_timeout().map(|t| t + patience)
    }

    /// Whether noq still holds a datagram of ours.
    pub(super) fn holds(&mut self) -> bool {
        self.conn.datagrams().send_buffer_space() < self.room
    }

    /// When it last showed that the peer is there.
    pub(super) fn alive(&self) -> Option<Instant> {
        self.heard.max(self.up)
    }

    /// The certificate that the other end showed.
    pub(super) fn certificate(&self) -> Option<CertificateDer<'static>> {
        let shown = self.conn.crypto_session().peer_identity()?;
        shown
            .downcast::<Vec<CertificateDer<'static>>>()
            .ok()?
            .into_iter()
            .next()
    }
}

/// All connections, by noq's handle.
#[derive(Default)]
pub(super) struct Connections(pub(super) BTreeMap<usize, Link>);

impl Connections {
    pub(super) fn get(&mut self, handle: ConnectionHandle) -> Option<&mut Link> {
        self.0.get_mut(&handle.0)
    }

    /// The open connections to `peer`.
    pub(super) fn open(&self, peer: PeerIndex) -> impl Iterator<Item = (usize, &Link)> {
        self.0
            .iter()
            .filter(move |(_, l)| l.peer == Some(peer) && l.open())
            .map(|(h, l)| (*h, l))
    }

    /// Where datagrams for `peer` go.
    pub(super) fn current(&self, peer: PeerIndex, first: bool, now: Instant) -> Option<usize> {
        self.open(peer)
            .max_by_key(|(_, l)| rank(l.alive(), l.dialed, first, now))
            .map(|(h, _)| h)
    }

    /// Handshakes under way that others began: all, and those from `from`.
    pub(super) fn half_open(&self, from: IpAddr) -> (usize, usize) {
        let all = self.0.values().filter(|l| !l.dialed && l.up.is_none());
        all.fold((0, 0), |(n, same), l| (n + 1, same + usize::from(l.from == from)))
    }
}
