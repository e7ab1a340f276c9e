//! What a medium counts.

use core::time::Duration;
use stats::Drops;

/// Counts of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostStats {
    /// Packets handed to it for sending, those refused included.
    pub offered: u64,
    /// Packets delivered to it as their final host, copies included.
    pub received: u64,
    /// IP bytes of those.
    pub received_bytes: u64,
    /// Frames that it transmitted, retries included.
    pub attempts: u64,
    /// Attempts after the first of their frame.
    pub retries: u64,
    /// Attempts that another transmission spoilt.
    pub collisions: u64,
    /// Attempts lost by chance or because the link or the receiver was down; of a frame to everyone, for each receiver.
    pub lost: u64,
    /// Frames that crossed this host's hop, and those to everyone that were sent.
    pub acknowledged: u64,
    /// Longest its queue ever was, in frames; with categories all of them together.
    pub queue_high_water: usize,
    /// Packets lost at this host, by reason.
    pub drops: Drops,
    /// Air that its transmissions occupied, acknowledgements included; a collision counts for each.
    pub air: Duration,
    /// One entry for each of [`crate::Category::ALL`]; empty without EDCA.
    pub categories: Vec<CategoryStats>,
}

/// Counts of one access category of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CategoryStats {
    /// Frames that it transmitted, retries included.
    pub attempts: u64,
    /// Times that a more urgent category of the same host went first at the same instant.
    pub internal_collisions: u64,
    /// Frames that crossed the hop.
    pub acknowledged: u64,
    /// Longest its queue ever was, in frames.
    pub queue_high_water: usize,
    /// Packets lost in it, by reason.
    pub drops: Drops,
}

/// Counts of the whole channel.
///
/// `offered + duplicated` is `delivered`, all drops, and what is under way (`in_flight` of the medium).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediumStats {
    /// Time during which the channel was busy anywhere. DIFS and back-off are idle time. Of a wire: the sum
    /// of both directions.
    pub busy: Duration,
    /// Time during which somebody had a frame in its queue or on the air: of a channel that is full, all of it. Of a wire it
    /// is not counted, whose `busy` says it.
    pub wanted: Duration,
    /// Times that transmissions met so that at least one was spoilt.
    pub collisions: u64,
    /// Attempts lost by [`crate::Loss`] or because link or receiver was down.
    pub lost: u64,
    /// Packets handed in for sending, those refused for a full queue included.
    pub offered: u64,
    /// Copies that a path made, and of a packet for everyone the receivers after the first.
    pub duplicated: u64,
    /// Packets delivered to their final host, copies included.
    pub delivered: u64,
    /// IP bytes delivered to their final host.
    pub delivered_bytes: u64,
    /// One entry per host, in their order.
    pub hosts: Vec<HostStats>,
}

impl MediumStats {
    /// Share of `span`, the time since the first packet or the start, in which the channel was busy.
    pub fn busy_share(&self, span: Duration) -> f64 {
        self.busy.as_secs_f64() / span.as_secs_f64().max(1e-9)
    }

    /// Packets lost anywhere, by reason.
    pub fn drops(&self) -> Drops {
        let mut all = Drops::default();
        for h in &self.hosts {
            all.merge(&h.drops);
        }
        all
    }
}
