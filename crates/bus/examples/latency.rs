//! Publish-to-take latency between processes, beside the floor: one wake-up through a bare pipe, measured in the
//! same run.
//!
//! `cargo run --release -p bus --example latency -- [--json] [--messages N] [--spin]`
//!
//! As in the paper's Fig. 7 the payload is written first and stamped after; 30 messages a second, unless `--spin`,
//! where subscribers spin and messages follow each other at once.

use bus::{Bus, BusConfig, PublisherOptions, Stamp, SubscriberOptions, TopicType};
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error>>;

const PERIOD: Duration = Duration::from_nanos(1_000_000_000 / 30);

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("subscriber") => return subscriber(Path::new(&args[1]), args[2].parse()?, args[3] == "spin"),
        Some("sleeper") => return sleeper(args[1].parse()?),
        _ => {}
    }
    let json = args.iter().any(|a| a == "--json");
    let spin = args.iter().any(|a| a == "--spin");
    let messages = match args.iter().position(|a| a == "--messages") {
        Some(i) => args.get(i + 1).ok_or("--messages needs a number")?.parse()?,
        None => 150,
    };
    let mut rows = Vec::new();
    if !spin {
        rows.push((
            "floor: a byte through a pipe".to_owned(),
            1,
            1,
            summary(floor(messages)?),
        ));
    }
    for size in [4 << 10, 64 << 10, 1 << 20, 4 << 20] {
        for subscribers in if spin { vec![1] } else { vec![1, 8] } {
            let all = cell(size, subscribers, messages, spin)?;
            rows.push(("ropewalk".to_owned(), size, subscribers, summary(all)));
        }
    }
    if json {
        let cells: Vec<_> = rows
            .iter()
            .map(|(system, size, n, (p50, p99, count))| {
                serde_json::json!({
                    "system": system, "params": {"size": size, "subscribers": n, "spin": spin},
                    "metrics": {"latency_us": {"p50": p50, "p99": p99}, "received": count},
                })
            })
            .collect();
        println!("{}", serde_json::Value::from(cells));
    } else {
        println!(
            "{:30} {:>8} {:>3}  {:>8} {:>8}  received",
            "", "bytes", "n", "p50 µs", "p99 µs"
        );
        for (system, size, n, (p50, p99, count)) in rows {
            println!("{system:30} {size:>8} {n:>3}  {p50:>8.1} {p99:>8.1}  {count}");
        }
    }
    Ok(())
}

fn topic() -> TopicType {
    TopicType {
        topic: "/latency".into(),
        type_name: "bench/Blob".into(),
        type_hash: [0; 16],
        definition: "".into(),
    }
}

/// Latencies in ns of one cell of the grid, all subscribers together.
fn cell(size: usize, subscribers: usize, messages: usize, spin: bool) -> Outcome<Vec<u64>> {
    let dir = tempfile::tempdir()?;
    let bus = Bus::open(BusConfig::new(dir.path().join("bus")))?;
    let publisher = bus.publisher(topic(), PublisherOptions::default())?;
    let mode = if spin { "spin" } else { "sleep" };
    let mut children: Vec<Child> = (0..subscribers)
        .map(|_| {
            Command::new(std::env::current_exe()?)
                .arg("subscriber")
                .arg(dir.path().join("bus"))
                .args([&messages.to_string(), mode])
                .stdout(Stdio::piped())
                .spawn()
        })
        .collect::<Result<_, _>>()?;
    if !publisher.wait_for_subscribers(subscribers, Duration::from_secs(20)) {
        return Err("the subscribers did not come".into());
    }
    std::thread::sleep(Duration::from_millis(200));
    let mut next = Instant::now();
    for n in 0..messages {
        let mut loan = publisher.loan(16, &[size])?;
        loan.part_mut(0).fill(n as u8);
        publisher.publish(loan, Stamp::default())?;
        if spin {
            let end = Instant::now() + Duration::from_micros(200);
            while Instant::now() < end {
                std::hint::spin_loop();
            }
        } else {
            next += PERIOD;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    }
    let mut all = Vec::new();
    for child in &mut children {
        let out = child.stdout.take().ok_or("no output")?;
        for line in BufReader::new(out).lines() {
            all.push(line?.parse()?);
        }
        child.wait()?;
    }
    Ok(all)
}

/// Takes `messages` messages (or until none comes for two seconds) and prints how long each was on its way.
fn subscriber(dir: &Path, messages: usize, spin: bool) -> Outcome<()> {
    let bus = Bus::open(BusConfig::new(dir))?;
    let subscriber = bus.subscriber(topic(), SubscriberOptions::default())?;
    let mut latencies = Vec::with_capacity(messages);
    let mut last = Instant::now();
    while latencies.len() < messages && last.elapsed() < Duration::from_secs(2) {
        let message = if spin {
            subscriber.take_busy()?
        } else {
            subscriber.take_timeout(Duration::from_secs(2))?
        };
        if let Some(message) = message {
            latencies.push(now_ns().saturating_sub(message.queued_at().0));
            last = Instant::now();
        }
    }
    let mut out = std::io::stdout().lock();
    for latency in latencies {
        writeln!(out, "{latency}")?;
    }
    Ok(())
}

fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A process that sleeps on a pipe, woken 30 times a second by a time stamp through it.
fn floor(messages: usize) -> Outcome<Vec<u64>> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["sleeper", &messages.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut pipe = child.stdin.take().ok_or("no pipe")?;
    std::thread::sleep(Duration::from_millis(200));
    let mut next = Instant::now();
    for _ in 0..messages {
        pipe.write_all(&now_ns().to_ne_bytes())?;
        next += PERIOD;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    let out = child.stdout.take().ok_or("no output")?;
    let all = BufReader::new(out)
        .lines()
        .map(|l| Ok(l?.parse()?))
        .collect::<Outcome<_>>();
    child.wait()?;
    all
}

fn sleeper(messages: usize) -> Outcome<()> {
    let mut latencies = Vec::with_capacity(messages);
    let mut stdin = std::io::stdin().lock();
    for _ in 0..messages {
        let mut stamp = [0; 8];
        stdin.read_exact(&mut stamp)?;
        latencies.push(now_ns().saturating_sub(u64::from_ne_bytes(stamp)));
    }
    for latency in latencies {
        println!("{latency}");
    }
    Ok(())
}

/// Median and 99th percentile in µs, and how many there were.
fn summary(mut all: Vec<u64>) -> (f64, f64, usize) {
    all.sort_unstable();
    let at = |q: f64| all.get(((all.len() as f64 * q) as usize).min(all.len().saturating_sub(1)));
    let us = |q| at(q).map_or(f64::NAN, |ns| *ns as f64 / 1000.0);
    (us(0.5), us(0.99), all.len())
}
