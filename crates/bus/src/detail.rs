//! State that an endpoint reports, and its encoding in an `Info` frame (decision 032).

use crate::frame::{Reader, Writer};
use crate::losses::{Losses, REASONS};
use crate::publisher::{MemoryPolicy, PublisherStats, SubscriberPeer};
use crate::subscriber::QueuePolicy;
use crate::topic::Offer;
#[cfg(test)]
use crate::topic::Reliability;
use stats::Drops;
use std::time::Duration;

/// Maximum number of connected subscribers that a publisher lists;
/// [`EndpointInfo::connected`](crate::EndpointInfo) counts all.
pub(crate) const MAX_PEERS: usize = 128;
/// How many of the latest refusals an endpoint reports, and the longest text of each in bytes.
pub(crate) const MAX_REFUSALS: usize = 8;
pub(crate) const MAX_REFUSAL: usize = 512;

/// State that an endpoint reports.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndpointDetail {
    /// State of a publisher.
    Publisher(PublisherInfo),
    /// State of a subscriber.
    Subscriber(SubscriberInfo),
}

/// State that a publisher reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublisherInfo {
    /// Maximum bytes of shared memory.
    pub memory_limit: u64,
    /// What it does when memory is short.
    pub memory_policy: MemoryPolicy,
    /// What it announces about itself: its node, its history for late joiners, its quality of service.
    pub offer: Offer,
    /// What it has done, what it holds, and each connected subscriber (the first 128).
    pub stats: PublisherStats,
}

/// State that a subscriber reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscriberInfo {
    /// Number of messages that each publisher may queue.
    pub depth: u32,
    /// Number of messages of each publisher that may be held.
    pub max_held: u32,
    /// Which message a full queue loses.
    pub queue_policy: QueuePolicy,
    /// Maximum number of kept messages that it requests when it joins.
    pub history: u32,
    /// Number of messages that it holds.
    pub held: u32,
    /// Losses, as its publishers count them.
    pub drops: Drops,
}

pub(crate) fn write(w: &mut Writer, detail: &EndpointDetail) {
    match detail {
        EndpointDetail::Publisher(p) => {
            let (policy, value) = policy_code(p.memory_policy);
            w.u64(p.memory_limit);
            w.u64(p.stats.memory_used);
            w.u64(p.stats.memory_pinned);
            w.u32(count(p.stats.segments));
            w.u8(policy);
            w.u64(value);
            w.offer(&p.offer);
            w.u64(p.stats.refused);
            write_drops(w, &p.stats.drops);
            let listed = p.stats.subscribers.len().min(MAX_PEERS);
            w.u16(listed as u16);
            for peer in &p.stats.subscribers[..listed] {
                w.u64(peer.id);
                w.u32(peer.pid as u32);
                w.u32(peer.uid);
                w.u32(count(peer.queued));
                w.u32(count(peer.depth));
                w.u32(count(peer.held));
                w.u64(peer.bytes);
                w.u64(peer.quota);
                w.u8(u8::from(peer.ready) | u8::from(peer.closing) << 1);
                write_drops(w, &peer.drops);
            }
        }
        EndpointDetail::Subscriber(s) => {
            w.u32(s.depth);
            w.u32(s.max_held);
            w.queue(s.queue_policy);
            w.u32(s.history);
            w.u32(s.held);
            write_drops(w, &s.drops);
        }
    }
}

/// `messages` and `memory` come earlier in the frame.
pub(crate) fn read_publisher(r: &mut Reader<'_>, messages: u64, memory: u64) -> Option<EndpointDetail> {
    let memory_limit = r.u64()?;
    let mut stats = PublisherStats {
        published: messages,
        memory_reserved: memory,
        memory_used: r.u64()?,
        memory_pinned: r.u64()?,
        segments: r.u32()? as usize,
        ..PublisherStats::default()
    };
    let memory_policy = policy(r.u8()?, r.u64()?)?;
    let offer = r.offer()?;
    stats.refused = r.u64()?;
    stats.drops = read_drops(r)?;
    let listed = usize::from(r.u16()?);
    if listed > MAX_PEERS {
        return None;
    }
    for _ in 0..listed {
        stats.subscribers.push(read_peer(r)?);
    }
    Some(EndpointDetail::Publisher(PublisherInfo {
        memory_limit,
        memory_policy,
        offer,
        stats,
    }))
}

pub(crate) fn read_subscriber(r: &mut Reader<'_>) -> Option<EndpointDetail> {
    Some(EndpointDetail::Subscriber(SubscriberInfo {
        depth: r.u32()?,
        max_held: r.u32()?,
        queue_policy: r.queue()?,
        history: r.u32()?,
        held: r.u32()?,
        drops: read_drops(r)?,
    }))
}

fn read_peer(r: &mut Reader<'_>) -> Option<SubscriberPeer> {
    let mut peer = SubscriberPeer {
        id: r.u64()?,
        pid: r.u32()? as i32,
        uid: r.u32()?,
        queued: r.u32()? as usize,
        depth: r.u32()? as usize,
        held: r.u32()? as usize,
        bytes: r.u64()?,
        quota: r.u64()?,
        ..SubscriberPeer::default()
    };
    let flags = r.u8()?;
    if flags > 3 {
        return None;
    }
    (peer.ready, peer.closing) = (flags & 1 != 0, flags & 2 != 0);
    peer.drops = read_drops(r)?;
    Some(peer)
}

fn write_drops(w: &mut Writer, drops: &Drops) {
    for reason in REASONS {
        w.u64(drops.count(reason));
    }
}

fn read_drops(r: &mut Reader<'_>) -> Option<Drops> {
    let mut counts = [0; REASONS.len()];
    for count in &mut counts {
        *count = r.u64()?;
    }
    Some(Losses::from_counts(counts).drops())
}

fn policy_code(policy: MemoryPolicy) -> (u8, u64) {
    match policy {
        MemoryPolicy::BestEffort => (0, 0),
        MemoryPolicy::WorstEffort => (1, 0),
        MemoryPolicy::Medium(n) => (2, u64::from(n)),
        // At most an hour: the options are checked.
        MemoryPolicy::Block(timeout) => (3, timeout.as_nanos() as u64),
    }
}

fn policy(code: u8, value: u64) -> Option<MemoryPolicy> {
    match (code, value) {
        (0, 0) => Some(MemoryPolicy::BestEffort),
        (1, 0) => Some(MemoryPolicy::WorstEffort),
        (2, n) => u32::try_from(n).ok().map(MemoryPolicy::Medium),
        (3, ns) => Some(MemoryPolicy::Block(Duration::from_nanos(ns))),
        _ => None,
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
pub(crate) fn offer_sample() -> Offer {
    Offer {
        node: "/talker".into(),
        history: 1,
        reliability: Some(Reliability::BestEffort),
        depth: 5,
    }
}

#[cfg(test)]
pub(crate) fn sample(subscribers: usize) -> PublisherInfo {
    let mut drops = Drops::default();
    drops.add(stats::DropReason::QueueFull, 3);
    let peer = SubscriberPeer {
        id: 77,
        pid: 4242,
        uid: 1000,
        queued: 2,
        depth: 16,
        held: 1,
        bytes: 1 << 20,
        quota: 32 << 20,
        ready: true,
        closing: false,
        drops: drops.clone(),
    };
    PublisherInfo {
        memory_limit: 64 << 20,
        memory_policy: MemoryPolicy::Block(Duration::from_millis(20)),
        offer: offer_sample(),
        stats: PublisherStats {
            published: 100,
            refused: 5,
            memory_reserved: 1 << 20,
            memory_used: 1 << 19,
            memory_pinned: 4096,
            segments: 2,
            subscribers: vec![peer; subscribers],
            drops,
        },
    }
}
