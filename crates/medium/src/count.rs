//! Counters of a medium.

use core::time::Duration;
use stats::Drops;

/// Counters of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostStats {
    /// Packets handed to it for sending, including those refused.
    pub offered: u64,
    /// Packets delivered to it as their final host, including copies.
    pub received: u64,
    /// IP bytes of those.
    pub received_bytes: u64,
    /// Frames that it transmitted, including retries.
    pub attempts: u64,
    /// Attempts after the first of their frame.
    pub retries: u64,
    /// Attempts spoilt by another transmission.
    pub collisions: u64,
    /// Attempts lost by chance or because the link or the receiver was down; for a frame to everyone, counted per
    /// receiver.
    pub lost: u64,
    /// Frames that crossed this host's hop, and frames to everyone that were sent.
    pub acknowledged: u64,
    /// Largest length of its queue, in frames; with categories, of all queues together.
    pub queue_high_water: usize,
    /// Packets lost at this host, by reason.
    pub drops: Drops,
    /// Air that its transmissions occupied, including acknowledgements; a collision counts for each sender.
    pub air: Duration,
    /// One entry for each of [`crate::Category::ALL`]; empty without EDCA.
    pub categories: Vec<CategoryStats>,
}

/// Counters of one access category of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CategoryStats {
    /// Frames that it transmitted, including retries.
    pub attempts: u64,
    /// Number of times that a more urgent category of the same host went first at the same instant.
    pub internal_collisions: u64,
    /// Frames that crossed the hop.
    pub acknowledged: u64,
    /// Largest length of its queue, in frames.
    pub queue_high_water: usize,
    /// Packets lost in it, by reason.
    pub drops: Drops,
}

/// Counters of the whole channel.
///
/// `offered + duplicated` equals `delivered` plus all drops plus what is under way (`in_flight` of the medium).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediumStats {
    /// Time during which the channel was busy anywhere. DIFS and back-off are idle time. For a wire: the sum of both
    /// directions.
    pub busy: Duration,
    /// Time during which some host had a frame in its queue or on the air; on a full channel, all of it. Not counted
    /// for a wire, whose `busy` shows it.
    pub wanted: Duration,
    /// Number of times that transmissions overlapped so that at least one was spoilt.
    pub collisions: u64,
    /// Attempts lost by [`crate::Loss`] or because the link or the receiver was down.
    pub lost: u64,
    /// Packets submitted for sending, including those refused for a full queue.
    pub offered: u64,
    /// Copies that a path made and, for a packet to everyone, the receivers after the first.
    pub duplicated: u64,
    /// Packets delivered to their final host, including copies.
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
