//! Recorded topics: their subscribers, and the channel of each message.

use super::queue::{Item, Queue};
use crate::failure::Failure;
use bus::{Offer, SubscriberOptions, TopicInfo, WaitSet};
use recording::Channel;
use recording::write::MAX_MESSAGE;
use ropewalk::{Message, Node, Subscriber};
use schema::{Flavour, Schema};
use stats::{DropReason, Drops, Time};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Queue depth towards the recorder, per publisher. Rings take memory, so with many topics they are shorter.
const DEPTH: u32 = 4096;
const MANY_TOPICS: usize = 128;
const DEPTH_OF_MANY: u32 = 1024;
/// Messages, and bytes, taken from a topic before the others have their turn and signals and the end are checked.
const TURN: usize = 256;
const TURN_BYTES: usize = 16 << 20;
/// Most channels of one topic; messages of further publishers are written to the first channel.
const MAX_CHANNELS: usize = 256;
/// Most publishers whose channels are remembered; those of others are looked up again.
const MAX_REMEMBERED: usize = 4096;

/// All recorded topics.
#[derive(Debug, Default)]
pub(super) struct Topics {
    all: Vec<Topic>,
    /// Topics, by name, hash and ROS, that cannot be recorded, and why.
    pub(super) left_out: BTreeMap<(String, [u8; 16], bus::Ros), String>,
    channels: usize,
    /// Whether everything is recorded in the form of ROS 2.
    ros2: bool,
    /// Topics, by name, hash and ROS, whose messages the subscriber of the same topic of the other ROS also takes.
    covered: BTreeSet<(String, [u8; 16], bus::Ros)>,
}

#[derive(Debug)]
struct Topic {
    subscriber: Subscriber,
    sum: [u8; 16],
    ros: bus::Ros,
    ros2: bool,
    /// Fields common to its channels.
    channel: Channel,
    channels: Vec<Known>,
    by_publisher: HashMap<u64, usize>,
    taken: u64,
    lost: Drops,
    /// Why the topic is no longer recorded.
    broken: Option<String>,
}

/// A channel of a topic, and its publisher.
#[derive(Debug)]
struct Known {
    offer: Offer,
    /// The publisher, if it keeps messages and does not state its node. A player publishes each channel separately, so
    /// that each keeps its own messages.
    publisher: Option<u64>,
    number: usize,
}

impl Topics {
    /// Without topics; `ros2` records in CDR, with types of ROS 2.
    pub(super) fn new(ros2: bool) -> Self {
        Topics {
            ros2,
            ..Topics::default()
        }
    }

    /// Subscribes to new topics.
    pub(super) fn look(
        &mut self,
        node: &Node,
        wait_set: &WaitSet,
        found: Vec<TopicInfo>,
        wanted: impl Fn(&str) -> bool,
    ) {
        for info in found {
            let name = &info.topic.topic;
            let ros = info.topic.flavour.ros;
            let known =
                |t: &Topic| t.subscriber.topic() == name && t.sum == info.topic.type_hash && t.ros == ros;
            if info.publishers.is_empty() || !wanted(name) || self.all.iter().any(known) {
                continue;
            }
            let key = (name.clone(), info.topic.type_hash, ros);
            if self.covered.contains(&key) {
                continue;
            }
            match self.subscribe(node, wait_set, &info) {
                Ok(topic) => {
                    self.left_out.remove(&key);
                    match topic {
                        Some(topic) => self.all.push(topic),
                        None => drop(self.covered.insert(key)),
                    }
                }
                Err(why) => {
                    if self.left_out.insert(key, why.clone()).is_none() {
                        crate::screen::tell!("{name}: left out: {why}");
                    }
                }
            }
        }
    }

    /// The topic; `None` if its messages are taken already.
    fn subscribe(&self, node: &Node, wait_set: &WaitSet, info: &TopicInfo) -> Result<Option<Topic>, String> {
        let mut schema = node.schema_of(info).map_err(|e| e.to_string())?;
        if self.ros2 {
            schema = schema.in_flavour(Flavour::Ros2).map_err(|e| e.to_string())?;
            let takes = |t: &Topic| {
                t.subscriber.topic() == info.topic.topic
                    && t.subscriber.schema().name() == schema.name()
                    && t.subscriber.schema().common_sum() == schema.common_sum()
            };
            if self.all.iter().any(takes) {
                return Ok(None);
            }
        }
        let depth = if self.all.len() < MANY_TOPICS {
            DEPTH
        } else {
            DEPTH_OF_MANY
        };
        let queue = SubscriberOptions::default()
            .with_depth(depth)
            .with_wait_set(wait_set)
            // Messages are recorded as published, unless all are to be of ROS 2.
            .with_conversion(self.ros2);
        let subscriber = node.dynamic_subscriber_with(&info.topic.topic, &schema, queue);
        Ok(Some(Topic {
            subscriber: subscriber.map_err(|e| e.to_string())?,
            sum: info.topic.type_hash,
            ros: info.topic.flavour.ros,
            ros2: schema.flavour() == Flavour::Ros2,
            channel: channel(&info.topic.topic, &schema),
            channels: Vec::new(),
            by_publisher: HashMap::new(),
            taken: 0,
            lost: Drops::default(),
            broken: None,
        }))
    }

    /// Gives every topic its turn; returns whether there is more. With `until`, messages queued after it stay.
    pub(super) fn take(&mut self, queue: &Queue, until: Option<Time>) -> bool {
        let mut more = false;
        for topic in &mut self.all {
            if topic.broken.is_none() {
                more |= topic.turn(queue, until, &mut self.channels);
            }
        }
        more
    }

    /// Number of topics; several types of one name count as one.
    pub(super) fn count(&self) -> usize {
        let names = self.all.iter().map(|t| t.subscriber.topic());
        names.collect::<BTreeSet<_>>().len()
    }

    /// Messages handed to the queue.
    pub(super) fn taken(&self) -> u64 {
        self.all.iter().map(|t| t.taken).sum()
    }

    /// Messages lost before the queue, or unfit to be written.
    pub(super) fn lost(&self) -> Drops {
        let mut all = Drops::default();
        for topic in &self.all {
            all.merge(&topic.subscriber.stats().drops);
            all.merge(&topic.lost);
        }
        all
    }

    /// Topics that are not recorded, or not until the end.
    pub(super) fn failures(&self) -> BTreeMap<&str, &str> {
        let broken = self
            .all
            .iter()
            .filter_map(|t| Some((t.subscriber.topic(), t.broken.as_deref()?)));
        let left_out = self
            .left_out
            .iter()
            .map(|((name, ..), why)| (name.as_str(), why.as_str()));
        broken.chain(left_out).collect()
    }
}

impl Topic {
    /// Takes some messages; returns whether there are more.
    fn turn(&mut self, queue: &Queue, until: Option<Time>, channels: &mut usize) -> bool {
        let mut bytes = 0;
        for _ in 0..TURN {
            let message = match self.subscriber.take() {
                Ok(Some(message)) => message,
                Ok(None) => return false,
                Err(error) => {
                    crate::screen::tell!("{}: recording stopped: {error}", self.subscriber.topic());
                    self.broken = Some(error.to_string());
                    return false;
                }
            };
            if until.is_some_and(|until| message.bus().queued_at() > until) {
                return false;
            }
            match self.store(queue, &message, channels) {
                Ok(len) => bytes += len,
                Err(reason) => self.lost.add(reason, 1),
            }
            if bytes >= TURN_BYTES {
                break;
            }
        }
        true
    }

    /// Queues a message for the file; returns its length, or why it is lost.
    fn store(&mut self, queue: &Queue, message: &Message, channels: &mut usize) -> Result<usize, DropReason> {
        // Estimate before copying: about its final length.
        let len = message.control().len()
            + (0..message.part_count())
                .map(|i| message.bus().part_len(i))
                .sum::<usize>();
        if len as u64 > MAX_MESSAGE {
            self.tell_first(
                DropReason::TooLarge,
                format_args!("{len} bytes, but a recording takes at most {MAX_MESSAGE}"),
            );
            return Err(DropReason::TooLarge);
        }
        if !queue.has_room(len) {
            let why = "the disk is too slow; `ropewalk record --buffer` holds more messages in memory";
            self.tell_first(DropReason::Unwritten, format_args!("{why}"));
            return Err(DropReason::Unwritten);
        }
        let data = if self.ros2 { message.cdr() } else { message.ros1() };
        let data = data.map_err(|error| {
            self.tell_first(DropReason::Malformed, format_args!("{error}"));
            DropReason::Malformed
        })?;
        let channel = self.channel_of(queue, message, channels);
        let len = data.len();
        queue.push(Item::Message {
            channel,
            log_time: clock::realtime(),
            publish_time: message.stamp(),
            data,
        });
        self.taken += 1;
        Ok(len)
    }

    /// Prints the first loss of a kind; all losses are counted.
    fn tell_first(&self, reason: DropReason, why: std::fmt::Arguments<'_>) {
        if self.lost.count(reason) == 0 {
            crate::screen::tell!("{}: left out a message: {why}", self.subscriber.topic());
        }
    }

    /// Number of the channel of a message's publisher; a new channel is queued before the message.
    fn channel_of(&mut self, queue: &Queue, message: &Message, channels: &mut usize) -> usize {
        let id = message.bus().publisher();
        if let Some(number) = self.by_publisher.get(&id) {
            return *number;
        }
        let offer = message.bus().offer();
        let publisher = (offer.history > 0 && offer.node.is_empty()).then_some(id);
        let known = |k: &&Known| k.publisher == publisher && k.offer == *offer;
        let number = match (self.channels.iter().find(known), self.channels.first()) {
            (Some(known), _) => known.number,
            (None, Some(first)) if self.channels.len() >= MAX_CHANNELS => first.number,
            (None, first) => {
                let number = *channels;
                *channels += 1;
                let mut channel = self.channel.clone();
                crate::offers::into_channel(offer, self.ros2, &mut channel);
                let instead = first.map(|k| k.number);
                queue.push(Item::Channel { channel, instead });
                self.channels.push(Known {
                    offer: offer.clone(),
                    publisher,
                    number,
                });
                number
            }
        };
        if self.by_publisher.len() >= MAX_REMEMBERED {
            self.by_publisher.clear();
        }
        self.by_publisher.insert(id, number);
        number
    }
}

fn channel(topic: &str, schema: &Schema) -> Channel {
    let mut channel = Channel::ros1(topic, schema.name(), &schema.md5_hex(), &schema.definition());
    if schema.flavour() == Flavour::Ros2 {
        channel.type_name = schema.ros2_name();
        channel.encoding = recording::Encoding::Cdr;
        channel.definition_encoding = "ros2msg".into();
        channel.md5 = None;
        channel.type_hash = Some(schema.rihs01());
    }
    channel
}

/// An error if the recording is incomplete.
pub(super) fn verdict(lost: &Drops, failures: &BTreeMap<&str, &str>) -> Result<(), Failure> {
    if lost.total() > 0 {
        return Err(Failure::lost(format_args!(
            "the recording lacks messages: {lost}"
        )));
    }
    if !failures.is_empty() {
        let names: Vec<_> = failures.keys().copied().collect();
        return Err(Failure::lost(format_args!(
            "the recording lacks topics: {}",
            names.join(", ")
        )));
    }
    Ok(())
}
