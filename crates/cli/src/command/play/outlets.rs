//! Which messages of a recording are published, and by which publisher.

use super::Options;
use super::left_out::{LeftOut, Reason, Refusal};
use crate::failure::Failure;
use recording::{Channel, ChannelId, Encoding, Set};
use ropewalk::{Node, NodeError, PublishError, Publisher};
use std::collections::BTreeMap;

/// `FROM:=TO`: plays the topic FROM as TO.
#[derive(Clone, Debug)]
pub(super) struct Remap {
    from: String,
    to: String,
}

impl Remap {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let good = text
            .split_once(":=")
            .filter(|(from, to)| !from.is_empty() && !to.is_empty());
        let (from, to) = good.ok_or("give FROM:=TO, such as /scan:=/front/scan")?;
        Ok(Remap {
            from: from.to_owned(),
            to: to.to_owned(),
        })
    }
}

/// Destination of a channel's messages.
#[derive(Debug)]
pub(super) enum Outlet {
    Publisher(Publisher, Encoding),
    /// They cannot be played.
    Refused(Refusal),
    /// The user excluded them.
    Unwanted,
}

/// The outlet of each channel.
#[derive(Debug)]
pub(super) struct Outlets(BTreeMap<ChannelId, Outlet>);

impl Outlets {
    /// Creates the publishers, and prints the topics with messages that cannot be played.
    pub(super) fn new(
        set: &Set,
        node: &Node,
        options: &Options,
        left_out: &mut LeftOut,
    ) -> Result<Self, Failure> {
        let remaps = options.remap.iter().map(|remap| &remap.from);
        for topic in options.topic.iter().chain(&options.exclude).chain(remaps) {
            if !set.channels().any(|(_, channel)| same(&channel.topic, topic)) {
                let known: Vec<_> = set.summary().topics.keys().map(String::as_str).collect();
                return Err(Failure::input(format_args!(
                    "{topic} is not in the recording; it has {}",
                    known.join(", ")
                )));
            }
        }
        let mut outlets = BTreeMap::new();
        for (id, channel) in set.channels() {
            let outlet = if options.wants(&channel.topic) {
                publisher(channel, node, options).map_or_else(Outlet::Refused, |publisher| {
                    Outlet::Publisher(publisher, channel.encoding.clone())
                })
            } else {
                Outlet::Unwanted
            };
            // A topic without messages needs no publisher.
            let has_messages = (set.summary().topics.get(&channel.topic)).is_some_and(|t| t.messages > 0);
            if let Outlet::Refused(refusal) = &outlet
                && has_messages
            {
                left_out.tell(refusal.reason, &channel.topic, &refusal.why);
            }
            outlets.insert(id, outlet);
        }
        Ok(Outlets(outlets))
    }

    pub(super) fn get(&self, channel: ChannelId) -> &Outlet {
        self.0.get(&channel).unwrap_or(&Outlet::Unwanted)
    }

    pub(super) fn publishers(&self) -> impl Iterator<Item = &Publisher> {
        self.0.values().filter_map(|outlet| match outlet {
            Outlet::Publisher(publisher, _) => Some(publisher),
            _ => None,
        })
    }
}

fn publisher(channel: &Channel, node: &Node, options: &Options) -> Result<Publisher, Refusal> {
    let schema = crate::types::of_channel(channel, &options.folders)?;
    let remap = options
        .remap
        .iter()
        .find(|remap| same(&remap.from, &channel.topic));
    let topic = remap.map_or(&channel.topic, |remap| &remap.to);
    node.dynamic_publisher_with(topic, &schema, crate::offers::of_channel(channel))
        .map_err(|error| match error {
            NodeError::Name(error) => Refusal::new(
                Reason::Name,
                format_args!("{error}; `--remap {topic}:=/NAME` plays it under another name"),
            ),
            other => Refusal::new(Reason::Bus, other),
        })
}

/// Publishes the bytes of a message.
pub(super) fn publish(publisher: &Publisher, encoding: &Encoding, data: &[u8]) -> Result<(), Refusal> {
    let published = match encoding {
        Encoding::Cdr => publisher.publish_cdr(data),
        _ => publisher.publish_ros1(data),
    };
    published.map(drop).map_err(|error| {
        let reason = match &error {
            PublishError::Content { .. } | PublishError::Value { .. } => Reason::Content,
            PublishError::Loan(_) => Reason::Memory,
            _ => Reason::Bus,
        };
        Refusal::new(reason, error)
    })
}

/// Whether two names are of the same topic: the leading slash is optional.
pub(super) fn same(a: &str, b: &str) -> bool {
    a.strip_prefix('/').unwrap_or(a) == b.strip_prefix('/').unwrap_or(b)
}
