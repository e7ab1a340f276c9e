//! Packets between the socket, the endpoint and its connections.

use super::super::socket::{Given, MAX_PAYLOAD};
use super::super::{Carrier, CarrierError, PeerIndex, Received};
use super::connections::Link;
use super::parts::{self, Malformed};
use super::pieces::AROUND;
use super::pieces::PROBE;
use super::{CONTROL, HANDSHAKE, Pending, QuicCarrier, TOGETHER};
use crate::carrier::path_mtu::News;
use crate::carrier::team;
use crate::carrier::team::dial::PATIENCE;
use bytes::{Bytes, BytesMut};
use noq_proto::{ConnectionHandle, DatagramEvent, Event, FourTuple, PathId};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Instant;

impl QuicCarrier {
    /// Reads one packet, or on a wire those that arrived together, and returns how many.
    pub(super) fn take_packets(&mut self) -> Result<usize, CarrierError> {
        let now = Instant::now();
        let (mut taken, mut of) = (0, None);
        while let Some((len, from)) = self.socket.receive_into(&mut self.buffer)? {
            taken += 1;
            if let (Some(from), 1..=MAX_PAYLOAD) = (from, len) {
                let touched = self.take_datagram(from, now)?;
                // Once for all packets of a connection.
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

    /// Processes the packet or part in the buffer. Returns the connection to drive next.
    fn take_datagram(
        &mut self,
        from: SocketAddr,
        now: Instant,
    ) -> Result<Option<ConnectionHandle>, CarrierError> {
        let datagram = self.buffer.split();
        if !parts::is_part(&datagram) {
            return self.take_packet((from, false), datagram, now);
        }
        let expected = team::expected(self.peers.iter().map(|p| &p.known), from.ip()) > 0;
        match self.parts.take(from, expected, &datagram) {
            Ok(Some(packet)) => self.take_packet((from, true), packet, now),
            Ok(None) => Ok(None),
            Err(Malformed) => {
                self.refused += 1;
                Ok(None)
            }
        }
    }

    /// Processes a packet that came from `from`, in parts or whole. Returns the connection to drive next.
    pub(super) fn take_packet(
        &mut self,
        (from, parted): (SocketAddr, bool),
        packet: BytesMut,
        now: Instant,
    ) -> Result<Option<ConnectionHandle>, CarrierError> {
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
                self.incoming(incoming, (from, parted), &mut reply, now)?;
            }
            // Responses go to unknown senders only: for a wrong version, a forged token, an unknown
            // connection.
            Some(DatagramEvent::Response(_)) | None => self.refused += 1,
        }
        self.packet = reply;
        Ok(of)
    }

    /// Exchanges pending events between a connection and the endpoint, and handles the results.
    pub(super) fn drive(&mut self, handle: ConnectionHandle, now: Instant) {
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

    /// Sends the connections' packets until the socket is full. Returns true if nothing is left.
    pub(super) fn send_waiting(&mut self, now: Instant) -> Result<bool, CarrierError> {
        while let Some(p) = self.pending.front_mut() {
            if !self.socket.ready() {
                return Ok(false);
            }
            let given = self
                .socket
                .send_several(p.to, p.priority, &mut p.packet, p.segment)?;
            if given == Given::Full {
                return Ok(false);
            }
            self.pending.pop_front();
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

    /// Sends one connection's packets: all of them, or until noq holds no datagram. Returns false if the
    /// socket is full.
    pub(super) fn transmit(
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
        loop {
            let Some(link) = self.connections.0.get_mut(&handle.0) else {
                return Ok(true);
            };
            self.packet.clear();
            let Some(transmit) = link.conn.poll_transmit(now, most, &mut self.packet) else {
                link.dirty = false;
                return Ok(true);
            };
            let to = transmit.destination;
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            let (is_probe, passes) = {
                let mut mtu = link.mtu();
                (mtu.made_probe(), usize::from(mtu.passes()))
            };
            if segment > passes && !is_probe {
                self.give_in_parts(to, priority, segment, passes)?;
            } else {
                match self
                    .socket
                    .send_several(to, priority, &mut self.packet, segment)?
                {
                    Given::Full => self.pending.push_back(Pending {
                        to,
                        priority,
                        packet: std::mem::take(&mut self.packet),
                        segment,
                    }),
                    Given::TooLong => {
                        let passes = {
                            let mut mtu = link.mtu();
                            mtu.refused(u16::try_from(segment).unwrap_or(u16::MAX), now);
                            usize::from(mtu.passes())
                        };
                        if !is_probe {
                            self.give_in_parts(to, priority, segment, passes)?;
                        }
                    }
                    Given::Taken | Given::Lost => {}
                }
            }
            if !self.pending.is_empty() {
                return Ok(false);
            }
            let holds = self.connections.get(handle).is_some_and(Link::holds);
            if !all && !holds {
                return Ok(true);
            }
        }
    }

    /// Sends the packets in the buffer, of `segment` bytes each, in parts of the size that fits.
    fn give_in_parts(
        &mut self,
        to: SocketAddr,
        priority: u8,
        segment: usize,
        passes: usize,
    ) -> Result<(), CarrierError> {
        let made = std::mem::take(&mut self.packet);
        for packet in made.chunks(segment.max(1)) {
            self.cut = self.cut.wrapping_add(1);
            let whole = packet.len() <= passes;
            let parts = (!whole).then(|| parts::split(packet, passes, self.cut));
            let all = parts.into_iter().flatten().chain(whole.then(|| packet.to_vec()));
            for mut packet in all {
                let segment = packet.len();
                let given = match self.pending.is_empty() {
                    true => self.socket.send_several(to, priority, &mut packet, segment)?,
                    false => Given::Full,
                };
                if given == Given::Full {
                    self.pending.push_back(Pending {
                        to,
                        priority,
                        packet,
                        segment,
                    });
                }
            }
        }
        self.packet = made;
        Ok(())
    }

    /// Sends path MTU probes that are due, and reports the results.
    pub(super) fn probe(&mut self, now: Instant) -> Result<(), CarrierError> {
        let open = self.connections.0.iter().filter(|(_, l)| l.open());
        let open: Vec<usize> = open.map(|(handle, _)| *handle).collect();
        for handle in open {
            let Some(link) = self.connections.0.get_mut(&handle) else {
                continue;
            };
            let rtt = link.rtt();
            let (size, news) = {
                let mut mtu = link.mtu();
                let size = mtu.due(now, rtt);
                (size, mtu.news())
            };
            let peer = link.standing.peer;
            if let (Some(peer), Some(news)) = (peer, news) {
                self.log_path(peer, news);
            }
            let handle = ConnectionHandle(handle);
            // Other packets go first, since they would make the probe longer.
            if let Some(size) = size
                && self.ready()
                && self.transmit(handle, CONTROL, now, true)?
            {
                self.send_probe(handle, usize::from(size), now)?;
            }
        }
        Ok(())
    }

    fn send_probe(
        &mut self,
        handle: ConnectionHandle,
        size: usize,
        now: Instant,
    ) -> Result<(), CarrierError> {
        self.socket.flush()?;
        let Some(link) = self.connections.get(handle).filter(|_| self.socket.ready()) else {
            return Ok(());
        };
        let mut probe = vec![0; size.saturating_sub(AROUND)];
        probe[0] = PROBE;
        if link.holds() || link.conn.datagrams().send(probe.into(), false).is_err() {
            return Ok(());
        }
        link.mtu().arm();
        link.dirty = true;
        self.transmit(handle, CONTROL, now, false)?;
        self.socket.flush()?;
        // If this packet is acknowledged and the probe is not, the probe is lost.
        if let Some(link) = self.connections.get(handle) {
            link.mtu().disarm();
            let _ = link.conn.datagrams().send(Bytes::from_static(&[PROBE]), false);
            link.dirty = true;
        }
        self.transmit(handle, CONTROL, Instant::now(), false).map(drop)
    }

    fn log_path(&mut self, peer: PeerIndex, news: News) {
        let headers = self.socket.headers();
        let peer = &mut self.peers[peer];
        match news {
            News::Found(size) => {
                let mtu = usize::from(size) + headers;
                if peer.reported_mtu.replace(mtu) != Some(mtu) {
                    tracing::info!(peer = peer.known.name, mtu, "path MTU found");
                }
            }
            News::Hole(size) => {
                peer.reported_mtu = None;
                tracing::warn!(
                    peer = peer.known.name,
                    mtu = usize::from(size) + headers,
                    "packets of the path MTU no longer arrive, smaller ones do: searching again"
                );
            }
        }
    }

    pub(super) fn timers(&mut self, now: Instant) {
        let mut due = Vec::new();
        for (handle, link) in &mut self.connections.0 {
            let patience = if link.standing.dialed && !link.answered() {
                PATIENCE
            } else {
                HANDSHAKE
            };
            let slow =
                link.standing.up.is_none() && now.saturating_duration_since(link.standing.started) > patience;
            if slow || link.next_timeout().is_some_and(|t| t <= now) {
                due.push((ConnectionHandle(*handle), slow));
            }
        }
        for (handle, slow) in due {
            if slow {
                self.forget(handle);
            } else if let Some(link) = self.connections.get(handle) {
                link.hurry = false;
                link.conn.handle_timeout(now);
                self.drive(handle, now);
            }
        }
    }

    /// A datagram is about to leave: due timed work goes with it.
    pub(super) fn let_ride(&mut self, handle: ConnectionHandle, now: Instant) {
        if let Some(link) = self.connections.get(handle)
            && link.conn.poll_timeout().is_some_and(|t| t <= now)
        {
            link.conn.handle_timeout(now);
            self.drive(handle, now);
        }
    }

    /// Finds the next received datagram and returns its connection.
    pub(super) fn next_datagram(&mut self) -> Option<usize> {
        while let Some(handle) = self.readable.front().copied() {
            let Some(link) = self.connections.0.get_mut(&handle.0) else {
                self.readable.pop_front();
                continue;
            };
            let Some(datagram) = link.conn.datagrams().recv() else {
                self.readable.pop_front();
                continue;
            };
            let Some(peer) = link.standing.peer.filter(|_| link.standing.up.is_some()) else {
                self.refused += 1;
                continue;
            };
            if datagram.first() == Some(&PROBE) {
                link.hurry = true;
                continue;
            }
            match link.joiner.take(datagram) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(_) => {
                    self.refused += 1;
                    continue;
                }
            }
            link.standing.heard = Some(Instant::now());
            if let Some(p) = self.peers.get_mut(peer) {
                let from = link.conn.network_path(PathId::ZERO).map(|path| path.remote());
                p.seen = from.ok().filter(|a| *a != p.known.address);
            }
            self.last = Some(handle);
            return Some(handle.0);
        }
        None
    }

    /// The datagram that [`QuicCarrier::next_datagram`] found.
    pub(super) fn found(&self, handle: usize) -> Option<Received<'_>> {
        let link = self.connections.0.get(&handle)?;
        Some(Received {
            peer: link.standing.peer?,
            datagram: link.joiner.whole(),
        })
    }
}
