//! The crash matrix: a publisher or a subscriber is killed, stopped, or forked at each step of its life. Its
//! peers get all messages that they should, every loss is counted, and nothing is left behind.
//!
//! `cargo test -p ropewalk-bus --test crash_matrix` prints the matrix.
#![allow(missing_docs)]

mod common;

use bus::{Bus, BusConfig, Message, Publisher, PublisherOptions, Stamp, Subscriber, SubscriberOptions};
use common::census::{Census, census, returns_to, settled};
use common::child::{Child, hear, role, say};
use common::{LONG, eventually, folder, topic, watchdog};
use rustix::process::{Pid, Signal};
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const TOPIC: &str = "/matrix";

/// One run's messages, by length: three classes of segments, and segments that make room for each other.
const SCRIPT: [usize; 16] = [
    1000,
    1000,
    1000,
    1000,
    200_000,
    200_000,
    200_000,
    17 << 20,
    1000,
    18 << 20,
    200_000,
    19 << 20,
    1000,
    17 << 20,
    1000,
    1000,
];
const COUNT: u64 = SCRIPT.len() as u64;
/// The three largest do not fit at once, so segments are retired.
const LIMIT: u64 = 48 << 20;
/// Longer messages are not held by holding subscribers.
const SMALL: usize = 1 << 20;
const END: u64 = u64::MAX;

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    Killed,
    Continued,
    StoppedAndKilled,
    Forked,
}

const FAULTS: [(Fault, &str); 4] = [
    (Fault::Killed, "killed"),
    (Fault::Continued, "stopped, continued"),
    (Fault::StoppedAndKilled, "stopped, killed"),
    (Fault::Forked, "forked, parent killed"),
];

impl Fault {
    fn variable(self) -> &'static str {
        match self {
            Fault::Killed => "ROPEWALK_TEST_KILL_AT",
            Fault::Continued | Fault::StoppedAndKilled => "ROPEWALK_TEST_STOP_AT",
            Fault::Forked => "ROPEWALK_TEST_CALL_AT",
        }
    }
}

/// Which side connects: the victim finds the others waiting, or they find it.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Late,
    Early,
}
use Order::{Early, Late};

/// How many of the victim's messages a subscriber must get if the victim, a publisher, goes no further than
/// this step.
struct Step(&'static str, Order, &'static str, u64);

const SUBSCRIBER: [Step; 24] = [
    Step("handshake", Late, "bound", 0),
    Step("handshake", Late, "shown", 0),
    Step("handshake", Late, "connected", 0),
    Step("handshake", Late, "hello-sent", 0),
    Step("handshake", Late, "hello-answered", 0),
    Step("handshake", Late, "attach-sent", 0),
    Step("handshake", Late, "welcome-received", 0),
    Step("handshake", Late, "ready-sent", 0),
    Step("handshake", Early, "accepted", 0),
    Step("handshake", Early, "hello-answered", 0),
    Step("handshake", Early, "attach-sent", 0),
    Step("handshake", Early, "welcome-received", 0),
    Step("segment growth", Late, "segment-mapped", 0),
    Step("segment growth", Late, "segment-mapped:3", 0),
    Step("take", Late, "taken", 0),
    Step("take", Late, "taken:8", 0),
    Step("release", Late, "releasing:2", 0),
    Step("release", Late, "released:2", 0),
    Step("release", Late, "released:9", 0),
    Step("retire", Late, "retire-received", 0),
    Step("retire", Late, "unmapped-sent", 0),
    Step("close", Late, "close-unnamed", 0),
    Step("close", Late, "close-reported", 0),
    Step("close", Late, "close-sent", 0),
];

const PUBLISHER: [Step; 24] = [
    Step("handshake", Late, "bound", 0),
    Step("handshake", Late, "shown", 0),
    Step("handshake", Late, "connected", 0),
    Step("handshake", Late, "hello-sent", 0),
    Step("handshake", Late, "hello-answered", 0),
    Step("handshake", Late, "attach-received", 0),
    Step("handshake", Late, "welcome-sent", 0),
    Step("handshake", Late, "attached", 0),
    Step("handshake", Early, "accepted", 0),
    Step("handshake", Early, "hello-answered", 0),
    Step("handshake", Early, "attach-received", 0),
    Step("handshake", Early, "attached", 0),
    Step("loan", Late, "loaned", 0),
    Step("loan", Late, "loaned:6", 5),
    Step("segment growth", Late, "segment-made:2", 4),
    Step("segment growth", Late, "segment-sent", 0),
    Step("segment growth", Late, "segment-sent:3", 7),
    Step("publish", Late, "publish-sealed:6", 5),
    Step("publish", Late, "publish-pushed:6", 6),
    Step("publish", Late, "publish-rung:6", 6),
    Step("publish", Late, "publish-pushed:10", 10),
    Step("retire", Late, "retire-sent", 11),
    Step("close", Late, "close-unnamed", COUNT),
    Step("close", Late, "close-hung-up", COUNT),
];

/// The tests count this process's descriptors, so they run one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open(dir: &Path) -> Bus {
    // Short, so that a process that was stopped in the handshake finds the others gone when it continues.
    Bus::open(BusConfig::new(dir).with_handshake_timeout(Duration::from_millis(200))).unwrap()
}

fn publisher(bus: &Bus) -> Publisher {
    let options = PublisherOptions::default().with_memory_limit(LIMIT);
    bus.publisher(topic(TOPIC), options).unwrap()
}

fn subscriber(bus: &Bus) -> Subscriber {
    bus.subscriber(topic(TOPIC), SubscriberOptions::default())
        .unwrap()
}

/// Publishes message `n` of `len` bytes; returns how many messages it lost for others.
fn send(publisher: &Publisher, n: u64, len: usize) -> u64 {
    let mut loan = publisher.loan(8, &[len]).expect("there is memory");
    loan.control_mut().copy_from_slice(&n.to_le_bytes());
    // A byte in every other page or so shows whether the block is intact.
    for (i, byte) in loan.part_mut(0).iter_mut().step_by(10_000).enumerate() {
        *byte = pattern(n, i);
    }
    let done = publisher.publish(loan, Stamp::default()).unwrap();
    done.dropped.total()
}

fn pattern(n: u64, i: usize) -> u8 {
    (n as usize).wrapping_mul(31).wrapping_add(i) as u8
}

/// Checks that a message is intact and returns its number in the script.
fn number(message: &Message) -> u64 {
    let n = u64::from_le_bytes(message.control().try_into().unwrap());
    let bytes = message.part(0).bytes();
    assert!(n == END || bytes.len() == SCRIPT[n as usize], "message {n}");
    for (i, byte) in bytes.iter().step_by(10_000).enumerate() {
        assert_eq!(*byte, pattern(n, i), "message {n} was written over");
    }
    n
}

/// The messages received from each publisher.
#[derive(Default)]
struct Heard {
    last: BTreeMap<u64, u64>,
    received: BTreeMap<u64, Vec<u64>>,
    /// Losses that were reported, and gaps in the sequence numbers.
    lost: u64,
    missing: u64,
}

impl Heard {
    fn hear(&mut self, message: &Message) -> u64 {
        let (from, n) = (message.publisher(), number(message));
        let lost = message.lost().total();
        // Before the first message, only the reported losses are known.
        let last = self.last.insert(from, message.sequence());
        self.missing += last.map_or(lost, |last| message.sequence() - last - 1);
        self.lost += lost;
        self.received.entry(from).or_default().push(n);
        n
    }
}

// The victim.

static BUS: Mutex<Option<Bus>> = Mutex::new(None);
static AS_PUBLISHER: Mutex<Option<Arc<Publisher>>> = Mutex::new(None);
static AS_SUBSCRIBER: Mutex<Option<Arc<Subscriber>>> = Mutex::new(None);
static HELD: Mutex<Option<Message>> = Mutex::new(None);

#[test]
fn child_entry() {
    let Some((role, dir)) = role() else { return };
    bus::hooks::call_at_step(fork_and_stay);
    let bus = open(&dir);
    *BUS.lock().unwrap() = Some(bus.clone());
    match &*role[0] {
        "publisher" => be_publisher(&bus),
        "subscriber" => be_subscriber(&bus),
        other => panic!("unknown role {other}"),
    }
    hear();
}

fn be_publisher(bus: &Bus) {
    let publisher = Arc::new(publisher(bus));
    *AS_PUBLISHER.lock().unwrap() = Some(publisher.clone());
    say("made");
    publisher.wait_for_subscribers(1, 10 * LONG);
    for (n, len) in SCRIPT.into_iter().enumerate() {
        send(&publisher, n as u64, len);
        eventually("the message is taken", || {
            let stats = publisher.stats();
            stats.subscribers.iter().all(|s| s.queued == 0) && stats.memory_used <= 2 * SMALL as u64
        });
    }
    AS_PUBLISHER.lock().unwrap().take();
    drop(publisher);
    say("closed");
}

fn be_subscriber(bus: &Bus) {
    let subscriber = Arc::new(subscriber(bus));
    *AS_SUBSCRIBER.lock().unwrap() = Some(subscriber.clone());
    say("made");
    let mut heard = Heard::default();
    loop {
        let message = subscriber.take_timeout(10 * LONG).unwrap().unwrap();
        if heard.hear(&message) == END {
            say("end");
            break;
        }
        if message.part_len(0) <= SMALL {
            let before = HELD.lock().unwrap().replace(message);
            drop(before);
        }
    }
    assert_eq!(hear(), "drain");
    while let Some(message) = subscriber.take().unwrap() {
        heard.hear(&message);
    }
    assert_eq!(heard.lost, heard.missing, "reported, and missing in the sequence");
    AS_SUBSCRIBER.lock().unwrap().take();
    drop(subscriber);
    number(HELD.lock().unwrap().as_ref().unwrap_or_else(|| exit(&heard)));
    HELD.lock().unwrap().take();
    exit(&heard);
}

fn exit(heard: &Heard) -> ! {
    let received: usize = heard.received.values().map(Vec::len).sum();
    say(format!("{received} {}", heard.lost));
    hear();
    std::process::exit(0)
}

/// At its step, forks. The fork uses everything that it inherited and keeps running, and the parent goes no
/// further.
fn fork_and_stay() {
    // SAFETY: the fork uses this crate, which is the point; it accesses the test's own state with `try_lock`,
    // and ends by a signal or `_exit`.
    let pid = unsafe { libc::fork() };
    if pid != 0 {
        loop {
            std::thread::sleep(LONG);
        }
    }
    let mut wrong = vec![];
    let mut check = |what: &'static str, ok: bool| {
        if !ok {
            wrong.push(what);
        }
    };
    if let Ok(mut bus) = BUS.try_lock() {
        if let Some(bus) = &*bus {
            check("bus", bus.topics(LONG).is_err());
            check(
                "new publisher",
                bus.publisher(topic(TOPIC), PublisherOptions::default()).is_err(),
            );
        }
        drop(bus.take());
    }
    if let Ok(mut publisher) = AS_PUBLISHER.try_lock() {
        if let Some(publisher) = &*publisher {
            check("loan", publisher.loan(0, &[10]).is_err());
            check("count", publisher.subscriber_count() == 0);
        }
        drop(publisher.take());
    }
    if let Ok(mut subscriber) = AS_SUBSCRIBER.try_lock() {
        if let Some(subscriber) = &*subscriber {
            check("take", subscriber.take().is_err());
            check("wait", subscriber.wait(LONG).is_err());
        }
        drop(subscriber.take());
    }
    if let Ok(mut held) = HELD.try_lock() {
        if let Some(message) = &*held {
            number(message);
        }
        drop(held.take());
    }
    let text = format!("@fork {} {wrong:?}\n", std::process::id());
    let _ = rustix::io::write(std::io::stdout(), text.as_bytes());
    // SAFETY: nothing here uses them any more; the survivor counts its ends of these pipes.
    unsafe { (libc::close(0), libc::close(1)) };
    // Longer than any cell of the matrix, but not forever if that fails.
    std::thread::sleep(10 * LONG);
    // SAFETY: ends the fork without running what belongs to its parent.
    unsafe { libc::_exit(0) };
}

// The survivors.

/// The victim, and its fork that keeps running.
struct Victim {
    child: Child,
    fault: Option<Fault>,
    fork: Option<Pid>,
    said: VecDeque<String>,
    /// Whether the fault has struck.
    struck: bool,
}

impl Victim {
    fn start(role: &str, dir: &Path, fault: Option<Fault>, step: &str) -> Victim {
        let env: &[_] = match fault {
            Some(fault) => &[(fault.variable(), step)],
            None => &[],
        };
        Victim {
            child: Child::start(role, dir, env),
            fault,
            fork: None,
            said: VecDeque::new(),
            struck: false,
        }
    }

    /// Whether its fault has struck, so that nothing can be expected of it.
    fn is_struck(&mut self) -> bool {
        self.struck = self.struck
            || match self.fault {
                None => false,
                Some(Fault::Killed) => self.child.has_ended(),
                Some(Fault::Continued | Fault::StoppedAndKilled) => self.child.is_stopped(),
                Some(Fault::Forked) => {
                    self.listen();
                    self.fork.is_some()
                }
            };
        self.struck
    }

    /// Reads what it and its fork send.
    fn listen(&mut self) {
        while let Some(text) = self.child.poll() {
            match text.strip_prefix("fork ").and_then(|t| t.split_once(' ')) {
                Some((pid, wrong)) => {
                    assert_eq!(wrong, "[]", "the fork's handles");
                    self.fork = Pid::from_raw(pid.parse().unwrap());
                }
                None => self.said.push_back(text),
            }
        }
    }

    /// Returns the next line that it sent.
    fn poll(&mut self) -> Option<String> {
        self.listen();
        self.said.pop_front()
    }

    /// Lets the fault run its course: afterwards the victim is gone, unless it should be continued.
    fn finish(&mut self) {
        match self.fault {
            None => {}
            Some(Fault::Continued) => self.child.signal(Signal::CONT),
            Some(_) => self.child.kill(),
        }
    }

    fn survives(&self) -> bool {
        matches!(self.fault, None | Some(Fault::Continued))
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        if let Some(pid) = self.fork {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

/// The census when two endpoints of this process have finished with each other. The bus's housekeeping
/// answers every query, so that a slow machine is not mistaken for an idle one.
fn at_rest(bus: &Bus, dir: &Path) -> Census {
    let mut last = settled(dir);
    loop {
        for _ in 0..3 {
            let topics = bus.topics(LONG).unwrap();
            assert!(
                topics
                    .iter()
                    .any(|t| !t.publishers.is_empty() && !t.subscribers.is_empty())
            );
        }
        let now = settled(dir);
        if now == last {
            return now;
        }
        last = now;
    }
}

/// One cell of a subscriber's row: every message of the publisher reaches the other subscriber.
fn subscriber_cell(bus: &Bus, dir: &Path, fault: Option<Fault>, step: &Step) -> String {
    let what = format!("subscriber at {}", step.2);
    let empty = settled(dir);
    let mut early = None;
    if step.1 == Early {
        let mut victim = Victim::start("subscriber", dir, fault, step.2);
        eventually("it is made", || {
            victim.poll().is_some_and(|s| s == "made") || victim.is_struck()
        });
        early = Some(victim);
    }
    let (publisher, witness) = (publisher(bus), subscriber(bus));
    // As both see it: each may still abandon a handshake that the other considers complete.
    eventually("they are connected", || {
        publisher.stats().subscribers.iter().any(|s| s.id == witness.id()) && witness.publisher_count() > 0
    });
    let before = (step.1 == Late).then(|| at_rest(bus, dir).without_memory());
    let mut victim = early.unwrap_or_else(|| Victim::start("subscriber", dir, fault, step.2));
    eventually("it is connected, or its fault strikes", || {
        publisher.subscriber_count() == 2 || victim.is_struck()
    });
    let (mut heard, mut dropped) = (Heard::default(), 0);
    let mut pass = |n: u64, len: usize| {
        dropped += send(&publisher, n, len);
        let message = witness
            .take_timeout(LONG)
            .unwrap()
            .expect("the witness hears all");
        assert_eq!((heard.hear(&message), message.lost().total()), (n, 0));
        drop(message);
        dropped
    };
    for (n, len) in SCRIPT.into_iter().enumerate() {
        pass(n as u64, len);
        eventually("it takes, or its fault strikes", || {
            victim.is_struck()
                || publisher
                    .stats()
                    .subscribers
                    .iter()
                    .all(|s| s.queued == 0 && s.bytes <= 2 * SMALL as u64)
        });
    }
    // Repeats that this was all until it reports what it got, or its fault strikes while closing.
    let (mut ended, mut said) = (false, None);
    let mut conclude = |victim: &mut Victim| {
        // Without a fault it loses nothing, however late it gets a processor.
        let idle = || publisher.stats().subscribers.iter().all(|s| s.queued == 0);
        if !ended && (fault.is_some() || idle()) {
            pass(END, 10);
        }
        match victim.poll().as_deref() {
            None | Some("made") => {}
            Some("end") => {
                ended = true;
                victim.child.say("drain");
            }
            Some(result) => said = Some(result.to_owned()),
        }
        said.clone()
    };
    if !victim.struck {
        eventually("its fault strikes at its end", || {
            conclude(&mut victim).is_some() || victim.is_struck()
        });
    }
    let struck = victim.struck;
    assert_eq!(struck, fault.is_some(), "{what}: the fault does not strike");
    victim.finish();
    let mut cell = format!("{COUNT}");
    if victim.survives() {
        let mut result = None;
        eventually("it comes to its end", || {
            result = conclude(&mut victim);
            result.is_some()
        });
        let result = result.unwrap();
        let (received, lost) = result.split_once(' ').unwrap();
        cell = format!("{cell}  {received}-{lost}");
        if fault.is_none() {
            assert_eq!(lost, "0", "without a fault it receives everything");
            assert!(received.parse::<u64>().unwrap() > COUNT);
        }
    }
    let fork_alive = victim
        .fork
        .is_none_or(|p| rustix::process::test_kill_process(p).is_ok());
    assert!(fork_alive, "{what}: the fork died");
    // Also while a fork lives.
    if !victim.survives() {
        eventually("it is forgotten", || publisher.stats().subscribers.len() == 1);
    }
    let survives = victim.survives();
    let fork = victim.fork.take();
    drop(victim);
    eventually("all of it is free", || {
        let stats = publisher.stats();
        (stats.subscribers.len(), stats.memory_used, stats.memory_pinned) == (1, 0, 0)
    });
    if let Some(before) = before {
        returns_to(&before, bus, &what, || census(dir).without_memory());
    }
    if let Some(pid) = fork {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
    assert_eq!(witness.stats().drops.total(), 0, "{what}: the witness");
    let counted = publisher.stats().drops.total();
    assert!(
        counted >= dropped,
        "{what}: {dropped} were dropped, {counted} are counted"
    );
    if survives {
        assert_eq!(counted, dropped, "{what}");
    }
    drop((publisher, witness));
    returns_to(&empty, bus, &what, || census(dir));
    cell
}

/// One cell of a publisher's row: the subscriber gets the queued messages, intact and in order, and all those
/// of another publisher.
fn publisher_cell(bus: &Bus, dir: &Path, fault: Option<Fault>, step: &Step) -> String {
    let what = format!("publisher at {}", step.2);
    let empty = settled(dir);
    let mut early = None;
    if step.1 == Early {
        let mut victim = Victim::start("publisher", dir, fault, step.2);
        eventually("it is made", || {
            victim.poll().is_some_and(|s| s == "made") || victim.is_struck()
        });
        early = Some(victim);
    }
    let (other, witness) = (publisher(bus), subscriber(bus));
    assert!(other.wait_for_subscribers(1, LONG));
    eventually("they are connected", || {
        let stats = witness.stats();
        stats.publishers.iter().any(|p| p.id == other.id())
    });
    let before = (step.1 == Late).then(|| at_rest(bus, dir).without_memory());
    let mut victim = early.unwrap_or_else(|| Victim::start("publisher", dir, fault, step.2));
    let mut heard = Heard::default();
    let (mut beats, mut owed) = (0u64, 0);
    let mut held = None;
    let mut listen = |wait: Duration| {
        // One message of the other publisher for each check.
        send(&other, 0, SCRIPT[0]);
        beats += 1;
        let end = Instant::now() + wait;
        while let Some(message) = witness
            .take_timeout(end.saturating_duration_since(Instant::now()))
            .unwrap()
        {
            let n = heard.hear(&message);
            if message.publisher() != other.id() {
                assert_eq!(n, owed, "{what}: the script's order");
                owed += 1;
                held = (message.part_len(0) <= SMALL).then_some(message);
            }
        }
        owed
    };
    let expected = if fault.is_some() { step.3 } else { COUNT };
    eventually("its fault strikes, or all has come", || {
        listen(Duration::from_millis(1));
        victim.is_struck() || (fault.is_none() && victim.poll().is_some_and(|s| s == "closed"))
    });
    // Its queued messages are there although it has not rung.
    eventually("what is owed has come", || {
        listen(Duration::from_millis(1)) >= expected
    });
    let mut got = listen(Duration::from_millis(10));
    assert_eq!(got, expected, "{what}");
    victim.finish();
    if fault == Some(Fault::Continued) {
        eventually("the rest comes", || listen(Duration::from_millis(1)) == COUNT);
        eventually("it closes", || victim.poll().is_some_and(|s| s == "closed"));
        got = listen(Duration::from_millis(1));
    }
    eventually("it is forgotten", || {
        listen(Duration::from_millis(1));
        witness.publisher_count() == 1
    });
    // The last view of its messages stays intact.
    if let Some(message) = &held {
        number(message);
    }
    let fork = victim.fork.take();
    drop((held.take(), victim));
    if let Some(before) = before {
        returns_to(&before, bus, &what, || census(dir).without_memory());
    }
    if let Some(pid) = fork {
        assert!(
            rustix::process::test_kill_process(pid).is_ok(),
            "{what}: the fork died"
        );
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
    assert_eq!(
        heard.received[&other.id()].len() as u64,
        beats,
        "{what}: the other's"
    );
    assert_eq!(
        (heard.lost, witness.stats().drops.total()),
        (0, 0),
        "{what}: losses"
    );
    assert_eq!(witness.stats().received, beats + got, "{what}");
    drop((other, witness));
    returns_to(&empty, bus, &what, || census(dir));
    format!("{got}")
}

type Cell = fn(&Bus, &Path, Option<Fault>, &Step) -> String;

fn matrix(title: &str, steps: &[Step], cell: Cell) {
    let _alone = alone();
    let dir = folder();
    let bus = open(dir.path());
    for order in [Late, Early] {
        cell(&bus, dir.path(), None, &Step("none", order, "none", 0));
    }
    // Bypasses the test runner, which would capture the output.
    let mut out = std::io::stdout().lock();
    let mut text = format!("\n{title}\n{:<16}{:<28}", "step", "at");
    FAULTS.iter().for_each(|(_, name)| text += &format!("{name:<24}"));
    for step in steps {
        let order = if step.1 == Early { " (asked)" } else { "" };
        text += &format!("\n{:<16}{:<28}", step.0, format!("{}{order}", step.2));
        for (fault, _) in FAULTS {
            watchdog();
            text += &format!("{:<24}", cell(&bus, dir.path(), Some(fault), step));
        }
    }
    let _ = writeln!(out, "{text}\n");
}

#[test]
fn a_subscriber_at_every_step() {
    let title = format!(
        "A subscriber fails. Messages that the one beside it got, of {COUNT}; then what the victim itself received \
         and what was reported to it as lost."
    );
    matrix(&title, &SUBSCRIBER, subscriber_cell);
}

#[test]
fn a_publisher_at_every_step() {
    let title = format!(
        "A publisher fails. Its messages that its subscriber got, of {COUNT}: all that were queued; none of another \
         publisher's is missing."
    );
    matrix(&title, &PUBLISHER, publisher_cell);
}
