//! A connected subscriber, as its publisher keeps it.

use crate::budget::{Grant, Holder};
use crate::frame::Frame;
use crate::losses::Losses;
use crate::pool::{BlockId, Location, Pool};
use crate::publisher::SubscriberPeer;
use crate::ring::{self, Geometry, Hostile, Producer, QueueEntry};
use crate::subscriber::QueuePolicy;
use crate::sys;
use crate::sys::doorbell::Doorbell;
use crate::sys::process::Peer;
use crate::sys::segment::RingMemory;
use crate::sys::socket::Socket;
use stats::DropReason;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a subscriber may take to unmap a segment when memory is short. Its housekeeping normally does it
/// at once.
const PIN_PATIENCE: Duration = Duration::from_secs(1);

/// Limits of a subscriber, and what is dropped when they are reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// Maximum bytes queued and held.
    pub(crate) quota: u64,
    /// Which message a full queue loses.
    pub(crate) queue: QueuePolicy,
    /// Whether queued messages may be dropped to stay within the quota.
    pub(crate) yields: bool,
}

/// A publisher's private record of a connected subscriber and of the blocks that it has.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) id: u64,
    pub(crate) peer: Peer,
    pub(crate) socket: Arc<Socket>,
    pub(crate) bell: Arc<Doorbell>,
    /// Whether the current publish queued a message here.
    pub(crate) pushed: bool,
    /// Whether a message was queued here and the subscriber was not notified.
    owed: bool,
    /// Whether the current publish rang its doorbell.
    pub(crate) rung: bool,
    /// Set if it broke the protocol and must be disconnected.
    pub(crate) hostile: Option<Hostile>,
    pub(crate) losses: Losses,
    ring: RingMemory,
    producer: Producer<BlockId>,
    /// Whether the messages offered were published before it joined.
    pub(crate) replaying: bool,
    terms: Terms,
    bytes: u64,
    /// Segments whose descriptor was sent to it.
    known: Vec<u64>,
    /// Segments that it must unmap, notified or still to be notified, and since when.
    leaving: Vec<(u64, Instant)>,
    /// How many of the last entries of `leaving` have not been sent to it yet.
    unreported: usize,
    /// Whether it reported that it takes messages. Messages are queued to it before that.
    pub(crate) ready: bool,
    closing: bool,
    grant: Grant,
}

impl Attached {
    pub(crate) fn new(
        id: u64,
        peer: Peer,
        socket: Arc<Socket>,
        bell: Arc<Doorbell>,
        ring: (RingMemory, Geometry),
        terms: Terms,
        grant: Grant,
    ) -> Self {
        Attached {
            id,
            peer,
            socket,
            bell,
            pushed: false,
            owed: false,
            rung: false,
            hostile: None,
            losses: Losses::default(),
            producer: Producer::new(ring.1),
            ring: ring.0,
            replaying: false,
            terms,
            bytes: 0,
            known: Vec::with_capacity(8),
            leaving: Vec::new(),
            unreported: 0,
            ready: false,
            closing: false,
            grant,
        }
    }

    /// Queues `block`, dropping messages to make room. Losses are also added to `dropped`. Returns true if
    /// there was room at once; otherwise it may have been found hostile.
    ///
    /// Only the most frequent path is in this function: after a long sleep every line of code has to be
    /// fetched.
    #[inline(always)]
    pub(crate) fn offer(
        &mut self,
        pool: &mut Pool,
        block: BlockId,
        at: Location,
        now: u64,
        dropped: &mut Losses,
    ) -> bool {
        self.pushed = false;
        // The states of taken and released cells are in cache lines that the subscriber wrote last. While there is
        // room, they are read after all doorbells were rung, or when the next block is loaned.
        let easy = self.has_room_for(at.len)
            && !self.closing
            && self.unreported == 0
            && self.known.contains(&at.segment)
            && !ring::is_closing(self.ring.words());
        if easy {
            self.push(pool, block, at, now);
        } else {
            self.offer_with_care(pool, block, at, now, dropped);
        }
        easy
    }

    #[cold]
    #[inline(never)]
    fn offer_with_care(
        &mut self,
        pool: &mut Pool,
        block: BlockId,
        at: Location,
        now: u64,
        dropped: &mut Losses,
    ) {
        let before = self.losses;
        if let Err(hostile) = self.try_offer(pool, block, at, now) {
            self.hostile = Some(hostile);
        }
        if self.losses != before {
            dropped.merge(&self.losses.since(&before));
        }
    }

    fn try_offer(&mut self, pool: &mut Pool, block: BlockId, at: Location, now: u64) -> Result<(), Hostile> {
        self.reap(pool)?;
        if self.closing {
            return Ok(());
        }
        if !self.know(at.segment, pool) {
            self.lose(DropReason::PeerStalled);
            return Ok(());
        }
        let Terms { quota, queue, yields } = self.terms;
        while !self.producer.has_room() {
            if queue == QueuePolicy::DropNewest {
                self.lose(DropReason::QueueFull);
                return Ok(());
            }
            self.drop_oldest(pool, DropReason::QueueFull)?;
        }
        while yields
            && self.bytes.saturating_add(at.len) > quota
            && self.drop_oldest(pool, DropReason::HoldLimit)?
        {}
        // A message larger than the whole quota is queued if the subscriber has nothing else.
        if self.bytes > 0 && self.bytes.saturating_add(at.len) > quota {
            self.lose(DropReason::HoldLimit);
            return Ok(());
        }
        let cell = self.producer.has_cell() || yields && self.drop_oldest(pool, DropReason::HoldLimit)?;
        if !cell {
            self.lose(DropReason::HoldLimit);
            return Ok(());
        }
        self.push(pool, block, at, now);
        Ok(())
    }

    /// Wakes the subscriber because a message is about to be filled, if the subscriber requested that.
    pub(crate) fn wake_early(&self) {
        if ring::wakes_early(self.ring.words()) {
            self.bell.ring();
        }
    }

    /// Prefetches into this processor's caches what offering a message and ringing will need.
    pub(crate) fn touch(&self) {
        sys::prefetch(std::ptr::from_ref(self).cast(), size_of::<Self>());
        sys::prefetch(self.producer.end_of_queue().cast(), 1);
        self.producer.touch(self.ring.words());
        std::hint::black_box((Arc::strong_count(&self.bell), self.known.first().copied()));
    }

    /// Queues `block`, or returns the reason why it does not fit; no queued message is dropped for it. The
    /// subscriber learns of the refusal as a loss.
    pub(crate) fn offer_or_refuse(
        &mut self,
        pool: &mut Pool,
        block: BlockId,
        at: Location,
        now: u64,
    ) -> Result<(), DropReason> {
        self.pushed = false;
        let refusal = match self.reap(pool) {
            Err(hostile) => {
                self.hostile = Some(hostile);
                return Err(DropReason::NoPeer);
            }
            Ok(()) if self.closing => return Err(DropReason::NoPeer),
            Ok(()) if !self.know(at.segment, pool) => Some(DropReason::PeerStalled),
            Ok(()) if !self.producer.has_room() => Some(DropReason::QueueFull),
            Ok(()) if self.bytes > 0 && self.bytes.saturating_add(at.len) > self.terms.quota => {
                Some(DropReason::HoldLimit)
            }
            Ok(()) if !self.producer.has_cell() => Some(DropReason::HoldLimit),
            Ok(()) => None,
        };
        match refusal {
            None => {
                self.push(pool, block, at, now);
                Ok(())
            }
            Some(reason) => {
                self.lose(reason);
                Err(reason)
            }
        }
    }

    #[inline(always)]
    fn push(&mut self, pool: &mut Pool, block: BlockId, at: Location, now: u64) {
        let entry = QueueEntry {
            segment: at.segment,
            offset: at.offset,
            length: at.len,
            time: now,
            lost: self.losses.total(),
            history: self.replaying,
        };
        if self.producer.push(self.ring.words(), entry, block) {
            pool.share(block);
            self.bytes += at.len;
            self.pushed = true;
        }
    }

    /// Whether a message of `len` bytes can be queued without dropping any, as of the last
    /// [`Attached::reap`].
    fn has_room_for(&self, len: u64) -> bool {
        self.producer.has_room()
            && self.producer.has_cell()
            && self.bytes.saturating_add(len) <= self.terms.quota
    }

    /// Whether queueing a message of `len` bytes would drop it or an older one, as of the last
    /// [`Attached::reap`].
    pub(crate) fn is_full(&self, len: u64) -> bool {
        let fits = self.bytes == 0 || self.bytes.saturating_add(len) <= self.terms.quota;
        !(self.closing || self.producer.has_room() && self.producer.has_cell() && fits)
    }

    /// Reads what the subscriber took and released, and whether it is closing.
    pub(crate) fn reap(&mut self, pool: &mut Pool) -> Result<(), Hostile> {
        let bytes = &mut self.bytes;
        self.producer
            .reap(self.ring.words(), |block| free(pool, bytes, block))?;
        if !self.closing && ring::is_closing(self.ring.words()) {
            self.close(pool)?;
        }
        Ok(())
    }

    /// The subscriber takes no further messages: frees the queued blocks. Blocks that it holds stay held
    /// until it hangs up.
    pub(crate) fn close(&mut self, pool: &mut Pool) -> Result<(), Hostile> {
        self.closing = true;
        let bytes = &mut self.bytes;
        while let Some(block) = self
            .producer
            .drop_oldest(self.ring.words(), |b| free(pool, bytes, b))?
        {
            free(pool, bytes, block);
        }
        Ok(())
    }

    /// Takes its oldest queued message back. Returns false if nothing was queued.
    pub(crate) fn drop_oldest(&mut self, pool: &mut Pool, reason: DropReason) -> Result<bool, Hostile> {
        let bytes = &mut self.bytes;
        let dropped = self
            .producer
            .drop_oldest(self.ring.words(), |block| free(pool, bytes, block))?;
        let Some(block) = dropped else { return Ok(false) };
        free(pool, &mut self.bytes, block);
        self.lose(reason);
        Ok(true)
    }

    /// Defers the notification for what the current publish queued here, if anything.
    pub(crate) fn is_owed(&mut self) {
        self.owed |= self.pushed;
    }

    /// Schedules the deferred notification, if the messages are still queued.
    pub(crate) fn schedule_owed(&mut self) {
        self.pushed = std::mem::take(&mut self.owed) && self.producer.waits(self.ring.words());
    }

    /// Whether the doorbell must be rung. Call it after a push and a fence.
    pub(crate) fn must_ring(&self) -> bool {
        self.pushed && ring::disarm(self.ring.words())
    }

    /// Frees everything that it has.
    pub(crate) fn clear(&mut self, pool: &mut Pool) {
        for block in self.producer.blocks() {
            pool.unshare(block);
        }
        for (id, _) in self.leaving.drain(..) {
            pool.unmapped(id);
        }
    }

    /// Segment `id` is given up. Returns true if the subscriber maps it and so pins it.
    pub(crate) fn retire(&mut self, id: u64) -> bool {
        let Some(i) = self.known.iter().position(|k| *k == id) else {
            return false;
        };
        self.known.swap_remove(i);
        self.leaving.push((id, Instant::now()));
        self.unreported += 1;
        self.report_retired();
        true
    }

    /// The subscriber reports that it no longer maps segment `id`.
    pub(crate) fn unmapped(&mut self, id: u64, pool: &mut Pool) {
        let reported = self.leaving.len() - self.unreported;
        if let Some(i) = self.leaving[..reported].iter().position(|(l, _)| *l == id) {
            self.leaving.remove(i);
            pool.unmapped(id);
        }
    }

    /// Whether it was asked long ago to unmap a segment and has not done so: its process is stopped or hostile.
    pub(crate) fn pins_for_long(&self) -> bool {
        self.leaving
            .first()
            .is_some_and(|(_, since)| since.elapsed() >= PIN_PATIENCE)
    }

    /// The holder that it counts towards.
    pub(crate) fn holder(&self) -> Holder {
        self.grant.holder()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn queued(&self) -> usize {
        self.producer.queued()
    }

    /// The blocks that it has queued or held.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.producer.blocks()
    }

    /// The blocks that it has taken and not released.
    pub(crate) fn held_blocks(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.producer.held_blocks()
    }

    /// Maximum bytes that it may have queued and held.
    pub(crate) fn quota(&self) -> u64 {
        self.terms.quota
    }

    /// Maximum number of queued messages.
    pub(crate) fn depth(&self) -> usize {
        self.producer.depth()
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing
    }

    pub(crate) fn report(&self) -> SubscriberPeer {
        SubscriberPeer {
            id: self.id,
            pid: self.peer.pid,
            uid: self.peer.uid,
            queued: self.producer.queued(),
            held: self.producer.held(),
            depth: self.producer.depth(),
            bytes: self.bytes,
            quota: self.terms.quota,
            ready: self.ready,
            closing: self.closing,
            drops: self.losses.drops(),
        }
    }

    /// Sends the segment's descriptor if it was not sent yet. It must precede the first block in the segment.
    fn know(&mut self, id: u64, pool: &Pool) -> bool {
        if self.unreported > 0 {
            self.report_retired();
        }
        if self.known.contains(&id) {
            return true;
        }
        let Some(memory) = pool.segment(id) else {
            return false;
        };
        let frame = Frame::Segment {
            id,
            len: memory.len(),
        };
        if self.socket.send(&frame.encode(), &[memory.fd().as_fd()]).is_err() {
            return false;
        }
        crate::hooks::step("segment-sent");
        self.known.push(id);
        true
    }

    fn report_retired(&mut self) {
        while self.unreported > 0 {
            let (id, _) = self.leaving[self.leaving.len() - self.unreported];
            if self.socket.send(&Frame::Retire { id }.encode(), &[]).is_err() {
                break;
            }
            self.unreported -= 1;
            crate::hooks::step("retire-sent");
        }
    }

    fn lose(&mut self, reason: DropReason) {
        self.losses.add(reason, 1);
        self.producer
            .report_losses(self.ring.words(), std::array::from_fn(|i| self.losses.get(i)));
    }
}

fn free(pool: &mut Pool, bytes: &mut u64, block: BlockId) {
    *bytes = bytes.saturating_sub(pool.len_of(block));
    pool.unshare(block);
}
