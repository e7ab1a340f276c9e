//! Settings, their defaults and bounds, and identifiers.

use crate::airtime::AirtimeModel;
use crate::announcement::{Flavour, Ordering, Reliability, Via};
use crate::route::RouteConfig;
use core::time::Duration;

/// A host at the other end of the radio, as returned by [`crate::Radio::add_peer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u32);

/// A topic that this host sends to one peer, as returned by [`crate::Radio::add_topic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicId(pub u32);

/// A topic that a peer sends, by the peer's own number. It is unique together with the [`PeerId`] while that peer's
/// session lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemoteTopic(pub u32);

/// Highest priority; 0 is the lowest.
pub const MAX_PRIORITY: u8 = 127;
/// Longest topic or type name in bytes.
pub const MAX_NAME: usize = 256;
/// Longest definition text in bytes.
pub const MAX_DEFINITION: usize = 256 * 1024;
/// Longest host name in bytes.
pub const MAX_HOST_NAME: usize = 64;
/// Most messages of a reliable topic that the sender keeps for a peer.
pub const MAX_DEPTH: u32 = 1024;
/// Most topics in one direction between two hosts.
pub const MAX_TOPICS: usize = 1024;

/// The order in which messages leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By priority, then deadline, then fairly; more important messages pre-empt between fragments.
    #[default]
    Priority,
    /// In the order in which they were offered, whatever their topic. For comparison only; everything else (pacer,
    /// depths, bounds) is the same.
    Fifo,
}

/// Settings of a [`crate::Radio`]; start from [`RadioConfig::new`].
#[derive(Clone, Debug)]
pub struct RadioConfig {
    /// Distinguishes this run of the host from earlier ones: draw it at random. Not 0.
    pub session: u32,
    /// Host id, sent to peers.
    pub host: u64,
    /// Host name, sent to peers, at most 64 B.
    pub name: String,
    /// The estimated airtime of a datagram.
    pub airtime: AirtimeModel,
    /// Treat the rate in `airtime` as a guess: receipts clock the sending, and the rate is estimated from them.
    pub auto_rate: bool,
    /// The medium is a cable without a rate: nothing is paced whatever the airtime, and receipts alone clock the sending,
    /// four of them for each `in_flight`.
    pub unrated_cable: bool,
    /// Share of the time for which this host may transmit, above 0; 1 for all of it. Less is for a known rate, and makes
    /// the intervals below longer where the medium could not carry them.
    pub duty: f64,
    /// Datagrams that may be in flight to a peer on a short path while receipts clock the sending; at least 1. A long
    /// path may hold more. So may a cable while nothing more important is being sent, if the peer `holds` more.
    pub in_flight: u32,
    /// Datagrams from a peer that this host holds until it reads them, announced to peers; 0 announces nothing.
    pub holds: u32,
    /// Whether fragments are cut so that a more important message that is about to arrive finds the air free.
    pub predict: bool,
    /// The order in which messages leave.
    pub order: Order,
    /// Least share of the air that this host sends on for messages that are less important than the most important one
    /// waiting, 0 to 0.9; 0 is strict priority.
    pub min_share: f64,
    /// Whether this host announces to its peers which messages wait and when its periodic messages are due, and yields
    /// to more important messages elsewhere. Has no effect over a cable, where hosts do not contend.
    pub yields: bool,
    /// Least share of the air that other hosts leave to this host's less important messages, whatever they claim, 0.01
    /// to 1.
    pub least_share: f64,
    /// Ids of hosts whose claims about the air are ignored, through whichever peer they arrive. Peers whose
    /// `PeerConfig::air` is false need not be listed.
    pub denied_air: Vec<u64>,
    /// Bytes of messages waiting for the radio, over all topics; above it the lowest priority is dropped first.
    pub max_queued_bytes: u64,
    /// Interval at which an unanswered greeting is repeated.
    pub hello_interval: Duration,
    /// Longest time without sending anything.
    pub keep_alive: Duration,
    /// A peer that has been silent for this long is lost.
    pub lost_after: Duration,
    /// Interval at which counts are reported to the peer.
    pub report_interval: Duration,
    /// Bounds on what each peer can make this host hold.
    pub receive: ReceiveLimits,
    /// Whether this host states which topics have a subscriber here, by [`crate::Radio::state_watched`]. Otherwise its
    /// peers send everything.
    pub states_watched: bool,
    /// How routes over relays are found, where messages may go over relays.
    pub route: Option<RouteConfig>,
}

impl RadioConfig {
    /// Defaults for a host whose run is identified by `session`.
    pub fn new(session: u32, airtime: AirtimeModel) -> Self {
        RadioConfig {
            session,
            host: 0,
            name: String::new(),
            airtime,
            auto_rate: false,
            unrated_cable: false,
            duty: 1.0,
            in_flight: 2,
            holds: 0,
            predict: true,
            order: Order::Priority,
            min_share: 0.0,
            yields: true,
            least_share: 0.1,
            denied_air: Vec::new(),
            max_queued_bytes: 64 << 20,
            hello_interval: Duration::from_millis(150),
            keep_alive: Duration::from_millis(250),
            lost_after: Duration::from_secs(1),
            report_interval: Duration::from_secs(1),
            receive: ReceiveLimits::default(),
            states_watched: false,
            route: None,
        }
    }
}

/// Bounds on what one peer can make a receiver hold.
#[derive(Clone, Copy, Debug)]
pub struct ReceiveLimits {
    /// Largest message in bytes; sent to peers.
    pub max_message: u32,
    /// Number of partial messages at a time.
    pub max_partial: usize,
    /// Bytes of partial messages at a time, counted by their full length.
    pub max_partial_bytes: u64,
    /// Partial messages of one topic; the oldest is dropped first.
    pub max_partial_per_topic: usize,
    /// A partial message that has received nothing for this long is given up; the newest one of a topic later, up to five
    /// times this, while other messages arrive that may have interrupted it.
    pub partial_age: Duration,
    /// Topics that a peer may announce, at most 1024.
    pub max_topics: usize,
    /// Bytes of announcements that are still incomplete.
    pub max_announcing_bytes: usize,
    /// Bytes of the announcements of all accepted topics, definitions included.
    pub max_announced_bytes: usize,
    /// Bytes of fragments kept to compute lost ones of redundant topics.
    pub max_decoding_bytes: usize,
    /// Messages of up to this many bytes get their memory with the first fragment. Longer ones get it when a part of
    /// them has arrived, unless their topic has already delivered one that long.
    pub at_once: u32,
}

impl Default for ReceiveLimits {
    fn default() -> Self {
        ReceiveLimits {
            max_message: 64 << 20,
            max_partial: 1024,
            max_partial_bytes: 128 << 20,
            max_partial_per_topic: 4,
            partial_age: Duration::from_secs(2),
            max_topics: MAX_TOPICS,
            max_announcing_bytes: 1 << 20,
            max_announced_bytes: 8 << 20,
            max_decoding_bytes: 4 << 20,
            at_once: 64 << 10,
        }
    }
}

/// Settings of one peer.
#[derive(Clone, Copy, Debug)]
pub struct PeerConfig {
    /// Hops over which the medium itself forwards to this peer; each costs airtime. At least 1.
    pub hops: u32,
    /// Largest datagram that the carrier takes, 256 to 65507 bytes.
    pub max_datagram: usize,
    /// Number of datagrams, at least 1, into which the carrier splits one here, to be joined at the peer, as over a
    /// cable. Parts of best-effort messages go in datagrams of up to this many times `max_datagram`, at most 65507
    /// bytes. Each of these counts in flight as the datagrams into which it is split.
    pub joined: u32,
    /// Its host id, which identifies it in routes to it and over it, and in its claims about the air. 0 if neither
    /// applies; its own claims then still count.
    pub host: u64,
    /// Whether its claims about the air count: this host yields to its own claims and to those that it repeats, and
    /// repeats its own claims to others.
    pub air: bool,
}

impl Default for PeerConfig {
    /// One hop, UDP over an MTU of 1500.
    fn default() -> Self {
        PeerConfig {
            hops: 1,
            max_datagram: 1472,
            joined: 1,
            host: 0,
            air: true,
        }
    }
}

impl PeerConfig {
    /// Largest datagram that the carrier takes if it cuts datagrams.
    pub(crate) fn max_joined(&self) -> usize {
        self.max_datagram.saturating_mul(self.joined as usize)
    }
}

/// Settings of a topic that is sent; start from [`TopicConfig::new`].
#[derive(Clone, Debug)]
pub struct TopicConfig {
    /// Topic name, 1 to 256 B.
    pub name: String,
    /// Message type, at most 256 B.
    pub type_name: String,
    /// Hash of the type.
    pub type_hash: [u8; 16],
    /// The ROS version that the type belongs to.
    pub flavour: Flavour,
    /// Full text of the type's definition, at most 256 KiB.
    pub definition: String,
    /// 0 to 127; 127 is the most important.
    pub priority: u8,
    /// Newest messages that may wait; at least 1. For a reliable topic this counts the messages that wait for their
    /// acknowledgement, at most 1024. If part of a message of more than 16 KiB was sent, the message continues while
    /// others wait behind it; newer messages replace those instead.
    pub depth: u32,
    /// A message of a reliable topic that is still unacknowledged this long after it was offered is given up, and its
    /// sender is notified. Other topics have only a `deadline`.
    pub expiry: Option<Duration>,
    /// Bytes of parity for each byte of a redundant topic, more than 0 and at most 1; `None`: as much as the loss that
    /// the peer reports requires.
    pub redundancy: Option<f64>,
    /// Keep the newest `depth` messages for a peer that joins late, restarts or was away. The peer receives them once
    /// it has accepted the topic. Each of these counts as offered again.
    pub latched: bool,
    /// A message that cannot be sent in full within this time after it was offered is dropped before it costs (more)
    /// airtime. Among topics of one priority the earlier deadline goes first.
    pub deadline: Option<Duration>,
    /// Messages per second; the rest are dropped before they wait.
    pub max_rate: Option<f64>,
    /// Keep one message in N, before the rate limit; at least 1, which keeps all.
    pub every: u32,
    /// Least share of the air that this host sends on for this topic while it has messages waiting, 0 to 0.9, whatever
    /// is more important; 0 is strict priority. Ignored in `Order::Fifo`.
    pub min_share: f64,
    /// Effort of the link to deliver messages.
    pub reliability: Reliability,
    /// Whether the topic's publishers retransmit lost messages, if all of them agree: for the receiver's own publisher.
    pub offers_reliable: Option<bool>,
    /// What the receiver does with late messages.
    pub ordering: Ordering,
    /// Send only while the peer states that the topic has a subscriber there. A peer that cannot state it gets
    /// everything, and so does every peer of a topic with `via`.
    pub when_watched: bool,
    /// Source and destinations of the topic, if its messages carry a [`crate::Route`].
    pub via: Option<Via>,
}

impl TopicConfig {
    /// Priority 0, depth 1, no deadline, no rate limit, best effort.
    pub fn new(name: impl Into<String>, type_name: impl Into<String>) -> Self {
        TopicConfig {
            name: name.into(),
            type_name: type_name.into(),
            type_hash: [0; 16],
            flavour: Flavour::default(),
            definition: String::new(),
            priority: 0,
            depth: 1,
            expiry: None,
            redundancy: None,
            latched: false,
            deadline: None,
            max_rate: None,
            every: 1,
            min_share: 0.0,
            reliability: Reliability::BestEffort,
            offers_reliable: None,
            ordering: Ordering::Latest,
            when_watched: false,
            via: None,
        }
    }
}

/// Changes to a running topic, for [`crate::Radio::set_topic`]; `None` leaves a setting as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TopicChange {
    /// Priority, 0 to 127.
    pub priority: Option<u8>,
    /// Newest messages that may wait.
    pub depth: Option<u32>,
    /// How long after it was offered a message is worth sending; `Some(None)` for no limit.
    pub deadline: Option<Option<Duration>>,
    /// Messages per second; `Some(None)` for all.
    pub max_rate: Option<Option<f64>>,
    /// Keep one message in N.
    pub every: Option<u32>,
    /// Minimum share of the air, 0 to 0.9.
    pub min_share: Option<f64>,
}

/// Why a [`RadioConfig`] was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Session 0 means "none" on the wire.
    #[error("session 0 means no session: choose any other number")]
    Session,
    /// Such a gain would stop the radio or flood it.
    #[error("the gain is {gain}: give a number from 0.1 to 100, usually a little above 1")]
    Gain {
        /// The gain asked for.
        gain: f64,
    },
    /// The host name is too long.
    #[error("the host's name has {bytes} bytes: use at most {MAX_HOST_NAME}")]
    Name {
        /// Its length.
        bytes: usize,
    },
    /// The share of the air is out of range.
    #[error("{which} is {share}: give a share of the air from {least} to {most}")]
    Share {
        /// Which setting.
        which: &'static str,
        /// The share asked for.
        share: f64,
        /// Smallest share allowed.
        least: f64,
        /// Largest share allowed.
        most: f64,
    },
    /// With nothing in flight, nothing is ever sent.
    #[error("in_flight is 0: give at least one datagram")]
    InFlight,
    /// The share of the time is out of range, or the rate is not known.
    #[error("the duty cycle is {duty}: give a share of the time above 0 and up to 1, and below 1 set a rate")]
    Duty {
        /// The share asked for.
        duty: f64,
    },
    /// An interval of zero would never let time pass.
    #[error("the interval {which} is 0: give a longer duration")]
    Interval {
        /// Which setting.
        which: &'static str,
    },
}

/// Why a peer was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The datagram size cannot carry the protocol, or no carrier can carry it.
    #[error("the size of a datagram is {bytes} bytes: give 256 to 65507")]
    Datagram {
        /// Size asked for.
        bytes: usize,
    },
    /// The joined datagrams add up to nothing, or to more than any carrier can carry.
    #[error(
        "{joined} datagrams of {bytes} bytes cannot be joined: give at least 1 datagram, and at most \
             65507 bytes together"
    )]
    Joined {
        /// How many are joined into one.
        joined: u32,
        /// Size of each.
        bytes: usize,
    },
    /// A path has at least one hop.
    #[error("the number of hops is 0: give 1 or more")]
    Hops,
}

/// Why a topic or a change of it was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TopicError {
    /// No such peer.
    #[error("there is no peer {}", .0.0)]
    NoSuchPeer(PeerId),
    /// No such topic.
    #[error("there is no topic {}", .0.0)]
    NoSuchTopic(TopicId),
    /// The topic's name is empty or too long.
    #[error("the topic's name has {bytes} bytes: use 1 to {MAX_NAME}")]
    Name {
        /// Its length.
        bytes: usize,
    },
    /// The type's name is too long.
    #[error("the type's name has {bytes} bytes: use at most {MAX_NAME}")]
    TypeName {
        /// Its length.
        bytes: usize,
    },
    /// The definition is too long.
    #[error("the definition has {bytes} bytes, more than the limit of {MAX_DEFINITION}")]
    Definition {
        /// Its length.
        bytes: usize,
    },
    /// The priority is out of range.
    #[error("the priority is {priority}: give 0 (lowest) to {MAX_PRIORITY} (highest)")]
    Priority {
        /// The priority asked for.
        priority: u8,
    },
    /// No message could ever wait.
    #[error("the depth is 0: give at least one message")]
    Depth,
    /// Too many messages to keep for a peer.
    #[error("the depth of a reliable topic is {depth}: give at most {MAX_DEPTH}")]
    DeepReliable {
        /// The depth asked for.
        depth: u32,
    },
    /// The share of parity is out of range.
    #[error("the redundancy is {share}: give more than 0 and at most 1, or none")]
    Redundancy {
        /// The share asked for.
        share: f64,
    },
    /// Every message would expire at once.
    #[error("the expiry is 0: give a longer duration, or none")]
    Expiry,
    /// The rate limit is not a positive number.
    #[error("the rate limit is {hz} Hz: give a positive number, or none")]
    Rate {
        /// The limit asked for.
        hz: f64,
    },
    /// No message would pass.
    #[error("`every` is 0: give 1 to keep all messages, 2 to keep every second one")]
    Every,
    /// The minimum share is out of range.
    #[error("the minimum share is {share}: give 0 (none) to 0.9")]
    Share {
        /// The share asked for.
        share: f64,
    },
    /// The destinations or the source's name cannot be represented.
    #[error(
        "a topic over relays needs 1 to 62 destinations, and a source's name of at most {MAX_HOST_NAME} bytes"
    )]
    Via,
    /// The peer already has the maximum number of topics.
    #[error("a peer may have at most {MAX_TOPICS} topics")]
    TooMany,
}
