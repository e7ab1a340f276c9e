//! The status of a daemon.

use crate::compress::{PackStats, UnpackStats};
use crate::engine::calls::ServiceStatus;
use crate::reach::Unheard;
use crate::recent::Recent;
use crate::seal::SealStats;
use crate::tf::TfStats;
use proto::{PeerStats, RadioStats, RelayStats, RemoteTopicStats, TopicState, TopicStats};
use serde::Serialize;
use stats::Drops;
use std::collections::BTreeMap;

/// A daemon's state at one instant.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Status {
    /// This host's name.
    pub host: String,
    /// The link's name, which distinguishes it from other links of the host.
    pub link: String,
    /// Time of this state on a monotonic clock of this host, in seconds.
    pub uptime_clock_s: f64,
    /// Scheduling of its radio thread.
    pub scheduling: String,
    /// The radio as a whole.
    pub radio: RadioStats,
    /// Each peer, in the configuration's order.
    pub peers: Vec<PeerStatus>,
    /// Topics sent, per peer.
    pub sent: Vec<SentTopic>,
    /// Topics received, per peer.
    pub received: Vec<ReceivedTopic>,
    /// Topics to be sent that have no publisher on this host yet.
    pub unpublished: Vec<String>,
    /// Topics with a publisher that this host cannot send, at least not to all of its peers, and why.
    pub unsent: BTreeMap<String, String>,
    /// Services, per peer that they are for.
    pub services: Vec<ServiceStatus>,
    /// Datagrams from unknown senders, or too large ones.
    pub refused_datagrams: u64,
    /// The paths of messages, if there are relays.
    pub ways: Vec<WayStatus>,
    /// Peers that only relays reach, and that no relay reaches at present.
    pub unreachable: Vec<String>,
    /// How often a path switched to another neighbour or appeared.
    pub way_changes: u64,
    /// Counts of messages that this host forwarded for others.
    pub relay: RelayStats,
    /// Counts of sealing, with keys: messages over relays are sealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sealing: Option<SealStats>,
}

/// The path to a host.
#[derive(Clone, Debug, Serialize)]
pub struct WayStatus {
    /// The host's name.
    pub host: String,
    /// The peer through which messages go there.
    pub over: String,
    /// Number of hops.
    pub hops: u8,
    /// Measured airtime of a full datagram over the whole path, in microseconds.
    pub cost_us: u64,
}

/// A peer of a daemon.
#[derive(Clone, Debug, Serialize)]
pub struct PeerStatus {
    /// Its configured name.
    pub name: String,
    /// Size of the largest IP packet that fits the path, in bytes, if the carrier knows it.
    pub path_mtu: Option<usize>,
    /// Topics that `allow` or the list of topics refused to the peer, counted each time.
    pub refused_topics: u64,
    /// If the peer does not answer: where it was expected, for how long, and what to check.
    pub unheard: Option<Unheard>,
    /// Its counts.
    #[serde(flatten)]
    pub stats: PeerStats,
}

/// A topic that a daemon sends to a peer.
#[derive(Clone, Debug, Serialize)]
pub struct SentTopic {
    /// The peer's configured name.
    pub peer: String,
    /// The host that owns the topic: this one, or the one for which this host relays it.
    pub source: String,
    /// The destination hosts: the peer, or those to which the peer may relay it.
    pub to: Vec<String>,
    /// Its name on this host's bus, if it is a topic there.
    pub here: Option<String>,
    /// Its counts.
    #[serde(flatten)]
    pub stats: TopicStats,
    /// Counts of packing, if configured.
    pub packing: Option<PackStats>,
    /// Counts of the filter for transforms, if there is one.
    pub tf: Option<TfStats>,
}

/// A topic that a daemon receives from a peer.
#[derive(Clone, Debug, Serialize)]
pub struct ReceivedTopic {
    /// The peer's configured name.
    pub peer: String,
    /// The host that owns the topic: the peer, or the one for which the peer relays it.
    pub source: String,
    /// Its name on this host's bus, if it is published there.
    pub here: Option<String>,
    /// Its counts.
    #[serde(flatten)]
    pub stats: RemoteTopicStats,
    /// Statistics over about the last second, if any message arrived.
    pub recent: Option<Recent>,
    /// Counts of unpacking, if any message arrived packed.
    pub unpacking: Option<UnpackStats>,
    /// Messages that the bus lost after the daemon published them.
    pub bus_drops: Drops,
}

impl Status {
    /// Returns whether every peer is up, and every topic to be sent is published here and accepted there, watched or
    /// not.
    pub fn ready(&self) -> bool {
        !self.peers.is_empty()
            && self.peers.iter().all(|p| p.stats.up)
            && self.unpublished.is_empty()
            && self.unsent.is_empty()
            && (self.sent.iter()).all(|t| matches!(t.stats.state, TopicState::Ready | TopicState::Unwatched))
    }
}
