//! Publishers that violate the protocol: a subscriber never goes out of bounds, and receives from the honest
//! ones.
#![allow(missing_docs)]

mod common;

use bus::{Bus, BusConfig, PublisherOptions, Stamp, Subscriber, SubscriberOptions};
use common::child::{Child, hear, role, say};
use common::raw::{self, memfd};
use common::{LONG, Random, bus, eventually, folder, topic};
use rustix::fs::SealFlags;
#[cfg(not(feature = "posix"))]
use std::os::fd::AsRawFd;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const TOPIC: &str = "/t";
/// Linux: the reading end, to reopen it. POSIX: also the writing end.
const BELL_ENDS: usize = if cfg!(feature = "posix") { 2 } else { 1 };
const SEGMENT_LEN: u64 = 1 << 16;

/// A publisher's side by hand: connected to the subscriber, with its ring, and one segment that it writes to.
struct Impostor {
    socket: OwnedFd,
    ring: &'static [AtomicU64],
    payload: &'static [AtomicU64],
    depth: u32,
    pushes: u64,
}

/// Timeout of the child's handshakes; its housekeeping is delayed for longer at its step.
const SHORT: Duration = Duration::from_secs(2);

#[test]
fn child_entry() {
    let Some((_, dir)) = role() else { return };
    bus::hooks::call_at_step(|| {
        say("held up");
        std::thread::sleep(SHORT + SHORT / 2);
    });
    let bus = Bus::open(BusConfig::new(dir).with_handshake_timeout(SHORT)).unwrap();
    let _subscriber = bus
        .subscriber(topic(TOPIC), SubscriberOptions::default())
        .unwrap();
    say("made");
    hear();
}

/// The socket, the ring, its depth, and the doorbell.
fn connect(dir: &Path, id: u64) -> (OwnedFd, &'static [AtomicU64], u32, OwnedFd) {
    let socket = say_hello(dir, id);
    assert_eq!(raw::receive(&socket).unwrap().0, raw::HELLO);
    let (kind, body, mut fds) = raw::receive(&socket).unwrap();
    assert_eq!((kind, fds.len()), (raw::ATTACH, 1 + BELL_ENDS));
    let number = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().unwrap());
    let ring = raw::map_words(&fds[0], raw::ring_bytes(number(0), number(4)));
    (socket, ring, number(0), fds.pop().unwrap())
}

/// Connects to the subscriber as publisher `id`.
fn say_hello(dir: &Path, id: u64) -> OwnedFd {
    let find = || {
        let entries = std::fs::read_dir(dir).unwrap().flatten().map(|e| e.path());
        entries.filter(|p| p.to_string_lossy().contains(".s.")).last()
    };
    let socket = raw::connect(&find().unwrap());
    let mut hello = raw::hello(TOPIC, id);
    hello[10] = 1;
    assert!(raw::send(&socket, &hello, &[]));
    socket
}

/// Rings through the last descriptor of an attachment.
fn ring_once(bell: OwnedFd) {
    #[cfg(not(feature = "posix"))]
    let bell = std::fs::OpenOptions::new()
        .write(true)
        .open(format!("/proc/self/fd/{}", bell.as_raw_fd()))
        .unwrap();
    rustix::io::write(&bell, &[1]).unwrap();
}

fn segment_frame(id: u64, len: u64) -> Vec<u8> {
    raw::frame(raw::SEGMENT, &[id.to_le_bytes(), len.to_le_bytes()].concat())
}

impl Impostor {
    fn new(dir: &Path, id: u64) -> Impostor {
        let (socket, ring, depth, _) = connect(dir, id);
        let mut impostor = Impostor {
            socket,
            ring,
            payload: &[],
            depth,
            pushes: 0,
        };
        assert!(impostor.welcome());
        impostor
    }

    /// Accepts the subscriber, and sends it a segment. Returns false if the subscriber hung up in between.
    fn welcome(&mut self) -> bool {
        let (fd, payload) = raw::payload_memory(SEGMENT_LEN);
        self.payload = payload;
        self.write_block(0);
        assert!(raw::send(&self.socket, &raw::frame(raw::WELCOME, &[]), &[]));
        raw::send(&self.socket, &segment_frame(1, SEGMENT_LEN), &[fd.as_fd()])
    }

    /// Writes a valid block with one 64-byte part at `offset`.
    fn write_block(&self, offset: u64) {
        let word =
            |i: u64, value: u64| self.payload[(offset / 8 + i) as usize].store(value, Ordering::Relaxed);
        word(0, u64::from(u32::from_le_bytes(*b"RWBK")) | 1 << 32 | 1 << 48);
        // Length, sequence, stamp, origin, control part; then the only part.
        for (i, value) in [256, self.pushes, 1, 2, 128, 64].into_iter().enumerate() {
            word(1 + i as u64, value);
        }
        word(8, 192);
        word(9, 64);
    }

    fn push(&mut self, cell: u64, place: [u64; 4]) {
        self.pushes += 1;
        let n = self.pushes;
        let entry = raw::entry_word(self.depth, n);
        for (i, value) in place.into_iter().enumerate() {
            self.ring[entry + 1 + i].store(value, Ordering::Relaxed);
        }
        self.ring[raw::state_word(self.depth, cell as u32)].store(n << 2 | 1, Ordering::Release);
        self.ring[entry].store(n << 16 | cell, Ordering::Release);
        self.ring[0].store(n, Ordering::Release);
    }
}

fn subscriber_with_honest_publisher(bus: &bus::Bus) -> (Subscriber, bus::Publisher) {
    let subscriber = bus
        .subscriber(topic(TOPIC), SubscriberOptions::default())
        .unwrap();
    let publisher = bus.publisher(topic(TOPIC), PublisherOptions::default()).unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    (subscriber, publisher)
}

fn honest_round(subscriber: &Subscriber, publisher: &bus::Publisher, expected: &mut u64) {
    let mut loan = publisher.loan(8, &[1000]).unwrap();
    loan.part_mut(0).fill(*expected as u8);
    publisher.publish(loan, Stamp::default()).unwrap();
    *expected += 1;
    loop {
        let message = subscriber
            .take_timeout(LONG)
            .unwrap()
            .expect("the honest publisher is heard");
        // Everything is readable, regardless of its sender.
        for i in 0..message.part_count() {
            let mut copy = vec![0; message.part_len(i).min(1 << 20)];
            message.part(i).copy_to(0, &mut copy);
        }
        if message.publisher() == publisher.id() {
            assert_eq!(message.sequence(), *expected);
            return;
        }
    }
}

#[test]
fn valid_messages_of_an_impostor_are_taken() {
    let dir = folder();
    let bus = bus(&dir);
    let (subscriber, _publisher) = subscriber_with_honest_publisher(&bus);
    let mut impostor = Impostor::new(dir.path(), 7);
    impostor.write_block(640);
    impostor.push(3, [1, 640, 256, 0]);
    let mut got = None;
    eventually("the block by hand arrives", || {
        got = subscriber.take().unwrap();
        got.is_some()
    });
    let message = got.unwrap();
    assert_eq!(
        (message.publisher(), message.control().len(), message.part_len(0)),
        (7, 64, 64)
    );
    assert_eq!(message.origin(), 2);
    drop(message);
    let state = impostor.ring[raw::state_word(impostor.depth, 3)].load(Ordering::Acquire);
    assert_eq!(state, 1 << 2 | 3, "released");
    drop(impostor.socket);
    eventually("it is gone", || subscriber.publisher_count() == 1);
}

/// Reading a page that does not exist would create it, at the reader's cost.
#[test]
fn a_block_that_reaches_into_a_hole_is_not_read() {
    let dir = folder();
    let bus = bus(&dir);
    let (subscriber, publisher) = subscriber_with_honest_publisher(&bus);
    let mut impostor = Impostor::new(dir.path(), 7);
    eventually("it is heard", || subscriber.publisher_count() == 2);
    // Its first page exists.
    impostor.write_block(0);
    impostor.payload[1].store(SEGMENT_LEN, Ordering::Relaxed);
    impostor.push(0, [1, 0, SEGMENT_LEN, 0]);
    honest_round(&subscriber, &publisher, &mut 0);
    eventually("it is left", || {
        assert!(subscriber.take().unwrap().is_none());
        subscriber.publisher_count() == 1
    });
    let malformed = subscriber.stats().drops.count(stats::DropReason::Malformed);
    assert_eq!(malformed, 1);
}

/// A publisher may queue and ring before the subscriber has read its `Welcome`: the subscriber must not
/// forget the ring.
#[test]
fn a_ring_before_the_welcome_is_read_is_not_forgotten() {
    let dir = folder();
    let bus = bus(&dir);
    let subscriber = bus
        .subscriber(topic(TOPIC), SubscriberOptions::default())
        .unwrap();
    // The entry is queued before its segment is announced; the subscriber may notice and hang up: then try
    // once more.
    for id in 8..40 {
        let (socket, ring, depth, bell) = connect(dir.path(), id);
        assert_eq!(ring[8].swap(0, Ordering::SeqCst), 1, "a new ring is armed");
        ring_once(bell);
        assert!(
            subscriber.take().unwrap().is_none(),
            "and what was rung is drained"
        );
        let mut impostor = Impostor {
            socket,
            ring,
            payload: &[],
            depth,
            pushes: 0,
        };
        let reported = std::thread::scope(|scope| {
            const PATIENCE: Duration = Duration::from_secs(3);
            let sleeper = scope.spawn(|| subscriber.take_timeout(PATIENCE).unwrap().is_some());
            std::thread::sleep(Duration::from_millis(50));
            // Queued while the ring says that the subscriber is awake, so without a ring of the doorbell.
            impostor.push(0, [1, 0, 256, 0]);
            let welcomed = impostor.welcome();
            sleeper.join().unwrap() && welcomed
        });
        if reported {
            return;
        }
        assert_eq!(subscriber.publisher_count(), 0, "connected, but not woken");
    }
    panic!("it hung up every time");
}

#[test]
fn lies_about_places_and_headers_lead_nowhere() {
    let dir = folder();
    let bus = bus(&dir);
    let (subscriber, publisher) = subscriber_with_honest_publisher(&bus);
    let mut random = Random(77);
    let mut sent = 0;
    let mut distrusted = 0;
    for id in 1000..1400 {
        let mut impostor = Impostor::new(dir.path(), id);
        for _ in 0..5 {
            let offset = random.next(16) * 512;
            impostor.write_block(offset);
            let mut place = [1, offset, 256, random.next(1 << 30)];
            let wild = [
                0,
                1,
                63,
                64,
                255,
                257,
                SEGMENT_LEN,
                SEGMENT_LEN - 64,
                u64::MAX,
                u64::MAX - 63,
                1 << 63,
            ];
            let any = wild[random.next(wild.len() as u64) as usize];
            match random.next(4) {
                0 => place[random.next(3) as usize] = any,
                1 => {
                    let word = [0, 1, 5, 6, 8, 9][random.next(6) as usize];
                    impostor.payload[(offset / 8) as usize + word].store(any, Ordering::Relaxed);
                }
                _ => {}
            }
            impostor.push(random.next(8), place);
        }
        honest_round(&subscriber, &publisher, &mut sent);
        distrusted = subscriber.stats().drops.count(stats::DropReason::Malformed);
    }
    assert!(distrusted > 50, "seen only {distrusted} times");
}

#[test]
fn scribbling_over_the_ring_traps_nobody() {
    let dir = folder();
    let bus = bus(&dir);
    let (subscriber, publisher) = subscriber_with_honest_publisher(&bus);
    let mut random = Random(78);
    let mut sent = 0;
    for id in 2000..2100 {
        let mut impostor = Impostor::new(dir.path(), id);
        for _ in 0..20 {
            impostor.write_block(0);
            impostor.push(random.next(8), [1, 0, 256, 0]);
            for _ in 0..20 {
                let i = random.next(impostor.ring.len() as u64) as usize;
                let value = if random.next(2) == 0 {
                    random.next(256)
                } else {
                    random.next(1 << 31) << 33
                };
                impostor.ring[i].store(value, Ordering::Relaxed);
            }
            honest_round(&subscriber, &publisher, &mut sent);
        }
    }
    drop((subscriber, publisher));
}

#[test]
fn wrong_segments_end_the_connection() {
    let dir = folder();
    let bus = bus(&dir);
    let (subscriber, publisher) = subscriber_with_honest_publisher(&bus);
    let good = || raw::payload_memory(SEGMENT_LEN).0;
    let file: OwnedFd = tempfile::tempfile().unwrap().into();
    rustix::fs::ftruncate(&file, SEGMENT_LEN).unwrap();
    let frame = |id, len| segment_frame(id, len);
    #[cfg(not(feature = "posix"))]
    let odd = |len| memfd(len, raw::payload_seals());
    #[cfg(feature = "posix")]
    let odd = |len| raw::shm(len).1;
    let mut cases: Vec<(Vec<u8>, Vec<OwnedFd>)> = vec![
        (frame(1, SEGMENT_LEN), vec![]),
        (frame(1, SEGMENT_LEN), vec![good(), good()]),
        (frame(1, SEGMENT_LEN), vec![file]),
        // Writable: without the required seal, or through its descriptor.
        (frame(1, SEGMENT_LEN), vec![raw::ring_memory(SEGMENT_LEN).0]),
        (frame(1, SEGMENT_LEN * 2), vec![good()]),
        (frame(1, 0), vec![odd(0)]),
        (frame(1, 100), vec![odd(100)]),
        (raw::frame(raw::ATTACH, &[0; 16]), vec![]),
        (b"garbage".to_vec(), vec![]),
        (vec![b'x'; 5000], vec![]),
    ];
    // GATED in the variant `posix`: there all memory is unsealed, so a subscriber accepts it.
    if !cfg!(feature = "posix") {
        let unsealed = vec![memfd(SEGMENT_LEN, SealFlags::empty())];
        cases.push((frame(1, SEGMENT_LEN), unsealed));
    }
    let mut sent = 0;
    for (i, (bytes, fds)) in cases.iter().enumerate() {
        let (socket, ..) = connect(dir.path(), 3000 + i as u64);
        assert!(raw::send(&socket, &raw::frame(raw::WELCOME, &[]), &[]));
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        assert!(raw::send(&socket, bytes, &fds));
        // It reports that it is ready, and then hangs up.
        while raw::receive(&socket).is_some() {}
        honest_round(&subscriber, &publisher, &mut sent);
    }
    eventually("only the honest one is left", || {
        subscriber.publisher_count() == 1
    });
}

/// A `Welcome` that arrived in time is not late just because the subscriber's housekeeping reads it late: the
/// publisher may have queued messages by then.
#[test]
fn a_welcome_that_waits_is_heard_after_its_time() {
    let dir = folder();
    let child = Child::start(
        "subscriber",
        dir.path(),
        &[("ROPEWALK_TEST_CALL_AT", "hello-answered:2")],
    );
    assert_eq!(child.hear(), "made");
    let (socket, ..) = connect(dir.path(), 8);
    // The second handshake triggers the step.
    let _second = say_hello(dir.path(), 9);
    assert_eq!(child.hear(), "held up");
    assert!(raw::send(&socket, &raw::frame(raw::WELCOME, &[]), &[]));
    let answer = raw::receive(&socket).map(|(kind, ..)| kind);
    assert_eq!(answer, Some(raw::READY), "it hung up");
}
