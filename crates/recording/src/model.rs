//! The contents of every recording, independent of the file format: channels and messages.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use stats::Time;

use crate::qos::{MAX_KEPT, Qos};

/// The channel of a message: its position in [`Recording::channels`](crate::Recording::channels), not its number in the
/// file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub u32);

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How the bytes of a channel's messages are laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// ROS 1 serialization: packed, little-endian.
    Ros1,
    /// ROS 2's CDR, with its four-byte encapsulation header.
    Cdr,
    /// Anything else, by the name the file gives it.
    Other(String),
}

impl Encoding {
    /// From MCAP's `message_encoding` name.
    pub fn from_name(name: &str) -> Self {
        match name {
            "ros1" => Encoding::Ros1,
            "cdr" => Encoding::Cdr,
            other => Encoding::Other(other.to_owned()),
        }
    }

    /// MCAP's `message_encoding` name.
    pub fn name(&self) -> &str {
        match self {
            Encoding::Ros1 => "ros1",
            Encoding::Cdr => "cdr",
            Encoding::Other(name) => name,
        }
    }
}

/// One stream of messages of one type on one topic, from one publisher.
///
/// Several channels may share a topic: a ROS 1 bag has one for each publisher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Position in the recording's list of channels.
    pub id: ChannelId,
    /// Topic, as recorded, such as `/scan`.
    pub topic: String,
    /// Message type, such as `sensor_msgs/LaserScan` (ROS 2: `sensor_msgs/msg/LaserScan`).
    pub type_name: String,
    /// ROS 1's MD5 of the definition in 32 hex digits, if the file states it.
    pub md5: Option<String>,
    /// ROS 2's hash of the type (`RIHS01_` and 64 hex digits), if the file states it.
    pub type_hash: Option<String>,
    /// Full text of the definition and those it depends on, as in the file; empty if the file has none or it is not
    /// text.
    pub definition: String,
    /// Language of `definition`, by MCAP's name for it: `ros1msg`, `ros2msg`, `ros2idl` …
    pub definition_encoding: String,
    /// How the messages' bytes are laid out.
    pub encoding: Encoding,
    /// Whether the publisher latched its last message for late subscribers.
    pub latched: bool,
    /// Name of the publishing node, if the file states it.
    pub callerid: Option<String>,
    /// Quality of service offered by the publishers of a channel of ROS 2, if the file states it: one profile per
    /// publisher.
    pub qos: Vec<Qos>,
}

impl Channel {
    /// A ROS 1 channel. Its `id` is assigned when channels are collected; the writer assigns its own.
    pub fn ros1(topic: &str, type_name: &str, md5: &str, definition: &str) -> Self {
        Channel {
            id: ChannelId(0),
            topic: topic.to_owned(),
            type_name: type_name.to_owned(),
            md5: Some(md5.to_owned()),
            type_hash: None,
            definition: definition.to_owned(),
            definition_encoding: "ros1msg".to_owned(),
            encoding: Encoding::Ros1,
            latched: false,
            callerid: None,
            qos: Vec::new(),
        }
    }

    /// Whether another file's channel continues this one.
    pub(crate) fn continues(&self, other: &Channel) -> bool {
        let texts = |c: &Channel| (c.md5.clone(), c.type_hash.clone(), c.callerid.clone());
        self.topic == other.topic
            && self.type_name == other.type_name
            && self.encoding == other.encoding
            && self.latched == other.latched
            && self.qos == other.qos
            && texts(self) == texts(other)
            && self.definition_encoding == other.definition_encoding
            && self.definition == other.definition
    }

    /// Number of the channel's last messages that a late subscriber gets: one if the publisher latches; for durable
    /// publishers of ROS 2 the sum of what they keep. At most [`MAX_KEPT`].
    pub fn kept(&self) -> u32 {
        let durable = self
            .qos
            .iter()
            .fold(0u32, |sum, qos| sum.saturating_add(qos.kept()));
        durable.max(self.latched.into()).min(MAX_KEPT)
    }
}

/// One recorded message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The channel it belongs to.
    pub channel: ChannelId,
    /// When the recorder received it, since the Unix epoch (or since the start of simulated time).
    pub log_time: Time,
    /// When it was published; equal to `log_time` in formats without this time.
    pub publish_time: Time,
    /// The serialized message, in its channel's encoding.
    pub data: Vec<u8>,
}

/// What a recording contains, by topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Earliest log time; `None` if there are no messages.
    pub start: Option<Time>,
    /// Latest log time; `None` if there are no messages.
    pub end: Option<Time>,
    /// Number of all messages.
    pub messages: u64,
    /// By topic, including topics without messages.
    pub topics: BTreeMap<String, TopicSummary>,
}

/// Contents of one topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicSummary {
    /// Message type; that of the first channel, if the topic's channels disagree.
    pub type_name: String,
    /// Number of messages.
    pub messages: u64,
    /// Bytes of all its messages' data; `None` if the file's index does not state it (see
    /// [`Recording::measure`](crate::Recording::measure)).
    pub bytes: Option<u64>,
}

impl Summary {
    /// From the first message to the last; zero if there are none.
    pub fn duration(&self) -> Duration {
        match (self.start, self.end) {
            (Some(start), Some(end)) => end.since(start),
            _ => Duration::ZERO,
        }
    }

    /// Adds the contents of another recording.
    pub(crate) fn add(&mut self, other: &Summary) {
        self.start = match (self.start, other.start) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.end = self.end.max(other.end);
        self.messages = self.messages.saturating_add(other.messages);
        for (topic, of) in &other.topics {
            match self.topics.get_mut(topic) {
                None => drop(self.topics.insert(topic.clone(), of.clone())),
                Some(topic) => {
                    topic.messages = topic.messages.saturating_add(of.messages);
                    topic.bytes = (topic.bytes.zip(of.bytes)).map(|(a, b)| a.saturating_add(b));
                }
            }
        }
    }

    /// From each channel's messages and bytes.
    pub(crate) fn new(
        channels: &[Channel],
        counts: &[(u64, u64)],
        span: Option<(Time, Time)>,
        measured: bool,
    ) -> Self {
        let mut summary = Summary {
            start: span.map(|s| s.0),
            end: span.map(|s| s.1),
            ..Summary::default()
        };
        for (index, channel) in channels.iter().enumerate() {
            let (messages, bytes) = counts.get(index).copied().unwrap_or_default();
            let topic = summary
                .topics
                .entry(channel.topic.clone())
                .or_insert_with(|| TopicSummary {
                    type_name: channel.type_name.clone(),
                    ..TopicSummary::default()
                });
            topic.messages = topic.messages.saturating_add(messages);
            if measured {
                topic.bytes = Some(topic.bytes.unwrap_or(0).saturating_add(bytes));
            }
            summary.messages = summary.messages.saturating_add(messages);
        }
        summary
    }
}
