//! Round trips between two processes that spin, and what each call costs.
use bus::{Bus, BusConfig, PublisherOptions, Stamp, SubscriberOptions, TopicType};
use std::error::Error;
use std::hint::{black_box, spin_loop};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn topic(name: &str) -> TopicType {
    TopicType {
        topic: name.into(),
        type_name: "bench/Blob".into(),
        type_hash: [0; 16],
        definition: "".into(),
    }
}

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().collect();
    let n = 20_000u32;
    let size: usize = args.get(1).map_or(64, |a| a.parse().unwrap_or(64));
    if args.get(2).map(String::as_str) == Some("pong") {
        let bus = Bus::open(BusConfig::new(&args[3]))?;
        let publisher = bus.publisher(topic("/pong"), PublisherOptions::default())?;
        let subscriber = bus.subscriber(topic("/ping"), SubscriberOptions::default())?;
        publisher.wait_for_subscribers(1, Duration::from_secs(10));
        for _ in 0..n {
            let mut loan = publisher.loan(16, &[size])?;
            loan.part_mut(0)[0] = 1;
            let message = loop {
                match subscriber.take_busy()? {
                    Some(m) => break m,
                    None => spin_loop(),
                }
            };
            black_box(message.part(0).bytes()[0]);
            publisher.publish(loan, Stamp::default())?;
        }
        std::thread::sleep(Duration::from_millis(200));
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    let bus = Bus::open(BusConfig::new(dir.path().join("bus")))?;
    let publisher = bus.publisher(topic("/ping"), PublisherOptions::default())?;
    let subscriber = bus.subscriber(topic("/pong"), SubscriberOptions::default())?;
    // Costs without a subscriber.
    let start = Instant::now();
    for _ in 0..1_000_000 {
        drop(black_box(publisher.loan(16, &[size])?));
    }
    let loan = start.elapsed() / 1_000_000;
    let start = Instant::now();
    for _ in 0..1_000_000 {
        publisher.publish(publisher.loan(16, &[size])?, Stamp::default())?;
    }
    let publish = start.elapsed() / 1_000_000;
    let start = Instant::now();
    for _ in 0..1_000_000 {
        drop(black_box(subscriber.take_busy()?));
    }
    let take = start.elapsed() / 1_000_000;
    println!("alone: loan {loan:?}, loan and publish {publish:?}, take {take:?}");
    // In one process: publish, take and drop.
    {
        let own = bus.publisher(topic("/own"), PublisherOptions::default())?;
        let sub = bus.subscriber(topic("/own"), SubscriberOptions::default())?;
        own.wait_for_subscribers(1, Duration::from_secs(10));
        let mut best = Duration::MAX;
        for _ in 0..20 {
            let start = Instant::now();
            for _ in 0..10_000 {
                let mut loan = own.loan(16, &[size])?;
                loan.part_mut(0)[0] = 1;
                own.publish(loan, Stamp::default())?;
                drop(black_box(sub.take_busy()?));
            }
            best = best.min(start.elapsed() / 10_000);
        }
        println!("loan, publish, take, drop in one thread: {best:?}");
    }
    if args.get(2).map(String::as_str) == Some("alone") {
        return Ok(());
    }
    let mut child = Command::new(std::env::current_exe()?)
        .args([&size.to_string(), "pong"])
        .arg(dir.path().join("bus"))
        .stdout(Stdio::inherit())
        .spawn()?;
    publisher.wait_for_subscribers(1, Duration::from_secs(10));
    std::thread::sleep(Duration::from_millis(100));
    let (mut all, mut calls) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let start = Instant::now();
        let mut loan = publisher.loan(16, &[size])?;
        loan.part_mut(0)[0] = 1;
        let before = Instant::now();
        publisher.publish(loan, Stamp::default())?;
        calls.push(before.elapsed().as_nanos());
        let message = loop {
            match subscriber.take_busy()? {
                Some(m) => break m,
                None => spin_loop(),
            }
        };
        black_box(message.part(0).bytes()[0]);
        all.push(start.elapsed().as_nanos() / 2);
    }
    child.wait()?;
    for (what, mut v) in [("round trip / 2", all), ("publish", calls)] {
        v.sort_unstable();
        println!(
            "{what}: p10 {} p50 {} p99 {} ns",
            v[v.len() / 10],
            v[v.len() / 2],
            v[v.len() * 99 / 100]
        );
    }
    Ok(())
}
