//! Flows of numbered, stamped messages over Zenoh, for `ropewalk bench link`; `peers/flow/README.md` describes the
//! protocol. The orchestrator writes the session's configuration to a file, so that addresses, links and queues are
//! configured in Zenoh's own terms; each flow's quality of service is an argument.

#[path = "../../../../crates/bench/src/link/part/circuit.rs"]
mod circuit;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use circuit::{Circuit, PERIOD, control};

use peer::{Orchestrator, fail, need, now_ns, say};
use zenoh::pubsub::Publisher;
use zenoh::qos::{CongestionControl, Priority, Reliability};
use zenoh::sample::Sample;
use zenoh::{Config, Session, Wait};

/// Time between `go` and the first message.
const BEFORE_NS: u64 = 200_000_000;
const SPIN_NS: u64 = 60_000;
const STAMPED: usize = 16;

/// `--flow TOPIC,BYTES,PERIOD_US,OFFSET_US,COUNT` and `--qos PRIORITY,drop|block,express|batch,reliable|best-effort`;
/// for `circuit` and `controller`, only `--qos`.
#[derive(Clone)]
struct Flow {
    topic: String,
    bytes: usize,
    period_us: u64,
    offset_us: u64,
    count: u64,
    qos: Qos,
}

#[derive(Clone, Copy)]
struct Qos {
    priority: Priority,
    congestion: CongestionControl,
    express: bool,
    reliability: Reliability,
}

/// Zenoh's own defaults.
const DEFAULT: Qos = Qos {
    priority: Priority::Data,
    congestion: CongestionControl::Drop,
    express: false,
    reliability: Reliability::Reliable,
};

const COMMANDS: [&str; 5] = ["version", "publish", "subscribe", "circuit", "controller"];

struct Arguments {
    command: String,
    config: Option<String>,
    flows: Vec<Flow>,
    /// Topics of a part of the control loop, their quality of service, and the number of samples.
    input: String,
    output: String,
    qos: Qos,
    samples: u64,
}

fn main() {
    let a = parse();
    if a.command == "version" {
        return say(r#"{"system": "zenoh", "version": "1.10.2", "modes": ["block"]}"#);
    }
    let orchestrator = Orchestrator::new();
    let Some(file) = &a.config else {
        fail(2, "--config FILE: give Zenoh's configuration (JSON5)")
    };
    let config = need(Config::from_file(file), file);
    let session = need(zenoh::open(config).wait(), "zenoh cannot open its session");
    match a.command.as_str() {
        "publish" => publish(&a.flows, &session, &orchestrator),
        "subscribe" => subscribe(&a.flows, &session, &orchestrator),
        "circuit" => sample(&a, &session, &orchestrator),
        _ => answer(&a, &session, &orchestrator),
    }
    let _ = session.close().wait();
}

fn publish(flows: &[Flow], session: &Session, orchestrator: &Orchestrator) {
    let mut publishers = Vec::new();
    for flow in flows {
        publishers.push(publisher(session, &flow.topic, flow.qos));
    }
    let heard = |p: &Publisher<'_>| p.matching_status().wait().is_ok_and(|s| s.matching());
    while !publishers.iter().all(heard) && orchestrator.pause_ms(5) {}
    peer::ready_and_go(orchestrator);
    let start = now_ns() + BEFORE_NS;
    let sent: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = flows
            .iter()
            .zip(&publishers)
            .map(|(flow, publisher)| {
                scope.spawn(move || {
                    let mut sent = 0;
                    while sent < flow.count && !orchestrator.stopped() {
                        // As Ropewalk's own sender, which spins only for flows that are not meant to saturate.
                        let spin_ns = if flow.period_us < 1_000 { 0 } else { SPIN_NS };
                        sleep_until(start + (flow.offset_us + sent * flow.period_us) * 1000, spin_ns);
                        let mut message = vec![sent as u8; flow.bytes];
                        message[8..STAMPED].copy_from_slice(&sent.to_le_bytes());
                        message[..8].copy_from_slice(&now_ns().to_le_bytes());
                        // A refused message is lost, as one that is dropped later.
                        let _ = publisher.put(message).wait();
                        sent += 1;
                    }
                    sent
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap_or(0)).collect()
    });
    let sent = flows.iter().zip(sent);
    let sent: Vec<String> = sent
        .map(|(flow, n)| format!("{{\"topic\": \"{}\", \"sent\": {n}}}", flow.topic))
        .collect();
    say(&format!("{{\"published\": [{}]}}", sent.join(", ")));
    orchestrator.wait_stop();
}

fn publisher(session: &Session, topic: &str, qos: Qos) -> Publisher<'static> {
    let publisher = session
        .declare_publisher(key(topic))
        .congestion_control(qos.congestion)
        .priority(qos.priority)
        .express(qos.express)
        .reliability(qos.reliability)
        .wait();
    need(publisher, "zenoh publisher")
}

/// Sleeps, and spins for the last `spin_ns`, as Ropewalk's own sender does.
fn sleep_until(due_ns: u64, spin_ns: u64) {
    loop {
        let left = due_ns.saturating_sub(now_ns());
        if left == 0 {
            return;
        } else if left <= spin_ns {
            std::hint::spin_loop();
        } else {
            std::thread::sleep(Duration::from_nanos(left - spin_ns));
        }
    }
}

/// Arrival times of a flow's messages, in memory reserved beforehand.
struct Log {
    sequence: Vec<u64>,
    stamp: Vec<u64>,
    arrival: Vec<u64>,
}

fn subscribe(flows: &[Flow], session: &Session, orchestrator: &Orchestrator) {
    let mut all = Vec::new();
    for flow in flows {
        let list = || Vec::with_capacity(flow.count as usize);
        let log = Arc::new(Mutex::new(Log {
            sequence: list(),
            stamp: list(),
            arrival: list(),
        }));
        let (keep, bytes, count) = (log.clone(), flow.bytes, flow.count as usize);
        let subscriber = session
            .declare_subscriber(key(&flow.topic))
            .callback(move |sample| {
                let now = now_ns();
                let payload = sample.payload();
                // A large message has several pieces; stamp and number are in the first.
                let first = payload.slices().next().unwrap_or_default();
                let Ok(mut log) = keep.lock() else { return };
                if payload.len() != bytes || first.len() < STAMPED || log.sequence.len() == count {
                    fail(1, "zenoh: a message that is not of this run");
                }
                let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| first[at + i]));
                log.sequence.push(number(8));
                log.stamp.push(number(0));
                log.arrival.push(now);
            })
            .wait();
        all.push((flow, log, need(subscriber, "zenoh subscriber")));
    }
    say("ready");
    orchestrator.wait_stop();
    let mut said = Vec::new();
    for (flow, log, subscriber) in all {
        let _ = subscriber.undeclare().wait();
        let Ok(log) = log.lock() else { continue };
        said.push(format!(
            "{{\"topic\": \"{}\", \"sequence\": {:?}, \"stamp_ns\": {:?}, \"arrival_ns\": {:?}}}",
            flow.topic, log.sequence, log.stamp, log.arrival
        ));
    }
    say(&format!("{{\"received\": [{}]}}", said.join(", ")));
}

/// Pound's circuit (section VI-G): publishes its voltage every period, and is driven by the newest answer.
fn sample(a: &Arguments, session: &Session, orchestrator: &Orchestrator) {
    let publisher = publisher(session, &a.output, a.qos);
    let drive = Arc::new(Mutex::new((0, 0.0)));
    let newest = drive.clone();
    let subscriber = session
        .declare_subscriber(key(&a.input))
        .callback(move |sample| {
            let Ok(mut newest) = newest.lock() else { return };
            let (number, value) = value(&sample);
            if number >= newest.0 {
                *newest = (number + 1, value);
            }
        })
        .wait();
    let _subscriber = need(subscriber, "zenoh subscriber");
    meet(&publisher, orchestrator);
    peer::ready_and_go(orchestrator);
    let start = now_ns() + BEFORE_NS;
    let mut circuit = Circuit::default();
    let mut voltages = Vec::with_capacity(a.samples as usize);
    for k in 0..a.samples {
        if orchestrator.stopped() {
            return;
        }
        sleep_until(start + k * PERIOD.as_nanos() as u64, SPIN_NS);
        let drive = drive.lock().map_or(0.0, |d| d.1);
        voltages.push(circuit.voltage());
        say_value(&publisher, k, circuit.voltage());
        circuit.pass(drive);
    }
    say(&format!("{{\"values\": {voltages:?}}}"));
    orchestrator.wait_stop();
}

/// Pound's controller: answers each sample at once.
fn answer(a: &Arguments, session: &Session, orchestrator: &Orchestrator) {
    let publisher = Arc::new(publisher(session, &a.output, a.qos));
    let answering = publisher.clone();
    let subscriber = session
        .declare_subscriber(key(&a.input))
        .callback(move |sample| {
            let (number, voltage) = value(&sample);
            say_value(&answering, number, control(voltage));
        })
        .wait();
    let _subscriber = need(subscriber, "zenoh subscriber");
    meet(&publisher, orchestrator);
    say("ready");
    orchestrator.wait_stop();
}

/// Waits until the other end of the loop listens; it sends nothing before.
fn meet(publisher: &Publisher<'_>, orchestrator: &Orchestrator) {
    let heard = || publisher.matching_status().wait().is_ok_and(|s| s.matching());
    while !heard() && orchestrator.pause_ms(5) {}
}

/// Stamp, number, value.
fn say_value(publisher: &Publisher<'_>, number: u64, value: f64) {
    let mut message = vec![0; STAMPED + 8];
    message[..8].copy_from_slice(&now_ns().to_le_bytes());
    message[8..STAMPED].copy_from_slice(&number.to_le_bytes());
    message[STAMPED..].copy_from_slice(&value.to_le_bytes());
    let _ = publisher.put(message).wait();
}

fn value(sample: &Sample) -> (u64, f64) {
    let bytes = sample.payload().to_bytes();
    if bytes.len() != STAMPED + 8 {
        fail(1, "zenoh: a message that is not of the loop");
    }
    let word = |at: usize| std::array::from_fn(|i| bytes[at + i]);
    (u64::from_le_bytes(word(8)), f64::from_le_bytes(word(STAMPED)))
}

/// Zenoh's keys do not begin with a slash.
fn key(topic: &str) -> String {
    format!("ropewalk{topic}")
}

fn parse() -> Arguments {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((command, options)) = words.split_first() else {
        fail(2, format!("give one of {COMMANDS:?}"))
    };
    if !COMMANDS.contains(&command.as_str()) {
        fail(2, format!("'{command}': give one of {COMMANDS:?}"));
    }
    let mut a = Arguments {
        command: command.clone(),
        config: None,
        flows: Vec::new(),
        input: String::new(),
        output: String::new(),
        qos: DEFAULT,
        samples: 0,
    };
    for pair in options.chunks(2) {
        let [option, value] = pair else {
            fail(2, format!("{} needs a value", pair[0]))
        };
        match option.as_str() {
            "--system" | "--source" => {}
            "--config" => a.config = Some(value.clone()),
            "--flow" => a.flows.push(flow(value)),
            "--input" => a.input.clone_from(value),
            "--output" => a.output.clone_from(value),
            "--samples" => match value.parse() {
                Ok(n @ 1..=10_000) => a.samples = n,
                _ => fail(2, format!("--samples {value}: give 1 to 10000")),
            },
            "--qos" => match a.flows.last_mut() {
                Some(flow) => flow.qos = qos(value),
                None => a.qos = qos(value),
            },
            _ => fail(2, format!("unknown option {option}")),
        }
    }
    match command.as_str() {
        "publish" | "subscribe" if a.flows.is_empty() => fail(2, "--flow: give at least one"),
        "circuit" | "controller" if a.input.is_empty() || a.output.is_empty() => {
            fail(2, "--input, --output: give the topics of the loop")
        }
        "circuit" if a.samples == 0 => fail(2, "--samples: give the number of samples"),
        _ => {}
    }
    a
}

fn flow(text: &str) -> Flow {
    let parts: Vec<&str> = text.split(',').collect();
    let &[topic, bytes, period, offset, count] = parts.as_slice() else {
        fail(
            2,
            format!("--flow {text}: give TOPIC,BYTES,PERIOD_US,OFFSET_US,COUNT"),
        )
    };
    let number = |part: &str, least: u64, most: u64| match part.parse() {
        Ok(n) if (least..=most).contains(&n) => n,
        _ => fail(2, format!("--flow {text}: '{part}' is not {least} to {most}")),
    };
    if !topic.starts_with('/') {
        fail(2, format!("--flow {text}: a topic begins with /"));
    }
    Flow {
        topic: topic.to_owned(),
        bytes: number(bytes, STAMPED as u64, 1 << 24) as usize,
        period_us: number(period, 100, 60_000_000),
        offset_us: number(offset, 0, 60_000_000),
        count: number(count, 1, 1_000_000),
        qos: DEFAULT,
    }
}

fn qos(text: &str) -> Qos {
    let parts: Vec<&str> = text.split(',').collect();
    let wrong = || -> ! {
        fail(
            2,
            format!("--qos {text}: give PRIORITY (1 to 7),drop|block,express|batch,reliable|best-effort"),
        )
    };
    let &[priority, congestion, express, reliability] = parts.as_slice() else {
        wrong()
    };
    let number: Option<u8> = priority.parse().ok();
    let Some(priority) = number.and_then(|n| Priority::try_from(n).ok()) else {
        wrong()
    };
    Qos {
        priority,
        congestion: match congestion {
            "drop" => CongestionControl::Drop,
            "block" => CongestionControl::Block,
            _ => wrong(),
        },
        express: match express {
            "express" => true,
            "batch" => false,
            _ => wrong(),
        },
        reliability: match reliability {
            "reliable" => Reliability::Reliable,
            "best-effort" => Reliability::BestEffort,
            _ => wrong(),
        },
    }
}
