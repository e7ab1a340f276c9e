//! Subscribers that violate the protocol: the publisher and the others continue as if they did not exist.
#![allow(missing_docs)]

mod common;

use bus::{PublisherOptions, Stamp, SubscriberOptions};
use common::child::{Child, hear, role, say};
use common::raw::{self, Intruder, intrude};
use common::{LONG, Random, bus, eventually, fingerprint, folder, topic};
use rustix::fs::{FallocateFlags, Mode, OFlags, SealFlags};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mprotect};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::Ordering;

const TOPIC: &str = "/under/attack";

/// Maximum bytes that one subscriber may keep from reuse.
const QUOTA: u64 = 24 << 20;

struct Run {
    /// What the honest subscriber saw.
    seen: Vec<(u64, u64, u64)>,
    /// What the attacker reported at the end.
    said: Option<String>,
    /// The maximum bytes that any subscriber had.
    most: u64,
}

/// One run: a publisher, an honest subscriber, and an attacker in another process.
fn run(attack: Option<&str>, env: &[(&str, &str)], messages: u64) -> Run {
    let dir = folder();
    let bus = bus(&dir);
    let options = PublisherOptions::default()
        .with_memory_limit(96 << 20)
        .with_subscriber_quota(QUOTA);
    let publisher = bus.publisher(topic(TOPIC), options).unwrap();
    let honest = bus
        .subscriber(topic(TOPIC), SubscriberOptions::default())
        .unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    let mut attacker = attack.map(|a| Child::start(a, dir.path(), env));
    let mut before = 0;
    if let Some(child) = &mut attacker {
        eventually("it attacks, or stops at its step", || {
            let loan = publisher.loan(0, &[1000]).unwrap();
            publisher.publish(loan, Stamp::default()).unwrap();
            let message = honest.take_timeout(LONG).unwrap();
            before = message
                .expect("the honest subscriber hears everything")
                .sequence();
            assert!(!child.has_ended());
            if env.is_empty() {
                child.has_said("ready")
            } else {
                child.is_stopped()
            }
        });
    }
    if matches!(attack, Some("greedy" | "deaf")) {
        // Its `Welcome` is sent just before the publisher counts it.
        eventually("it is attached", || publisher.stats().subscribers.len() == 2);
    }
    let mut random = Random(5);
    let (mut seen, mut most) = (vec![], 0);
    for n in 0..messages {
        let len = [100, 5_000, 70_000, 1_200_000][random.next(4) as usize] + random.next(1000) as usize;
        let mut loan = publisher.loan(8, &[len, 64]).expect("there is memory");
        loan.control_mut().copy_from_slice(&n.to_le_bytes());
        loan.part_mut(0).fill(random.next(256) as u8);
        loan.part_mut(1).fill(random.next(256) as u8);
        publisher.publish(loan, Stamp::default()).unwrap();
        for peer in publisher.stats().subscribers {
            assert!(peer.bytes <= QUOTA, "{peer:?}");
            most = most.max(peer.bytes);
        }
        let message = honest
            .take_timeout(LONG)
            .unwrap()
            .expect("the honest subscriber hears everything");
        let last = message.part(0).bytes()[len - 1];
        seen.push((
            message.sequence() - before,
            fingerprint(message.control()),
            u64::from(last) << 32 | len as u64,
        ));
        assert_eq!(message.part(1).bytes()[..2], [message.part(1).bytes()[63]; 2]);
    }
    assert_eq!(honest.stats().drops.total(), 0);
    let said = attacker.as_mut().and_then(|a| {
        if !env.is_empty() {
            return None;
        }
        a.say("end");
        Some(a.hear())
    });
    drop(attacker);
    eventually("the attacker's blocks are free", || {
        publisher.stats().subscribers.len() == 1 && publisher.stats().memory_used == 0
    });
    Run { seen, said, most }
}

fn compare(attack: &str) -> Run {
    let with = run(Some(attack), &[], 300);
    let without = run(None, &[], 300);
    assert!(with.seen == without.seen, "{attack} changed what others see");
    with
}

#[test]
fn child_entry() {
    let Some((role, dir)) = role() else { return };
    match &*role[0] {
        "segment" => attack_segment(&dir),
        "doorbell" => attack_doorbell(&dir),
        "scribble" => attack_scribble(&dir),
        "states" => attack_states(&dir),
        "greedy" => attack_greedy(&dir),
        "deaf" => attack_deaf(&dir),
        "handshake" => attack_handshake(&dir),
        "silent" => attack_silent(&dir),
        "descriptors" => attack_descriptors(&dir),
        "honest" => honest(&dir),
        other => panic!("unknown role {other}"),
    }
}

fn wait_for_end(result: impl std::fmt::Display) {
    wait_for_end_with(|| result);
}

fn wait_for_end_with<T: std::fmt::Display>(result: impl FnOnce() -> T) {
    assert_eq!(hear(), "end");
    say(result());
    hear();
}

/// Everything that could change a published byte or the file below it.
///
/// GATED in the variant `posix`: there are no seals, so a descriptor that was reopened through
/// `/proc/self/fd` can do all of it. There the test checks the descriptor that was passed.
#[test]
fn a_segment_cannot_be_written_by_its_reader() {
    let expected = if cfg!(feature = "posix") { 6 } else { 14 };
    assert_eq!(compare("segment").said.unwrap(), format!("{expected} refused"));
}

fn attack_segment(dir: &Path) {
    let me = intrude(dir, TOPIC, 1, 16, 16);
    say("ready");
    let (len, fd) = loop {
        let (kind, body, mut fds) = raw::receive(&me.socket).unwrap();
        if kind == raw::SEGMENT {
            break (
                u64::from_le_bytes(body[8..16].try_into().unwrap()),
                fds.pop().unwrap(),
            );
        }
    };
    let shared = |fd: &OwnedFd, prot| {
        // SAFETY: a fresh mapping at an address of the kernel's choice; nothing refers to it.
        unsafe { mmap(std::ptr::null_mut(), len as usize, prot, MapFlags::SHARED, fd, 0) }
    };
    let mut refused = 0;
    let mut check = |what: &str, is_refused: bool| {
        assert!(is_refused, "{what} was allowed");
        refused += 1;
    };
    // The kernel permits reopening; the seals are what protects.
    #[cfg(not(feature = "posix"))]
    let fds = {
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
        let again = rustix::fs::open(&path, OFlags::RDWR, Mode::empty());
        [fd, again.unwrap()]
    };
    #[cfg(feature = "posix")]
    let fds = [fd];
    for fd in &fds {
        check("write", rustix::io::pwrite(fd, b"evil", 0).is_err());
        check("mmap", shared(fd, ProtFlags::READ | ProtFlags::WRITE).is_err());
        let read_only = shared(fd, ProtFlags::READ).expect("reading is allowed");
        // SAFETY: the mapping was just made and nothing refers to it.
        let widened = unsafe {
            mprotect(
                read_only,
                len as usize,
                MprotectFlags::READ | MprotectFlags::WRITE,
            )
        };
        check("mprotect", widened.is_err());
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        check("punch", rustix::fs::fallocate(fd, punch, 0, 4096).is_err());
        check("grow", rustix::fs::ftruncate(fd, len * 2).is_err());
        check("shrink", rustix::fs::ftruncate(fd, 0).is_err());
        // GATED in the variant `posix`: there is nothing to unseal.
        #[cfg(not(feature = "posix"))]
        check(
            "unseal",
            rustix::fs::fcntl_add_seals(fd, SealFlags::WRITE).is_err(),
        );
    }
    wait_for_end(format!("{refused} refused"));
}

#[test]
fn a_full_blocking_doorbell_does_not_stop_the_publisher() {
    compare("doorbell");
}

fn attack_doorbell(dir: &Path) {
    let me = intrude(dir, TOPIC, 2, 4, 4);
    rustix::fs::fcntl_setfl(&me.bell_write, OFlags::NONBLOCK).unwrap();
    while rustix::io::write(&me.bell_write, &[0; 4096]).is_ok() {}
    while rustix::io::write(&me.bell_write, &[0]).is_ok() {}
    rustix::fs::fcntl_setfl(&me.bell_write, OFlags::empty()).unwrap();
    rustix::fs::fcntl_setfl(&me.bell_read, OFlags::empty()).unwrap();
    // It always claims to be asleep.
    let ring = me.ring;
    std::thread::spawn(move || {
        loop {
            ring[8].store(u64::MAX, Ordering::Relaxed);
            std::thread::yield_now();
        }
    });
    say("ready");
    wait_for_end("");
}

/// Whether the publisher hung up.
fn was_thrown_out(me: &Intruder) -> bool {
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

/// Random bytes over the whole ring, until the publisher disconnects it; then again with a new connection.
#[test]
fn scribbling_over_the_ring_hurts_nobody_else() {
    let times: u64 = compare("scribble").said.unwrap().parse().unwrap();
    assert!(times > 20, "seen only {times} times");
}

fn attack_scribble(dir: &Path) {
    let mut random = Random(9);
    keep_attacking(dir, 100, move |me| {
        let i = random.next(me.ring.len() as u64) as usize;
        // Small numbers look like states; large ones do not.
        let value = if random.next(2) == 0 {
            random.next(256)
        } else {
            random.next(1 << 31) << 33
        };
        // The closing word would end the attack.
        if i != 9 {
            me.ring[i].store(value, Ordering::Relaxed);
        }
    });
}

/// Attacks until it is disconnected, reconnects under another identity, and so on. Finally reports how often
/// it was disconnected.
fn keep_attacking(dir: &Path, first: u64, mut attack: impl FnMut(&Intruder) + Send + 'static) {
    let dir = dir.to_owned();
    let count = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let times = count.clone();
    std::thread::spawn(move || {
        let mut me = intrude(&dir, TOPIC, first, 8, 8);
        for id in first + 1.. {
            while !was_thrown_out(&me) {
                (0..100).for_each(|_| attack(&me));
            }
            if count.fetch_add(1, Ordering::Relaxed) == 20 {
                say("ready");
            }
            me = intrude(&dir, TOPIC, id, 8, 8);
        }
    });
    wait_for_end_with(|| times.load(Ordering::Relaxed));
}

/// States that look valid: released before taken, taken twice, queued again.
#[test]
fn plausible_lies_about_states_hurt_nobody_else() {
    let times: u64 = compare("states").said.unwrap().parse().unwrap();
    assert!(times > 20, "seen only {times} times");
}

fn attack_states(dir: &Path) {
    let mut random = Random(4);
    keep_attacking(dir, 300, move |me| {
        let cell = random.next(u64::from(me.depth + me.max_held)) as u32;
        let word = &me.ring[raw::state_word(me.depth, cell)];
        let number = word.load(Ordering::Relaxed) >> 2;
        word.store(number << 2 | random.next(4), Ordering::Relaxed);
    });
}

fn take_everything(me: &Intruder) {
    for cell in 0..me.depth + me.max_held {
        let word = &me.ring[raw::state_word(me.depth, cell)];
        let state = word.load(Ordering::Acquire);
        if state & 3 == 1 {
            let _ = word.compare_exchange(state, state & !3 | 2, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}

#[test]
fn holding_all_it_may_costs_only_its_quota() {
    assert!(compare("greedy").most > QUOTA * 3 / 4);
}

fn attack_greedy(dir: &Path) {
    let me = intrude(dir, TOPIC, 400, 4096, 4096);
    say("ready");
    std::thread::spawn(move || {
        loop {
            take_everything(&me);
            std::thread::yield_now();
        }
    });
    wait_for_end("");
}

#[test]
fn never_reading_costs_only_its_quota() {
    assert!(compare("deaf").most > QUOTA * 3 / 4);
}

fn attack_deaf(dir: &Path) {
    let _me = intrude(dir, TOPIC, 500, 4096, 4096);
    say("ready");
    wait_for_end("");
}

#[test]
fn random_handshakes_are_survived() {
    let sent: u64 = compare("handshake").said.unwrap().parse().unwrap();
    assert!(sent > 500, "only {sent}");
}

fn attack_handshake(dir: &Path) {
    let path = raw::publishers(dir).pop().unwrap();
    say("ready");
    let mut random = Random(6);
    let mut sent = 0;
    let page = raw::memfd(4096, SealFlags::empty());
    for round in 0..400 {
        let socket = raw::connect(&path);
        for _ in 0..3 {
            let mut bytes = match random.next(4) {
                0 => raw::hello(TOPIC, 600 + round),
                1 => raw::attach(random.next(10_000) as u32, random.next(10_000) as u32),
                2 => raw::frame(random.next(20) as u16, &[random.next(256) as u8; 16]),
                _ => (0..random.next(3000)).map(|_| random.next(256) as u8).collect(),
            };
            for _ in 0..random.next(4) {
                let i = random.next(bytes.len().max(1) as u64) as usize;
                if let Some(b) = bytes.get_mut(i) {
                    *b = random.next(256) as u8;
                }
            }
            let fds = vec![page.as_fd(); random.next(6) as usize];
            sent += u64::from(!bytes.is_empty() && raw::send(&socket, &bytes, &fds));
        }
    }
    wait_for_end(sent);
}

#[test]
fn silent_peers_delay_nobody() {
    compare("silent");
}

fn attack_silent(dir: &Path) {
    let path = raw::publishers(dir).pop().unwrap();
    let mut sockets: Vec<_> = (0..300).map(|_| raw::connect(&path)).collect();
    for (i, socket) in sockets.iter().enumerate().filter(|(i, _)| i % 2 == 0) {
        raw::send(socket, &raw::hello(TOPIC, 10_000 + i as u64), &[]);
    }
    say("ready");
    // A peer that does speak still gets in.
    let _me = intrude(dir, TOPIC, 700, 4, 4);
    sockets.truncate(150);
    wait_for_end("");
}

#[test]
fn wrong_descriptors_are_refused_by_name() {
    let said = compare("descriptors").said.unwrap();
    assert_eq!(said, "10 refused");
}

fn attack_descriptors(dir: &Path) {
    say("ready");
    let path = raw::publishers(dir).pop().unwrap();
    let (depth, held) = (16, 16);
    let bytes = raw::ring_bytes(depth, held);
    let good_ring = || raw::ring_memory(bytes).0;
    let pipe = || rustix::pipe::pipe().unwrap();
    // A doorbell whose reading end is something else.
    let bell_of = |read: OwnedFd| {
        let mut fds = vec![read];
        if cfg!(feature = "posix") {
            fds.push(pipe().1);
        }
        fds
    };
    let good_bell = || {
        let (read, write) = pipe();
        let ends = raw::bell_for_peer(&read, &write);
        ends.into_iter()
            .map(|fd| fd.try_clone_to_owned().unwrap())
            .collect::<Vec<_>>()
    };
    let with = |ring: OwnedFd, bell: Vec<OwnedFd>| std::iter::once(ring).chain(bell).collect::<Vec<_>>();
    // Not on a tmpfs, as /tmp may be: to POSIX an unlinked file on a tmpfs is ordinary shared memory.
    let file: OwnedFd = std::fs::File::open(std::env::current_exe().unwrap())
        .unwrap()
        .into();
    let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    let event = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
    let fifo_dir = tempfile::tempdir().unwrap();
    let fifo = fifo_dir.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Mode::RUSR | Mode::WUSR).unwrap();
    let fifo = rustix::fs::open(&fifo, OFlags::RDWR, Mode::empty()).unwrap();
    let no_memory = if cfg!(feature = "posix") {
        "not shared memory"
    } else {
        "not a memfd"
    };
    let swapped = std::iter::once(pipe().0).chain([good_ring()]).collect();
    let mut cases: Vec<(Vec<OwnedFd>, &str)> = vec![
        (with(file, good_bell()), no_memory),
        (with(raw::ring_memory(bytes / 2).0, good_bell()), "bytes"),
        (with(good_ring(), bell_of(socket.into())), "not an anonymous pipe"),
        (with(good_ring(), bell_of(event)), "not an anonymous pipe"),
        (with(good_ring(), bell_of(fifo)), "not an anonymous pipe"),
        (with(good_ring(), vec![]), "doorbell"),
        (vec![], "missing"),
        (swapped, no_memory),
    ];
    // GATED in the variant `posix`: there are no seals that could be missing. It can check how the descriptor
    // was opened.
    #[cfg(not(feature = "posix"))]
    for seals in [SealFlags::empty(), SealFlags::GROW | SealFlags::SEAL] {
        cases.push((with(raw::memfd(bytes, seals), good_bell()), "seals"));
    }
    #[cfg(feature = "posix")]
    cases.extend([
        (with(raw::shm(bytes).1, good_bell()), "reading and writing"),
        (with(good_ring(), vec![pipe().0, pipe().1]), "one pipe"),
    ]);
    let mut refused = 0;
    for (i, (fds, expected)) in cases.iter().enumerate() {
        let socket = raw::connect(&path);
        assert!(raw::send(&socket, &raw::hello(TOPIC, 800 + i as u64), &[]));
        assert_eq!(raw::receive(&socket).unwrap().0, raw::HELLO);
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        assert!(raw::send(&socket, &raw::attach(depth, held), &fds));
        let text = raw::refusal(&socket).expect("it is refused");
        assert!(text.contains(expected), "case {i}: {text}");
        refused += 1;
    }
    wait_for_end(format!("{refused} refused"));
}

/// A correct subscriber, which the environment stops at some step.
fn honest(dir: &Path) {
    let bus = bus::Bus::open(bus::BusConfig::new(dir)).unwrap();
    let subscriber = bus
        .subscriber(topic(TOPIC), SubscriberOptions::default())
        .unwrap();
    loop {
        let _ = subscriber.take_timeout(LONG).unwrap();
    }
}

/// A process that is stopped (not dead) at any step delays nobody and costs at most its quota.
#[test]
fn a_subscriber_stopped_at_any_step_hurts_nobody_else() {
    let without = run(None, &[], 120);
    let steps = [
        "bound",
        "shown",
        "connected",
        "hello-sent",
        "attach-sent",
        "welcome-received",
        "segment-mapped",
        "taken",
        "taken:5",
        "released",
        "released:7",
    ];
    for step in steps {
        let with = run(Some("honest"), &[("ROPEWALK_TEST_STOP_AT", step)], 120);
        assert!(
            with.seen == without.seen,
            "stopping at {step} changed what others see"
        );
    }
}
