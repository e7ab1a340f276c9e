//! Flows of numbered, stamped messages over Zenoh, for `ropewalk bench link`; spoken with as `peers/flow/README.md` says.
//! The session's configuration is a file of the orchestrator's, so that addresses, links and queues are told in Zenoh's
//! own words; each flow's quality of service comes with it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use peer::{Orchestrator, fail, need, now_ns, say};
use zenoh::qos::{CongestionControl, Priority, Reliability};
use zenoh::{Config, Session, Wait};

/// Between `go` and the first message.
const BEFORE_NS: u64 = 200_000_000;
const STAMPED: usize = 16;

/// `--flow TOPIC,BYTES,PERIOD_US,OFFSET_US,COUNT` and `--qos PRIORITY,drop|block,express|batch,reliable|best-effort`.
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

struct Arguments {
    command: String,
    config: Option<String>,
    flows: Vec<Flow>,
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
    if a.command == "publish" {
        publish(&a.flows, &session, &orchestrator);
    } else {
        subscribe(&a.flows, &session, &orchestrator);
    }
    let _ = session.close().wait();
}

fn publish(flows: &[Flow], session: &Session, orchestrator: &Orchestrator) {
    let mut publishers = Vec::new();
    for flow in flows {
        let publisher = session
            .declare_publisher(key(flow))
            .congestion_control(flow.qos.congestion)
            .priority(flow.qos.priority)
            .express(flow.qos.express)
            .reliability(flow.qos.reliability)
            .wait();
        publishers.push(need(publisher, "zenoh publisher"));
    }
    let heard = |p: &zenoh::pubsub::Publisher<'_>| p.matching_status().wait().is_ok_and(|s| s.matching());
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
                        sleep_until(start + (flow.offset_us + sent * flow.period_us) * 1000);
                        let mut message = vec![sent as u8; flow.bytes];
                        message[8..STAMPED].copy_from_slice(&sent.to_le_bytes());
                        message[..8].copy_from_slice(&now_ns().to_le_bytes());
                        // What it refuses is lost, as what it drops later.
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

/// Sleeps, and spins for the last 60 µs, as our own sender does.
fn sleep_until(due_ns: u64) {
    loop {
        let left = due_ns.saturating_sub(now_ns());
        match left {
            0 => return,
            1..=60_000 => std::hint::spin_loop(),
            _ => std::thread::sleep(Duration::from_nanos(left - 60_000)),
        }
    }
}

/// When each message of a flow came, into memory reserved before.
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
            .declare_subscriber(key(flow))
            .callback(move |sample| {
                let now = now_ns();
                let payload = sample.payload();
                // A large message lies in several pieces; stamp and number are in the first.
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

/// Zenoh's keys do not begin with a slash.
fn key(flow: &Flow) -> String {
    format!("ropewalk{}", flow.topic)
}

fn parse() -> Arguments {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((command, options)) = words.split_first() else {
        fail(2, "give one of version, publish, subscribe")
    };
    if !["version", "publish", "subscribe"].contains(&command.as_str()) {
        fail(
            2,
            format!("'{command}': give one of version, publish, subscribe"),
        );
    }
    let mut a = Arguments {
        command: command.clone(),
        config: None,
        flows: Vec::new(),
    };
    for pair in options.chunks(2) {
        let [option, value] = pair else {
            fail(2, format!("{} needs a value", pair[0]))
        };
        match option.as_str() {
            "--system" | "--source" => {}
            "--config" => a.config = Some(value.clone()),
            "--flow" => a.flows.push(flow(value)),
            "--qos" => match a.flows.last_mut() {
                Some(flow) => flow.qos = qos(value),
                None => fail(2, "--qos stands behind its --flow"),
            },
            _ => fail(2, format!("unknown option {option}")),
        }
    }
    if command != "version" && a.flows.is_empty() {
        fail(2, "--flow: give at least one");
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
        qos: Qos {
            priority: Priority::Data,
            congestion: CongestionControl::Drop,
            express: false,
            reliability: Reliability::Reliable,
        },
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
