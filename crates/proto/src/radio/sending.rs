//! Messages are offered and leave in pieces.

use super::{Radio, Transmit};
use crate::body::{Body, Message};
use crate::config::{MAX_PRIORITY, Order, PeerId, TopicId};
use crate::peer::put;
use crate::send::{CONTROL, Pending, Sending, Work};
use crate::wire::{AnnouncePiece, DataHead, Frame};
use stats::{DropReason, Time};

/// Most that the head of a datagram and of a piece of an announcement take together.
pub(super) const ANNOUNCE_HEAD: usize = 64;
/// Most that the heads of a datagram and of a fragment take, without the lengths of the parts.
const DATA_HEAD: usize = 64;

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
                let head = DATA_HEAD + 8 * geometry.part_lens().len();
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
                    return Transmit::Wait(self.pacer.next());
                }
                match work {
                    Work::Announce => self.send_announcement(now, i, datagram),
                    Work::Data => self.send_fragment(now, i, datagram),
                }
            }
            None if control.is_some() => Transmit::Wait(self.pacer.next()),
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

    fn send_fragment(&mut self, now: Time, i: usize, out: &mut Vec<u8>) -> Transmit {
        let t = &mut self.topics[i];
        let (peer, priority) = (t.peer, t.config.priority);
        let Some(p) = self.peers.get_mut(&peer) else {
            return Transmit::Idle;
        };
        if t.sending.is_none()
            && let Some(pending) = t.waiting.pop_front()
        {
            t.sending = Some(Sending {
                pending,
                seq: t.next_seq,
                at: 0,
            });
            t.next_seq += 1;
        }
        let Some(s) = &mut t.sending else {
            return Transmit::Idle;
        };
        p.header(self.config.session, out);
        let (message, geometry) = (&s.pending.message, s.pending.geometry);
        DataHead {
            topic: i as u32,
            seq: s.seq,
            stamp: message.stamp,
            origin: message.origin,
            offset: s.at,
            geometry,
        }
        .encode(out);
        // Fragments go by byte offset, so a prediction of the next urgent message may cut this one short.
        let room = p.config.max_datagram.saturating_sub(out.len());
        let left = geometry.total_len() - s.at;
        let n = left.min(u32::try_from(room).unwrap_or(u32::MAX));
        let start = out.len();
        out.resize(start + n as usize, 0);
        message.body.copy_at(s.at, &mut out[start..]);
        s.at += n;
        t.counts.fragments += 1;
        if n == left {
            t.counts.sent += 1;
            t.counts.sent_bytes += u64::from(geometry.total_len());
            t.sending = None;
            self.released(geometry.total_len().into());
        }
        let airtime = self.sent(now, peer, priority, out.len());
        let t = &mut self.topics[i];
        t.counts.air += airtime;
        self.scheduler.charge(t, airtime);
        Transmit::Datagram { peer, priority }
    }

    /// Charges a datagram and counts it.
    fn sent(&mut self, now: Time, peer: PeerId, importance: u8, bytes: usize) -> core::time::Duration {
        let Some(p) = self.peers.get_mut(&peer) else {
            return core::time::Duration::ZERO;
        };
        let airtime = self.config.airtime.airtime(bytes, p.config.hops);
        self.stats.urgent += u64::from(!self.pacer.is_free(now));
        self.pacer.charge(now, importance, airtime);
        p.session.sent(now);
        p.stats.datagrams_sent += 1;
        p.stats.bytes_sent += bytes as u64;
        p.stats.air += airtime;
        self.stats.datagrams += 1;
        self.stats.bytes += bytes as u64;
        self.stats.air += airtime;
        airtime
    }
}
