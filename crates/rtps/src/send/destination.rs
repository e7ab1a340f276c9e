//! The queue for one address.

use super::bucket::Bucket;
use super::job::{Job, Target};
use crate::config::Pace;
use crate::wire::encode;
use crate::wire::ids::{EntityId, GuidPrefix};
use crate::wire::message::HEADER;
use crate::wire::submessage::Heartbeat;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Maximum number of bytes of short messages queued for an address. Further ones are dropped: the protocol repeats all
/// of them.
pub(crate) const MAX_CONTROL: usize = 128 << 10;

/// Maximum number of requested samples of a writer queued for an address. Further ones are dropped: a reader that lacks
/// one repeats its request.
pub(crate) const MAX_REPAIRS: usize = 1_024;

/// Size of addresses and of UDP and IP headers, as the bucket counts a datagram.
const DATAGRAM: usize = 42;

/// The queue for one address: short messages, which are sent first, and samples of writers, which take turns.
#[derive(Debug)]
pub(super) struct Destination {
    bucket: Bucket,
    control: VecDeque<(GuidPrefix, Vec<u8>)>,
    control_bytes: usize,
    jobs: BTreeMap<EntityId, Queue>,
    /// The writer that sent last.
    turn: EntityId,
}

/// Queued samples of a writer.
#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// Which samples are queued for whom, so that nothing is sent twice.
    waits: BTreeSet<(GuidPrefix, i64, EntityId)>,
    repairs: usize,
}

fn key(job: &Job) -> (GuidPrefix, i64, EntityId) {
    (job.target.prefix, job.route.sequence, job.route.reader)
}

impl Queue {
    fn add(&mut self, job: Job) {
        self.waits.insert(key(&job));
        self.repairs += usize::from(job.repair);
        self.jobs.push_back(job);
    }

    fn remove(&mut self, at: usize) {
        if let Some(job) = self.jobs.remove(at) {
            self.waits.remove(&key(&job));
            self.repairs -= usize::from(job.repair);
        }
    }

    fn retain(&mut self, keep: impl FnMut(&Job) -> bool) {
        self.jobs.retain(keep);
        self.waits = self.jobs.iter().map(key).collect();
        self.repairs = self.jobs.iter().filter(|j| j.repair).count();
    }
}

/// A datagram under construction.
struct Packet<'a> {
    out: &'a mut Vec<u8>,
    for_whom: GuidPrefix,
    timestamp: Option<crate::wire::time::Timestamp>,
}

impl Packet<'_> {
    fn address(&mut self, prefix: GuidPrefix) {
        if self.for_whom != prefix {
            encode::info_dst(self.out, prefix);
            self.for_whom = prefix;
        }
    }

    fn is_empty(&self) -> bool {
        self.out.len() <= HEADER
    }
}

impl Destination {
    pub(super) fn new(now: Duration, pace: Pace) -> Self {
        Destination {
            bucket: Bucket::new(now, pace),
            control: VecDeque::new(),
            control_bytes: 0,
            jobs: BTreeMap::new(),
            turn: EntityId::UNKNOWN,
        }
    }

    pub(super) fn add_control(&mut self, prefix: GuidPrefix, bytes: Vec<u8>) {
        if self.control_bytes + bytes.len() <= MAX_CONTROL {
            self.control_bytes += bytes.len();
            self.control.push_back((prefix, bytes));
        }
    }

    fn has_work(&self) -> bool {
        !self.control.is_empty() || !self.jobs.is_empty()
    }

    /// Whether nothing is queued, and its state equals that of a new one.
    pub(super) fn is_idle(&mut self, now: Duration) -> bool {
        self.bucket.refill(now);
        !self.has_work() && self.bucket.is_full()
    }

    /// When there is something to send; `None` if nothing is queued.
    pub(super) fn ready_at(&self) -> Option<Duration> {
        if !self.control.is_empty() {
            return Some(Duration::ZERO);
        }
        (!self.jobs.is_empty()).then(|| self.bucket.opens())
    }

    pub(super) fn pause(&mut self, until: Duration) {
        self.bucket.pause(until);
    }

    /// Fills a datagram that already has its header. Returns `false` if nothing may be sent yet.
    pub(super) fn fill(
        &mut self,
        now: Duration,
        out: &mut Vec<u8>,
        heartbeat: &mut dyn FnMut(EntityId, EntityId) -> Option<Heartbeat>,
    ) -> bool {
        self.bucket.refill(now);
        let gather = usize::from(self.bucket.pace.gather);
        let mut packet = Packet {
            out,
            for_whom: GuidPrefix::default(),
            timestamp: None,
        };
        while let Some((prefix, bytes)) = self.control.front() {
            if !packet.is_empty() && packet.out.len() + bytes.len() + 16 > gather {
                break;
            }
            packet.address(*prefix);
            packet.out.extend_from_slice(bytes);
            self.control_bytes -= bytes.len();
            self.control.pop_front();
        }
        while self.bucket.is_open_at(now) && self.put_sample(&mut packet, gather, heartbeat) {}
        let sent = !packet.is_empty();
        if sent {
            self.bucket.spend(packet.out.len() + DATAGRAM);
        }
        sent
    }

    /// Appends a piece of the next writer's sample. Returns `false` if there is none or it does not fit.
    fn put_sample(
        &mut self,
        packet: &mut Packet<'_>,
        gather: usize,
        heartbeat: &mut dyn FnMut(EntityId, EntityId) -> Option<Heartbeat>,
    ) -> bool {
        let after = (std::ops::Bound::Excluded(self.turn), std::ops::Bound::Unbounded);
        let turn = self.jobs.range(after).next().or_else(|| self.jobs.iter().next());
        let Some(writer) = turn.map(|(writer, _)| *writer) else {
            return false;
        };
        let Some(queue) = self.jobs.get_mut(&writer) else {
            return false;
        };
        let Some(job) = queue.jobs.front_mut() else {
            self.jobs.remove(&writer);
            return true;
        };
        let fragment = self.bucket.pace.fragment;
        if !packet.is_empty() && packet.out.len() + job.next_len(fragment) > gather {
            return false;
        }
        self.turn = writer;
        packet.address(job.target.prefix);
        if packet.timestamp != job.change.timestamp {
            packet.timestamp = job.change.timestamp;
            encode::info_ts(packet.out, packet.timestamp);
        }
        if job.put(packet.out, fragment) {
            if job.heartbeat
                && let Some(h) = heartbeat(writer, job.route.reader)
            {
                encode::heartbeat(packet.out, &h);
            }
            queue.remove(0);
            if queue.jobs.is_empty() {
                self.jobs.remove(&writer);
            }
        }
        true
    }

    /// Queues a sample after the others of its writer.
    pub(super) fn add(&mut self, job: Job) {
        self.jobs.entry(job.route.writer).or_default().add(job);
    }

    /// Whether a sample is already queued for a reader, or the queue is full.
    pub(super) fn waits(&self, job: &Job) -> bool {
        let Some(queue) = self.jobs.get(&job.route.writer) else {
            return false;
        };
        let (prefix, sequence, reader) = key(job);
        queue.repairs >= MAX_REPAIRS
            || queue.waits.contains(&(prefix, sequence, reader))
            || queue.waits.contains(&(prefix, sequence, EntityId::UNKNOWN))
    }

    /// Whether samples of a writer are queued for a participant.
    pub(super) fn is_sending(&self, writer: EntityId, prefix: GuidPrefix) -> bool {
        let queue = self.jobs.get(&writer);
        let from = (prefix, i64::MIN, EntityId::UNKNOWN);
        let next = queue.and_then(|q| q.waits.range(from..).next());
        next.is_some_and(|(p, ..)| *p == prefix)
    }

    /// Drops samples of a writer.
    pub(super) fn retain_of(&mut self, writer: EntityId, keep: impl FnMut(&Job) -> bool) {
        if let Some(queue) = self.jobs.get_mut(&writer) {
            queue.retain(keep);
            if queue.jobs.is_empty() {
                self.jobs.remove(&writer);
            }
        }
    }

    pub(super) fn forget_samples(&mut self) {
        self.jobs.clear();
    }

    /// Drops everything queued for a participant.
    pub(super) fn forget(&mut self, prefix: GuidPrefix) {
        self.jobs.retain(|_, queue| {
            queue.retain(|job| job.target.prefix != prefix);
            !queue.jobs.is_empty()
        });
        self.control.retain(|(p, _)| *p != prefix);
        self.control_bytes = self.control.iter().map(|(_, b)| b.len()).sum();
    }

    /// Number and total bytes of a writer's samples that go to a target for the first time and have not started.
    pub(super) fn waiting(&self, writer: EntityId, target: Target) -> (usize, usize) {
        let jobs = self.jobs.get(&writer).into_iter().flat_map(|q| &q.jobs);
        jobs.filter(|j| is_new(j, target))
            .fold((0, 0), |(n, bytes), j| (n + 1, bytes + j.change.payload.len()))
    }

    /// Drops the oldest of these.
    pub(super) fn drop_oldest(&mut self, writer: EntityId, target: Target) {
        if let Some(queue) = self.jobs.get_mut(&writer)
            && let Some(at) = queue.jobs.iter().position(|j| is_new(j, target))
        {
            queue.remove(at);
        }
    }
}

fn is_new(job: &Job, target: Target) -> bool {
    !job.repair && !job.has_begun() && job.target == target
}
