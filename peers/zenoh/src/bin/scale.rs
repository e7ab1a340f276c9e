//! The nodes of `ropewalk bench scale` over Zenoh's TCP, as described in `peers/scale/README.md`. A message has the
//! given number of bytes, of which the first four are its number.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use peer::{Orchestrator, fail, need, now_ns, say};
use zenoh::bytes::ZBytes;
use zenoh::pubsub::Publisher;
use zenoh::qos::CongestionControl;
use zenoh::{Config, Session, Wait};

const PROBE: u32 = u32::MAX;
const NUMBER: usize = 4;

#[derive(Default)]
struct Arguments {
    command: String,
    system: String,
    publish: String,
    log: String,
    answers: Vec<String>,
    ways: Vec<(String, String)>,
    listen: Vec<String>,
    connect: Vec<String>,
    bytes: usize,
    hz: f64,
    messages: u64,
    offset_us: u64,
    linger_ms: u64,
}

fn main() {
    let a = parse();
    if a.command == "version" {
        return say(r#"{"system": "zenoh", "version": "1.10.2"}"#);
    }
    let orchestrator = Orchestrator::new();
    let session = open(&a);
    if a.command == "send" {
        send(&a, &session, &orchestrator);
    } else {
        echo(&a, &session, &orchestrator);
    }
    let _ = session.close().wait();
}

/// Arrival times of the answers.
struct Log {
    at: Vec<AtomicU64>,
    heard: Vec<AtomicBool>,
    back: AtomicU64,
    closed: AtomicBool,
}

impl Log {
    fn receive(&self, now: u64, number: u32, echo: usize) {
        if number == PROBE {
            return self.heard[echo].store(true, Ordering::Release);
        }
        let place = self.at.get(number as usize * self.heard.len() + echo);
        let Some(place) = place.filter(|_| !self.closed.load(Ordering::Acquire)) else {
            return;
        };
        if place
            .compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
        {
            self.back.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn reached(&self) -> bool {
        self.heard.iter().all(|h| h.load(Ordering::Acquire))
    }
}

fn send(a: &Arguments, session: &Session, orchestrator: &Orchestrator) {
    let echoes = a.answers.len();
    let log = Arc::new(Log {
        at: (0..a.messages as usize * echoes)
            .map(|_| AtomicU64::new(0))
            .collect(),
        heard: (0..echoes).map(|_| AtomicBool::new(false)).collect(),
        back: AtomicU64::new(0),
        closed: AtomicBool::new(false),
    });
    let mut subscribers = Vec::new();
    for (echo, topic) in a.answers.iter().enumerate() {
        let keep = log.clone();
        let subscriber = session
            .declare_subscriber(key(topic))
            .callback(move |sample| {
                let now = now_ns();
                keep.receive(now, number(sample.payload()), echo);
            })
            .wait();
        subscribers.push(need(subscriber, "zenoh subscriber"));
    }
    let publisher = publisher(session, &a.publish);
    let mut pause = 20;
    while !log.reached() {
        let _ = put(&publisher, a.bytes, PROBE);
        for _ in 0..pause / 5 {
            if log.reached() {
                break;
            }
            if !orchestrator.pause_ms(5) {
                return;
            }
        }
        pause = (2 * pause).min(1000);
    }
    peer::ready_and_go(orchestrator);
    let mut sent = Vec::with_capacity(a.messages as usize);
    let mut refused = 0_u64;
    let start = now_ns() + 200_000_000 + a.offset_us * 1000;
    for i in 0..a.messages {
        sleep_until(start + (i as f64 * 1e9 / a.hz) as u64);
        if orchestrator.stopped() {
            break;
        }
        let message = filled(a.bytes, i as u32);
        sent.push(now_ns());
        refused += u64::from(publisher.put(message).wait().is_err());
    }
    let patience = now_ns() + a.linger_ms * 1_000_000;
    let due = log.at.len() as u64;
    while log.back.load(Ordering::Relaxed) < due && now_ns() < patience && orchestrator.pause_ms(5) {}
    log.closed.store(true, Ordering::Release);
    say("closed");
    orchestrator.wait_stop();
    let mut text = String::from("id,sent_ns,recv_ns\n");
    for (id, at) in log.at.iter().enumerate().take(sent.len() * echoes) {
        let (stamp, at) = (sent[id / echoes], at.load(Ordering::Relaxed));
        let at = if at > 0 { at.to_string() } else { String::new() };
        let _ = writeln!(text, "{id},{stamp},{at}");
    }
    need(std::fs::write(&a.log, text), &a.log);
    let back = log.back.load(Ordering::Relaxed);
    say(&format!(
        "{{\"sent\": {}, \"returned\": {back}, \"refused\": {refused}}}",
        sent.len()
    ));
}

fn echo(a: &Arguments, session: &Session, orchestrator: &Orchestrator) {
    let echoed = Arc::new(AtomicU64::new(0));
    let mut subscribers = Vec::new();
    for (input, output) in &a.ways {
        let (publisher, count) = (publisher(session, output), echoed.clone());
        let subscriber = session
            .declare_subscriber(key(input))
            .callback(move |sample| {
                // Zenoh's own way: the bytes are reference-counted, and not copied.
                if publisher.put(sample.payload().clone()).wait().is_ok() {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            })
            .wait();
        subscribers.push(need(subscriber, "zenoh subscriber"));
    }
    say("ready");
    orchestrator.wait_stop();
    say(&format!("{{\"echoed\": {}}}", echoed.load(Ordering::Relaxed)));
}

fn publisher(session: &Session, topic: &str) -> Publisher<'static> {
    let publisher = session
        .declare_publisher(key(topic))
        // Zenoh's default drops when its queue is full for a millisecond.
        .congestion_control(CongestionControl::Block)
        .express(true)
        .wait();
    need(publisher, "zenoh publisher")
}

fn put(publisher: &Publisher<'_>, bytes: usize, number: u32) -> bool {
    publisher.put(filled(bytes, number)).wait().is_ok()
}

fn filled(bytes: usize, number: u32) -> Vec<u8> {
    let mut message = vec![7; bytes.max(NUMBER)];
    message[..NUMBER].copy_from_slice(&number.to_le_bytes());
    message
}

/// It may have several pieces.
fn number(payload: &ZBytes) -> u32 {
    let mut bytes = payload.slices().flatten().copied();
    u32::from_le_bytes(std::array::from_fn(|_| bytes.next().unwrap_or_default()))
}

fn sleep_until(due_ns: u64) {
    let left = due_ns.saturating_sub(now_ns());
    if left > 0 {
        std::thread::sleep(std::time::Duration::from_nanos(left));
    }
}

/// Keys do not begin with a slash.
fn key(topic: &str) -> String {
    topic.trim_start_matches('/').to_owned()
}

fn open(a: &Arguments) -> Session {
    let mut config = Config::default();
    let list = |ends: &[String]| {
        format!(
            "[{}]",
            ends.iter()
                .map(|e| format!("{e:?}"))
                .collect::<Vec<_>>()
                .join(",")
        )
    };
    for (name, value) in [
        ("mode", "\"peer\"".to_owned()),
        ("listen/endpoints", list(&a.listen)),
        ("connect/endpoints", list(&a.connect)),
        ("connect/timeout_ms", "-1".to_owned()),
        ("connect/exit_on_failure", "false".to_owned()),
        ("scouting/multicast/enabled", "false".to_owned()),
        ("scouting/gossip/enabled", "false".to_owned()),
        ("transport/shared_memory/enabled", "false".to_owned()),
    ] {
        need(
            config.insert_json5(name, &value).map_err(|e| format!("{e:?}")),
            name,
        );
    }
    need(zenoh::open(config).wait(), "zenoh cannot open its session")
}

fn parse() -> Arguments {
    let mut words = std::env::args().skip(1);
    let mut a = Arguments {
        command: words.next().unwrap_or_default(),
        ..Arguments::default()
    };
    if !["version", "send", "echo"].contains(&&*a.command) {
        fail(
            2,
            format!("first argument {:?}: give one of version, send, echo", a.command),
        );
    }
    while let Some(option) = words.next() {
        let value = words
            .next()
            .unwrap_or_else(|| fail(2, format!("{option} needs a value")));
        let whole = || -> u64 {
            value
                .parse()
                .unwrap_or_else(|_| fail(2, format!("{option} {value}: give a whole number")))
        };
        match option.as_str() {
            "--system" => a.system = value,
            "--publish" => a.publish = value,
            "--log" => a.log = value,
            "--answers" => a.answers = value.split(',').map(str::to_owned).collect(),
            "--ways" => {
                for way in value.split(',') {
                    match way.split_once(':') {
                        Some((input, output)) => a.ways.push((input.to_owned(), output.to_owned())),
                        None => fail(2, format!("--ways {value}: give IN:OUT,...")),
                    }
                }
            }
            "--listen" => a.listen.push(value),
            "--connect" => a.connect.push(value),
            "--bytes" => a.bytes = whole() as usize,
            // Zenoh's queues are per priority and congestion control, and count batches.
            "--queue" => drop(whole()),
            "--messages" => a.messages = whole(),
            "--offset-us" => a.offset_us = whole(),
            "--linger-ms" => a.linger_ms = whole(),
            "--hz" => {
                a.hz = value
                    .parse()
                    .ok()
                    .filter(|hz: &f64| (0.01..=1e6).contains(hz))
                    .unwrap_or_else(|| fail(2, format!("--hz {value}: give 0.01 to 1000000 Hz")));
            }
            _ => fail(2, format!("unknown option {option}")),
        }
    }
    if a.system != "zenoh" {
        fail(2, format!("--system {:?}: this program serves zenoh", a.system));
    }
    let whole = match a.command.as_str() {
        "send" => {
            !a.publish.is_empty()
                && !a.answers.is_empty()
                && a.messages > 0
                && a.hz > 0.0
                && !a.log.is_empty()
        }
        "echo" => !a.ways.is_empty(),
        _ => true,
    };
    if !whole || a.messages > 100_000_000 || a.bytes > 1 << 26 {
        fail(
            2,
            "an option is missing or too large: see peers/scale/README.md".to_owned(),
        );
    }
    a
}
