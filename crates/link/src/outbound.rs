//! From this host's bus to the radio: messages wait as blocks, and fragments are copied from them.

use crate::compress::{PackStats, Packer, Packing};
use crate::config::{TopicConfig, When};
use crate::error::LinkError;
use crate::inbound::Inbound;
use crate::names;
use crate::outgoing::Outgoing;
use crate::tf::{TfFilter, TfStats};
use bus::{Bus, CreateError, Message, Subscriber, SubscriberOptions, TopicType, WaitSet};
use proto::{FlowKey, PeerId, Radio, TopicError, TopicId};
use stats::{DropReason, Drops, Seldom, Time};
use std::collections::BTreeMap;
use std::time::Duration;

/// The depth to which a topic can grow while it runs, whatever its initial depth.
const SPARE_DEPTH: u32 = 64;
/// Most blocks that a subscriber holds.
const MAX_HELD: u32 = 4096;
/// Time between attempts to send a topic that failed.
pub(crate) const TRY_AGAIN: Duration = Duration::from_secs(1);

/// A topic that this host sends.
pub(crate) struct OutboundTopic {
    kind: TopicType,
    options: SubscriberOptions,
    /// `None` while the topic has no subscriber at its receivers.
    subscriber: Option<Subscriber>,
    /// Whether this host unsubscribes from the bus while the topic has no subscriber at its receivers.
    may_rest: bool,
    topics: Vec<TopicId>,
    max_depth: u32,
    packing: Option<Packing>,
    tf: Option<TfFilter>,
    /// Used if relays may carry it.
    flows: Vec<FlowKey>,
    /// Why not all of its peers get it, if so.
    refused: Option<TopicError>,
    /// Why the bus refused this host's new subscription, and when to try again.
    unreadable: Option<(CreateError, Time)>,
    /// Bus messages that could not be read, and losses of earlier subscriptions.
    unread: Drops,
    /// Of the losses before the radio, those that the radio counts already.
    counted: Drops,
    log_limit: Seldom,
}

impl OutboundTopic {
    /// Subscribes on the bus and announces the topic to every peer, with the peer's settings, the topic's
    /// name towards it, and the reliability that all publishers offer.
    pub(crate) fn open(
        (bus, wait_set): (&Bus, &WaitSet),
        (kind, offers_reliable): (TopicType, Option<bool>),
        (radio, inbound): (&mut Radio<Outgoing>, &mut Inbound),
        peers: &[(PeerId, &TopicConfig)],
        (rate, now): (u64, Time),
    ) -> Result<Self, LinkError> {
        // The entries of the peers differ only in the topic's name.
        let first = peers.first().map(|(_, c)| *c);
        let tf = first.and_then(|c| c.tf.as_ref());
        let tf = match tf.map(|t| TfFilter::new(t, &kind)).transpose() {
            Ok(tf) => tf,
            // Unfiltered, more would cross than the operator permitted.
            Err(error) => return Err(LinkError::Filter(error.to_string())),
        };
        // The newest message of static transforms contains all of them, so late joiners get it, too.
        let is_static = tf.as_ref().is_some_and(TfFilter::is_static);
        let announced = |config: &TopicConfig| proto::TopicConfig {
            latched: config.is_latched() || is_static,
            type_hash: kind.type_hash,
            flavour: names::announced(kind.flavour),
            offers_reliable,
            definition: kind.definition.to_string(),
            ..config.announced(kind.type_name.clone())
        };
        // For each peer the radio may keep `depth` waiting messages, one partly sent, and as many latched.
        let kept = 1 + u32::from(is_static || peers.iter().any(|(_, c)| c.is_latched()));
        let depths = peers.iter().map(|(_, c)| u32::from(c.depth()) * kept);
        let deepest = depths.max().unwrap_or(1);
        let many = peers.len().max(1) as u32;
        let held = ((deepest.max(SPARE_DEPTH) + 2) * many + 2).min(MAX_HELD);
        let options = SubscriberOptions::default()
            .with_depth(deepest.max(16))
            .with_max_held(held)
            .with_wait_set(wait_set);
        // Subscribe before the announcement, so that there is nothing to undo if the bus refuses.
        let subscriber = bus.subscriber(kind.clone(), options.clone())?;
        let (mut topics, mut flows, mut refused) = (Vec::new(), Vec::new(), None);
        if inbound.flows.routes {
            let mut by_name: BTreeMap<&str, (&TopicConfig, Vec<PeerId>)> = BTreeMap::new();
            for (peer, config) in peers {
                let (_, to) = by_name.entry(&config.name).or_insert((config, Vec::new()));
                to.push(*peer);
            }
            for (config, to) in by_name.into_values() {
                match inbound.flows.open_flow(now, radio, announced(config), &to) {
                    Ok(flow) => flows.push(flow),
                    Err(error) => refused = Some(error),
                }
            }
        } else {
            for (peer, config) in peers {
                match radio.add_topic(now, *peer, announced(config)) {
                    Ok(topic) => topics.push(topic),
                    Err(error) => refused = Some(error),
                }
            }
        }
        if let Some(error) = refused.take_if(|_| topics.is_empty() && flows.is_empty()) {
            return Err(error.into());
        }
        // The newest messages of a latched topic are kept for peers that subscribe later.
        let is_watched = |c: &&TopicConfig| c.when == When::Watched;
        let may_rest = kept == 1 && first.as_ref().is_some_and(is_watched);
        Ok(OutboundTopic {
            subscriber: Some(subscriber),
            refused,
            unreadable: None,
            may_rest,
            kind,
            options,
            topics,
            packing: first.and_then(|c| Packing::new(c.compress, rate, c.priority, u32::from(c.depth()))),
            tf,
            max_depth: ((held.saturating_sub(2) / many).saturating_sub(2) / kept).max(1),
            flows,
            unread: Drops::default(),
            counted: Drops::default(),
            log_limit: Seldom::every(clock::Quiet::INTERVAL),
        })
    }

    /// Withdraws the topic at the peers.
    pub(crate) fn close(
        self,
        now: Time,
        radio: &mut Radio<Outgoing>,
        inbound: &mut Inbound,
    ) -> Result<(), LinkError> {
        for flow in &self.flows {
            inbound.flows.close_flow(now, radio, flow)?;
        }
        for topic in self.topics {
            radio.withdraw_topic(now, topic)?;
        }
        Ok(())
    }

    /// Unsubscribes from the bus while no peer has a subscriber to the topic, so that publishers here see that nobody
    /// subscribes. Subscribes again when a peer gets a subscriber.
    pub(crate) fn follow_watchers(&mut self, now: Time, bus: &Bus, radio: &Radio<Outgoing>) {
        if !self.may_rest || self.topics.is_empty() {
            return;
        }
        let rests = self.topics.iter().all(|t| radio.is_unwatched(*t));
        let may_try = self.unreadable.as_ref().is_none_or(|(_, t)| *t <= now);
        if !rests && self.subscriber.is_none() && may_try {
            match bus.subscriber(self.kind.clone(), self.options.clone()) {
                Ok(subscriber) => (self.subscriber, self.unreadable) = (Some(subscriber), None),
                Err(error) => {
                    if self.unreadable.is_none() {
                        tracing::error!(topic = self.kind.topic, %error, "not sent, trying again each second");
                    }
                    self.unreadable = Some((error, now + TRY_AGAIN));
                }
            }
        } else if let Some(s) = self.subscriber.take_if(|_| rests) {
            self.unread.merge(&s.stats().drops);
        }
    }

    /// Why the topic does not reach all of its peers at present, if this host is to blame.
    pub(crate) fn why_unsent(&self) -> Option<String> {
        let unreadable = self.unreadable.as_ref().map(|(error, _)| error.to_string());
        unreadable.or_else(|| self.refused.as_ref().map(TopicError::to_string))
    }

    /// The identity of its subscriber on the bus.
    pub(crate) fn subscriber_id(&self) -> Option<u64> {
        self.subscriber.as_ref().map(Subscriber::id)
    }

    /// Passes all messages queued on the bus to the radio. Returns true if more are queued than may be held
    /// at present.
    pub(crate) fn drain(
        &mut self,
        now: Time,
        radio: &mut Radio<Outgoing>,
        packer: Option<&Packer>,
        inbound: &mut Inbound,
    ) -> bool {
        loop {
            let Some(subscriber) = &self.subscriber else {
                return false;
            };
            match subscriber.take() {
                Ok(Some(message)) if inbound.owns(message.publisher()) => {}
                Ok(Some(message)) => {
                    let Some(message) = self.prepared(now, message) else {
                        continue;
                    };
                    // A message that no peer takes is only counted, not packed.
                    let taken =
                        !self.flows.is_empty() || self.topics.iter().any(|t| radio.would_take(now, *t));
                    let message = match (&mut self.packing, packer) {
                        (Some(packing), Some(packer)) if taken => packing.take(packer, message),
                        _ => Some(message),
                    };
                    if let Some(message) = message {
                        self.offer(now, radio, inbound, message);
                    }
                }
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }

    /// The part of a bus message to send.
    fn prepared(&mut self, now: Time, message: Message) -> Option<proto::Message<Outgoing>> {
        let (stamp, origin) = (message.stamp(), message.origin());
        let body = match &mut self.tf {
            None => Outgoing::new(message),
            Some(tf) => {
                let parts: Vec<Vec<u8>> = (0..message.part_count())
                    .map(|i| {
                        let mut part = vec![0; message.part_len(i)];
                        message.part(i).copy_to(0, &mut part);
                        part
                    })
                    .collect();
                let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
                let left = tf.apply(now, message.control(), &parts)?;
                Outgoing::made(&left.control, &left.parts)
            }
        };
        match body {
            Ok(body) => Some(proto::Message {
                body,
                stamp,
                origin,
                route: None,
                expires: None,
            }),
            Err(error) => {
                self.unread.add(DropReason::TooLarge, 1);
                if let Some(more) = self.log_limit.lets(now) {
                    let topic = &self.kind.topic;
                    tracing::warn!(topic, %error, more, "cannot send a message");
                }
                None
            }
        }
    }

    /// Passes a message to the radio, for every peer.
    pub(crate) fn offer(
        &self,
        now: Time,
        radio: &mut Radio<Outgoing>,
        inbound: &mut Inbound,
        message: proto::Message<Outgoing>,
    ) {
        for flow in &self.flows {
            // The radio counts failures.
            let _ = inbound.flows.offer(now, radio, (flow, u64::MAX), message.clone());
        }
        for topic in &self.topics {
            // The radio counts the messages that it refuses.
            let _ = radio.offer(now, *topic, message.clone());
        }
    }

    /// Returns whether the packer's messages with this key belong to this topic.
    pub(crate) fn is_packed_as(&self, key: u64) -> bool {
        self.packing.as_ref().is_some_and(|p| p.key() == key)
    }

    /// Counts of packing.
    pub(crate) fn pack_stats(&self) -> Option<PackStats> {
        self.packing.as_ref().map(Packing::stats)
    }

    /// Counts of the filter for transforms.
    pub(crate) fn tf_stats(&self) -> Option<TfStats> {
        self.tf.as_ref().map(|t| t.stats().clone())
    }

    /// The depth for which memory is reserved.
    pub(crate) fn max_depth(&self) -> u32 {
        self.max_depth
    }

    /// Losses before the radio since the last call: by the bus, or replaced by a newer message while waiting
    /// for the packer.
    pub(crate) fn newly_lost(&mut self) -> Drops {
        let mut drops = (self.subscriber.as_ref()).map_or_else(Drops::default, |s| s.stats().drops);
        let replaced = self.packing.as_ref().map_or(0, |p| p.stats().replaced);
        drops.add(DropReason::Replaced, replaced);
        drops.merge(&self.unread);
        let new = drops.minus(&self.counted);
        self.counted = drops;
        new
    }
}
