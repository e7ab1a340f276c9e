//! A carrier's connections, and the choice among them for a peer.

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

/// One QUIC connection, established or in its handshake.
pub(super) struct Link {
    pub(super) conn: Connection,
    pub(super) counters: Arc<Counters>,
    /// Counts connections.
    pub(super) id: u64,
    pub(super) standing: Standing,
    /// There may be something to send.
    pub(super) dirty: bool,
    /// The received parts of a long datagram.
    pub(super) joiner: Joiner,
    /// A path probe arrived, for whose acknowledgement the peer waits.
    pub(super) hurry: bool,
    /// Free space of noq's datagram buffer when it is empty.
    pub(super) room: usize,
}

impl Link {
    /// Returns whether datagrams may use it.
    pub(super) fn open(&self) -> bool {
        self.standing.is_up() && !self.conn.is_closed()
    }

    /// Closes the connection for a `reason`. Its datagrams that were not delivered yet are void.
    pub(super) fn end(&mut self, now: Instant, reason: u32) {
        self.standing.peer = None;
        self.conn.close(now, VarInt::from_u32(reason), Bytes::new());
        self.dirty = true;
    }

    /// Returns whether any datagram of the other end arrived.
    pub(super) fn answered(&mut self) -> bool {
        self.conn.stats().udp_rx.datagrams > 0
    }

    /// The latest time for its timed work.
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

    /// The round-trip time, without the peer's acknowledgement delay.
    pub(super) fn rtt(&self) -> Duration {
        self.conn.rtt(PathId::ZERO).unwrap_or_default()
    }

    /// The largest datagram that fits one packet.
    pub(super) fn max_datagram(&self) -> usize {
        usize::from(self.mtu().size()).saturating_sub(AROUND)
    }

    /// Returns whether noq still holds one of this host's datagrams.
    pub(super) fn holds(&mut self) -> bool {
        self.conn.datagrams().send_buffer_space() < self.room
    }

    /// The certificate that the other end presented.
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

    /// The connection for datagrams to `peer`.
    pub(super) fn current(&self, peer: PeerIndex, first: bool, now: Instant) -> Option<usize> {
        standing::current(self.open(peer).map(|(h, l)| (h, &l.standing)), first, now)
    }

    /// Returns whether an incoming handshake from this address is in progress.
    pub(super) fn is_half_open(&self, from: IpAddr) -> bool {
        standing::is_half_open(self.0.values().map(|l| &l.standing), from)
    }
}
