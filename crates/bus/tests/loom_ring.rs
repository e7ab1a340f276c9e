//! Checks every interleaving of a publisher and a subscriber on a ring and a doorbell, with
//! loom (decision 040).
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p ropewalk-bus --release --test loom_ring`
#![cfg(loom)]
#![allow(missing_docs)]

use bus::ring::{
    self, Bell, Consumer, Geometry, Hostile, Memory, Producer, QueueEntry, Taken, Word, disarm, rearm,
    release,
};
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use loom::sync::{Arc, Mutex};
use loom::thread;

enum LoomWord {
    Modelled(AtomicU64),
    /// Three of an entry's five fields. All are written and read in the same way, and two of them, each with
    /// every value that a racing read may return, reveal a mixture as well as five would, in a thousandth of
    /// the time.
    Plain(std::sync::atomic::AtomicU64),
}

impl Word for LoomWord {
    fn load(&self, order: std::sync::atomic::Ordering) -> u64 {
        match self {
            LoomWord::Modelled(word) => word.load(order),
            LoomWord::Plain(word) => word.load(order),
        }
    }
    fn store(&self, value: u64, order: std::sync::atomic::Ordering) {
        match self {
            LoomWord::Modelled(word) => word.store(value, order),
            LoomWord::Plain(word) => word.store(value, order),
        }
    }
    fn swap(&self, value: u64, order: std::sync::atomic::Ordering) -> u64 {
        match self {
            LoomWord::Modelled(word) => word.swap(value, order),
            LoomWord::Plain(word) => word.swap(value, order),
        }
    }
    fn compare_exchange(&self, current: u64, new: u64) -> Result<(), u64> {
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        match self {
            LoomWord::Modelled(word) => word.compare_exchange(current, new, success, failure),
            LoomWord::Plain(word) => word.compare_exchange(current, new, success, failure),
        }
        .map(|_| ())
    }
}

struct Ring(Vec<LoomWord>);

impl Memory for Ring {
    type Word = LoomWord;
    fn word(&self, index: usize) -> &LoomWord {
        &self.0[index]
    }
    fn fence() {
        fence(Ordering::SeqCst);
    }
}

impl Ring {
    fn new(g: Geometry) -> Arc<Ring> {
        // Entries begin at word 16 and have eight words each: number and cell, then segment, offset, length,
        // time, lost.
        let entries = 16..16 + 8 * g.depth();
        let is_plain = |i| entries.contains(&i) && matches!(i % 8, 1 | 4 | 5);
        let word = |i| match is_plain(i) {
            true => LoomWord::Plain(0.into()),
            false => LoomWord::Modelled(AtomicU64::new(0)),
        };
        Arc::new(Ring((0..g.words()).map(word).collect()))
    }
}

/// A pipe: readable while it holds bytes.
struct Pipe(Mutex<u32>);

impl Bell for Pipe {
    fn ring(&self) {
        *self.0.lock().unwrap() += 1;
    }
    fn drain(&self) {
        *self.0.lock().unwrap() = 0;
    }
}

impl Pipe {
    fn is_readable(&self) -> bool {
        *self.0.lock().unwrap() > 0
    }
}

/// The payload of block `i`: a cell that loom checks for races. The publisher writes it before a push, the
/// subscriber reads it between taking and releasing.
type Blocks = Arc<Vec<loom::cell::UnsafeCell<u64>>>;

fn blocks(n: usize) -> Blocks {
    Arc::new((0..n).map(|_| loom::cell::UnsafeCell::new(0)).collect())
}

fn write(blocks: &Blocks, i: u64, value: u64) {
    // SAFETY: loom checks that nobody else accesses it, which is what this tests.
    blocks[i as usize].with_mut(|p| unsafe { *p = value });
}

fn read(blocks: &Blocks, taken: &Taken) -> u64 {
    // SAFETY: as in `write`.
    blocks[taken.entry.offset as usize].with(|p| unsafe { *p })
}

/// A minimal publisher: as many blocks as cells, reused as soon as the protocol says that they are free.
struct Publisher {
    producer: Producer<u64>,
    free: Vec<u64>,
    dropped: u64,
}

impl Publisher {
    fn new(g: Geometry) -> Self {
        Publisher {
            producer: Producer::new(g),
            free: (0..g.cells() as u64).rev().collect(),
            dropped: 0,
        }
    }

    fn publish(&mut self, ring: &Ring, blocks: &Blocks, value: u64) -> Result<bool, Hostile> {
        let free = &mut self.free;
        self.producer.reap(ring, |b| free.push(b))?;
        while !self.producer.has_room() || !self.producer.has_cell() {
            let free = &mut self.free;
            match self.producer.drop_oldest(ring, |b| free.push(b))? {
                Some(block) => {
                    self.free.push(block);
                    self.dropped += 1;
                }
                None => break,
            }
        }
        let Some(block) = self.free.pop() else {
            return Ok(false);
        };
        write(blocks, block, value);
        let entry = QueueEntry {
            segment: 1,
            offset: block,
            length: value,
            time: value,
            ..QueueEntry::default()
        };
        assert!(self.producer.push(ring, entry, block), "room was made");
        Ok(true)
    }
}

/// Dropping the oldest message against taking it, with a depth of one, so that every push reuses what the
/// subscriber may be taking: no torn take, no race on a block, order kept, every loss counted.
#[test]
fn drop_oldest_against_take_and_release() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let g = Geometry::new(1, 1).unwrap();
        let (ring, data) = (Ring::new(g), blocks(2));
        let subscriber = {
            let (ring, data) = (ring.clone(), data.clone());
            thread::spawn(move || {
                let mut consumer = Consumer::new(g);
                let mut got = vec![];
                for _ in 0..2 {
                    if let Some(taken) = consumer.take(&*ring) {
                        assert_eq!(
                            read(&data, &taken),
                            taken.entry.length,
                            "the cell names another block"
                        );
                        assert_eq!(taken.entry.length, taken.number);
                        got.push(taken.number);
                        release(&*ring, g, taken.cell, taken.number);
                    }
                }
                (got, consumer)
            })
        };
        let mut publisher = Publisher::new(g);
        let mut pushed = 0;
        for value in 1..=3 {
            pushed += u64::from(publisher.publish(&ring, &data, value).expect("nobody is hostile"));
        }
        let (mut got, mut consumer) = subscriber.join().unwrap();
        while let Some(taken) = consumer.take(&*ring) {
            assert_eq!(read(&data, &taken), taken.entry.length);
            got.push(taken.number);
            release(&*ring, g, taken.cell, taken.number);
        }
        assert!(got.is_sorted_by(|a, b| a < b), "{got:?}");
        assert_eq!(got.len() as u64 + publisher.dropped, pushed, "{got:?}");
        let free = &mut publisher.free;
        publisher
            .producer
            .reap(&*ring, |b| free.push(b))
            .expect("nobody is hostile");
        assert_eq!(publisher.free.len(), 2, "every block came back");
    });
}

/// Two messages held and released in the wrong order while the publisher continues.
#[test]
fn holds_released_out_of_order() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let g = Geometry::new(2, 2).unwrap();
        let (ring, data) = (Ring::new(g), blocks(4));
        let mut publisher = Publisher::new(g);
        for value in 1..=2 {
            assert!(publisher.publish(&ring, &data, value).unwrap());
        }
        let subscriber = {
            let (ring, data) = (ring.clone(), data.clone());
            thread::spawn(move || {
                let mut consumer = Consumer::new(g);
                let a = consumer.take(&*ring);
                let b = consumer.take(&*ring);
                for taken in [b, a].into_iter().flatten() {
                    assert_eq!(read(&data, &taken), taken.entry.length);
                    release(&*ring, g, taken.cell, taken.number);
                }
            })
        };
        for value in 3..=4 {
            assert!(publisher.publish(&ring, &data, value).expect("nobody is hostile"));
        }
        subscriber.join().unwrap();
        let free = &mut publisher.free;
        publisher
            .producer
            .reap(&*ring, |b| free.push(b))
            .expect("nobody is hostile");
        assert_eq!(
            publisher.free.len() + publisher.producer.queued() + publisher.producer.held(),
            4
        );
    });
}

/// When both have stopped, the sleeper must know about queued messages: either `rearm` has reported them, or
/// its pipe is readable. `order` is the code under test, so that the wrong one can be shown to fail.
fn no_wake_up_is_lost(order: fn(&Pipe, &mut Consumer, &Ring) -> bool) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(4);
    model.check(move || {
        let g = Geometry::new(2, 1).unwrap();
        let (ring, pipe) = (Ring::new(g), Arc::new(Pipe(Mutex::new(0))));
        let rung = Arc::new(AtomicUsize::new(0));
        ring::arm(&*ring, true);
        let publisher = {
            let (ring, pipe, rung) = (ring.clone(), pipe.clone(), rung.clone());
            thread::spawn(move || {
                let mut producer = Producer::new(g);
                for i in 0..2u64 {
                    if ring::wakes_early(&*ring) {
                        pipe.ring();
                    }
                    assert!(producer.push(&*ring, QueueEntry::default(), i));
                    Ring::fence();
                    if disarm(&*ring) {
                        rung.fetch_add(1, Ordering::Relaxed);
                        pipe.ring();
                    }
                }
            })
        };
        let mut consumer = Consumer::new(g);
        let mut taken = 0;
        for _ in 0..2 {
            taken += usize::from(consumer.take(&*ring).is_some());
        }
        let reported = order(&pipe, &mut consumer, &ring);
        publisher.join().unwrap();
        if taken < 2 {
            assert!(
                reported || pipe.is_readable(),
                "{} queued, nobody will wake",
                2 - taken
            );
            assert!(pipe.is_readable(), "readiness is a level");
        }
    });
}

#[test]
fn a_sleeper_misses_nothing() {
    no_wake_up_is_lost(|pipe, consumer, ring| {
        rearm(
            pipe,
            || consumer.peek(ring).is_some(),
            |armed| ring::arm(ring, armed),
            Ring::fence,
        )
    });
}

#[test]
fn a_sleeper_that_wakes_early_misses_nothing() {
    no_wake_up_is_lost(|pipe, consumer, ring| {
        rearm(
            pipe,
            || consumer.peek(ring).is_some(),
            |armed| match armed {
                true => ring::arm_early(ring),
                false => ring::arm(ring, false),
            },
            Ring::fence,
        )
    });
}

#[test]
#[should_panic(expected = "nobody will wake")]
fn the_model_sees_a_drain_after_arming() {
    no_wake_up_is_lost(|pipe, consumer, ring| {
        ring::arm(ring, true);
        Ring::fence();
        let ready = consumer.peek(ring).is_some();
        pipe.drain();
        ready
    });
}

#[test]
#[should_panic(expected = "nobody will wake")]
fn the_model_sees_a_missing_second_look() {
    no_wake_up_is_lost(|pipe, _, ring| {
        pipe.drain();
        ring::arm(ring, true);
        Ring::fence();
        false
    });
}

/// A queue of one: each push takes the previous message back, while the subscriber takes and goes to sleep.
/// The sleeper must know about the remaining message, and every loss is counted.
#[test]
fn a_sleeper_misses_nothing_of_what_replaced_a_dropped_one() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let g = Geometry::new(1, 1).unwrap();
        let (ring, data) = (Ring::new(g), blocks(2));
        let pipe = Arc::new(Pipe(Mutex::new(0)));
        ring::arm(&*ring, true);
        let publisher = {
            let (ring, data, pipe) = (ring.clone(), data.clone(), pipe.clone());
            thread::spawn(move || {
                let mut publisher = Publisher::new(g);
                for value in 1..=2 {
                    assert!(publisher.publish(&ring, &data, value).expect("nobody is hostile"));
                    Ring::fence();
                    if disarm(&*ring) {
                        pipe.ring();
                    }
                }
                publisher.dropped
            })
        };
        let mut consumer = Consumer::new(g);
        let mut taken = 0;
        if let Some(message) = consumer.take(&*ring) {
            assert_eq!(read(&data, &message), message.number);
            release(&*ring, g, message.cell, message.number);
            taken += 1;
        }
        let reported = rearm(
            &*pipe,
            || consumer.peek(&*ring).is_some(),
            |armed| ring::arm(&*ring, armed),
            Ring::fence,
        );
        let dropped = publisher.join().unwrap();
        assert!(!reported || pipe.is_readable(), "readiness is a level");
        if let Some(message) = consumer.take(&*ring) {
            assert!(pipe.is_readable(), "it is queued, nobody will wake");
            assert_eq!(read(&data, &message), message.number);
            taken += 1;
        }
        assert_eq!(taken + dropped, 2);
    });
}

/// A subscriber whose newest messages are refused: queued messages are never taken back, and a refusal is
/// final.
#[test]
fn refusing_the_newest_against_take_and_release() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let g = Geometry::new(1, 1).unwrap();
        let (ring, data) = (Ring::new(g), blocks(2));
        let subscriber = {
            let (ring, data) = (ring.clone(), data.clone());
            thread::spawn(move || {
                let mut consumer = Consumer::new(g);
                let mut got = vec![];
                for _ in 0..2 {
                    if let Some(message) = consumer.take(&*ring) {
                        assert_eq!(read(&data, &message), message.entry.length);
                        got.push(message.entry.length);
                        release(&*ring, g, message.cell, message.number);
                    }
                }
                (got, consumer)
            })
        };
        let mut publisher = Publisher::new(g);
        let mut queued = vec![];
        for value in 1..=3 {
            let free = &mut publisher.free;
            publisher
                .producer
                .reap(&*ring, |b| free.push(b))
                .expect("nobody is hostile");
            if !publisher.producer.has_room() || !publisher.producer.has_cell() {
                continue;
            }
            assert!(publisher.publish(&ring, &data, value).expect("nobody is hostile"));
            queued.push(value);
        }
        let (mut got, mut consumer) = subscriber.join().unwrap();
        while let Some(message) = consumer.take(&*ring) {
            assert_eq!(read(&data, &message), message.entry.length);
            got.push(message.entry.length);
            release(&*ring, g, message.cell, message.number);
        }
        assert_eq!(got, queued, "what was queued, and nothing else");
        assert_eq!(publisher.dropped, 0);
    });
}
