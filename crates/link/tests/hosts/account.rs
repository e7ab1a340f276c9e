//! The account of messages adds up at every moment and agrees at both ends: offered messages are delivered,
//! lost for a reason, or in flight.
//!
//! `SECONDS` sets how long the paths carry messages; some seconds without it.
use crate::common::*;
use bus::Publisher;
use link::Status;
use proto::Account;
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const TOPICS: [(&str, &str, u64); 5] = [
    ("/scan", "depth: 2", 10),
    ("/image", "depth: 1", 25),
    ("/odom", "depth: 4, every: 3", 10),
    ("/log", "reliability: reliable, depth: 64, expiry: 1s", 30),
    ("/event", "reliability: redundant, depth: 8", 40),
];

/// Carries datagrams between two links. Of each hundred it loses some, and swaps some with the next.
struct Path {
    stop: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Path {
    fn between(links: [u16; 2], ends: [u16; 2], percent: u64) -> Path {
        let stop = Arc::new(AtomicBool::new(false));
        let sockets = ends.map(|p| Arc::new(UdpSocket::bind(("127.0.0.1", p)).expect("binds")));
        let threads = [0, 1].map(|i| {
            let (from, to, stop) = (sockets[i].clone(), sockets[1 - i].clone(), stop.clone());
            from.set_read_timeout(Some(Duration::from_millis(50)))
                .expect("sets");
            std::thread::spawn(move || {
                let mut buffer = [0; 2048];
                let (mut dice, mut kept) = (7 + i as u64, None::<Vec<u8>>);
                while !stop.load(Ordering::Relaxed) {
                    let Ok(n) = from.recv(&mut buffer) else { continue };
                    let send = |bytes: &[u8]| drop(to.send_to(bytes, ("127.0.0.1", links[1 - i])));
                    dice = dice
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    let fate = (dice >> 33) % 100;
                    if fate < percent {
                        continue;
                    }
                    if fate < 2 * percent && kept.is_none() {
                        kept = Some(buffer[..n].to_vec());
                        continue;
                    }
                    send(&buffer[..n]);
                    if let Some(late) = kept.take() {
                        send(&late);
                    }
                }
            })
        });
        Path {
            stop,
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

fn pair(percent: u64) -> (Path, Host, Host) {
    let [x, y, to_y, to_x] = ports();
    let path = Path::between([x, y], [to_y, to_x], percent);
    let text = |host: &str, own: u16, peer: &str, port: u16, direction: &str| {
        let topics =
            TOPICS.map(|(name, rest, _)| format!("  - {{name: {name}, direction: {direction}, {rest}}}\n"));
        format!(
            "host: {host}\nradio: {{bind: '127.0.0.1:{own}', rate: 6Mbit/s}}\n\
             peers: [{{name: {peer}, address: '127.0.0.1:{port}'}}]\ntopics:\n{}",
            topics.concat()
        )
    };
    let robot = Host::start(&text("robot", x, "base", to_y, "out"));
    let base = Host::start(&text("base", y, "robot", to_x, "in"));
    (path, robot, base)
}

/// The accounts of a host by topic: those it makes, and those reported to it.
fn accounts(status: &Status) -> BTreeMap<String, Account> {
    let sent = status
        .sent
        .iter()
        .map(|t| (&t.stats.name, Some(&t.stats.account)));
    let accounted = status
        .received
        .iter()
        .map(|t| (&t.stats.name, t.stats.account.as_ref()));
    let all = sent.chain(accounted);
    all.filter_map(|(name, a)| Some((name.clone(), a?.clone())))
        .collect()
}

fn delivered(base: &Status) -> BTreeMap<String, u64> {
    let received = base.received.iter();
    received
        .map(|t| (t.stats.name.clone(), t.stats.delivered))
        .collect()
}

/// Checks both ends. `earlier` holds the deliveries of the base for past runs of the robot's link.
struct Watch {
    earlier: BTreeMap<String, u64>,
    /// The robot's account from a while ago, until the base shows a newer one.
    before: Option<Status>,
    compared: u64,
}

impl Watch {
    fn new(earlier: BTreeMap<String, u64>) -> Watch {
        Watch {
            earlier,
            before: None,
            compared: 0,
        }
    }

    fn came(&self, now: &BTreeMap<String, u64>, name: &str) -> u64 {
        now.get(name).copied().unwrap_or(0) - self.earlier.get(name).copied().unwrap_or(0)
    }

    fn look(&mut self, robot: &Host, base: &Host) {
        let (robot, base) = (robot.status(), base.status());
        for (name, a) in accounts(&robot).iter().chain(&accounts(&base)) {
            let sum = a.delivered + a.dropped.total() + a.in_flight;
            assert_eq!(a.offered, sum, "{name}: {a:?}");
            let share = a.delivery();
            assert!(share.is_none_or(|d| (0.0..=1.0).contains(&d)), "{name}: {a:?}");
        }
        let now = delivered(&base);
        if let Some(before) = self.before.take_if(|b| b.uptime_clock_s < base.uptime_clock_s) {
            self.compared += 1;
            for (name, a) in accounts(&before) {
                let came = self.came(&now, &name);
                assert!(a.delivered <= came, "{name}: {came} arrived, {a:?}");
            }
        }
        self.before.get_or_insert(robot);
    }
}

fn run(span: Duration, publishers: &[(Publisher, u64)], mut look: impl FnMut()) {
    let start = Instant::now();
    let mut tick = 0u64;
    let image = "x".repeat(4_000);
    while start.elapsed() < span {
        for (i, (publisher, period)) in publishers.iter().enumerate() {
            if tick.is_multiple_of(period / 5) {
                publish(publisher, if i == 1 { &image } else { "a few bytes" });
            }
        }
        if tick.is_multiple_of(4) {
            look();
        }
        tick += 1;
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn adds_up(percent: u64) {
    let seconds = std::env::var("SECONDS")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(6);
    let (_path, mut robot, base) = pair(percent);
    let publishers = TOPICS.map(|(name, _, period)| (robot.publisher(name), period));
    let all_come = || TOPICS.iter().all(|(name, ..)| !base.published(name).is_empty());
    until("the base publishes the topics", all_come);
    let mut watch = Watch::new(BTreeMap::new());
    run(Duration::from_secs(seconds), &publishers, || {
        watch.look(&robot, &base)
    });
    settles(&robot, &base, &publishers, &watch);
    assert!(watch.compared > 0);
    // The robot's link restarts, and counts from zero; the base's does not.
    robot.stop_link();
    // Messages in flight still arrive, and the base shows them a moment later.
    std::thread::sleep(Duration::from_millis(500));
    let mut watch = Watch::new(delivered(&base.status()));
    robot.start_link();
    until("the robot's link is ready again", || robot.status().ready());
    run(Duration::from_secs(2), &publishers, || watch.look(&robot, &base));
    settles(&robot, &base, &publishers, &watch);
}

/// After the last publication nothing is in flight, and both ends show all arrivals.
fn settles(robot: &Host, base: &Host, publishers: &[(Publisher, u64)], watch: &Watch) {
    let start = Instant::now();
    let open = || {
        let (robot, base) = (robot.status(), base.status());
        let (at_robot, at_base, came) = (accounts(&robot), accounts(&base), delivered(&base));
        let open = TOPICS.iter().find(|(name, ..)| {
            let own = &at_robot[*name];
            own.in_flight > 0 || at_base.get(*name) != Some(own) || own.delivered != watch.came(&came, name)
        });
        open.map(|(name, ..)| {
            format!(
                "{name}: {:?}, reported {:?}; {came:?} arrived",
                at_robot[*name],
                at_base.get(*name)
            )
        })
    };
    while let Some(left) = open() {
        assert!(start.elapsed() < LONG * 4, "something stays in flight: {left}");
        // Only a later message shows that the last one of a topic was lost. Then all reports need a second
        // each way.
        publishers.iter().for_each(|(p, _)| publish(p, "the end"));
        let pause = Instant::now();
        while open().is_some() && pause.elapsed() < Duration::from_secs(8) {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn a_clean_path_loses_nothing_and_says_so_at_every_moment() {
    adds_up(0);
}

#[test]
fn a_lossy_path_adds_up_at_every_moment() {
    adds_up(5);
}
