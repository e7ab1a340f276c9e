//! Counters of both ends.

use crate::announcement::Via;
use crate::config::PeerId;
use crate::share::{ClockOffset, LinkDelay};
use core::time::Duration;
use serde::{Serialize, Serializer};
use stats::{Drops, Time};

fn seconds<S: Serializer>(d: &Duration, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_f64(d.as_secs_f64())
}

fn milliseconds<S: Serializer>(d: &Option<Duration>, s: S) -> Result<S::Ok, S::Error> {
    d.map(|d| d.as_secs_f64() * 1e3).serialize(s)
}

/// State of a topic at its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TopicState {
    /// The peer is not up.
    NoPeer,
    /// The peer has not acknowledged the announcement yet.
    Announcing,
    /// Messages flow.
    Ready,
    /// The peer accepted it, but it has no subscriber there: nothing is sent until it has one.
    Unwatched,
    /// The peer refused it.
    Refused,
    /// This host no longer publishes it.
    Withdrawn,
}

/// An outgoing topic. Each offered message is exactly one of: sent, dropped, queued.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TopicStats {
    /// The peer it goes to.
    #[serde(skip)]
    pub peer: PeerId,
    /// Topic name.
    pub name: String,
    /// Source and destinations of the topic, where it may go over relays.
    #[serde(skip)]
    pub via: Option<Via>,
    /// Current priority.
    pub priority: u8,
    /// Newest messages that may wait.
    pub depth: u32,
    /// How long after it was offered a message is worth sending.
    #[serde(rename = "deadline_ms", serialize_with = "milliseconds")]
    pub deadline: Option<Duration>,
    /// Maximum number of messages per second.
    #[serde(rename = "rate_limit_hz")]
    pub max_rate: Option<f64>,
    /// One message in this many is sent.
    pub every: u32,
    /// Least share of the air that it gets while it has messages waiting; 0 is none.
    pub min_share: f64,
    /// Its state at the peer.
    pub state: TopicState,
    /// Messages that were not sent because the topic had no subscriber at the peer; they do not count as offered.
    /// `None` if the topic is sent in any case.
    pub rested: Option<u64>,
    /// Messages offered.
    pub offered: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Messages whose last fragment was handed to the carrier; for a reliable topic, messages whose outcome the
    /// receiver has reported.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Fragments handed to the carrier.
    pub fragments: u64,
    /// Bytes of messages that were retransmitted.
    pub repeated_bytes: u64,
    /// Bytes of parity sent in addition.
    pub parity_bytes: u64,
    /// For a bulk topic, progress of the oldest message that is being sent as symbols.
    pub bulk: Option<BulkStats>,
    /// Airtime charged for them.
    #[serde(rename = "air_s", serialize_with = "seconds")]
    pub air: Duration,
    /// Messages waiting, partly sent or (on a reliable topic) unacknowledged at present.
    pub queued: u64,
    /// Messages lost here, by reason.
    pub drops: Drops,
    /// Messages of which anything was sent, each numbered in sequence: those sent, those abandoned and those in hand.
    pub begun: u64,
    /// Messages begun in sessions of the peer that are over: messages that it had not received by the end of a session
    /// never arrive. Of the others, once the path is empty, the receiver has `seen` this many.
    pub begun_before: u64,
    /// Messages that were begun and then given up. They are in `drops`. The receiver's `abandoned` is the same number,
    /// unless the notice of some was lost: those are in its own `drops` too, or were even delivered.
    pub abandoned: u64,
    /// Outcomes of all offered messages, at both ends.
    pub account: Account,
    /// The receiver's latest report in its present session.
    pub at_receiver: Option<ReceiverReport>,
}

/// Outcomes of a topic's messages since its sender started, at one moment: `offered` is the sum of `delivered`,
/// `dropped` and `in_flight`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// Messages offered to the link.
    pub offered: u64,
    /// Of these, delivered, as the receiver last reported.
    pub delivered: u64,
    /// Of these, lost at either end or on the way, by reason. Messages that a receiver had not reported when it
    /// restarted count as [`stats::DropReason::PeerLost`].
    pub dropped: Drops,
    /// All others: they wait, are on the way, or have arrived and are not reported yet.
    pub in_flight: u64,
}

impl Account {
    /// Share delivered of the messages whose outcome is known, from 0 to 1; `None` if there are none.
    pub fn delivery(&self) -> Option<f64> {
        let known = self.delivered + self.dropped.total();
        (known > 0).then(|| self.delivered as f64 / known as f64)
    }
}

/// Progress of a message that is sent as symbols.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BulkStats {
    /// Its length.
    pub bytes: u64,
    /// Symbols handed to the carrier.
    pub symbols_sent: u64,
    /// Share that has arrived, as the receiver last reported.
    pub arrived: f64,
}

/// A receiver's report about a topic, for this session of its sender.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReceiverReport {
    /// Messages delivered.
    pub delivered: u64,
    /// Messages that the sender gave up, as it notified.
    pub abandoned: u64,
    /// Messages lost at the receiver or on the way, by reason.
    pub drops: Drops,
}

/// An incoming topic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RemoteTopicStats {
    /// The peer it comes from.
    #[serde(skip)]
    pub peer: PeerId,
    /// Topic name.
    pub name: String,
    /// The sender's priority.
    pub priority: u8,
    /// Whether it was accepted.
    pub accepted: bool,
    /// Whether it has a subscriber here, if its sender sends only then.
    pub watched: Option<bool>,
    /// Messages delivered to the sink.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Fragments received, usable or not.
    pub fragments: u64,
    /// Fragments that had arrived before.
    pub duplicate_fragments: u64,
    /// Lost fragments that were computed from parity.
    pub repaired_fragments: u64,
    /// Bytes at the start of long messages that were copied once more because they waited until enough had arrived for
    /// memory to be loaned.
    pub staged_bytes: u64,
    /// Messages with fragments missing at present.
    pub partial: u64,
    /// For a bulk topic, the share that has arrived of the oldest message that is received as symbols.
    pub arrived: Option<f64>,
    /// Messages lost, by reason. A gap in the numbering counts as [`stats::DropReason::Air`] as soon as
    /// anything newer arrives, until its message arrives after all.
    pub drops: Drops,
    /// Messages that exist by their numbering, up to the newest of which anything has arrived. Each is exactly one of:
    /// delivered, dropped (except [`stats::DropReason::Duplicate`], which are copies, and
    /// [`stats::DropReason::NotTaken`], which were delivered), partial, abandoned.
    pub seen: u64,
    /// Messages that the sender began and gave up, as it notified. It counts them.
    pub abandoned: u64,
    /// How long messages took from the sender's link, by aligned clocks; none until the clocks are aligned.
    pub delay: Option<LinkDelay>,
    /// Outcomes of all offered messages, at both ends, as the sender last reported.
    pub account: Option<Account>,
}

/// Source of the rate that the pacer uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RateSource {
    /// It was configured.
    #[default]
    Set,
    /// It was measured, and currently holds.
    Estimated,
    /// It is a guess; receipts clock the sending.
    Guessed,
    /// There is none, as on a cable; receipts clock the sending.
    Unlimited,
}

/// A peer's clock relative to ours: the clocks that drive the two links' radios.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClockStats {
    /// How far the peer's clock is ahead, in microseconds.
    pub ahead_us: f64,
    /// Bound on the error: half a round trip, and the drift since.
    pub uncertainty_us: f64,
    /// Likely error: the bound without what the airtimes explain.
    pub likely_us: f64,
}

impl From<ClockOffset> for ClockStats {
    fn from(o: ClockOffset) -> Self {
        ClockStats {
            ahead_us: o.ahead_ns as f64 / 1e3,
            uncertainty_us: o.uncertainty.as_nanos() as f64 / 1e3,
            likely_us: o.likely.as_nanos() as f64 / 1e3,
        }
    }
}

/// One peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PeerStats {
    /// Whether it is up at present.
    pub up: bool,
    /// Its session, 0 if nothing was ever received from it.
    pub session: u32,
    /// Number of times it came back with a new session.
    pub restarts: u64,
    /// Number of times it was lost.
    pub lost: u64,
    /// When anything was last received from it.
    #[serde(skip)]
    pub last_heard: Time,
    /// Datagrams handed to the carrier.
    pub datagrams_sent: u64,
    /// Their bytes.
    pub bytes_sent: u64,
    /// Of these, datagrams without any message data.
    pub control_sent: u64,
    /// Airtime charged for all of them.
    #[serde(rename = "air_s", serialize_with = "seconds")]
    pub air: Duration,
    /// Bit rate of the medium towards it, from which airtime is computed; 0 where nothing is paced.
    pub rate_bit_s: u64,
    /// Whether that was configured, measured or guessed.
    pub rate_source: RateSource,
    /// Number of times the measured rate proved wrong.
    pub rate_lost: u64,
    /// Round trip of receipts in microseconds, smoothed, without the time the peer held them; 0 before the first.
    pub round_trip_us: u64,
    /// Datagrams handed over that no receipt covers yet.
    pub in_flight: u64,
    /// The bound on `in_flight`.
    pub in_flight_most: u64,
    /// Whether receipts are late, so that the bound is narrow.
    pub in_doubt: bool,
    /// Its clock relative to ours; none before an exchange.
    pub clock: Option<ClockStats>,
    /// Datagrams received that were well-formed and of its session.
    pub datagrams_received: u64,
    /// Their bytes.
    pub bytes_received: u64,
    /// The version of the wire format that it uses, if its newest datagram has another version than ours.
    pub other_version: Option<u8>,
    /// Datagrams of this session missing in the numbering so far.
    pub datagrams_missing: u64,
    /// Losses that belong to no topic: [`stats::DropReason::Malformed`] datagrams,
    /// [`stats::DropReason::PeerLost`] datagrams of another session,
    /// [`stats::DropReason::Unannounced`] fragments, [`stats::DropReason::Carrier`] refusals.
    pub drops: Drops,
}

/// The whole radio.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RadioStats {
    /// Airtime charged so far.
    #[serde(rename = "air_s", serialize_with = "seconds")]
    pub air: Duration,
    /// Datagrams handed to carriers.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Datagrams that went ahead of the pacer because they were more important than what was in the air.
    pub urgent: u64,
    /// Bytes of messages waiting or partly sent at present.
    pub queued_bytes: u64,
    /// Largest number of bytes that ever waited.
    pub queued_bytes_max: u64,
    /// Datagrams after which the next of their kind waited because other hosts claimed the air.
    pub yielded: u64,
    /// Other hosts that claim the air at present.
    pub claimants: u64,
    /// Known periodic flows of other hosts.
    pub rhythms: u64,
    /// Claims and rhythms ignored because the claims of their hosts do not count.
    pub denied_claims: u64,
    /// Number of times the claims of hosts that cannot be heard here were disbelieved for some seconds because the air
    /// was free.
    pub found_free: u64,
    /// Hosts for which something waited here in the last seconds.
    pub yields_to: Vec<YieldsTo>,
}

/// A host that this host's messages wait for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct YieldsTo {
    /// The short form of its id; see [`short_id`].
    #[serde(skip)]
    pub id: u32,
    /// Its name, or its id in hexadecimal digits if the name is unknown.
    pub host: String,
    /// Share of the last two seconds or so in which something waited for it.
    pub share: f64,
}

impl From<(u32, f64)> for YieldsTo {
    fn from((id, share): (u32, f64)) -> Self {
        YieldsTo {
            id,
            host: format!("{id:08x}"),
            share,
        }
    }
}

/// The short form of a host's id, which identifies hosts in claims about the air.
pub fn short_id(host: u64) -> u32 {
    crate::share::id(host, 0)
}
