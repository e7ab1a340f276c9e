//! One topic of a link.

use super::parse::{
    all_of_them, every, maybe_depth, maybe_duration, maybe_frequency, maybe_size, middle, priority, share,
};
use crate::compress::Compress;
use crate::discovery::Offers;
use crate::tf::TfConfig;
use serde::Deserialize;
use std::time::Duration;

/// How one topic crosses the radio.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopicConfig {
    /// The topic's full name as it crosses the air, such as `/scan`, without the peer's namespace on this
    /// bus. A name that ends with `/*` matches all topics below it, whichever exist. An exact name takes
    /// precedence over patterns, and a longer pattern over a shorter one.
    pub name: String,
    /// 0–127; higher goes first. Default 50.
    #[serde(default = "middle", deserialize_with = "priority")]
    pub priority: u8,
    /// Whether to use the priority that the publisher asks for, if its type's definition has a first line
    /// such as `# priority: 70`. Default false.
    #[serde(default)]
    pub publisher_priority: bool,
    /// Whether this host sends it, receives it, or both.
    pub direction: Direction,
    /// How many messages may wait for the radio; a newer one replaces the oldest. Default 1: only the newest.
    /// For a reliable topic the default is 64 and for a bulk topic 4, and messages count until they are
    /// acknowledged. At most 4096, or 1024 for a topic that keeps sent messages (reliable, bulk, latched).
    #[serde(default, deserialize_with = "maybe_depth")]
    pub depth: Option<u16>,
    /// Effort of the link to deliver messages.
    #[serde(default)]
    pub reliability: Reliability,
    /// The link gives up a message of a reliable or bulk topic that is not delivered this long after its
    /// publication. Default ten seconds; ten minutes for a bulk topic.
    #[serde(default, deserialize_with = "maybe_duration")]
    pub expiry: Option<Duration>,
    /// Parity bytes for each byte of a redundant topic, more than 0 and at most 1. Default: follows the
    /// measured loss.
    #[serde(default)]
    pub redundancy: Option<f64>,
    /// Whether messages are delivered in the order of their publication. Best-effort and redundant topics
    /// drop late messages; reliable and bulk topics hold later messages back until the missing ones arrive.
    /// Default true, but false for redundant topics, whose repaired messages are late, and for bulk topics,
    /// whose messages are independent.
    #[serde(default)]
    pub ordered: Option<bool>,
    /// Whether a late joiner, or a peer that was away, gets the newest `depth` messages. Default: true if a
    /// publisher keeps messages for late joiners when the topic is first found; then `depth` is at least the
    /// number of those publishers.
    #[serde(default)]
    pub latched: Option<bool>,
    /// Messages older than this are dropped before they cost airtime. Default: never.
    #[serde(default, deserialize_with = "maybe_duration")]
    pub deadline: Option<Duration>,
    /// Most messages sent per second; the others are dropped. Default: all.
    #[serde(default, deserialize_with = "maybe_frequency")]
    pub rate_limit: Option<f64>,
    /// Least share of this host's airtime for this topic while it has messages waiting. Default 0%.
    #[serde(default, deserialize_with = "share")]
    pub min_share: f64,
    /// Send one message in N and drop the others. Default 1: all.
    #[serde(default = "all_of_them", deserialize_with = "every")]
    pub every: u32,
    /// Whether and how messages are compressed for the air. Default: not.
    #[serde(default)]
    pub compress: Compress,
    /// Whether the topic is sent always, or only while the receiving host's bus has a subscriber. Default: always.
    #[serde(default)]
    pub when: When,
    /// Longest message accepted on a received topic. Default: 64 MiB, the longest that a link carries.
    #[serde(default, deserialize_with = "maybe_size")]
    pub max_message: Option<u64>,
    /// For topics of transforms: which frames are sent, and at what rate.
    #[serde(default)]
    pub tf: Option<TfConfig>,
}

/// Default depth and expiry of a reliable topic.
const RELIABLE_DEPTH: u16 = 64;
const RELIABLE_EXPIRY: Duration = Duration::from_secs(10);
/// Default depth and expiry of a bulk topic.
const BULK_DEPTH: u16 = 4;
const BULK_EXPIRY: Duration = Duration::from_secs(600);

impl TopicConfig {
    /// A topic with defaults for all but its name and direction.
    pub fn new(name: impl Into<String>, direction: Direction) -> Self {
        TopicConfig {
            name: name.into(),
            priority: middle(),
            publisher_priority: false,
            direction,
            depth: None,
            reliability: Reliability::default(),
            expiry: None,
            redundancy: None,
            ordered: None,
            latched: None,
            deadline: None,
            rate_limit: None,
            min_share: 0.0,
            every: all_of_them(),
            compress: Compress::None,
            when: When::Always,
            max_message: None,
            tf: None,
        }
    }

    /// Returns whether late joiners get messages. False while that is still up to the publishers.
    pub(crate) fn is_latched(&self) -> bool {
        self.latched == Some(true)
    }

    /// Settles what is left to the publishers. Each publisher that keeps messages for late joiners has one
    /// that counts.
    pub(crate) fn settle(&mut self, offers: Offers) {
        if self.reliability == Reliability::Offered {
            self.reliability = match offers.reliable {
                Some(true) => Reliability::Reliable,
                _ => Reliability::BestEffort,
            };
            let depth = offers.depth.min(RELIABLE_DEPTH.into()) as u16;
            self.depth = self.depth.or((depth > 0).then_some(depth));
        }
        let latching = offers.latching;
        if self.latched.is_some() || latching == 0 || u32::from(self.depth()) > proto::MAX_DEPTH {
            return;
        }
        self.latched = Some(true);
        let least = latching.min(proto::MAX_DEPTH) as u16;
        if self.depth.is_none() && self.depth() < least {
            self.depth = Some(least);
        }
    }

    /// How many messages may wait.
    pub fn depth(&self) -> u16 {
        self.depth.unwrap_or(match self.reliability {
            Reliability::BestEffort | Reliability::Redundant | Reliability::Offered => 1,
            Reliability::Reliable => RELIABLE_DEPTH,
            Reliability::Bulk => BULK_DEPTH,
        })
    }

    /// Returns this configuration for the link's protocol.
    pub(crate) fn announced(&self, type_name: impl Into<String>) -> proto::TopicConfig {
        let reliability = match self.reliability {
            Reliability::BestEffort | Reliability::Offered => proto::Reliability::BestEffort,
            Reliability::Reliable => proto::Reliability::Reliable,
            Reliability::Redundant => proto::Reliability::Redundant,
            Reliability::Bulk => proto::Reliability::Bulk,
        };
        let expiry = match self.reliability {
            Reliability::BestEffort | Reliability::Redundant | Reliability::Offered => None,
            Reliability::Reliable => Some(RELIABLE_EXPIRY),
            Reliability::Bulk => Some(BULK_EXPIRY),
        };
        let apart = matches!(self.reliability, Reliability::Redundant | Reliability::Bulk);
        let ordering = match (self.ordered.unwrap_or(!apart), expiry) {
            (false, _) => proto::Ordering::Any,
            (true, None) => proto::Ordering::Latest,
            (true, Some(_)) => proto::Ordering::InOrder,
        };
        proto::TopicConfig {
            priority: self.priority,
            depth: u32::from(self.depth()),
            expiry: expiry.map(|default| self.expiry.unwrap_or(default)),
            redundancy: self.redundancy,
            latched: self.is_latched(),
            deadline: self.deadline,
            max_rate: self.rate_limit,
            min_share: self.min_share,
            every: self.every,
            when_watched: self.when == When::Watched,
            reliability,
            ordering,
            ..proto::TopicConfig::new(self.name.clone(), type_name)
        }
    }
}

/// Effort of the link to deliver messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reliability {
    /// Lost messages stay lost.
    #[default]
    BestEffort,
    /// Lost messages are retransmitted until they are acknowledged or expire.
    Reliable,
    /// Messages carry parity, from which the receiver recovers lost parts.
    Redundant,
    /// As reliable, but large messages are fountain-coded: any symbols count, and the sender continues until the
    /// receiver has enough.
    Bulk,
    /// Reliable if all publishers are reliable when the topic is first found, else best effort. The depth is
    /// the publishers', too.
    Offered,
}

/// When a topic is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// Always.
    #[default]
    Always,
    /// While the receiving host's bus has a subscriber other than the link itself.
    Watched,
}

/// The direction of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From this host's bus to the peers.
    Out,
    /// From the peers to this host's bus.
    In,
    /// Both ways.
    Both,
}

impl Direction {
    /// Returns whether this host sends it.
    pub fn sends(self) -> bool {
        self != Direction::In
    }

    /// Returns whether this host receives it.
    pub fn receives(self) -> bool {
        self != Direction::Out
    }
}
