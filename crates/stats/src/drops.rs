//! Why messages were lost: one list of reasons for all crates, so that every view uses the same names.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)?) => {
        /// Why a message (or a packet of it) was lost.
        ///
        /// Every tool and all JSON show the name that [`DropReason::name`] returns.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum DropReason {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)+
        }

        impl DropReason {
            /// Every reason, in the order in which tools list them.
            pub const ALL: &'static [DropReason] = &[$(DropReason::$variant),+];

            /// The name shown to people and in JSON.
            pub const fn name(self) -> &'static str {
                match self { $(DropReason::$variant => $name),+ }
            }
        }
    };
}

reasons! {
    /// A subscriber's queue was full: its oldest message made room, or the new one was not queued.
    QueueFull = "queue_full",
    /// A subscriber held the maximum number of blocks or bytes.
    HoldLimit = "hold_limit",
    /// The publisher had no memory left, and this queue's block was taken back.
    MemoryShort = "memory_short",
    /// A subscriber's socket was full, so it could not receive notice of new memory.
    PeerStalled = "peer_stalled",
    /// A newer sample of the same topic replaced it before it was sent (keep last N).
    Replaced = "replaced",
    /// Its deadline passed before it was sent in full.
    Expired = "expired",
    /// The radio's total limit was reached, and it had the lowest priority.
    Overflow = "overflow",
    /// The topic's rate limit excluded it.
    RateLimit = "rate_limit",
    /// The topic was not announced to the peer (yet).
    Unannounced = "unannounced",
    /// No peer was connected.
    NoPeer = "no_peer",
    /// Some fragments never arrived, so the partial message expired at the receiver.
    Incomplete = "incomplete",
    /// The receiver's limit on partial messages was reached.
    ReassemblyFull = "reassembly_full",
    /// The receiver had no memory for it, or refused its size.
    ReceiverMemory = "receiver_memory",
    /// It arrived twice.
    Duplicate = "duplicate",
    /// A newer message of its topic was delivered before it.
    OutOfOrder = "out_of_order",
    /// Its bytes did not parse.
    Malformed = "malformed",
    /// It is larger than the receiver or the link accepts.
    TooLarge = "too_large",
    /// The carrier refused or lost it on this host.
    Carrier = "carrier",
    /// A device queue of the radio was full.
    DeviceQueue = "device_queue",
    /// The radio gave up after its retries, or the packet was lost on the air.
    Air = "air",
    /// The peer was lost or has restarted.
    PeerLost = "peer_lost",
    /// A path behind the air or wire lost the packet, and nothing repairs that.
    PathLoss = "path_loss",
    /// The host or the link was down.
    Outage = "outage",
    /// It had arrived over another route, or is sent over another one instead.
    OtherWay = "other_way",
    /// It was delivered to the receiving host, but a subscriber there lost it: its queue stayed full, or it held too
    /// much. Counted once for each such subscriber.
    NotTaken = "not_taken",
    /// It arrived, or was to be sent, over a relay without a seal for which its receiver has the key.
    Unsealed = "unsealed",
    /// Its seal is not its source's, or it is a replay.
    Forged = "forged",
    /// A recorder took it, but the disk was full or too slow.
    Unwritten = "unwritten",
    /// The last subscriber at the receiver left while it waited, and the topic is sent only while someone watches.
    Unwatched = "unwatched",
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Numbers of losses by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Drops(BTreeMap<DropReason, u64>);

impl Drops {
    /// Counts `n` more losses for `reason`.
    pub fn add(&mut self, reason: DropReason, n: u64) {
        if n > 0 {
            let c = self.0.entry(reason).or_default();
            *c = c.saturating_add(n);
        }
    }

    /// Number of losses for `reason`.
    pub fn count(&self, reason: DropReason) -> u64 {
        self.0.get(&reason).copied().unwrap_or(0)
    }

    /// Total number of losses.
    pub fn total(&self) -> u64 {
        self.0.values().fold(0, |a, b| a.saturating_add(*b))
    }

    /// The reasons that occurred, with their counts, in the order of [`DropReason`].
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        self.0.iter().map(|(r, n)| (*r, *n))
    }

    /// These minus those of `other`.
    pub fn minus(&self, other: &Drops) -> Drops {
        let mut left = Drops::default();
        for (reason, n) in self.iter() {
            left.add(reason, n.saturating_sub(other.count(reason)));
        }
        left
    }

    /// The first `most` losses, in the order of [`DropReason`].
    pub fn first(&self, mut most: u64) -> Drops {
        let mut some = Drops::default();
        for (reason, n) in self.iter() {
            some.add(reason, n.min(most));
            most -= n.min(most);
        }
        some
    }

    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &Drops) {
        for (r, n) in other.iter() {
            self.add(r, n);
        }
    }
}

impl fmt::Display for Drops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (i, (r, n)) in self.iter().enumerate() {
            write!(f, "{}{n} {r}", if i > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_survive_json() {
        let mut names: Vec<_> = DropReason::ALL.iter().map(|r| r.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), DropReason::ALL.len());

        let mut d = Drops::default();
        d.add(DropReason::Air, 2);
        d.add(DropReason::QueueFull, 1);
        d.add(DropReason::Expired, 0);
        let json = serde_json::to_string(&d).expect("serializes");
        assert_eq!(json, r#"{"queue_full":1,"air":2}"#);
        assert_eq!(serde_json::from_str::<Drops>(&json).expect("parses"), d);
        assert_eq!(d.to_string(), "1 queue_full, 2 air");
    }
}
