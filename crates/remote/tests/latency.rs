//! Times within one process, for people: `cargo test --release -p ropewalk-remote --test latency -- --ignored --nocapture`
//! prints them as JSON. Nothing is asserted: machines differ.

mod conformance;

use conformance::{WATCHDOG, controller};
use remote::transport::{Wire, local};
use remote::{Controller, Expiry, Robot, command, types};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Round trips of a twist, back to back or at 30 Hz, until `ended` returns true.
fn twists(controller: &Controller, pause: Duration, ended: impl Fn(usize) -> bool) -> Vec<f64> {
    let twist = types::Twist {
        linear: Some(types::Vector3 {
            x: 0.5,
            y: 0.0,
            z: 0.0,
        }),
        ..Default::default()
    };
    let mut times = Vec::new();
    while !ended(times.len()) {
        let start = Instant::now();
        let outcome = controller
            .send_within::<command::Twist>(&twist, Expiry::After(WATCHDOG))
            .wait();
        times.push(start.elapsed().as_secs_f64() * 1e6);
        assert!(outcome.is_executed(), "{outcome}");
        std::thread::sleep(pause);
    }
    times.sort_by(f64::total_cmp);
    times
}

fn print(what: &str, times: &[f64]) {
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "{{\"what\": \"{what}\", \"twists\": {}, \"p50_us\": {:.1}, \"p99_us\": {:.1}, \"max_us\": {:.1}}}",
        times.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
}

#[test]
#[ignore = "prints times, asserts nothing"]
fn twist_executed_acknowledged() {
    let (end, connect) = local::end("rover", Wire::Own);
    let robot = Robot::builder("rover").end(end).start().expect("starts");
    robot.on::<command::Twist>(|_, _| Ok(()));
    let driver = controller("driver", connect.end());
    let _ = twists(&driver, Duration::ZERO, |n| n == 1000);
    print("back to back", &twists(&driver, Duration::ZERO, |n| n == 20_000));
    print(
        "every 10 ms",
        &twists(&driver, Duration::from_millis(10), |n| n == 300),
    );

    let disk = tempfile::tempdir().expect("a folder");
    std::fs::write(disk.path().join("bag"), vec![7; 200_000_000]).expect("written");
    robot.share("bag", &disk.path().join("bag")).expect("there");
    let fetcher = controller("fetcher", connect.end());
    let ended = Arc::new(AtomicBool::new(false));
    let fetch = std::thread::spawn({
        let (ended, into) = (ended.clone(), disk.path().join("into"));
        move || {
            let start = Instant::now();
            let fetched = fetcher.download("bag", "", &into, |_| {});
            ended.store(true, Ordering::Release);
            fetched.map(|_| start.elapsed())
        }
    });
    print(
        "beside a file of 200 MB",
        &twists(&driver, Duration::from_millis(1), |_| {
            ended.load(Ordering::Acquire)
        }),
    );
    let took = fetch.join().expect("no panic").expect("fetched");
    println!(
        "{{\"what\": \"the file\", \"took_s\": {:.2}}}",
        took.as_secs_f64()
    );
}
