//! From this host's bus to the radio: messages wait as blocks, and fragments are copied from them.

use crate::config::TopicConfig;
use crate::daemon::LinkError;
use bus::{Bus, Message, Subscriber, SubscriberOptions, TopicType, WaitSet};
use proto::{Body, Geometry, PeerId, Radio, TopicId};
use stats::Time;
use std::sync::Arc;

/// So deep a topic may become while it runs, whatever its depth at first.
const SPARE_DEPTH: u32 = 64;
/// Most blocks that a subscriber holds.
const MAX_HELD: u32 = 4096;

/// A bus message on its way to the radio; several peers share it.
#[derive(Clone)]
pub(crate) struct Outgoing(Arc<(Message, Geometry)>);

impl Outgoing {
    fn new(message: Message) -> Result<Self, proto::GeometryError> {
        let parts: Vec<u32> = (0..message.part_count())
            .map(|i| length(message.part_len(i)))
            .collect();
        let geometry = Geometry::new(length(message.control().len()), &parts)?;
        Ok(Outgoing(Arc::new((message, geometry))))
    }
}

impl Body for Outgoing {
    fn geometry(&self) -> Geometry {
        self.0.1
    }

    fn copy_at(&self, offset: u32, to: &mut [u8]) {
        let (message, geometry) = &*self.0;
        let mut rest = to;
        for (part, at, len) in geometry.pieces(offset, length(rest.len())) {
            let (piece, tail) = rest.split_at_mut(len as usize);
            match part {
                0 => piece.copy_from_slice(&message.control()[at as usize..][..len as usize]),
                n => {
                    message.part(n - 1).copy_to(at as usize, piece);
                }
            }
            rest = tail;
        }
    }
}

fn length(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// One topic that this host sends.
pub(crate) struct OutTopic {
    subscriber: Subscriber,
    topics: Vec<TopicId>,
    max_depth: u32,
}

impl OutTopic {
    /// Subscribes on the bus and announces to every peer, each with its settings and the name that the topic has
    /// towards it.
    pub(crate) fn open(
        (bus, wait_set): (&Bus, &WaitSet),
        kind: TopicType,
        radio: &mut Radio<Outgoing>,
        peers: &[(PeerId, &TopicConfig)],
        now: Time,
    ) -> Result<Self, LinkError> {
        let mut topics = Vec::with_capacity(peers.len());
        for (peer, config) in peers {
            let announced = proto::TopicConfig {
                type_hash: kind.type_hash,
                definition: kind.definition.to_string(),
                ..config.announced(kind.type_name.clone())
            };
            topics.push(radio.add_topic(now, *peer, announced)?);
        }
        // The radio may keep `depth` waiting messages and one partly sent for each peer, and as many latched.
        let kept = 1 + u32::from(peers.iter().any(|(_, c)| c.latched));
        let depths = peers.iter().map(|(_, c)| u32::from(c.depth()) * kept);
        let deepest = depths.max().unwrap_or(1);
        let many = peers.len().max(1) as u32;
        let held = ((deepest.max(SPARE_DEPTH) + 2) * many + 2).min(MAX_HELD);
        let options = SubscriberOptions::default()
            .with_depth(deepest.max(16))
            .with_max_held(held)
            .with_wait_set(wait_set);
        Ok(OutTopic {
            subscriber: bus.subscriber(kind, options)?,
            topics,
            max_depth: ((held.saturating_sub(2) / many).saturating_sub(2) / kept).max(1),
        })
    }

    /// Tells the peers that nothing more comes.
    pub(crate) fn close(self, now: Time, radio: &mut Radio<Outgoing>) -> Result<(), LinkError> {
        for topic in self.topics {
            radio.withdraw_topic(now, topic)?;
        }
        Ok(())
    }

    /// Hands everything queued on the bus to the radio; true if more is queued than may be held now.
    pub(crate) fn drain(&self, now: Time, radio: &mut Radio<Outgoing>, own: impl Fn(u64) -> bool) -> bool {
        loop {
            match self.subscriber.take() {
                Ok(Some(message)) if own(message.publisher()) => {}
                Ok(Some(message)) => {
                    let (stamp, origin) = (message.stamp(), message.origin());
                    let body = match Outgoing::new(message) {
                        Ok(body) => body,
                        Err(error) => {
                            tracing::warn!(topic = self.subscriber.topic().topic, %error, "not sent");
                            continue;
                        }
                    };
                    for topic in &self.topics {
                        // What the radio refuses it counts.
                        let _ = radio.offer(
                            now,
                            *topic,
                            proto::Message {
                                body: body.clone(),
                                stamp,
                                origin,
                            },
                        );
                    }
                }
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }

    /// The depth up to which memory is reserved.
    pub(crate) fn max_depth(&self) -> u32 {
        self.max_depth
    }

    /// The bus's side of it.
    pub(crate) fn subscriber(&self) -> &Subscriber {
        &self.subscriber
    }
}
