//! Sequences of operations between one publisher and two subscribers in one process, checked against a model.
//! The code under test is the code that runs between processes: memory, ring, the publisher's record, the
//! subscriber's connection and their sockets. Only the threads are missing, so a given byte sequence always
//! does the same.

use crate::block::{LABEL_WORD, Label, Plan};
use crate::budget::CONNECTION;
use crate::config::BusConfig;
use crate::connection::Connection;
use crate::content::{Content, ContentBox, FRONT};
use crate::folder::Folder;
use crate::frame::{Frame, MAX_FRAME};
use crate::housekeeping::Shared;
use crate::losses::Losses;
use crate::peer::{Attached, Terms};
use crate::pool::{BlockId, Pool};
use crate::ring::{self, Consumer, Geometry};
use crate::subscriber::QueuePolicy;
use crate::sys::doorbell::Doorbell;
use crate::sys::process::Peer;
use crate::sys::segment::RingMemory;
use crate::sys::socket::{Received, Socket};
use crate::waitset::Waiter;
use stats::DropReason;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// Loans, publications, takes, holds, releases, stops, deaths, departures, arrivals and lies. Each operation
/// is two bytes: its kind and its parameter.
pub fn operations(data: &[u8]) {
    let Some(mut world) = World::new() else { return };
    for op in data.chunks_exact(2).take(2_000) {
        world.step(op[0] % 16, op[1]);
        world.check();
    }
    world.end();
}

/// Lengths of the data part. They need segments of two classes, and some sizes make room for others.
const SIZES: [usize; 8] = [0, 100, 4_000, 40_000, 65_300, 100_000, 300_000, 900_000];
const LIMIT: u64 = 2 << 20;

struct World {
    pool: Pool,
    loans: Vec<(BlockId, Plan)>,
    subscribers: [Option<Reader>; 2],
    sequence: u64,
}

/// A subscriber, with the publisher's record of it.
struct Reader {
    attached: Attached,
    connection: Arc<Connection>,
    consumer: Consumer,
    /// What the queue should contain, oldest first.
    queue: VecDeque<u64>,
    held: Vec<ContentBox>,
    offered: u64,
    taken: u64,
    /// Whether its process is stopped.
    stopped: bool,
    /// Whether it takes no further messages.
    closed: bool,
    /// False once it has lied. From then on the model only checks that it harms nobody else.
    honest: bool,
}

/// Shared state of the connections. Its housekeeping does not run.
fn shared() -> Option<&'static Arc<Shared>> {
    static SHARED: OnceLock<Option<Arc<Shared>>> = OnceLock::new();
    let make = || {
        let dir = std::env::temp_dir().join(format!("ropewalk-fuzz-{}", std::process::id()));
        let config = BusConfig::new(&dir);
        let folder = Folder::open(&config).ok()?;
        // No socket is bound in it.
        let _ = std::fs::remove_dir(&dir);
        Shared::new(config, folder).ok().map(Arc::new)
    };
    SHARED.get_or_init(make).as_ref()
}

impl Reader {
    fn new(depth: u32, max_held: u32, quota: u64, queue: QueuePolicy) -> Option<Reader> {
        let shared = shared()?;
        let geometry = Geometry::new(depth, max_held)?;
        let (ring, fd) = RingMemory::new(geometry.words()).ok()?;
        ring::arm(ring.words(), true);
        let theirs = RingMemory::from_peer(fd, geometry.words()).ok()?;
        let (a, b) = Socket::pair().ok()?;
        let waiter = Arc::new(Waiter::new(false, shared.birth).ok()?);
        let clones = waiter
            .waker
            .for_peer()
            .into_iter()
            .map(|fd| fd.try_clone_to_owned());
        let bell = Arc::new(Doorbell::open(&clones.collect::<Result<Vec<OwnedFd>, _>>().ok()?).ok()?);
        let peer = Peer { pid: 0, uid: 0 };
        let grant = || shared.budget.take(peer, CONNECTION).ok();
        let connection = Connection::new(
            1,
            crate::Offer::default(),
            crate::Ros::Unstated,
            peer,
            b,
            ring,
            geometry,
            max_held as usize,
            waiter,
            shared.clone(),
            grant()?,
        );
        let terms = Terms {
            quota,
            queue,
            yields: true,
        };
        Some(Reader {
            attached: Attached::new(1, peer, Arc::new(a), bell, (theirs, geometry), terms, grant()?),
            connection: Arc::new(connection),
            consumer: Consumer::new(geometry),
            queue: VecDeque::new(),
            held: Vec::new(),
            offered: 0,
            taken: 0,
            stopped: false,
            closed: false,
            honest: true,
        })
    }

    fn take(&mut self) {
        if self.closed || self.connection.is_at_limit() {
            return;
        }
        // As in `Source`, a claim fails if the publisher dropped the message.
        let ring = self.connection.ring();
        let found = (0..=self.connection.geometry.depth()).find_map(|_| {
            let Some(taken) = self.consumer.next(ring) else {
                return Some(None);
            };
            let segment = self.connection.segment(taken.entry.segment);
            if let Ok(segment) = &segment {
                segment.touch(taken.entry.offset, FRONT.min(taken.entry.length as usize));
            }
            self.consumer
                .claim(ring, &taken)
                .then_some(Some((taken, segment)))
        });
        let Some((taken, segment)) = found.flatten() else {
            assert!(!self.honest || self.queue.is_empty(), "something is queued");
            return;
        };
        self.connection.hold();
        let mut content = self.connection.content(taken);
        let parsed = segment.and_then(|s| content.read(s)).ok();
        if self.honest {
            let expected = self.queue.pop_front();
            assert_eq!(Some(taken.entry.time), expected, "not the oldest that is queued");
            self.taken += 1;
            let label = parsed.map(|()| content.header.label.sequence);
            assert_eq!(label, expected, "not what its cell says");
        }
        match parsed {
            Some(()) => self.held.push(content),
            None => self.connection.release(content),
        }
    }

    fn release(&mut self, i: usize) {
        let content = self.held.swap_remove(i);
        let taken = content.taken;
        if self.honest {
            let mut end = [0; 8];
            assert!(content.copy(taken.entry.length - 8, &mut end));
            let sequence = taken.entry.time;
            assert_eq!(u64::from_ne_bytes(end), sequence, "written over while held");
            assert_eq!(content.control(), sequence.to_ne_bytes());
        }
        self.connection.release(content);
    }
}

impl World {
    fn new() -> Option<World> {
        let subscribers = [
            Reader::new(2, 2, 1 << 20, QueuePolicy::DropOldest),
            Reader::new(5, 1, 700_000, QueuePolicy::DropNewest),
        ];
        Some(World {
            pool: Pool::new(LIMIT),
            loans: Vec::new(),
            subscribers,
            sequence: 0,
        })
    }

    fn step(&mut self, op: u8, how: u8) {
        let pick = usize::from(how >> 1);
        match op {
            0 => self.loan(SIZES[pick % SIZES.len()]),
            1..=4 => {
                if self.loans.is_empty() {
                    self.loan(SIZES[pick % SIZES.len()]);
                }
                if !self.loans.is_empty() {
                    let loan = self.loans.swap_remove(pick % self.loans.len());
                    self.publish(loan);
                }
            }
            5 if !self.loans.is_empty() => {
                let (block, _) = self.loans.swap_remove(pick % self.loans.len());
                self.pool.unshare(block);
            }
            6 => self.run_short(),
            7 => self.hear(usize::from(how & 1)),
            14 => self.come_and_go(how),
            15 => self.lie(how),
            _ => self.read(op, how, pick),
        }
    }

    /// Performs an action of a running subscriber.
    fn read(&mut self, op: u8, how: u8, pick: usize) {
        let Some(reader) = self.subscribers[usize::from(how & 1)]
            .as_mut()
            .filter(|r| !r.stopped)
        else {
            return;
        };
        match op {
            8..=10 => reader.take(),
            11 | 12 if !reader.held.is_empty() => reader.release(pick % reader.held.len()),
            13 => _ = reader.connection.pump(),
            _ => {}
        }
    }

    fn loan(&mut self, part: usize) {
        let Some(plan) = Plan::new(8, &[part, 8]) else {
            return;
        };
        let len = plan.total();
        for reader in self.subscribers.iter_mut().flatten() {
            if let Err(hostile) = reader.attached.reap(&mut self.pool) {
                reader.attached.hostile = Some(hostile);
            }
        }
        self.remove_hostile();
        let subscribers = &mut self.subscribers;
        let found = self.pool.reuse(len).or_else(|| {
            let retire = |id| {
                let readers = subscribers.iter_mut().flatten();
                readers
                    .filter_map(|r| r.attached.retire(id).then_some(()))
                    .count()
            };
            self.pool.grow(len, retire).ok()
        });
        self.loans.extend(found.map(|block| (block, plan)));
        assert!(self.pool.reserved() <= LIMIT && self.pool.pinned() <= LIMIT);
    }

    fn publish(&mut self, (block, plan): (BlockId, Plan)) {
        self.sequence += 1;
        let at = self.pool.locate(block);
        let label = Label {
            sequence: self.sequence,
            ..Label::default()
        };
        let mut header = vec![0; plan.header_len()];
        plan.encode(&mut header);
        label.encode(&mut header[LABEL_WORD * 8..]);
        if let Some(memory) = self.pool.memory(at.slot) {
            let mark = self.sequence.to_ne_bytes();
            memory.write(at.offset, &header);
            memory.write(at.offset + plan.control.offset, &mark);
            memory.write(at.offset + at.len - 8, &mark);
        }
        for reader in self.subscribers.iter_mut().flatten() {
            let mut lost = Losses::default();
            // The time equals the sequence number, so that the model can tell messages apart.
            reader
                .attached
                .offer(&mut self.pool, block, at, self.sequence, &mut lost);
            if reader.attached.is_closing() {
                reader.queue.clear();
                continue;
            }
            reader.offered += 1;
            // Losses beyond the message that was not queued are older messages that made room.
            let pushed = reader.attached.pushed;
            let made_room = lost.total().saturating_sub(u64::from(!pushed));
            for _ in 0..made_room {
                reader.queue.pop_front();
            }
            if pushed {
                reader.queue.push_back(self.sequence);
            }
            if reader.attached.must_ring() {
                reader.attached.bell.ring();
            }
        }
        self.pool.unshare(block);
        self.remove_hostile();
    }

    /// Memory is short: the subscriber with the most bytes loses its oldest message.
    fn run_short(&mut self) {
        let readers = self.subscribers.iter_mut().flatten();
        let Some(reader) = readers
            .filter(|r| r.attached.queued() > 0)
            .max_by_key(|r| r.attached.bytes())
        else {
            return;
        };
        match reader
            .attached
            .drop_oldest(&mut self.pool, DropReason::MemoryShort)
        {
            Ok(true) => _ = reader.queue.pop_front(),
            Ok(false) => {}
            Err(hostile) => reader.attached.hostile = Some(hostile),
        }
        self.remove_hostile();
    }

    /// The publisher's housekeeping reads what a subscriber sent, or notices that it is gone.
    fn hear(&mut self, slot: usize) {
        let Some(reader) = &mut self.subscribers[slot] else {
            return;
        };
        let mut buffer = [0; MAX_FRAME];
        loop {
            let frame = match reader.attached.socket.receive(&mut buffer) {
                Ok(Received::Nothing) => return self.remove_hostile(),
                Ok(Received::Message(n, _)) => Frame::decode(&buffer[..n]).ok(),
                _ => None,
            };
            match frame {
                Some(Frame::Unmapped { id }) => reader.attached.unmapped(id, &mut self.pool),
                Some(Frame::Closing) => {
                    if let Err(hostile) = reader.attached.close(&mut self.pool) {
                        reader.attached.hostile = Some(hostile);
                    }
                    reader.queue.clear();
                }
                _ => return self.part_with(slot),
            }
        }
    }

    /// The subscriber stops, continues, closes or dies, or a new one connects.
    fn come_and_go(&mut self, how: u8) {
        let slot = usize::from(how & 1);
        match (&mut self.subscribers[slot], how >> 1 & 7) {
            (Some(reader), 0..=2) => reader.stopped = true,
            (Some(reader), 3..=5) => reader.stopped = false,
            (Some(reader), 6) if !reader.stopped && !reader.closed => {
                reader.closed = true;
                reader.connection.close();
            }
            // Its views go with it, unreleased; the publisher notices the hang-up.
            (Some(reader), _) => {
                reader.connection.socket().hang_up();
                self.hear(slot);
            }
            (None, _) => {
                let quota = [1 << 20, 700_000, 100_000][usize::from(how >> 4) % 3];
                let queue = [QueuePolicy::DropOldest, QueuePolicy::DropNewest][usize::from(how >> 3 & 1)];
                let (depth, max_held) = (1 + u32::from(how >> 1 & 3), 1 + u32::from(how >> 5));
                self.subscribers[slot] = Reader::new(depth, max_held, quota, queue);
            }
        }
    }

    /// Overwrites a word of its ring with a wrong value.
    fn lie(&mut self, how: u8) {
        if let Some(reader) = &mut self.subscribers[usize::from(how & 1)] {
            reader.honest = false;
            let words = reader.connection.ring();
            let word = &words[usize::from(how) * 7 % words.len()];
            word.store(word.load(Ordering::Relaxed) ^ 1 << (how % 64), Ordering::Relaxed);
        }
    }

    fn remove_hostile(&mut self) {
        for slot in 0..self.subscribers.len() {
            if let Some(reader) = &self.subscribers[slot]
                && reader.attached.hostile.is_some()
            {
                assert!(!reader.honest, "an honest subscriber was disconnected");
                self.part_with(slot);
            }
        }
    }

    fn part_with(&mut self, slot: usize) {
        if let Some(mut reader) = self.subscribers[slot].take() {
            reader.attached.clear(&mut self.pool);
        }
    }

    /// Checks that no two blocks in use overlap, that blocks held by subscribers are in use, and that every
    /// message is accounted for.
    fn check(&self) {
        let mut used: Vec<_> = self.loans.iter().map(|(block, _)| *block).collect();
        for reader in self.subscribers.iter().flatten() {
            used.extend(reader.attached.blocks());
        }
        used.sort_unstable();
        used.dedup();
        let mut ranges: Vec<_> = used
            .iter()
            .map(|b| self.pool.locate(*b))
            .map(|l| (l.segment, l.offset, l.len))
            .collect();
        ranges.sort_unstable();
        for pair in ranges.windows(2) {
            assert!(
                pair[0].0 != pair[1].0 || pair[0].1 + pair[0].2 <= pair[1].1,
                "blocks overlap: {pair:?}"
            );
        }
        assert_eq!(self.pool.used(), ranges.iter().map(|r| r.2).sum::<u64>());
        for reader in self.subscribers.iter().flatten().filter(|r| r.honest) {
            for Content { taken, .. } in reader.held.iter().map(|c| &**c) {
                let at = (taken.entry.segment, taken.entry.offset, taken.entry.length);
                assert!(ranges.contains(&at), "a held block was freed");
            }
            let lost = reader.attached.losses;
            assert_eq!(reader.connection.losses(), lost, "it learns of every loss");
            if !reader.attached.is_closing() && !reader.closed {
                let accounted = reader.taken + reader.queue.len() as u64 + lost.total();
                assert_eq!(reader.offered, accounted, "taken, queued and lost");
            }
        }
    }

    fn end(mut self) {
        (0..self.subscribers.len()).for_each(|slot| self.part_with(slot));
        self.loans.drain(..).for_each(|(b, _)| self.pool.unshare(b));
        assert_eq!(
            (self.pool.used(), self.pool.pinned()),
            (0, 0),
            "a block or a segment leaked"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worlds leave neither descriptors nor mappings behind. Counted in a process of its own.
    #[test]
    fn a_world_ends_with_nothing_left() {
        if std::env::var_os("RW_WORLD").is_none() {
            let name = "fuzzing::operations::tests::a_world_ends_with_nothing_left";
            let status = std::process::Command::new(std::env::current_exe().unwrap())
                .args([name, "--exact"])
                .env("RW_WORLD", "1")
                .stdout(std::process::Stdio::null())
                .status();
            return assert!(status.unwrap().success());
        }
        let count = || {
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            let shared = maps.lines().filter(|l| l.contains("ropewalk-")).count();
            (std::fs::read_dir("/proc/self/fd").unwrap().count(), shared)
        };
        let bytes: Vec<u8> = (0..4_000u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 21) as u8)
            .collect();
        operations(&bytes);
        let before = count();
        (0..20).for_each(|i| operations(&bytes[i..]));
        assert_eq!(count(), before);
    }
}
