//! Offering messages, and queueing them.

use super::Radio;
use super::sending::HEAD;
use crate::body::{Body, Message};
use crate::config::TopicId;
use crate::send::Pending;
use crate::wire::DataHead;
use stats::{DropReason, Drops, Time};

impl<B: Body> Radio<B> {
    /// Offers a message of `topic`. It waits for the radio, as one of the newest `depth` of its topic. While a topic
    /// that is sent only when watched has no subscriber, its messages only count as rested; the newest messages of a
    /// latched topic are kept for later subscribers.
    ///
    /// # Errors
    /// The reason if this very message was dropped at once: no peer, a topic that the peer refused, the rate limit, its
    /// size, or more important messages that fill the radio's limit. It is counted. Older messages that it displaced
    /// appear only in the counters.
    pub fn offer(&mut self, now: Time, topic: TopicId, message: Message<B>) -> Result<(), DropReason> {
        let now = self.tick(now);
        let Some(t) = self.topics.get_mut(topic.0 as usize) else {
            return Err(DropReason::Unannounced);
        };
        let geometry = message.body.geometry();
        let bytes = u64::from(geometry.total_len());
        if t.demand.rests() {
            self.rest(topic, message);
            return Ok(());
        }
        t.counts.offered += 1;
        t.counts.offered_bytes += bytes;
        // A reliable message waits for a lost peer, which may come back with the same session.
        let waits = t.unacked.is_some() && t.announcer.accepted() == Some(true);
        let peer = self.peers.get(&t.peer);
        let max_datagram = peer.map_or(0, |p| p.config.max_datagram);
        let shape = t.cut(&geometry, max_datagram);
        let refused = match peer.filter(|p| p.session.is_up() || waits) {
            None => Some(DropReason::NoPeer),
            Some(_) if t.withdrawn || t.announcer.accepted() == Some(false) => Some(DropReason::Unannounced),
            Some(p) => {
                let head = HEAD + DataHead::room(&geometry);
                let too_large = p.info.as_ref().is_some_and(|i| bytes > i.max_message.into())
                    || bytes > self.config.max_queued_bytes
                    || head >= p.config.max_datagram
                    || shape.is_err();
                if too_large {
                    Some(DropReason::TooLarge)
                } else if !t.passes_rate(now) {
                    Some(DropReason::RateLimit)
                } else {
                    None
                }
            }
        };
        if t.config.latched && matches!(refused, None | Some(DropReason::NoPeer)) {
            t.latch
                .keep(&message, self.arrivals, refused.is_some(), t.config.depth);
        }
        if let Some(reason) = refused {
            self.arrivals += 1;
            t.counts.drops.add(reason, 1);
            return Err(reason);
        }
        let arrival = self.arrivals;
        self.arrivals += 1;
        let hops = self.route_hops(topic, &message);
        let t = &mut self.topics[topic.0 as usize];
        t.rhythm.arrived(now);
        (t.last_bytes, t.last_hops) = (geometry.total_len() as usize, hops);
        if !t.is_backlogged() {
            self.scheduler.wake(t);
        }
        t.waiting.push_back(Pending {
            message,
            geometry,
            arrival,
            offered_at: now,
            hops,
            shape: shape.unwrap_or_default(),
        });
        t.took();
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

    /// Records messages of `topic` that were lost before they could be offered: they count as offered, and as lost for
    /// these reasons.
    pub fn lost_before(&mut self, topic: TopicId, drops: &Drops) {
        if let Some(t) = self.topics.get_mut(topic.0 as usize) {
            t.counts.offered += drops.total();
            t.counts.drops.merge(drops);
        }
    }

    /// Queues the messages of a latched topic for a peer: all if the topic is `new` to it, otherwise those that it
    /// missed.
    pub(super) fn offer_latched(&mut self, now: Time, topic: usize, new: bool) {
        let Some(t) = self.topics.get_mut(topic).filter(|t| t.config.latched) else {
            return;
        };
        if t.withdrawn || t.demand.rests() || t.announcer.accepted() != Some(true) {
            return;
        }
        let rested = !t.is_backlogged();
        let due = t.latch.due(new, t.waiting.iter());
        let max_datagram = self.peers.get(&t.peer).map_or(0, |p| p.config.max_datagram);
        let mut added = 0;
        // Ahead of the messages that arrived since.
        for (message, arrival) in due.into_iter().rev() {
            let geometry = message.body.geometry();
            let bytes = u64::from(geometry.total_len());
            t.counts.offered += 1;
            t.counts.offered_bytes += bytes;
            added += bytes;
            let shape = t.cut(&geometry, max_datagram).unwrap_or_default();
            t.waiting.push_front(Pending {
                shape,
                message,
                geometry,
                arrival,
                offered_at: now,
                hops: 0,
            });
        }
        if rested && t.is_backlogged() {
            self.scheduler.wake(t);
        }
        let freed = t.keep_last();
        self.stats.queued_bytes += added;
        self.released(freed);
        self.drop_overflow();
        self.stats.queued_bytes_max = self.stats.queued_bytes_max.max(self.stats.queued_bytes);
    }

    /// Whether a message is worth preparing: one of `topic` that is offered now would not be dropped at once for lack
    /// of a peer, by the peer's refusal, by decimation or by the rate limit.
    pub fn would_take(&self, now: Time, topic: TopicId) -> bool {
        let now = self.clock.max(now);
        self.topics.get(topic.0 as usize).is_some_and(|t| {
            (self.is_up(t.peer) || t.unacked.is_some())
                && t.announcer.accepted() != Some(false)
                && (!t.demand.rests() || t.config.latched)
                && t.would_pass(now)
        })
    }

    /// Above the total limit the lowest priority is dropped first, and within it the oldest message. Partly sent
    /// messages stay; on a reliable topic this holds only for a long one with others waiting behind it.
    fn drop_overflow(&mut self) {
        while self.stats.queued_bytes > self.config.max_queued_bytes {
            let waiting = self
                .topics
                .iter_mut()
                .filter_map(|t| Some((t.config.priority, t.oldest()?.arrival, t)));
            let Some((_, _, victim)) = waiting.min_by_key(|(p, a, _)| (*p, *a)) else {
                return;
            };
            let bytes = victim.make_way(DropReason::Overflow);
            self.released(bytes);
        }
    }
}
