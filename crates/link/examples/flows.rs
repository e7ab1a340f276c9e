//! Periodic flows over the bus, and their statistics, for trying out links (in a lab, for example):
//!
//!     flows link FILE                                     a link daemon, its state as JSON each second
//!     flows publish TOPIC,BYTES,PERIOD_US,OFFSET_US,COUNT...
//!     flows receive SECONDS SKIP TOPIC,COUNT...           a line of JSON for each; the first SKIP are not counted
//!
//! Stamps are of CLOCK_MONOTONIC, so both ends must be on one machine.

use bus::{Bus, BusConfig, PublisherOptions, Stamp, SubscriberOptions, TopicType};
use serde::Serialize;
use stats::{Drops, Flow, FlowMetrics, Time};
use std::error::Error;
use std::time::Duration;

type Failure = Box<dyn Error + Send + Sync>;

fn kind(topic: &str) -> TopicType {
    TopicType {
        topic: topic.into(),
        type_name: "example/Bytes".into(),
        type_hash: [7; 16],
        flavour: Default::default(),
        definition: "uint64 number\nuint8[] data\n".into(),
    }
}

#[derive(Serialize)]
struct Line<'a> {
    topic: &'a str,
    #[serde(flatten)]
    metrics: FlowMetrics,
}

fn publish(bus: &Bus, spec: &str) -> Result<(), Failure> {
    let words: Vec<&str> = spec.split(',').collect();
    let [topic, bytes, period, offset, count] = words[..] else {
        return Err(format!("{spec}: write TOPIC,BYTES,PERIOD_US,OFFSET_US,COUNT").into());
    };
    let (bytes, count): (usize, u32) = (bytes.parse()?, count.parse()?);
    let (period, offset) = (
        Duration::from_micros(period.parse()?),
        Duration::from_micros(offset.parse()?),
    );
    let publisher = bus.publisher(kind(topic), PublisherOptions::default())?;
    clock::realtime_thread(15);
    if !publisher.wait_for_subscribers(1, Duration::from_secs(20)) {
        return Err(format!("no subscriber for {topic}").into());
    }
    // The link announces it meanwhile. Whole seconds, so that flows keep their relative phases.
    let start = Time((clock::monotonic().0 / 1_000_000_000 + 3) * 1_000_000_000) + offset;
    for n in 0..count {
        let at = start + period * n;
        clock::wait(&mut [], Some(at), clock::SPIN)?;
        let mut loan = publisher.loan(8, &[bytes - 8])?;
        loan.control_mut().copy_from_slice(&u64::from(n).to_le_bytes());
        let stamp = Stamp {
            time: Some(at),
            ..Stamp::default()
        };
        publisher.publish(loan, stamp)?;
    }
    std::thread::sleep(Duration::from_secs(3));
    Ok(())
}

fn receive(bus: &Bus, spec: &str, seconds: u64, skip: u64) -> Result<(), Failure> {
    let Some((topic, count)) = spec.split_once(',') else {
        return Err(format!("{spec}: write TOPIC,COUNT").into());
    };
    let count: u64 = count.parse()?;
    let subscriber = bus.subscriber(kind(topic), SubscriberOptions::default().with_depth(64))?;
    clock::realtime_thread(18);
    let end = clock::monotonic() + Duration::from_secs(seconds);
    let mut flow = Flow::new();
    let mut last = 0;
    while clock::monotonic() < end && last + 1 < count {
        let Some(m) = subscriber.take_timeout(Duration::from_millis(500))? else {
            continue;
        };
        let now = clock::monotonic();
        let number = m.control().try_into().map(u64::from_le_bytes).unwrap_or_default();
        last = last.max(number);
        if number >= skip {
            flow.received(m.stamp(), now, m.part_len(0) as u64 + 8);
        }
    }
    // A late message may still arrive after the last one.
    let line = Line {
        topic,
        metrics: flow.metrics(count - skip, &Drops::default()),
    };
    println!("{}", serde_json::to_string(&line)?);
    Ok(())
}

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let bus = Bus::open(BusConfig::from_env()?)?;
    match words[..] {
        ["link", file] => {
            let config = link::Config::load(file.as_ref())?;
            let carrier = link::open_carrier(&config)?;
            let daemon = link::Daemon::new(config, bus, carrier)?;
            let handle = daemon.handle();
            std::thread::spawn(move || {
                loop {
                    std::thread::sleep(Duration::from_secs(1));
                    match serde_json::to_string(&handle.status()) {
                        Ok(line) => println!("{line}"),
                        Err(error) => eprintln!("{error}"),
                    }
                }
            });
            daemon.run()?;
        }
        ["publish", ref flows @ ..] if !flows.is_empty() => std::thread::scope(|s| {
            let all: Vec<_> = flows.iter().map(|f| s.spawn(|| publish(&bus, f))).collect();
            all.into_iter()
                .try_for_each(|t| t.join().expect("a thread that does not panic"))
        })?,
        ["receive", seconds, skip, ref topics @ ..] if !topics.is_empty() => {
            let (seconds, skip) = (seconds.parse()?, skip.parse()?);
            std::thread::scope(|s| {
                let each = |t: &&str| {
                    let t = t.to_string();
                    let bus = &bus;
                    s.spawn(move || receive(bus, &t, seconds, skip))
                };
                let all: Vec<_> = topics.iter().map(each).collect();
                all.into_iter()
                    .try_for_each(|t| t.join().expect("a thread that does not panic"))
            })?;
        }
        _ => {
            return Err(
                "usage: flows link FILE | publish FLOW... | receive SECONDS SKIP TOPIC,COUNT...".into(),
            );
        }
    }
    Ok(())
}
