//! Subscribers that lie deliberately: words that look valid but are not, random bytes at every stage of the
//! handshake, and a socket that is never read. Other subscribers lose nothing, and publishing continues.
#![allow(missing_docs)]

mod common;

use bus::{Bus, LoanError, Publisher, PublisherOptions, Stamp, Subscriber, SubscriberOptions};
use common::raw::{self, Intruder, intrude};
use common::{LONG, Random, bus, eventually, folder, topic};
use rustix::fs::OFlags;
use stats::DropReason;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const TOPIC: &str = "/lies";

/// Publishes and takes during the attack until it has had `rounds`, and checks that nothing is missing.
fn under_attack(publisher: &Publisher, honest: &Subscriber, rounds: &AtomicU64, enough: u64) {
    let mut random = Random(2);
    let mut sent = 0u64;
    let mut expected = None;
    eventually("the attack has had its rounds", || {
        for _ in 0..20 {
            sent += 1;
            let len = [100, 5_000, 70_000][random.next(3) as usize];
            let mut loan = publisher.loan(8, &[len]).expect("there is memory");
            loan.control_mut().copy_from_slice(&sent.to_le_bytes());
            loan.part_mut(0).fill(sent as u8);
            publisher.publish(loan, Stamp::default()).unwrap();
            let message = honest.take_timeout(LONG).unwrap().expect("it hears everything");
            assert_eq!(message.control(), sent.to_le_bytes());
            assert!(message.part(0).bytes().iter().all(|b| *b == sent as u8));
            assert_eq!(*expected.get_or_insert(message.sequence()), message.sequence());
            expected = Some(message.sequence() + 1);
        }
        rounds.load(Ordering::Relaxed) >= enough
    });
    assert_eq!(honest.stats().drops.total(), 0);
}

fn ends(bus: &Bus, options: PublisherOptions) -> (Publisher, Subscriber) {
    let publisher = bus.publisher(topic(TOPIC), options).unwrap();
    let honest = bus
        .subscriber(topic(TOPIC), SubscriberOptions::default())
        .unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    (publisher, honest)
}

/// Runs `attack` in a thread, repeatedly, until asked to end.
struct Attack {
    rounds: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Attack {
    fn start(mut attack: impl FnMut(u64) + Send + 'static) -> Attack {
        let (rounds, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, end) = (rounds.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                attack(count.fetch_add(1, Ordering::Relaxed));
            }
        });
        Attack {
            rounds,
            stop,
            thread: Some(thread),
        }
    }

    fn end(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn is_thrown_out(me: &Intruder) -> bool {
    rustix::fs::fcntl_setfl(&me.socket, OFlags::NONBLOCK).unwrap();
    let mut buffer = [0; 4096];
    loop {
        match rustix::net::recv(&me.socket, &mut buffer[..], rustix::net::RecvFlags::empty()) {
            Ok((0, _)) => return true,
            Ok(_) => {}
            Err(e) => return e != rustix::io::Errno::AGAIN,
        }
    }
}

/// One lie about one word, of the kinds that a publisher could believe.
fn lie(me: &Intruder, random: &mut Random) {
    let cells = u64::from(me.depth + me.max_held);
    let word = |c: u64| &me.ring[raw::state_word(me.depth, c as u32)];
    let cell = word(random.next(cells));
    let number = cell.load(Ordering::Relaxed) >> 2;
    match random.next(6) {
        // A push that has not happened.
        0 => cell.store(
            (number + 1 + random.next(1000)) << 2 | random.next(4),
            Ordering::Relaxed,
        ),
        // Another cell's state.
        1 => cell.store(
            word(random.next(cells)).load(Ordering::Relaxed),
            Ordering::Relaxed,
        ),
        // Sets the closing word, and clears it.
        2 => me.ring[9].store(random.next(2), Ordering::Relaxed),
        // Asleep, or not.
        3 => me.ring[8].store(random.next(1 << 31) * random.next(2), Ordering::Relaxed),
        // The publisher's own words.
        4 => me.ring[random.next(8) as usize].store(random.next(1 << 31), Ordering::Relaxed),
        // By the rules, so that there is something to lie about.
        _ => {
            if number > 0 && cell.load(Ordering::Relaxed) & 3 == 1 {
                cell.store(number << 2 | 2, Ordering::Relaxed);
            }
        }
    }
}

#[test]
fn believable_lies_about_every_word_hurt_nobody_else() {
    let dir = folder();
    let bus = bus(&dir);
    let (publisher, honest) = ends(&bus, PublisherOptions::default().with_memory_limit(64 << 20));
    let path = dir.path().to_owned();
    let mut random = Random(11);
    let thrown_out = Arc::new(AtomicU64::new(0));
    let count = thrown_out.clone();
    let attack = Attack::start(move |round| {
        let me = intrude(&path, TOPIC, 1000 + round, 8, 8);
        for _ in 0..400 {
            (0..10).for_each(|_| lie(&me, &mut random));
            // As long as the publisher needs to check.
            std::thread::sleep(Duration::from_micros(100));
            if is_thrown_out(&me) {
                count.fetch_add(1, Ordering::Relaxed);
                break;
            }
        }
    });
    under_attack(&publisher, &honest, &attack.rounds, 60);
    attack.end();
    assert!(thrown_out.load(Ordering::Relaxed) > 0, "none of 60 was seen");
    eventually("nothing of them is left", || {
        let stats = publisher.stats();
        (stats.subscribers.len(), stats.memory_used, stats.memory_pinned) == (1, 0, 0)
    });
}

/// A frame that is valid except for a few bytes, or not at all.
fn garbage(random: &mut Random, round: u64) -> Vec<u8> {
    let mut bytes = match random.next(4) {
        0 => raw::hello(TOPIC, 100_000 + round),
        1 => raw::attach(random.next(5000) as u32, random.next(5000) as u32),
        2 => raw::frame(
            random.next(20) as u16,
            &vec![random.next(256) as u8; random.next(40) as usize],
        ),
        _ => (0..1 + random.next(2500))
            .map(|_| random.next(256) as u8)
            .collect(),
    };
    for _ in 0..1 + random.next(3) {
        let i = random.next(bytes.len() as u64) as usize;
        bytes[i] = random.next(256) as u8;
    }
    bytes
}

fn publisher_socket(dir: &Path) -> PathBuf {
    raw::publishers(dir).pop().unwrap()
}

#[test]
fn random_bytes_at_every_stage_are_survived() {
    let dir = folder();
    let bus = bus(&dir);
    let (publisher, honest) = ends(&bus, PublisherOptions::default());
    let path = dir.path().to_owned();
    let mut random = Random(12);
    let attack = Attack::start(move |round| {
        let send = |socket, random: &mut Random| {
            for _ in 0..1 + random.next(3) {
                raw::send(socket, &garbage(random, round), &[]);
            }
        };
        match round % 3 {
            // Instead of a hello.
            0 => send(&raw::connect(&publisher_socket(&path)), &mut random),
            // Instead of the ring.
            1 => {
                let socket = raw::connect(&publisher_socket(&path));
                raw::send(&socket, &raw::hello(TOPIC, 1000 + round), &[]);
                assert_eq!(raw::receive(&socket).unwrap().0, raw::HELLO);
                send(&socket, &mut random);
            }
            // As an accepted subscriber.
            _ => send(&intrude(&path, TOPIC, 1000 + round, 8, 8).socket, &mut random),
        }
    });
    under_attack(&publisher, &honest, &attack.rounds, 600);
    attack.end();
    eventually("nothing of them is left", || {
        publisher.stats().subscribers.len() == 1
    });
}

/// It reads nothing, and claims to have unmapped every segment, so that it never pins memory. Its socket
/// fills up; messages whose frames cannot be sent are lost only for it, and are counted.
#[test]
fn a_socket_that_is_never_read_costs_only_its_owner() {
    let dir = folder();
    let bus = bus(&dir);
    // Small, so that messages of two classes displace each other's segment: together they never fit into one.
    let (publisher, honest) = ends(&bus, PublisherOptions::default().with_memory_limit(256 << 10));
    let me = intrude(dir.path(), TOPIC, 7, 4, 4);
    // Reads the other's frames, so that the other knows what to claim.
    let informer = intrude(dir.path(), TOPIC, 8, 1, 1);
    eventually("both are attached", || publisher.stats().subscribers.len() == 3);
    let (mut sent, mut short, mut stalled, mut recovered) = (0u64, 0u64, 0, false);
    let mut sizes = [40_000, 240_000].into_iter().cycle();
    eventually("it stalls, and is served again when it reads", || {
        let len = sizes.next().unwrap();
        let mut done_for_all = false;
        match publisher.loan(8, &[len]) {
            Ok(loan) => {
                let done = publisher.publish(loan, Stamp::default()).unwrap();
                stalled += done.dropped.count(DropReason::PeerStalled);
                done_for_all = done.queued_to == 3;
                sent += 1;
                let message = honest.take_timeout(LONG).unwrap().expect("it hears everything");
                assert_eq!((message.sequence(), message.lost().total()), (sent, 0));
            }
            // Segments that it was not asked to unmap stay pinned, for at most a second.
            Err(LoanError::MemoryShort { .. }) => {
                short += 1;
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(e) => panic!("{e}"),
        }
        // Nothing stays queued, so the segments are idle.
        [&me, &informer].into_iter().for_each(take_all);
        for id in retired(&informer) {
            for socket in [&me.socket, &informer.socket] {
                raw::send(socket, &raw::frame(UNMAPPED, &id), &[]);
            }
        }
        if stalled > 300 {
            // It finally reads, and is served again.
            for id in retired(&me) {
                raw::send(&me.socket, &raw::frame(UNMAPPED, &id), &[]);
            }
            recovered = recovered || done_for_all;
        }
        recovered
    });
    assert!(
        sent > 50,
        "its socket took {sent} messages' frames; {short} loans failed"
    );
    drop((me, informer));
    eventually("they are gone", || publisher.stats().subscribers.len() == 1);
    let counted = publisher.stats().drops.count(DropReason::PeerStalled);
    assert_eq!(counted, stalled, "it is counted when it is gone");
    assert_eq!(honest.stats().drops.total(), 0);
    eventually("nothing of it is left", || publisher.stats().memory_pinned == 0);
}

/// Takes everything and releases it at once.
fn take_all(me: &Intruder) {
    for cell in 0..me.depth + me.max_held {
        let word = &me.ring[raw::state_word(me.depth, cell)];
        let state = word.load(Ordering::Acquire);
        if state & 3 == 1 {
            let _ = word.compare_exchange(state, state | 3, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}

const RETIRE: u16 = 6;
const UNMAPPED: u16 = 7;

/// Segments that it was asked to unmap since the last call.
fn retired(me: &Intruder) -> Vec<[u8; 8]> {
    rustix::fs::fcntl_setfl(&me.socket, OFlags::NONBLOCK).unwrap();
    let mut ids = vec![];
    let mut frame = [0; 4096];
    while let Ok((n, _)) = rustix::net::recv(&me.socket, &mut frame[..], rustix::net::RecvFlags::empty())
        && n > 0
    {
        if frame[6..8] == RETIRE.to_le_bytes() {
            ids.push(frame[8..16].try_into().unwrap());
        }
    }
    ids
}
