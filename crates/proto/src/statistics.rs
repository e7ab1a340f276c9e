//! What is counted, on both ends.

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

/// How far a topic is with its peer.
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
    /// The peer does not want it.
    Refused,
    /// This host publishes it no more.
    Withdrawn,
}

/// An outgoing topic. Once a message was offered it is exactly one of: sent, dropped, queued.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TopicStats {
    /// The peer it goes to.
    #[serde(skip)]
    pub peer: PeerId,
    /// Topic name.
    pub name: String,
    /// Whose topic it is and for whom, where it may go over relays.
    #[serde(skip)]
    pub via: Option<Via>,
    /// Priority now.
    pub priority: u8,
    /// Newest messages that may wait.
    pub depth: u32,
    /// How long after it was offered a message is worth sending.
    #[serde(rename = "deadline_ms", serialize_with = "milliseconds")]
    pub deadline: Option<Duration>,
    /// Messages a second that may pass.
    #[serde(rename = "rate_limit_hz")]
    pub max_rate: Option<f64>,
    /// Only every so manieth passes.
    pub every: u32,
    /// The share of the air that it gets at least while it waits; 0 is none.
    pub min_share: f64,
    /// How far it is.
    pub state: TopicState,
    /// Messages offered.
    pub offered: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Messages of which the last fragment was handed to the carrier; where the topic is reliable, those of
    /// which the receiver has told what became of them.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Fragments handed to the carrier.
    pub fragments: u64,
    /// Bytes of messages that were sent more than once.
    pub repeated_bytes: u64,
    /// Bytes of parity sent beside them.
    pub parity_bytes: u64,
    /// Of a bulk topic, how far the oldest message is that was begun and goes as symbols.
    pub bulk: Option<BulkStats>,
    /// Airtime charged for them.
    #[serde(rename = "air_s", serialize_with = "seconds")]
    pub air: Duration,
    /// Messages waiting, partly sent, or (where the topic is reliable) not acknowledged now.
    pub queued: u64,
    /// Messages lost here, by reason.
    pub drops: Drops,
    /// Messages of which anything was sent, each under the next number: those that were sent, that were abandoned, and
    /// that are in hand.
    pub begun: u64,
    /// Those of them in sessions of the peer that are over: what it had not received when it ended it never will. Of the
    /// others, once the path is empty, the receiver has `seen` as many.
    pub begun_before: u64,
    /// Messages that were begun and then given up. They are in `drops`. The receiver has as many `abandoned`, unless the
    /// word of some was lost: those are in its own `drops` too, or were even delivered.
    pub abandoned: u64,
    /// What became of all that was offered, at both ends.
    pub account: Account,
    /// What the receiver last told, in its present session.
    pub at_receiver: Option<ReceiverReport>,
}

/// What became of a topic's messages since its sender started, at one moment: those `offered` are those `delivered`, those
/// `dropped` and those `in_flight`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// Messages offered to the link.
    pub offered: u64,
    /// Of these, delivered, as the receiver last told.
    pub delivered: u64,
    /// Of these, lost at either end or on the way, by reason. Of a receiver that was started anew, what it had not told of
    /// counts as [`stats::DropReason::PeerLost`].
    pub dropped: Drops,
    /// All others: they wait, are on the way, or arrived and were not told of yet.
    pub in_flight: u64,
}

impl Account {
    /// The share that was delivered of those whose fate is known, from 0 to 1; `None` if there are none.
    pub fn delivery(&self) -> Option<f64> {
        let known = self.delivered + self.dropped.total();
        (known > 0).then(|| self.delivered as f64 / known as f64)
    }
}

/// How far a message is that goes as symbols.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BulkStats {
    /// Its length.
    pub bytes: u64,
    /// Symbols handed to the carrier.
    pub symbols_sent: u64,
    /// The share that has arrived, as the receiver last told.
    pub arrived: f64,
}

/// What a receiver tells of a topic, of this session of its sender.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReceiverReport {
    /// Messages delivered.
    pub delivered: u64,
    /// Messages that it was told the sender gave up.
    pub abandoned: u64,
    /// Messages lost there or on the way, by reason.
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
    /// Messages delivered to the sink.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Fragments received, usable or not.
    pub fragments: u64,
    /// Fragments that had come before.
    pub duplicate_fragments: u64,
    /// Lost fragments that were computed from parity.
    pub repaired_fragments: u64,
    /// Bytes at the beginnings of long messages that waited until enough was there for memory to be loaned, and so were copied once
    /// more.
    pub staged_bytes: u64,
    /// Messages of which fragments are missing now.
    pub partial: u64,
    /// Of a bulk topic, the share of the oldest message that is here, where it comes as symbols.
    pub arrived: Option<f64>,
    /// Messages lost, by reason. A gap in the numbering counts as [`stats::DropReason::Air`] as soon as
    /// anything newer has come, until its message comes after all.
    pub drops: Drops,
    /// Messages that there were by their numbering, up to the newest of which anything came. Each is exactly one of:
    /// delivered, dropped (but for [`stats::DropReason::Duplicate`], which are copies, and [`stats::DropReason::NotTaken`],
    /// which were delivered), partial, abandoned.
    pub seen: u64,
    /// Messages that the sender had begun and gave up, and told so. It counted them.
    pub abandoned: u64,
    /// How long messages took from the sender's link, by aligned clocks; none before the clocks are.
    pub delay: Option<LinkDelay>,
    /// What became of all that was offered, at both ends, as the sender last told.
    pub account: Option<Account>,
}

/// What the pacer's belief of a rate rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RateSource {
    /// It was configured.
    #[default]
    Set,
    /// It was measured, and holds at present.
    Estimated,
    /// It is a guess; receipts clock the sending.
    Guessed,
    /// There is none, as of a wire; receipts clock the sending.
    Unlimited,
}

/// A peer's clock beside ours: the clocks that the two links' radios are driven by.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClockStats {
    /// By how much the peer's is ahead, in microseconds.
    pub ahead_us: f64,
    /// How far that may be wrong: half a round trip, and the drift since.
    pub uncertainty_us: f64,
    /// How far it is likely to be wrong: without what the airtimes explain.
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
    /// Whether it is up now.
    pub up: bool,
    /// Its session, 0 if it was never heard.
    pub session: u32,
    /// How often it came back with a new session.
    pub restarts: u64,
    /// How often it was lost.
    pub lost: u64,
    /// When it was last heard.
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
    /// Bit rate of the medium on the way there by which airtime is reckoned; 0 where nothing is paced.
    pub rate_bit_s: u64,
    /// Whether that was configured, measured or guessed.
    pub rate_source: RateSource,
    /// How often the measured rate was found to be wrong.
    pub rate_lost: u64,
    /// Round trip of receipts in microseconds, smoothed, without what the peer held them; 0 if none came.
    pub round_trip_us: u64,
    /// Datagrams handed over of which no receipt has told yet, and how many may be.
    pub in_flight: u64,
    /// The bound on `in_flight`.
    pub in_flight_most: u64,
    /// Whether receipts are late, so that the bound is narrow.
    pub in_doubt: bool,
    /// Its clock beside ours; none before an exchange.
    pub clock: Option<ClockStats>,
    /// Datagrams received that parsed and were of its session.
    pub datagrams_received: u64,
    /// Their bytes.
    pub bytes_received: u64,
    /// The version of the wire format that it speaks, if its newest datagram was of another than ours.
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
    /// Bytes of messages waiting or partly sent now.
    pub queued_bytes: u64,
    /// Most that ever waited.
    pub queued_bytes_max: u64,
    /// Datagrams after which the next of their kind waited, since other hosts claimed the air.
    pub yielded: u64,
    /// Other hosts that claim the air now.
    pub claimants: u64,
    /// Periodic flows of other hosts that are known now.
    pub rhythms: u64,
    /// Claims and rhythms of hosts that have no say about the air, and so were ignored.
    pub denied_claims: u64,
    /// How often what hosts claimed that are not heard here was no longer believed for some seconds, since the air was free.
    pub found_free: u64,
    /// The hosts for which something waited here in the last seconds.
    pub yields_to: Vec<YieldsTo>,
}

/// A host for whose messages those of this one wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct YieldsTo {
    /// The short form of its id; see [`short_id`].
    #[serde(skip)]
    pub id: u32,
    /// Its name, or its id in hexadecimal digits where that is not known.
    pub host: String,
    /// The share of the last two seconds or so in which something waited for it.
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

/// The short form of a host's id, by which hosts speak of the air.
pub fn short_id(host: u64) -> u32 {
    crate::share::id(host, 0)
}
