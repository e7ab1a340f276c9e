//! Receiving datagrams.

use super::Radio;
use crate::body::{Body, Down, PeerInfo, Sink};
use crate::config::{PeerId, TopicId};
use crate::peer::Peer;
use crate::send::SendTopic;
use crate::session::Greeting;
use crate::share::Share;
use crate::wire::{self, AckState, Acknowledgement, Frame, Hello, PacketError, Receipt, ReportEntry};
use core::time::Duration;
use stats::{DropReason, Time};

impl<B: Body> Radio<B> {
    /// Processes a datagram that `peer`'s carrier received. Its results go to `sink`.
    ///
    /// # Errors
    /// [`PacketError`] if it is malformed; it is counted (as [`DropReason::Malformed`]) and has no effect.
    /// [`PacketError::AnotherHost`] is counted as [`DropReason::PeerLost`]. Foreign bytes are no reason to stop.
    pub fn handle(
        &mut self,
        now: Time,
        peer: PeerId,
        datagram: &[u8],
        sink: &mut impl Sink,
    ) -> Result<(), PacketError> {
        let now = self.tick(now);
        let p = self
            .peers
            .get_mut(&peer)
            .ok_or(PacketError::NoSuchPeer { peer: peer.0 })?;
        let (header, frames) = wire::decode(datagram).inspect_err(|error| {
            p.stats.drops.add(DropReason::Malformed, 1);
            if let PacketError::Version { theirs, .. } = error {
                p.stats.other_version = Some(*theirs);
            }
        })?;
        p.stats.other_version = None;
        for frame in frames {
            if let Frame::Hello(hello) = frame {
                self.greeted(now, peer, header.session, &hello, sink);
            }
        }
        let Some(p) = self.peers.get_mut(&peer) else {
            return Ok(());
        };
        if p.session.remote() != Some(header.session) {
            p.stats.drops.add(DropReason::PeerLost, 1);
            if p.session.is_of_another_host(header.session) {
                return Err(PacketError::AnotherHost { peer: peer.0 });
            }
            p.session.other_session(now, header.session);
            return Ok(());
        }
        let arrival = p.heard(now, header.number, datagram.len());
        (p.share.exchange, p.share.timing) = (None, None);
        let rises = p.session.hear(now);
        let up = p.session.is_up();
        if rises && let Some(info) = &p.info {
            sink.peer_up(peer, info);
            for i in 0..self.topics.len() {
                if self.topics[i].peer == peer {
                    self.offer_latched(now, i, false);
                }
            }
            self.route_turned(now, peer);
        }
        // The peer may know this host while its confirmation is lost or late: until that arrives, its frames are
        // ignored. It repeats those that matter.
        if !up {
            return Ok(());
        }
        self.route_heard(now, peer, arrival);
        self.air_taken(now, peer, datagram.len(), frames);
        for frame in frames {
            self.frame(now, peer, frame, datagram.len(), sink);
        }
        // After its claims, which include this use.
        self.record_use(now, peer, datagram.len(), frames);
        Ok(())
    }

    fn greeted(&mut self, now: Time, peer: PeerId, session: u32, hello: &Hello<'_>, sink: &mut impl Sink) {
        let Some(p) = self.peers.get_mut(&peer) else {
            return;
        };
        let was_up = p.session.is_up();
        let greeting = p.session.greeting(now, session, hello.seen, hello.asks);
        if greeting == Greeting::Ignored {
            return;
        }
        p.info = Some(PeerInfo {
            host: hello.host,
            name: hello.name.to_owned(),
            session,
            max_message: hello.max_message,
        });
        p.states_watched = hello.states_watched;
        let holds = usize::try_from(hello.holds).unwrap_or(usize::MAX);
        p.breadth.holds(holds, self.config.in_flight as usize);
        if let Greeting::New { restarted } = greeting {
            p.stats.restarts += u64::from(restarted);
            p.receiver.reset(sink);
            p.renew();
            self.route_renewed(peer);
            // Also for a peer that was lost before: its announcements become void only here.
            if was_up || restarted {
                sink.peer_down(peer, Down::Restarted);
            }
            self.clear_topics(peer);
            for t in self.topics.iter_mut().filter(|t| t.peer == peer) {
                t.announce_to_new_session(hello.states_watched);
            }
        }
    }

    /// The peer is gone for the time being; if it comes back with the same session, it still knows its topics.
    pub(super) fn lose(&mut self, peer: PeerId, sink: &mut impl Sink) {
        if let Some(p) = self.peers.get_mut(&peer) {
            p.receiver.pause(sink);
            p.flight.clear();
            self.air.others.table.forget(peer);
        }
        sink.peer_down(peer, Down::Lost);
        let topics = self.topics.iter_mut().filter(|t| t.peer == peer);
        let bytes = topics.map(SendTopic::pause).sum();
        self.released(bytes);
        self.route_turned(self.clock, peer);
    }

    pub(super) fn clear_topics(&mut self, peer: PeerId) {
        let topics = self.topics.iter_mut().filter(|t| t.peer == peer);
        let bytes = topics.map(|t| t.clear(DropReason::PeerLost)).sum();
        self.released(bytes);
    }

    fn frame(&mut self, now: Time, peer: PeerId, frame: Frame<'_>, len: usize, sink: &mut impl Sink) {
        let Some(p) = self.peers.get_mut(&peer) else {
            return;
        };
        let outcome = match frame {
            Frame::Hello(_) | Frame::Ping => return,
            Frame::Ask => return p.asked(),
            Frame::Receipt(receipt) => return self.receipt_came(now, peer, &receipt, len),
            Frame::Acknowledgement(a) => return self.acknowledged(now, peer, &a),
            Frame::Source { topic, id, bytes } => {
                record_part(&mut self.air.others, now, p, topic);
                p.receiver.source(now, (topic, id), bytes, sink)
            }
            Frame::Parity {
                topic,
                first,
                count,
                key,
                bytes,
            } => p.receiver.parity(now, topic, (first, count, key), bytes, sink),
            Frame::Settled { topic, floor } => p.receiver.settled(now, topic, floor, sink),
            Frame::Arrivals { newest, came, gaps } => {
                return self.arrivals_reported(now, peer, (newest, came, gaps));
            }
            Frame::Announce(piece) => p.receiver.announce(&piece, sink),
            Frame::Data(head, bytes) => {
                record_part(&mut self.air.others, now, p, head.topic);
                let outcome = p.timed_data(now, &head, bytes, sink);
                p.receiver.route = None;
                outcome
            }
            Frame::More(head, bytes) => {
                record_part(&mut self.air.others, now, p, head.topic);
                match p.receiver.described(&head, bytes) {
                    Ok(Some(head)) => p.timed_data(now, &head, bytes, sink),
                    Ok(None) => Ok(()),
                    Err(reason) => Err(reason),
                }
            }
            Frame::Object(head, symbol) => {
                let outcome = p.receiver.object(now, &head, symbol, sink);
                p.receiver.route = None;
                outcome
            }
            Frame::Symbol(head, bytes) => p.receiver.symbol(now, &head, bytes, sink),
            Frame::Route(route, left) => {
                // It may have been on the way for a whole round trip.
                let left = left.map(|ms| Duration::from_millis(ms.into()));
                let left = left.map(|d| d.saturating_sub(p.flight.round_trip_time()));
                p.receiver.route = Some((route, left.map(|d| now + d)));
                Ok(())
            }
            Frame::Ways(ways) => return self.take_ways(now, peer, &ways),
            Frame::Unwanted { topic, to } => {
                if self.topics.get(topic as usize).is_some_and(|t| t.peer == peer) {
                    sink.topic_unwanted(peer, TopicId(topic), to);
                }
                Ok(())
            }
            Frame::Watched {
                topic,
                serial,
                watched,
            } => return self.watched(now, (peer, topic), serial, watched),
            Frame::WatchedSeen { topic, serial } => return p.receiver.watched_confirmed(topic, serial),
            Frame::Sharing(sharing) => return self.shared(now, peer, sharing, len),
            Frame::Cancel { topic, seq } => return p.receiver.cancel(topic, seq, sink),
            Frame::Report(ReportEntry::Sender { topic, account }) => {
                return p.receiver.sender_report(topic, account);
            }
            Frame::Report(ReportEntry::Receiver { topic, report }) => {
                let topic = self.topics.get_mut(topic as usize).filter(|t| t.peer == peer);
                let good = topic.is_none_or(|t| t.ledger.record_report(report, t.next_seq));
                good.then_some(()).ok_or(DropReason::Malformed)
            }
            Frame::AnnounceAck {
                topic,
                edition,
                state,
            } => return self.announcement_answered(now, peer, topic, (edition, state)),
        };
        if let (Err(reason), Some(p)) = (outcome, self.peers.get_mut(&peer)) {
            p.stats.drops.add(reason, 1);
        }
    }

    fn receipt_came(&mut self, now: Time, peer: PeerId, receipt: &Receipt, len: usize) {
        let defers = self.defers(now);
        let Some(p) = self.peers.get_mut(&peer) else {
            return;
        };
        let ahead = p.receipt(now, &*self.policy, receipt, len, defers);
        if let Some(met) = p.share.met.take() {
            p.share.probe = None;
            self.air.others.probed(now, met);
        }
        // A queue caused by a failing peer says nothing about the datagrams to others.
        let fails = self.router.as_ref().is_some_and(|r| r.is_left(peer));
        // Once nothing is in flight the device queue is empty, however long it was.
        if !fails && self.peers.values().any(|p| p.flight.len() > 0) {
            self.air.device.delay(ahead);
        }
    }

    fn acknowledged(&mut self, now: Time, peer: PeerId, a: &Acknowledgement) {
        let Some(p) = self.peers.get_mut(&peer) else {
            return;
        };
        p.way.answered(now, a.newest, Duration::from_micros(a.held));
        p.flight.came(a.newest);
        let timing = p.way.timing();
        if let Some(t) = self.topics.get_mut(a.topic as usize).filter(|t| t.peer == peer) {
            let rested = !t.is_backlogged();
            let bytes = t.acknowledged(now, a, timing);
            if rested && t.is_backlogged() {
                self.scheduler.wake(t);
            }
            self.released(bytes);
        }
    }

    fn arrivals_reported(&mut self, now: Time, peer: PeerId, (newest, came, gaps): (u64, u64, u64)) {
        let Some(p) = self.peers.get_mut(&peer) else {
            return;
        };
        let (more, lost) = p.arrivals_reported(newest, came);
        if p.way.arrivals(newest, came, gaps) {
            let loss = p.way.loss();
            p.flight.loses(loss, p.way.burst());
            p.session.set_keep_alive(&self.config, loss);
        }
        self.route_traffic(now, peer, more, lost);
    }

    fn announcement_answered(
        &mut self,
        now: Time,
        peer: PeerId,
        topic: u32,
        (edition, state): (u32, AckState),
    ) {
        let Some(t) = self.topics.get_mut(topic as usize).filter(|t| t.peer == peer) else {
            return;
        };
        if state == AckState::Unknown && t.announcer.is_understood() {
            // The peer lost its state although our session did not end: it took another session for ours.
            t.restart_announcement();
        }
        let known = t.announcer.accepted() == Some(true);
        t.announcer.answered(edition, state);
        let new = !known && t.announcer.accepted() == Some(true);
        if t.announcer.accepted() == Some(false) {
            let bytes = t.clear(DropReason::Unannounced);
            self.released(bytes);
        }
        if new {
            self.offer_latched(now, topic as usize, true);
        }
    }
}

/// Records in the table of the air's users that a peer sends a part of its `topic`.
fn record_part(share: &mut Share, now: Time, p: &Peer, topic: u32) {
    if let (true, Some(priority), Some(info)) = (p.config.air, p.receiver.priority(topic), &p.info) {
        share.heard(now, info.host, priority);
    }
}
