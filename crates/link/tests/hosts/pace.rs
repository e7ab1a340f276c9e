//! Reliable topics reach the subscribers of the far host at their pace, and both ends count what a subscriber
//! loses.
use crate::common::*;
use bus::{Subscriber, SubscriberOptions};
use stats::DropReason;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Carries datagrams between two links while it is open.
struct Path {
    stop: Arc<AtomicBool>,
    open: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Path {
    /// `links` are the links' listening ports, `ends` the ports at which each finds the other.
    fn between(links: [u16; 2], ends: [u16; 2]) -> Path {
        let (stop, open) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(true)));
        let sockets = ends.map(|p| Arc::new(UdpSocket::bind(("127.0.0.1", p)).expect("binds")));
        let threads = [0, 1].map(|i| {
            let (from, to, stop) = (sockets[i].clone(), sockets[1 - i].clone(), stop.clone());
            let open = open.clone();
            from.set_read_timeout(Some(Duration::from_millis(50)))
                .expect("sets");
            std::thread::spawn(move || {
                let mut buffer = [0; 2048];
                while !stop.load(Ordering::Relaxed) {
                    let Ok(n) = from.recv(&mut buffer) else { continue };
                    if open.load(Ordering::Relaxed) {
                        let _ = to.send_to(&buffer[..n], ("127.0.0.1", links[1 - i]));
                    }
                }
            })
        });
        Path {
            stop,
            open,
            threads: threads.into(),
        }
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// A robot that sends `/log` reliably, and `/other`, to a base.
fn pair(compress: &str) -> (Path, Host, Host) {
    let [x, y, to_y, to_x] = ports();
    let path = Path::between([x, y], [to_y, to_x]);
    let text = |host: &str, own: u16, peer: &str, port: u16, direction: &str| {
        format!(
            "host: {host}
radio: {{bind: '127.0.0.1:{own}', rate: 50Mbit/s, medium: wire}}
peers: [{{name: {peer}, address: '127.0.0.1:{port}'}}]
topics:
  - {{name: /log, direction: {direction}, reliability: reliable, depth: 512, expiry: 60s{compress}}}
  - {{name: /other, direction: {direction}, reliability: reliable}}
"
        )
    };
    let robot = Host::start(&text("robot", x, "base", to_y, "out"));
    let base = Host::start(&text("base", y, "robot", to_x, "in"));
    (path, robot, base)
}

fn subscriber(host: &Host, topic: &str) -> Subscriber {
    let options = SubscriberOptions::default().with_depth(32);
    let kind = kind(topic, "test_msgs/Blob");
    host.bus.subscriber(kind, options).expect("a subscriber")
}

fn message(i: usize) -> String {
    format!("{i} {}", "text ".repeat(100))
}

/// Publishes 252 messages while the path is closed for a while.
fn over_an_outage(path: &Path, log: &bus::Publisher) {
    for i in 0..252 {
        match i {
            10 => path.open.store(false, Ordering::Relaxed),
            250 => path.open.store(true, Ordering::Relaxed),
            _ => {}
        }
        publish(log, &message(i));
        std::thread::sleep(Duration::from_millis(12));
    }
}

fn ready(robot: &Host, base: &Host) {
    until("the base publishes the topics", || {
        ["/log", "/other"].iter().all(|t| !base.published(t).is_empty())
    });
    until("the robot's link is ready", || robot.status().ready());
}

/// The robot's counts for `/log`: messages settled, those lost here, and those that subscribers there lost.
fn books(robot: &Host) -> (u64, u64, u64) {
    let status = robot.status();
    let log = status
        .sent
        .iter()
        .find(|t| t.stats.name == "/log")
        .expect("is sent");
    let there = log.stats.at_receiver.clone().unwrap_or_default();
    let (sent, lost) = (log.stats.sent, log.stats.drops.total());
    (sent, lost, there.drops.count(DropReason::NotTaken))
}

fn all_are_taken(compress: &str) {
    let (path, robot, base) = pair(compress);
    let (log, other) = (robot.publisher("/log"), robot.publisher("/other"));
    ready(&robot, &base);
    // Two with a short queue that take at their own pace; a third joins in the middle.
    let slow = [subscriber(&base, "/log"), subscriber(&base, "/log")];
    let quick = subscriber(&base, "/other");
    until("the base's link knows them", || {
        slow.iter().all(|s| s.publisher_count() == 1) && quick.publisher_count() == 1
    });
    over_an_outage(&path, &log);
    let mut got = [Vec::new(), Vec::new()];
    let mut late = None;
    until("all have arrived", || {
        for (got, slow) in got.iter_mut().zip(&slow) {
            // One each time.
            got.extend(slow.take().expect("goes on").map(|m| m.control().to_vec()));
        }
        if got[0].len() >= 60 && late.is_none() {
            late = Some(subscriber(&base, "/log"));
            publish(&other, "meanwhile");
        }
        got.iter().all(|g| g.len() >= 252)
    });
    for got in &got {
        let expected: Vec<Vec<u8>> = (0..252).map(|i| message(i).into_bytes()).collect();
        assert!(*got == expected, "in order, each once");
    }
    assert_eq!(texts(&quick), ["meanwhile"], "other topics are not held up");
    until("the robot has the report", || books(&robot).0 == 252);
    drop(late);
    assert_eq!(books(&robot).1, 0);
    let log = base.status().received;
    let log = log.iter().find(|t| t.stats.name == "/log").expect("is received");
    assert_eq!(log.stats.delivered, 252);
}

#[test]
fn messages_kept_over_an_outage_reach_subscribers_that_take_one_at_a_time() {
    all_are_taken("");
}

#[test]
fn so_does_what_comes_packed() {
    all_are_taken(", compress: lz4");
}

#[test]
fn a_stopped_subscriber_delays_others_briefly_and_both_ends_report_its_losses() {
    let (path, robot, base) = pair("");
    let (log, other) = (robot.publisher("/log"), robot.publisher("/other"));
    ready(&robot, &base);
    let (stopped, lives) = (subscriber(&base, "/log"), subscriber(&base, "/log"));
    let quick = subscriber(&base, "/other");
    until("the base's link knows them", || {
        [&stopped, &lives, &quick]
            .iter()
            .all(|s| s.publisher_count() == 1)
    });
    over_an_outage(&path, &log);
    publish(&other, "meanwhile");
    until("another topic goes on", || texts(&quick) == ["meanwhile"]);
    let mut got = Vec::new();
    until("the active one gets all", || {
        got.extend(texts(&lives));
        got.len() >= 252
    });
    assert_eq!(got.len(), 252);
    // All but its queue.
    until("the sender has the report of the losses", || {
        books(&robot) == (252, 0, 252 - 32)
    });
    let status = base.status();
    let received = status.received.iter().find(|t| t.stats.name == "/log");
    let received = received.expect("is received");
    assert_eq!(received.stats.drops.count(DropReason::NotTaken), 252 - 32);
    assert_eq!(received.bus_drops.total(), 252 - 32);
    assert_eq!(received.stats.delivered, 252);
    assert_eq!(texts(&stopped).len(), 32);
}
