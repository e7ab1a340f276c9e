//! Outgoing messages by address: short messages are sent at once, samples at a pace that the receiver's socket buffer
//! can take.

mod bucket;
mod destination;
mod job;

use crate::config::Pace;
use crate::wire::encode;
use crate::wire::ids::{EntityId, GuidPrefix, VendorId};
use crate::wire::submessage::Heartbeat;
use core::time::Duration;
use destination::Destination;
use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::ops::Bound;

#[cfg(test)]
pub(crate) use destination::MAX_CONTROL;
pub(crate) use job::{Change, JOB, Job, Target, route};

/// All outgoing messages.
#[derive(Debug)]
pub(crate) struct Outbox {
    vendor: VendorId,
    prefix: GuidPrefix,
    destinations: BTreeMap<SocketAddrV4, Destination>,
    /// The address that was served last.
    turn: Option<SocketAddrV4>,
}

impl Outbox {
    pub(crate) fn new(vendor: VendorId, prefix: GuidPrefix) -> Self {
        Outbox {
            vendor,
            prefix,
            destinations: BTreeMap::new(),
            turn: None,
        }
    }

    fn at(&mut self, now: Duration, address: SocketAddrV4, pace: Pace) -> &mut Destination {
        self.destinations
            .entry(address)
            .or_insert_with(|| Destination::new(now, pace))
    }

    /// Queues a short message, or drops it if too many are queued for the address.
    pub(crate) fn control(&mut self, now: Duration, target: Target, pace: Pace, bytes: Vec<u8>) {
        self.at(now, target.address, pace)
            .add_control(target.prefix, bytes);
    }

    /// Queues a sample that is sent for the first time. Of the queued ones, the newest `depth` within `bytes` stay;
    /// started ones continue.
    pub(crate) fn push(&mut self, now: Duration, pace: Pace, job: Job, depth: usize, bytes: usize) {
        let (writer, target) = (job.route.writer, job.target);
        let destination = self.at(now, target.address, pace);
        loop {
            let (n, waiting) = destination.waiting(writer, target);
            if n == 0 || n < depth && waiting.saturating_add(job.change.payload.len()) <= bytes {
                break;
            }
            destination.drop_oldest(writer, target);
        }
        destination.add(job);
    }

    /// Queues a retransmission of a sample or of some of its fragments, unless it is already queued.
    pub(crate) fn repair(&mut self, now: Duration, pace: Pace, mut job: Job) {
        job.repair = true;
        let destination = self.at(now, job.target.address, pace);
        if !destination.waits(&job) {
            destination.add(job);
        }
    }

    /// Whether samples of a writer are queued for a target.
    pub(crate) fn is_sending(&self, writer: EntityId, target: Target) -> bool {
        let destination = self.destinations.get(&target.address);
        destination.is_some_and(|d| d.is_sending(writer, target.prefix))
    }

    /// Drops a sample that the writer no longer has, except where sending has started.
    pub(crate) fn cancel(&mut self, writer: EntityId, sequence: i64) {
        for destination in self.destinations.values_mut() {
            destination.retain_of(writer, |j| j.route.sequence != sequence || j.has_begun());
        }
    }

    /// Forgets a participant.
    pub(crate) fn forget(&mut self, prefix: GuidPrefix) {
        self.destinations.values_mut().for_each(|d| d.forget(prefix));
    }

    /// Forgets a remote reader: drops samples queued for it alone.
    pub(crate) fn forget_reader(&mut self, writer: EntityId, reader: EntityId, target: Target) {
        if let Some(destination) = self.destinations.get_mut(&target.address) {
            destination.retain_of(writer, |j| j.route.reader != reader || j.target != target);
        }
    }

    /// Forgets a local writer.
    pub(crate) fn forget_writer(&mut self, writer: EntityId) {
        for destination in self.destinations.values_mut() {
            destination.retain_of(writer, |_| false);
        }
    }

    /// Drops all samples.
    pub(crate) fn forget_samples(&mut self) {
        self.destinations
            .values_mut()
            .for_each(Destination::forget_samples);
    }

    /// Writes the next datagram into `out`, and returns its destination.
    pub(crate) fn next(
        &mut self,
        now: Duration,
        out: &mut Vec<u8>,
        heartbeat: &mut dyn FnMut(EntityId, EntityId) -> Option<Heartbeat>,
    ) -> Option<SocketAddrV4> {
        let after = self.turn.map_or(Bound::Unbounded, Bound::Excluded);
        let later = self.destinations.range((after, Bound::Unbounded));
        let all = later.chain(self.destinations.iter());
        let ready = all.filter(|(_, d)| d.ready_at().is_some_and(|at| at <= now));
        let address = ready.map(|(address, _)| *address).next()?;
        let destination = self.destinations.get_mut(&address)?;
        out.clear();
        encode::header(out, self.vendor, self.prefix);
        let sent = destination.fill(now, out, heartbeat);
        self.turn = Some(address);
        sent.then_some(address)
    }

    pub(crate) fn pause(&mut self, address: SocketAddrV4, until: Duration) {
        if let Some(destination) = self.destinations.get_mut(&address) {
            destination.pause(until);
        }
    }

    /// When there is something to send; `None` if nothing is queued.
    pub(crate) fn ready_at(&self) -> Option<Duration> {
        self.destinations.values().filter_map(Destination::ready_at).min()
    }

    /// Forgets idle addresses.
    pub(crate) fn tidy(&mut self, now: Duration) {
        self.destinations.retain(|_, d| !d.is_idle(now));
    }
}
