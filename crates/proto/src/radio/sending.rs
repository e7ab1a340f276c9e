//! Messages are offered and leave in pieces.

use super::{Radio, Transmit};
use crate::body::{Body, Message};
use crate::config::{MAX_PRIORITY, Order, PeerId, TopicId};
use crate::peer::put;
use crate::send::{CONTROL, Pending, Work};
use crate::wire::{AnnouncePiece, DataHead, Frame};
use core::time::Duration;
use stats::{DropReason, Time};

/// Most that the head of a datagram and of a piece of an announcement take together.
pub(super) const ANNOUNCE_HEAD: usize = 64;
/// Most that the head of a datagram takes.
const HEAD: usize = 16;

impl<B: Body> Radio<B> {
    /// Offers a message of `topic`. It waits for the radio, as one of the newest `depth` of its topic.
    ///
    /// # Errors
    /// The reason if this very message was dropped at once: no peer, a topic that the peer does not want,
    /// the rate limit, its size, or more important ones that fill the radio's bound. It is counted. Older
    /// messages that it displaced are seen in the counts only.
    pub fn offer(&mut self, now: Time, topic: TopicId, message: Message<B>) -> Result<(), DropReason> {
        let now = self.tick(now);
        let Some(t) = self.topics.get_mut(topic.0 as usize) else {
            return Err(DropReason::Unannounced);
        };
        let geometry = message.body.geometry();
        let bytes = u64::from(geometry.total_len());
        t.counts.offered += 1;
        t.counts.offered_bytes += bytes;
        let peer = self.peers.get(&t.peer).filter(|p| p.session.is_up());
        let refused = match peer {
            None => Some(DropReason::NoPeer),
            Some(_) if t.announcer.accepted() == Some(false) => Some(DropReason::Unannounced),
            Some(p) => {
                let head = HEAD + DataHead::room(&geometry);
                let too_large = p.info.as_ref().is_some_and(|i| bytes > i.max_message.into())
                    || bytes > self.config.max_queued_bytes
                    || head >= p.config.max_datagram;
                if too_large {
                    Some(DropReason::TooLarge)
                } else if !t.passes_rate(now) {
                    Some(DropReason::RateLimit)
                } else {
                    None
                }
            }
        };
        if let Some(reason) = refused {
            t.counts.drops.add(reason, 1);
            return Err(reason);
        }
        let arrival = self.arrivals;
        self.arrivals += 1;
        if !t.is_backlogged() {
            self.scheduler.wake(t);
        }
        t.waiting.push_back(Pending {
            message,
            geometry,
            arrival,
            offered_at: now,
        });
        let freed = t.keep_last();
        self.stats.queued_bytes += bytes;
        self.released(freed);
        self.drop_overflow();
        self.stats.queued_bytes_max = self.stats.queued_bytes_max.max(self.stats.queued_bytes);
        match self.topics[topic.0 as usize].waiting.back() {
            Some(p) if p.arrival == arrival => Ok(()),
            _ => Err(DropReason::Overflow),
        }
    }

    /// Past the total bound the lowest priority goes first, and of it the oldest. What is partly sent stays.
    fn drop_overflow(&mut self) {
        while self.stats.queued_bytes > self.config.max_queued_bytes {
            let waiting = self
                .topics
                .iter_mut()
                .filter_map(|t| Some((t.config.priority, t.waiting.front()?.arrival, t)));
            let Some((_, _, victim)) = waiting.min_by_key(|(p, a, _)| (*p, *a)) else {
                return;
            };
            let bytes = victim.drop_oldest(DropReason::Overflow);
            self.released(bytes);
        }
    }

    /// Writes the next datagram into `datagram` (cleared first), if one may go now.
    ///
    /// At most one goes per slot of airtime, except that something more important than what was handed
    /// over last goes at once and is charged afterwards.
    pub fn poll_transmit(&mut self, now: Time, datagram: &mut Vec<u8>) -> Transmit {
        let now = self.tick(now);
        self.expire_messages(now);
        let free = self.pacer.is_free(now);
        let control = self.control_due();
        if let Some(peer) = control
            && (free || self.pacer.is_urgent(CONTROL))
        {
            return self.send_control(now, peer, datagram);
        }
        match self.scheduler.pick(&self.topics, |t| self.is_up(t.peer)) {
            Some((i, work)) => {
                let urgent = self.scheduler.order() == Order::Priority
                    && self.pacer.is_urgent(self.topics[i].config.priority);
                if !free && !urgent {
                    return Transmit::Wait(self.pacer.await_turn());
                }
                match work {
                    Work::Announce => self.send_announcement(now, i, datagram),
                    Work::Data => self.send_fragment(now, i, datagram),
                }
            }
            None if control.is_some() => Transmit::Wait(self.pacer.await_turn()),
            None => Transmit::Idle,
        }
    }

    /// The carrier did not take the datagram that [`Radio::poll_transmit`] gave last. It is counted as
    /// [`DropReason::Carrier`] of the peer, and what was in it is lost.
    pub fn carrier_refused(&mut self, peer: PeerId) {
        if let Some(p) = self.peers.get_mut(&peer) {
            p.stats.drops.add(DropReason::Carrier, 1);
        }
    }

    fn control_due(&self) -> Option<PeerId> {
        let cancels = |id: PeerId| self.topics.iter().any(|t| t.peer == id && t.cancelled.is_some());
        let due = self
            .peers
            .iter()
            .find(|(id, p)| p.has_control() || p.session.is_up() && cancels(**id));
        due.map(|(id, _)| *id)
    }

    fn send_control(&mut self, now: Time, peer: PeerId, out: &mut Vec<u8>) -> Transmit {
        let Some(p) = self.peers.get_mut(&peer) else {
            return Transmit::Idle;
        };
        p.header(self.config.session, out);
        if p.session.is_up() {
            for (i, t) in self.topics.iter_mut().enumerate().filter(|(_, t)| t.peer == peer) {
                if let Some(seq) = t.cancelled
                    && put(
                        out,
                        p.config.max_datagram,
                        &Frame::Cancel { topic: i as u32, seq },
                    )
                {
                    t.cancelled = None;
                }
            }
        }
        p.put_control(now, &self.config, out);
        p.stats.control_sent += 1;
        self.sent(now, peer, CONTROL, out.len());
        Transmit::Datagram {
            peer,
            priority: MAX_PRIORITY,
        }
    }

    fn send_announcement(&mut self, now: Time, i: usize, out: &mut Vec<u8>) -> Transmit {
        let t = &mut self.topics[i];
        let (peer, priority) = (t.peer, t.config.priority);
        let Some(p) = self.peers.get_mut(&peer) else {
            return Transmit::Idle;
        };
        p.header(self.config.session, out);
        let (edition, total) = (t.announcer.edition(), t.announcer.total());
        let (offset, poll, bytes) = t.announcer.piece(now, p.config.max_datagram - ANNOUNCE_HEAD);
        Frame::Announce(AnnouncePiece {
            topic: i as u32,
            edition,
            total,
            offset,
            poll,
            bytes,
        })
        .encode(out);
        p.stats.control_sent += 1;
        self.sent(now, peer, priority, out.len());
        Transmit::Datagram { peer, priority }
    }

    /// Sends the next fragment of topic `i`. If that ends a message, small ones that fit behind it whole go
    /// along, since a frame of their own would cost more than their bytes.
    fn send_fragment(&mut self, now: Time, i: usize, out: &mut Vec<u8>) -> Transmit {
        let (peer, priority) = (self.topics[i].peer, self.topics[i].config.priority);
        let Some(p) = self.peers.get_mut(&peer) else {
            return Transmit::Idle;
        };
        p.header(self.config.session, out);
        let (max, hops) = (p.config.max_datagram, p.config.hops);
        let air = |bytes: usize| self.config.airtime.airtime(bytes, hops);
        let mut next = Some(i);
        let (mut bytes_first, mut charged) = (None, Duration::ZERO);
        while let Some(i) = next {
            let t = &mut self.topics[i];
            let ended = t.put_fragment(i as u32, max, out);
            let airtime = air(out.len()).saturating_sub(charged);
            charged += airtime;
            t.counts.air += airtime;
            self.scheduler.charge(t, airtime);
            let Some(ended) = ended else { break };
            self.stats.queued_bytes = self.stats.queued_bytes.saturating_sub(ended);
            // What is less important may lengthen the datagram by no more air than a frame costs empty.
            let first = *bytes_first.get_or_insert(out.len());
            let short = |len: usize| air(len).saturating_sub(air(first)) <= air(0);
            next = self.scheduler.pick_along(&self.topics, |t| {
                let len = out.len().saturating_add(t.rest_with_head());
                t.peer == peer && len <= max && (t.config.priority >= priority || short(len))
            });
        }
        self.sent(now, peer, priority, out.len());
        Transmit::Datagram { peer, priority }
    }

    /// Charges a datagram and counts it.
    fn sent(&mut self, now: Time, peer: PeerId, importance: u8, bytes: usize) {
        let Some(p) = self.peers.get_mut(&peer) else {
            return;
        };
        let airtime = self.config.airtime.airtime(bytes, p.config.hops);
        self.stats.urgent += u64::from(!self.pacer.is_free(now));
        self.pacer.charge(now, importance, p.config.hops, airtime);
        p.session.sent(now);
        p.stats.datagrams_sent += 1;
        p.stats.bytes_sent += bytes as u64;
        p.stats.air += airtime;
        self.stats.datagrams += 1;
        self.stats.bytes += bytes as u64;
        self.stats.air += airtime;
    }
}
