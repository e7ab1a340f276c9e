//! What a daemon shows of itself.

use crate::compress::{PackStats, UnpackStats};
use crate::reach::Unheard;
use crate::recent::Recent;
use crate::seal::SealStats;
use crate::services::Failure;
use crate::tf::TfStats;
use proto::{PeerStats, RadioStats, RelayStats, RemoteTopicStats, TopicState, TopicStats};
use serde::Serialize;
use stats::Drops;
use std::collections::BTreeMap;

/// A daemon at one instant.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Status {
    /// This host's name.
    pub host: String,
    /// Which of the host's links this is.
    pub link: String,
    /// When this was, on a clock of this host that only runs forward, in seconds.
    pub uptime_clock_s: f64,
    /// How its radio thread is scheduled.
    pub scheduling: String,
    /// The radio as a whole.
    pub radio: RadioStats,
    /// Each peer, in the configuration's order.
    pub peers: Vec<PeerStatus>,
    /// Topics sent, for each peer.
    pub sent: Vec<SentTopic>,
    /// Topics received, for each peer.
    pub received: Vec<ReceivedTopic>,
    /// Topics to be sent that nobody publishes on this host yet.
    pub unpublished: Vec<String>,
    /// Services, for each peer that they are for.
    pub services: Vec<ServiceStatus>,
    /// Datagrams of strangers, or too large.
    pub refused_datagrams: u64,
    /// The ways that messages take, where there are relays.
    pub ways: Vec<WayStatus>,
    /// Peers that only relays reach, and none does now.
    pub unreachable: Vec<String>,
    /// How often a way began to lead over another neighbour, or at all.
    pub way_changes: u64,
    /// What this host did with messages for others.
    pub relay: RelayStats,
    /// What goes over relays is sealed, where there are keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sealing: Option<SealStats>,
}

/// The way to a host.
#[derive(Clone, Debug, Serialize)]
pub struct WayStatus {
    /// The host's name.
    pub host: String,
    /// The peer over which messages go there.
    pub over: String,
    /// Hops of the way.
    pub hops: u8,
    /// Measured airtime of a full datagram all the way, in microseconds.
    pub cost_us: u64,
}

/// A peer of a daemon.
#[derive(Clone, Debug, Serialize)]
pub struct PeerStatus {
    /// Its configured name.
    pub name: String,
    /// Bytes of the largest IP packet that passes on the way there, where the carrier knows it.
    pub path_mtu: Option<usize>,
    /// Topics that `allow` or the list of topics refused it, each time that it came up.
    pub refused_topics: u64,
    /// Where, for how long, and what to check, if it does not answer.
    pub unheard: Option<Unheard>,
    /// Its numbers.
    #[serde(flatten)]
    pub stats: PeerStats,
}

/// A topic that a daemon sends to a peer.
#[derive(Clone, Debug, Serialize)]
pub struct SentTopic {
    /// The peer's configured name.
    pub peer: String,
    /// The host whose topic it is: this one, or the one for which it is relayed.
    pub source: String,
    /// The hosts that it is for: the peer, or those that it may relay it to.
    pub to: Vec<String>,
    /// Its name on this host's bus, if it is a topic of it.
    pub here: Option<String>,
    /// Its numbers.
    #[serde(flatten)]
    pub stats: TopicStats,
    /// What packing did, where it is wished.
    pub packing: Option<PackStats>,
    /// What the filter of transforms did, where there is one.
    pub tf: Option<TfStats>,
}

/// A topic that a daemon receives from a peer.
#[derive(Clone, Debug, Serialize)]
pub struct ReceivedTopic {
    /// The peer's configured name.
    pub peer: String,
    /// The host whose topic it is: the peer, or the one for which the peer relays it.
    pub source: String,
    /// Its name on this host's bus, if it is published there.
    pub here: Option<String>,
    /// Its numbers.
    #[serde(flatten)]
    pub stats: RemoteTopicStats,
    /// The last second or so, if anything came.
    pub recent: Option<Recent>,
    /// What unpacking did, if anything came packed.
    pub unpacking: Option<UnpackStats>,
    /// What the bus lost after the daemon had published it.
    pub bus_drops: Drops,
}

/// What this host does for a service of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceRole {
    /// Its callers are here.
    Call,
    /// Its server is here.
    Serve,
}

/// Whether a service can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServiceState {
    /// It can.
    Ready,
    /// The peer does not offer it: its link does not list it, or nobody serves it there.
    NotOffered,
    /// The peer offers it, but cannot be heard now.
    NoPeer,
    /// Whoever serves it does not let the other call (`allow`).
    Refused,
    /// Nobody serves it on this host.
    Unserved,
}

/// A service towards one peer. Every call is open, answered, or failed for one reason.
#[derive(Clone, Debug, Serialize)]
pub struct ServiceStatus {
    /// The peer's configured name.
    pub peer: String,
    /// The service's name as it crosses the air.
    pub name: String,
    /// Its name on this host's bus.
    pub here: String,
    /// What this host does for it.
    pub role: ServiceRole,
    /// Its type, where that is known.
    pub type_name: Option<String>,
    /// Whether it can be called.
    pub state: ServiceState,
    /// The priority with which this host sends its part.
    pub priority: u8,
    /// Calls without an answer yet.
    pub open: u64,
    /// Calls so far: of this host's callers, or of the peer's.
    pub calls: u64,
    /// Of these, answered by the server.
    pub answered: u64,
    /// Of these, failed, by reason.
    pub failed: BTreeMap<Failure, u64>,
    /// Bytes of requests that were handed to the radio or came from it, headers included.
    pub request_bytes: u64,
    /// Bytes of replies likewise.
    pub reply_bytes: u64,
    /// Requests that came again and were not carried out again.
    pub repeated: u64,
    /// Replies for which nobody waited any more.
    pub late: u64,
}

impl Status {
    /// Whether every peer is up and every topic to be sent is published here and accepted there.
    pub fn ready(&self) -> bool {
        !self.peers.is_empty()
            && self.peers.iter().all(|p| p.stats.up)
            && self.unpublished.is_empty()
            && self.sent.iter().all(|t| t.stats.state == TopicState::Ready)
    }
}
