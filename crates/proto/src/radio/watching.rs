//! Topics that are sent only while they have a subscriber at the receiver (decision 352).

use super::Radio;
use crate::body::{Body, Message};
use crate::config::{PeerId, RemoteTopic, TopicId};
use crate::send::{DemandChange, Rhythm};
use stats::{DropReason, Time};

impl<B: Body> Radio<B> {
    /// Whether `peer` sends a topic only while it has a subscriber here, so that [`Radio::state_watched`] has an
    /// effect.
    pub fn asks_watched(&self, peer: PeerId, topic: RemoteTopic) -> bool {
        let peer = self.peers.get(&peer);
        peer.is_some_and(|p| p.receiver.asks_watched(topic.0))
    }

    /// States to `peer` whether its topic has a subscriber here. The statement is repeated until the peer has confirmed
    /// it; an unchanged statement is not sent. Until the first, the peer sends nothing of the topic. No effect without
    /// [`crate::RadioConfig::states_watched`], or if the peer sends the topic in any case.
    pub fn state_watched(&mut self, peer: PeerId, topic: RemoteTopic, watched: bool) {
        if let Some(p) = self.peers.get_mut(&peer).filter(|_| self.config.states_watched) {
            p.receiver.state_watched(topic.0, watched);
        }
    }

    /// Whether a topic of this host is not sent because it has no subscriber at the peer.
    pub fn is_unwatched(&self, topic: TopicId) -> bool {
        let topic = self.topics.get(topic.0 as usize);
        topic.is_some_and(|t| t.demand.rests())
    }

    /// A peer states whether a topic of this host has a subscriber there.
    pub(super) fn watched(&mut self, now: Time, (peer, topic): (PeerId, u32), serial: u32, watched: bool) {
        let Some(t) = self.topics.get_mut(topic as usize).filter(|t| t.peer == peer) else {
            return;
        };
        match t.demand.stated(serial, watched) {
            Some(DemandChange::Begins { new }) => self.offer_latched(now, topic as usize, new),
            Some(DemandChange::Ends) => {
                t.rhythm = Rhythm::default();
                // The receiver keeps the messages of a latched topic for late joiners, so it has to get all of them.
                if !t.config.latched {
                    let bytes = t.clear(DropReason::Unwatched);
                    self.released(bytes);
                }
            }
            None => {}
        }
    }

    /// Counts a message of a topic without a subscriber. A latched topic keeps it for later subscribers.
    pub(super) fn rest(&mut self, topic: TopicId, message: Message<B>) {
        let Some(t) = self.topics.get_mut(topic.0 as usize) else {
            return;
        };
        t.counts.rested += 1;
        let bytes = u64::from(message.body.geometry().total_len());
        let most = self
            .peers
            .get(&t.peer)
            .and_then(|p| Some(p.info.as_ref()?.max_message));
        let fits = bytes <= self.config.max_queued_bytes && most.is_none_or(|m| bytes <= m.into());
        if t.config.latched && !t.withdrawn && fits {
            t.latch.keep(&message, self.arrivals, true, t.config.depth);
            self.arrivals += 1;
        }
    }
}
