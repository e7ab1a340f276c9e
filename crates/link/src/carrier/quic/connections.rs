//! The connections of a carrier, and which of them leads to a peer.

use super::congestion::Counters;
use super::pieces::Joiner;
use super::{AROUND, RIDE};
use crate::carrier::PeerIndex;
use crate::carrier::path_mtu::PathMtu;
use crate::carrier::team::standing::{self, Standing};
use bytes::Bytes;
use noq_proto::{Connection, ConnectionHandle, PathId, VarInt};
use rustls::pki_types::CertificateDer;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

/// One QUIC connection, established or on the way there.
pub(super) struct Link {
    pub(super) conn: Connection,
    pub(super) counters: Arc<Counters>,
    /// Counts connections.
    pub(super) id: u64,
    pub(super) standing: Standing,
    /// Something may be to be sent.
    pub(super) dirty: bool,
    /// What of a long datagram came on it.
    pub(super) joiner: Joiner,
    /// A probe of the path came, of which the peer waits to hear.
    pub(super) hurry: bool,
    /// noq's room for datagrams when it holds none.
    pub(super) room: usize,
}

impl Link {
    /// Whether datagrams may go through it.
    pub(super) fn open(&self) -> bool {
        self.standing.is_up() && !self.conn.is_closed()
    }

    /// Closes it for a `reason`. Nothing that came over it and was not given out yet counts any more.
    pub(super) fn end(&mut self, now: Instant, reason: u32) {
        self.standing.peer = None;
        self.conn.close(now, VarInt::from_u32(reason), Bytes::new());
        self.dirty = true;
    }

    /// Whether anything of the other end came.
    pub(super) fn answered(&mut self) -> bool {
        self.conn.stats().udp_rx.datagrams > 0
    }

    /// When its timed work is to be done at the latest.
    pub(super) fn next_timeout(&mut self) -> Option<Instant> {
        let patience = if self.open() && !self.hurry {
            RIDE
        } else {
            Duration::ZERO
        };
        self.conn.poll_timeout().map(|t| t + patience)
    }

    pub(super) fn mtu(&self) -> MutexGuard<'_, PathMtu> {
        self.counters.mtu()
    }

    /// The round trip, without what the peer holds its acknowledgements back.
    pub(super) fn rtt(&self) -> Duration {
        self.conn.rtt(PathId::ZERO).unwrap_or_default()
    }

    /// The largest datagram that goes in one packet.
    pub(super) fn max_datagram(&self) -> usize {
        usize::from(self.mtu().size()).saturating_sub(AROUND)
    }

    /// Whether noq still holds a datagram of ours.
    pub(super) fn holds(&mut self) -> bool {
        self.conn.datagrams().send_buffer_space() < self.room
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
            .filter(move |(_, l)| l.standing.peer == Some(peer) && l.open())
            .map(|(h, l)| (*h, l))
    }

    /// Where datagrams for `peer` go.
    pub(super) fn current(&self, peer: PeerIndex, first: bool, now: Instant) -> Option<usize> {
        standing::current(self.open(peer).map(|(h, l)| (h, &l.standing)), first, now)
    }

    /// Whether a handshake is under way that others began from an address.
    pub(super) fn is_half_open(&self, from: IpAddr) -> bool {
        standing::is_half_open(self.0.values().map(|l| &l.standing), from)
    }
}
