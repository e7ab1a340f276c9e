//! What fuzz targets call, and the same as tests on seeds. Nothing here may panic on any input.

use crate::block::{FIXED, Header, Range, table_entry, table_is_inside};
use crate::frame::Frame;
use crate::losses::Losses;
use crate::peer::{Attached, Terms};
use crate::pool::{BlockId, Pool};
use crate::ring::{self, Consumer, Geometry, Taken};
use crate::subscriber::QueuePolicy;
use crate::sys::doorbell::{Doorbell, Waker};
use crate::sys::process::Peer;
use crate::sys::segment::RingMemory;
use crate::sys::socket::Socket;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A frame as another process may send it.
pub fn handshake(data: &[u8]) {
    if let Ok(frame) = Frame::decode(data) {
        assert_eq!(frame.encode(), data, "a frame has one encoding");
    }
}

/// A block's header as a hostile publisher may write it; the first eight bytes are the block's length.
pub fn header(data: &[u8]) {
    let Some((len, bytes)) = data.split_first_chunk() else {
        return;
    };
    let block = u64::from_le_bytes(*len);
    let Some(header) = bytes.first_chunk().and_then(|fixed| Header::parse(fixed, block)) else {
        return;
    };
    let is_inside = |range: Range| {
        range
            .offset
            .checked_add(range.len)
            .is_some_and(|end| end <= block)
    };
    assert!(is_inside(header.control));
    let Some(table) = bytes.get(FIXED..FIXED + header.table_len()) else {
        return;
    };
    if table_is_inside(table, block) {
        assert!((0..header.parts).all(|i| table_entry(table, i).is_some_and(is_inside)));
    }
}

/// A sequence of loans, publications, takes, releases, drops, departures and lies between one publisher and two
/// subscribers, against a model. Each operation is two bytes: which, and how.
pub fn operations(data: &[u8]) {
    let Some(mut world) = World::new() else { return };
    for op in data.chunks_exact(2).take(2_000) {
        world.step(op[0], op[1]);
        world.check();
    }
    world.end();
}

const SIZES: [u64; 8] = [256, 320, 4096, 40_000, 65_536, 100_032, 300_032, 900_032];

struct World {
    pool: Pool,
    loans: Vec<BlockId>,
    subscribers: [Option<Reader>; 2],
    sequence: u64,
}

struct Reader {
    attached: Attached,
    ring: Arc<RingMemory>,
    geometry: Geometry,
    consumer: Consumer,
    /// What should be in the queue, oldest first.
    queue: VecDeque<u64>,
    held: Vec<(Taken, u64)>,
    /// Once it has lied, nothing is expected of it but that it hurts nobody else.
    honest: bool,
    _other_end: Socket,
    _waker: Waker,
}

impl Reader {
    fn new(depth: u32, max_held: u32, quota: u64) -> Option<Reader> {
        let geometry = Geometry::new(depth, max_held)?;
        let (ring, fd) = RingMemory::new(geometry.words()).ok()?;
        ring::arm(ring.words(), true);
        let theirs = RingMemory::from_peer(fd, geometry.words()).ok()?;
        let (a, b) = Socket::pair().ok()?;
        let waker = Waker::new(false).ok()?;
        let clones = waker.for_peer().into_iter().map(|fd| fd.try_clone_to_owned());
        let bell = Arc::new(Doorbell::open(&clones.collect::<Result<Vec<OwnedFd>, _>>().ok()?).ok()?);
        let peer = Peer { pid: 0, uid: 0 };
        let terms = Terms {
            quota,
            queue: QueuePolicy::DropOldest,
            yields: true,
        };
        Some(Reader {
            attached: Attached::new(1, peer, Arc::new(a), bell, (theirs, geometry), terms),
            ring: Arc::new(ring),
            geometry,
            consumer: Consumer::new(geometry),
            queue: VecDeque::new(),
            held: Vec::new(),
            honest: true,
            _other_end: b,
            _waker: waker,
        })
    }
}

impl World {
    fn new() -> Option<World> {
        let subscribers = [Reader::new(2, 2, 1 << 20), Reader::new(5, 1, 700_000)];
        Some(World {
            pool: Pool::new(2 << 20),
            loans: Vec::new(),
            subscribers,
            sequence: 0,
        })
    }

    fn step(&mut self, op: u8, how: u8) {
        let pick = usize::from(how >> 1);
        match op % 8 {
            0 => self.loan(SIZES[pick % SIZES.len()]),
            1 | 2 => {
                if self.loans.is_empty() {
                    self.loan(SIZES[pick % SIZES.len()]);
                }
                if !self.loans.is_empty() {
                    let block = self.loans.swap_remove(pick % self.loans.len());
                    self.publish(block);
                }
            }
            3 | 4 => {
                if let Some(reader) = &mut self.subscribers[usize::from(how & 1)] {
                    reader.take();
                }
            }
            5 => {
                if let Some(reader) = &mut self.subscribers[usize::from(how & 1)]
                    && !reader.held.is_empty()
                {
                    let (taken, _) = reader.held.swap_remove(pick % reader.held.len());
                    ring::release(reader.ring.words(), reader.geometry, taken.cell, taken.number);
                }
            }
            6 => {
                if !self.loans.is_empty() {
                    let block = self.loans.swap_remove(pick % self.loans.len());
                    self.pool.unshare(block);
                }
            }
            _ => self.upset(how),
        }
    }

    fn loan(&mut self, len: u64) {
        let found = self.pool.reuse(len).or_else(|| {
            for reader in self.subscribers.iter_mut().flatten() {
                if let Err(hostile) = reader.attached.reap(&mut self.pool) {
                    reader.attached.hostile = Some(hostile);
                }
            }
            let subscribers = &mut self.subscribers;
            self.pool.reuse(len).or_else(|| {
                let retire = |id| {
                    subscribers
                        .iter_mut()
                        .flatten()
                        .filter_map(|r| r.attached.retire(id).then_some(()))
                        .count()
                };
                self.pool.grow(len, retire).ok()
            })
        });
        self.loans.extend(found);
        self.remove_hostile();
    }

    fn publish(&mut self, block: BlockId) {
        self.sequence += 1;
        let at = self.pool.locate(block);
        for reader in self.subscribers.iter_mut().flatten() {
            let mut lost = Losses::default();
            // The time is the sequence, so that the model can tell messages apart.
            reader
                .attached
                .offer(&mut self.pool, block, at, self.sequence, &mut lost);
            let pushed = u64::from(reader.attached.pushed);
            // What was lost beside a message that was not queued made room.
            let made_room = if pushed == 1 {
                lost.total()
            } else {
                lost.total().saturating_sub(1)
            };
            for _ in 0..made_room {
                reader.queue.pop_front();
            }
            if pushed == 1 {
                reader.queue.push_back(self.sequence);
            }
        }
        self.pool.unshare(block);
        self.remove_hostile();
    }

    /// The subscriber leaves, closes, lies, or a new one comes.
    fn upset(&mut self, how: u8) {
        let slot = usize::from(how & 1);
        match (&mut self.subscribers[slot], how >> 1 & 7) {
            (Some(reader), 0) => {
                reader.attached.clear(&mut self.pool);
                self.subscribers[slot] = None;
            }
            (Some(reader), 1) => {
                reader.honest = false;
                ring::close(reader.ring.words());
            }
            (Some(reader), n) if n > 1 => {
                reader.honest = false;
                let words = reader.ring.words();
                let word = &words[usize::from(how) * 7 % words.len()];
                word.store(word.load(Ordering::Relaxed) ^ 1 << (how % 64), Ordering::Relaxed);
            }
            (None, _) => self.subscribers[slot] = Reader::new(1 + u32::from(how % 3), 1, 1 << 20),
            _ => {}
        }
    }

    fn remove_hostile(&mut self) {
        for slot in &mut self.subscribers {
            if let Some(reader) = slot
                && reader.attached.hostile.is_some()
            {
                assert!(!reader.honest, "an honest subscriber was thrown out");
                reader.attached.clear(&mut self.pool);
                *slot = None;
            }
        }
    }

    /// No two blocks in use overlap, and what a subscriber holds is in use.
    fn check(&self) {
        let mut used: Vec<_> = self.loans.clone();
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
            for (taken, _) in &reader.held {
                let at = (taken.place.segment, taken.place.offset, taken.place.length);
                assert!(ranges.contains(&at), "a held block was freed");
            }
        }
    }

    fn end(mut self) {
        for mut reader in self.subscribers.iter_mut().filter_map(Option::take) {
            reader.attached.clear(&mut self.pool);
        }
        self.loans.drain(..).for_each(|b| self.pool.unshare(b));
        assert_eq!(self.pool.used(), 0, "a block leaked");
    }
}

impl Reader {
    fn take(&mut self) {
        let taken = self.consumer.take(self.ring.words());
        if !self.honest {
            self.held.extend(taken.map(|t| (t, 0)));
            return;
        }
        if self.held.len() + 1 > self.geometry.cells() {
            return;
        }
        assert_eq!(
            taken.map(|t| t.place.time),
            self.queue.pop_front(),
            "not the oldest that is queued"
        );
        self.held.extend(taken.map(|t| (t, t.place.time)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Replays the seeds and past findings of a fuzz target.
    fn replay(target: &str, run: fn(&[u8])) {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fuzz/corpus")
            .join(target);
        let mut count = 0;
        for entry in std::fs::read_dir(&dir).unwrap_or_else(|e| panic!("{dir:?}: {e}")) {
            run(&std::fs::read(entry.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count > 0, "{dir:?} is empty");
    }

    #[test]
    fn corpora() {
        replay("bus_handshake", handshake);
        replay("bus_header", header);
        replay("bus_operations", operations);
    }

    #[test]
    fn random_operations_agree_with_the_model() {
        let mut seed = 0x5EED_u64;
        let mut random = || {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (seed >> 33) as u8
        };
        let rounds = if cfg!(debug_assertions) { 200 } else { 2_000 };
        for round in 0..rounds {
            // Every other run is without lies.
            let ops = if round % 2 == 0 { 7 } else { 8 };
            let data: Vec<u8> = (0..600)
                .map(|i| if i % 2 == 0 { random() % ops } else { random() })
                .collect();
            operations(&data);
        }
    }
}
