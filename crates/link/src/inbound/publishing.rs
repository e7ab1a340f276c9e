//! Publishers of peers' topics on this host's bus.

use super::{Content, Inbound, Route};
use crate::compress::Unpacker;
use crate::names;
use bus::{Publisher, PublisherOptions, Stamp, TopicType};
use proto::{Account, PeerId, RemoteTopic};
use stats::DropReason;
use std::sync::Arc;

impl Inbound {
    /// Counts the messages that were unpacked and published since the last call.
    pub(super) fn count_unpacked(&mut self) {
        for a in self.unpacker.iter().flat_map(Unpacker::arrivals) {
            let is_live = self.publishers.values().any(|p| p.id() == a.publisher);
            if let Some(stamp) = a.stamp.filter(|_| is_live) {
                let spans = self.spans.entry(a.publisher).or_default();
                spans.received(stamp, a.at, a.bytes);
            }
        }
    }

    /// Removes the state of a publisher that has ended.
    pub(super) fn forget(&mut self, peer: PeerId, publisher: &Publisher) {
        let id = publisher.id();
        self.ids.remove(id);
        self.spans.remove(&id);
        self.memory.close(peer, id);
        self.pace.forget(id);
        if let Some(unpacker) = &self.unpacker {
            unpacker.forget(id);
        }
    }

    /// Messages that subscribers lost since the last call, by topic, for delivered topics.
    pub(crate) fn not_taken(&mut self) -> Vec<(PeerId, RemoteTopic, u64)> {
        let memory = &mut self.memory;
        let lost = self.routes.iter().map(|((peer, topic), route)| {
            let lost = memory.newly_lost(route.owner, route.publisher.id());
            (*peer, *topic, lost)
        });
        lost.filter(|(.., lost)| *lost > 0).collect()
    }

    /// Reports on this bus how many messages of a topic were lost on the way since the last report. `account`
    /// is the sender's report.
    pub(crate) fn report_lost(&mut self, from: (PeerId, RemoteTopic), account: &Account) {
        let Some(route) = self.routes.get_mut(&from) else {
            return;
        };
        // Reasons that are not losses here: intended drops, duplicates, and messages that did arrive.
        let others = [
            DropReason::RateLimit,
            DropReason::Duplicate,
            DropReason::NotTaken,
            DropReason::OtherWay,
            DropReason::Unannounced,
            DropReason::Unwatched,
        ];
        let others: u64 = others.iter().map(|r| account.dropped.count(*r)).sum();
        let lost = account.dropped.total().saturating_sub(others);
        // Losses before the topic was announced here do not count.
        let before = *route.lost.get_or_insert(lost);
        route.lost = Some(before.max(lost));
        if lost > before {
            route.publisher.skip(lost - before);
        }
    }

    /// Publishes a message here. Returns false if it waits for the unpacker instead.
    pub(super) fn publish(
        &mut self,
        route: &Route,
        content: Content,
        stamp: Stamp,
    ) -> Result<bool, DropReason> {
        let publisher = &route.publisher;
        self.memory
            .published(route.owner, publisher.id(), clock::monotonic());
        let loan = match (content, &self.unpacker) {
            (Content::Envelope(bytes), Some(unpacker)) => {
                let limits = (route.owner, route.max_message);
                let wanted = unpacker.packed(publisher, limits, bytes, stamp)?;
                self.memory.limit(route.owner, publisher, wanted);
                return Ok(false);
            }
            (Content::Envelope(_), None) => return Err(DropReason::TooLarge),
            (Content::Apart(_) | Content::ServiceMessage(_), _) => return Err(DropReason::ReceiverMemory),
            // After its predecessors, if any are being unpacked.
            (Content::Loan(loan), Some(unpacker)) => {
                match unpacker.in_turn(publisher, route.owner, loan, stamp)? {
                    Some(loan) => loan,
                    None => return Ok(false),
                }
            }
            (Content::Loan(loan), None) => loan,
        };
        // Of messages that arrive together, the first wakes a sleeping subscriber, and so does the last.
        let published = match self.heard.iter_mut().find(|(p, _)| Arc::ptr_eq(p, publisher)) {
            Some((_, owed)) => {
                *owed = true;
                publisher.publish_quietly(loan, stamp)
            }
            None => {
                self.heard.push((publisher.clone(), false));
                publisher.publish(loan, stamp)
            }
        };
        published.map(|_| true).map_err(|_| DropReason::ReceiverMemory)
    }

    /// All messages that arrived together are published: wakes sleeping subscribers for the rest.
    pub(crate) fn ring(&mut self) {
        for (publisher, owed) in self.heard.drain(..) {
            if owed {
                publisher.ring();
            }
        }
    }

    /// The longest accepted message of a topic.
    pub(super) fn max_message(&self, topic: &str) -> u32 {
        let of_it = self.max_message.iter().filter(|(n, _)| names::covers(n, topic));
        let closest = of_it.max_by_key(|(n, _)| (!bridge::is_pattern(n), n.len()));
        closest.map_or(u32::MAX, |(_, most)| *most)
    }

    pub(super) fn publisher(
        &mut self,
        key: (PeerId, String),
        topic: TopicType,
        options: PublisherOptions,
    ) -> Result<Arc<Publisher>, bus::CreateError> {
        self.stale.remove(&key);
        if let Some(p) = self.publishers.get(&key).filter(|p| *p.topic() == topic) {
            return Ok(p.clone());
        }
        // Limits the topics of a peer that restarts repeatedly, with other topics each time, to the number
        // for any peer.
        while self.memory.topics(key.0) >= proto::MAX_TOPICS
            && let Some((old, _)) = self.stale.iter().find(|((p, _), _)| *p == key.0)
        {
            let old = old.clone();
            self.end(&old);
        }
        let made = Arc::new(self.bus.publisher(topic, options)?);
        self.ids.insert(made.id());
        self.memory.open(key.0, made.clone());
        let peer = key.0;
        if let Some(old) = self.publishers.insert(key, made.clone()) {
            self.forget(peer, &old);
        }
        Ok(made)
    }
}
