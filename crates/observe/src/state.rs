//! A link's state, as its service `/link/NAME/state` returns it, without fields that no view shows.
//!
//! The link may have another version: fields that it does not report are 0 or empty, and fields that are unknown here
//! are ignored.

use crate::{Drops, RateSource, ServiceRole, ServiceState, TopicState};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The longest state that is read, in bytes.
const MAX_STATE: usize = 8 << 20;

/// A state of a link.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LinkState {
    /// The host's name.
    pub host: String,
    /// The link's name.
    pub link: String,
    /// Time of this state on a monotonic clock of the host.
    pub uptime_clock_s: f64,
    /// The radio as a whole.
    pub radio: RadioState,
    /// Its peers.
    pub peers: Vec<PeerState>,
    /// Topics that it sends.
    pub sent: Vec<SentState>,
    /// Topics that it receives.
    pub received: Vec<ReceivedState>,
    /// Topics to be sent that nobody publishes.
    pub unpublished: Vec<String>,
    /// Topics with a publisher that the link cannot send, at least not to all of its peers, and why.
    pub unsent: BTreeMap<String, String>,
    /// Services.
    pub services: Vec<ServiceCounts>,
    /// Paths to hosts, if there are relays.
    pub ways: Vec<WayState>,
    /// Hosts that no relay reaches.
    pub unreachable: Vec<String>,
    /// Traffic that it forwards for others.
    pub relay: RelayState,
}

/// Why a state cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// It is longer than the limit.
    #[error("the link's state has {0} bytes; at most {MAX_STATE} are read")]
    TooLong(usize),
    /// It is not a state.
    #[error("the link's state cannot be read: {0}")]
    Syntax(#[from] serde_json::Error),
}

/// Counts of the radio.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RadioState {
    /// Airtime charged.
    pub air_s: f64,
    /// Bytes handed to the carrier.
    pub bytes: u64,
    /// Bytes that wait.
    pub queued_bytes: u64,
    /// Hosts with messages that waited lately.
    pub yields_to: Vec<YieldsState>,
}

/// A host that messages wait for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct YieldsState {
    /// The host.
    pub host: String,
    /// Share of the time.
    pub share: f64,
}

/// A peer.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct PeerState {
    /// Its name.
    pub name: String,
    /// Whether it is up.
    pub up: bool,
    /// Round trip; 0 if unknown.
    pub round_trip_us: u64,
    /// Rate used to compute airtime; 0 if there is none.
    pub rate_bit_s: u64,
    /// Where it comes from.
    pub rate_source: RateSource,
    /// Airtime charged.
    pub air_s: f64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// How often it was lost.
    pub lost: u64,
    /// Topics that it refused.
    pub refused_topics: u64,
    /// The largest packet that fits the path, if known.
    pub path_mtu: Option<u64>,
    /// Its clock, after an exchange.
    pub clock: Option<ClockState>,
    /// What to check if it does not answer.
    pub unheard: Option<UnheardState>,
}

/// A peer's clock relative to this host's.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ClockState {
    /// How far the peer's clock is ahead.
    pub ahead_us: f64,
    /// Likely error of that.
    pub likely_us: f64,
}

/// Why it may not answer.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct UnheardState {
    /// A sentence.
    pub text: String,
}

/// Account of a topic's messages at one moment.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AccountState {
    /// Offered to the link.
    pub offered: u64,
    /// Delivered.
    pub delivered: u64,
    /// Lost at either end, by reason.
    pub dropped: Drops,
    /// On the way.
    pub in_flight: u64,
}

/// A topic that is sent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SentState {
    /// Its name on the air.
    pub name: String,
    /// The peer to which it goes first.
    pub peer: String,
    /// The host that publishes it.
    pub source: String,
    /// Its receivers.
    pub to: Vec<String>,
    /// Its name on this host's bus.
    pub here: Option<String>,
    /// Priority.
    pub priority: u8,
    /// Messages that may wait.
    pub depth: u32,
    /// How long a message is worth sending.
    pub deadline_ms: Option<f64>,
    /// Messages a second that may pass.
    pub rate_limit_hz: Option<f64>,
    /// One message in this many passes.
    pub every: u32,
    /// Least share of the air.
    pub min_share: f64,
    /// Whether it flows.
    pub state: TopicState,
    /// Messages offered.
    pub offered: u64,
    /// Messages sent.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Airtime charged.
    pub air_s: f64,
    /// Progress of a bulk message.
    pub bulk: Option<BulkState>,
    /// Losses here, by reason.
    pub drops: Drops,
    /// Account of its messages.
    pub account: Option<AccountState>,
    /// What the receiver reported.
    pub at_receiver: Option<ReportState>,
}

/// Progress of a bulk message.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct BulkState {
    /// The share that has arrived.
    pub arrived: Option<f64>,
}

/// A receiver's report.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ReportState {
    /// Its losses by reason.
    pub drops: Drops,
}

/// A topic that is received.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ReceivedState {
    /// Its name on the air.
    pub name: String,
    /// The peer from which it comes.
    pub peer: String,
    /// The host that publishes it.
    pub source: String,
    /// Its name on this host's bus.
    pub here: Option<String>,
    /// Whether this host accepts it.
    pub accepted: bool,
    /// Whether it has a subscriber here, if its sender sends only then.
    pub watched: Option<bool>,
    /// The sender's priority.
    pub priority: u8,
    /// Messages delivered.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Share of a bulk message that has arrived.
    pub arrived: Option<f64>,
    /// Losses here, by reason.
    pub drops: Drops,
    /// Account of all messages, as the sender reported it.
    pub account: Option<AccountState>,
    /// The last second or so.
    pub recent: Option<RecentState>,
    /// Time of its messages from the peer's link, once both links have compared their clocks.
    pub delay: Option<DelayState>,
}

/// Time of messages from the peer's link to this one, since the session began.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct DelayState {
    /// Measured messages.
    pub messages: u64,
    /// Their mean.
    pub mean_us: f64,
    /// Uncertainty of the mean, because clocks differ.
    pub uncertainty_us: f64,
}

/// Statistics of a received topic over about the last second.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RecentState {
    /// Delay from the publisher's stamp.
    pub delay_ms: SpreadState,
    /// Jitter that the path added.
    pub added_jitter_ms: SpreadState,
}

/// Mean and 99th percentile.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SpreadState {
    /// The mean.
    pub mean: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
}

/// A service towards one peer.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ServiceCounts {
    /// Its name on the air.
    pub name: String,
    /// Its name on this host's bus.
    pub here: String,
    /// The peer.
    pub peer: String,
    /// Which end is here.
    pub role: ServiceRole,
    /// Whether it can be called.
    pub state: ServiceState,
    /// Priority of the messages that this host sends.
    pub priority: u8,
    /// Calls so far.
    pub calls: u64,
    /// Calls without an answer yet.
    pub open: u64,
    /// Calls that were answered.
    pub answered: u64,
    /// Calls that failed, by reason.
    pub failed: Drops,
}

/// The path to a host.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct WayState {
    /// The host.
    pub host: String,
    /// The peer that leads to it.
    pub over: String,
    /// Number of hops.
    pub hops: u64,
    /// Airtime of a full datagram over the whole path.
    pub cost_us: u64,
}

/// Traffic that this host forwards for others.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RelayState {
    /// Messages.
    pub forwarded: u64,
    /// Losses by reason.
    pub drops: Drops,
    /// Topics that a peer does not get because it has reached its limit.
    pub unopened: u64,
}

impl LinkState {
    /// Reads a state.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn parse(json: &str) -> Result<Self, StateError> {
        match json.len() {
            size if size > MAX_STATE => Err(StateError::TooLong(size)),
            _ => Ok(serde_json::from_str(json)?),
        }
    }
}

impl AccountState {
    /// Share delivered of the messages whose outcome is known.
    pub fn delivery(&self) -> Option<f64> {
        let known = self.delivered.saturating_add(total(&self.dropped));
        (known > 0).then(|| self.delivered as f64 / known as f64)
    }
}

impl SentState {
    /// Its name on this host's bus; if it has none there, its name on the air with its source.
    pub fn shown_name(&self, host: &str) -> String {
        shown_name(self.here.as_ref(), &self.name, &self.source, &self.peer, host)
    }

    /// Its receivers, with the next peer if that is another host.
    pub fn other_end(&self) -> String {
        other_end(&self.to, &self.peer)
    }
}

impl ReceivedState {
    /// Its name on this host's bus; if it has none there, its name on the air with its source.
    pub fn shown_name(&self, host: &str) -> String {
        shown_name(self.here.as_ref(), &self.name, &self.source, &self.peer, host)
    }

    /// Its source, with the previous peer if that is another host.
    pub fn other_end(&self) -> String {
        let source = Some(&self.source).filter(|s| !s.is_empty());
        other_end(source.map_or(&[], std::slice::from_ref), &self.peer)
    }

    /// Whether it flows, and where to.
    pub fn state(&self) -> TopicState {
        let is_service = self.name.contains('?');
        match self.accepted {
            false => TopicState::Refused,
            true if self.watched == Some(false) => TopicState::Unwatched,
            true if self.here.is_none() && !is_service => TopicState::Relayed,
            true => TopicState::Ready,
        }
    }
}

/// All losses.
pub(crate) fn total(drops: &Drops) -> u64 {
    drops.values().fold(0, |sum, n| sum.saturating_add(*n))
}

fn shown_name(here: Option<&String>, name: &str, source: &str, peer: &str, host: &str) -> String {
    match here {
        Some(here) => here.clone(),
        None if source == host || source == peer => name.to_owned(),
        None => format!("{name} of {source}"),
    }
}

fn other_end(ends: &[String], peer: &str) -> String {
    match ends {
        [] => peer.to_owned(),
        [one] if one == peer => peer.to_owned(),
        ends => format!("{} via {peer}", ends.join(",")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_other_versions_and_other_texts_are_read_or_refused() {
        let state = LinkState::parse(r#"{"host": "a", "new": [1], "peers": [{"name": "b", "clock": null}]}"#);
        assert_eq!(state.unwrap().peers[0].name, "b");
        let topic = |watched| {
            let json = format!(r#"{{"accepted": true, "here": "/a", "watched": {watched}}}"#);
            serde_json::from_str::<ReceivedState>(&json).unwrap().state()
        };
        assert_eq!(
            [topic("null"), topic("true")],
            [TopicState::Ready, TopicState::Ready]
        );
        assert_eq!(topic("false"), TopicState::Unwatched);
        assert!(LinkState::parse("7").is_err() && LinkState::parse("{").is_err());
        let long = " ".repeat(MAX_STATE + 1);
        assert!(matches!(LinkState::parse(&long), Err(StateError::TooLong(_))));
    }
}
