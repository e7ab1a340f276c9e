//! Messages that hosts with keys send through relays: no other host can read, change or forge them.

use crate::common::*;
use crate::spy::{Passing, Spy, honest, said};
use link::keys::Team;
use stats::DropReason;
use std::path::{Path, PathBuf};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

struct Keys {
    _folder: tempfile::TempDir,
    team: PathBuf,
}

impl Keys {
    fn new(hosts: &[&str]) -> Keys {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("team");
        let team = Team::create(&path, "rovers").expect("a team");
        for host in hosts {
            team.add_host(host, DAY).expect("keys");
        }
        Keys {
            _folder: folder,
            team: path,
        }
    }

    fn of(&self, host: &str) -> PathBuf {
        self.team.join("hosts").join(host)
    }
}

fn robot(keys: &Path, own: u16, relay: u16, more: &str) -> Host {
    Host::start(&format!(
        "host: robot
keys: {}
radio: {{bind: '127.0.0.1:{own}', rate: 54Mbit/s}}
peers:
  - {{name: base}}
  - {{name: relay, address: '127.0.0.1:{relay}', relay: true, allow: {{}}}}
topics:
  - {{name: /scan, priority: 100, direction: out, depth: 8}}
  - {{name: /map, priority: 20, direction: out, depth: 1, latched: true, reliability: reliable}}
  - {{name: /cmd_vel, priority: 120, direction: in}}
{more}",
        keys.display()
    ))
}

fn base(keys: &Path, own: u16, relay: u16, more: &str) -> Host {
    Host::start(&format!(
        "host: base
keys: {}
radio: {{bind: '127.0.0.1:{own}', rate: 54Mbit/s}}
peers:
  - {{name: robot, namespace: /r}}
  - {{name: relay, address: '127.0.0.1:{relay}', relay: true, allow: {{}}}}
topics:
  - {{name: /scan, direction: in}}
  - {{name: /map, direction: in}}
  - {{name: /cmd_vel, priority: 120, direction: out, depth: 8}}
{more}",
        keys.display()
    ))
}

fn relay(keys: &Path, [robot, own, base]: [u16; 3]) -> Host {
    Host::start(&format!(
        "host: relay
keys: {}
radio: {{bind: '127.0.0.1:{own}', rate: 54Mbit/s}}
relay: true
peers:
  - {{name: robot, address: '127.0.0.1:{robot}'}}
  - {{name: base, address: '127.0.0.1:{base}'}}
topics: []
",
        keys.display()
    ))
}

fn have_keys(a: &Host, b: &Host) {
    until("they agree on keys", || {
        [(a, "base"), (b, "robot")].iter().all(|(host, other)| {
            let sealing = host.status().sealing;
            sealing.is_some_and(|s| s.keys.iter().any(|k| k == other))
        })
    });
}

/// Messages of a host's topic that were dropped for a reason.
fn dropped(host: &Host, topic: &str, reason: DropReason) -> u64 {
    let status = host.status();
    let of_it = status.received.iter().filter(|t| t.stats.name == topic);
    of_it.map(|t| t.stats.drops.count(reason)).sum()
}

#[test]
fn a_relay_carries_what_it_cannot_read() {
    let keys = Keys::new(&["robot", "relay", "base"]);
    let [x, y, z] = ports();
    let spy = Spy::start(
        &keys.of("relay"),
        "relay",
        y,
        &[("robot", x), ("base", z)],
        honest(),
    );
    let robot = robot(&keys.of("robot"), x, y, "");
    let base = base(&keys.of("base"), z, y, "");
    let (scan, got) = (robot.publisher("/scan"), base.subscriber("/r/scan"));
    let secret = "the payload of a laser that nobody else is to know".repeat(300);
    publish_until(&scan, &secret, || texts(&got).contains(&secret));
    let (command, vel) = (base.publisher("/r/cmd_vel"), robot.subscriber("/cmd_vel"));
    publish_until(&command, "go", || texts(&vel).contains(&"go".into()));
    let saw = spy.saw.lock().expect("no panic");
    assert!(saw.passed.iter().any(|p| p.announcement.name == "/scan"));
    for p in &saw.passed {
        let text = String::from_utf8_lossy(&p.bytes);
        assert!(!text.contains("payload"), "{} in the clear", p.announcement.name);
        // A notice, which proves the topic before its first message, is shorter.
        if p.announcement.name == "/scan" && p.bytes.len() > 100 {
            let more = p.bytes.len() - secret.len();
            println!("a sealed message is {more} bytes longer");
            assert!(more <= 40, "{more} bytes more");
        }
    }
}

#[test]
fn messages_a_relay_invents_changes_swaps_or_repeats_are_refused_and_counted() {
    let keys = Keys::new(&["robot", "relay", "base"]);
    let [x, y, z] = ports();
    let spy = Spy::start(
        &keys.of("relay"),
        "relay",
        y,
        &[("robot", x), ("base", z)],
        honest(),
    );
    let robot = robot(&keys.of("robot"), x, y, "");
    let vel = robot.subscriber("/cmd_vel");
    // From a base that is not even running, unsealed and as an envelope.
    until("forged messages are counted", || {
        for (number, packed) in [(1, false), (2, true), (3, false)] {
            spy.send(
                0,
                Passing {
                    announcement: said("base", 7, &["robot"], "/cmd_vel"),
                    stamp: stats::Time(number),
                    origin: 0,
                    number,
                    to: 1,
                    bytes: [vec![3, 1, 1, 0, 0], b"forged command".to_vec()].concat(),
                    packed,
                    parts: Vec::new(),
                },
            );
        }
        std::thread::sleep(Duration::from_millis(20));
        let s = robot.status().sealing;
        s.is_some_and(|s| s.unsealed >= 2) && dropped(&robot, "/cmd_vel", DropReason::Unsealed) >= 2
    });
    assert!(texts(&vel).is_empty(), "a forged command");
    assert!(
        robot.published("/cmd_vel").is_empty(),
        "nor is the topic the relay's"
    );

    // With a base that runs: each message changed, under another number, another topic's, and after the
    // genuine one.
    let base = base(&keys.of("base"), z, y, "");
    have_keys(&robot, &base);
    let command = base.publisher("/r/cmd_vel");
    publish_until(&command, "genuine", || texts(&vel).contains(&"genuine".into()));
    spy.does(Box::new(|p| {
        if p.announcement.name != "/cmd_vel" {
            return vec![p.clone()];
        }
        let mut changed = p.clone();
        changed.number += 100;
        *changed.bytes.last_mut().expect("bytes") ^= 1;
        let other = Passing {
            number: p.number + 150,
            ..p.clone()
        };
        let late = Passing {
            stamp: stats::Time(p.stamp.0 + 1),
            number: p.number + 200,
            ..p.clone()
        };
        vec![changed, other, late, p.clone(), p.clone()]
    }));
    std::thread::sleep(Duration::from_millis(200));
    texts(&vel);
    let mut came = Vec::new();
    for n in 0..20 {
        publish(&command, &format!("command {n}"));
        std::thread::sleep(Duration::from_millis(20));
        came.extend(texts(&vel));
    }
    until("forgeries are counted", || {
        came.extend(texts(&vel));
        dropped(&robot, "/cmd_vel", DropReason::Forged) >= 20
    });
    let expected: Vec<String> = (0..20).map(|n| format!("command {n}")).collect();
    let mut once = came.clone();
    once.dedup();
    assert_eq!(came, once, "nothing arrives twice");
    assert!(came.iter().all(|c| expected.contains(c)), "{came:?}");
    assert!(came.len() >= 15, "genuine messages still arrive: {came:?}");
    // Messages of one topic for another, and of the robot for itself.
    let scans = base.subscriber("/r/scan");
    let scan = robot.publisher("/scan");
    let recorded = spy.passed("/cmd_vel");
    spy.does(honest());
    publish_until(&scan, "ranges", || texts(&scans).contains(&"ranges".into()));
    let announcement = spy.passed("/scan").last().expect("a scan").announcement.clone();
    for p in recorded.iter().take(20) {
        spy.send(
            1,
            Passing {
                announcement: announcement.clone(),
                to: 1,
                number: p.number + 5000,
                ..p.clone()
            },
        );
    }
    until("swapped ones are counted", || {
        let refused = |reason| dropped(&base, "/scan", reason);
        refused(DropReason::Forged) + refused(DropReason::Unsealed) >= 5
    });
    assert!(texts(&scans).iter().all(|t| t == "ranges"));
}

#[test]
fn a_publisher_that_waits_for_its_subscribers_is_found_over_a_relay() {
    let keys = Keys::new(&["robot", "relay", "base"]);
    let [x, y, z] = ports();
    let _relay = relay(&keys.of("relay"), [x, y, z]);
    let mut robot = robot(&keys.of("robot"), x, y, "");
    let mut base = base(&keys.of("base"), z, y, "");
    let scan = robot.publisher("/scan");
    for round in 0..3 {
        match round {
            0 => {}
            1 => (base.stop_link(), base.start_link()).1,
            _ => (robot.stop_link(), robot.start_link()).1,
        }
        have_keys(&robot, &base);
        until("the base's bus has the publisher", || {
            !base.published("/r/scan").is_empty()
        });
    }
    let got = base.subscriber("/r/scan");
    assert!(got.wait_for_publishers(1, LONG), "it is connected");
    publish(&scan, "once");
    until("the one message arrives", || texts(&got).contains(&"once".into()));
}

#[test]
fn latched_messages_and_services_survive_a_restart_of_either_end() {
    let keys = Keys::new(&["robot", "relay", "base"]);
    let [x, y, z] = ports();
    let carrier = relay(&keys.of("relay"), [x, y, z]);
    let service = "services:\n  - {name: /add, role: ROLE, timeout: 5s}\n";
    let mut robot = robot(&keys.of("robot"), x, y, &service.replace("ROLE", "serve"));
    let mut base = base(&keys.of("base"), z, y, &service.replace("ROLE", "call"));
    let kind = |name: &str| bus::ServiceType {
        service: name.into(),
        type_name: "t/Add".into(),
        type_hash: [1; 16],
        flavour: Default::default(),
        definition: "".into(),
    };
    let options = bus::PublisherOptions::default().with_history(1);
    let map = robot
        .bus
        .publisher(crate::common::kind("/map", "test_msgs/Blob"), options);
    let map = map.expect("a publisher");
    publish(&map, "the map");
    let server = robot
        .bus
        .server(kind("/add"), Default::default())
        .expect("a server");
    let client = base
        .bus
        .client(kind("/r/add"), Default::default())
        .expect("a client");
    let call = || {
        until("the service is there", || client.has_server());
        let mut loan = client.loan(3, &[]).expect("a loan");
        loan.control_mut().copy_from_slice(b"1+1");
        let pending = client.send(loan, LONG).expect("is sent");
        let request = server.take_timeout(LONG).expect("takes").expect("a request");
        assert_eq!(request.message().control(), b"1+1");
        let mut loan = server.loan(1, &[]).expect("a loan");
        loan.control_mut().copy_from_slice(b"2");
        server.respond(request, loan).expect("answers");
        assert_eq!(pending.wait().expect("an answer").control(), b"2");
    };
    let latched = |base: &Host| {
        let got = base.subscriber("/r/map");
        until("the map arrives", || texts(&got).contains(&"the map".into()));
    };
    latched(&base);
    call();
    for round in 0..2 {
        let host = if round == 0 { &mut base } else { &mut robot };
        host.stop_link();
        std::thread::sleep(Duration::from_millis(300));
        host.start_link();
        have_keys(&robot, &base);
        latched(&base);
        call();
    }
    assert!(carrier.status().relay.forwarded > 0);
}

#[test]
fn a_relay_that_promises_a_near_way_and_drops_loses_the_traffic() {
    let keys = Keys::new(&["robot", "relay", "second", "base"]);
    let [x, y, y2, z] = ports();
    let peers = [("robot", x), ("base", z)];
    let spy = Spy::start(&keys.of("relay"), "relay", y, &peers, honest());
    let second = |name: &str, own: u16, more: &str| {
        Host::start(&format!(
            "host: {name}
keys: {}
radio: {{bind: '127.0.0.1:{own}', rate: 54Mbit/s}}
peers:
{}  - {{name: relay, address: '127.0.0.1:{y}', relay: true, allow: {{}}}}
  - {{name: second, address: '127.0.0.1:{y2}', relay: true, allow: {{}}}}
{more}",
            keys.of(name).display(),
            if name == "robot" {
                "  - {name: base}\n"
            } else {
                "  - {name: robot, namespace: /r}\n"
            },
        ))
    };
    let robot = second(
        "robot",
        x,
        "topics:\n  - {name: /scan, priority: 100, direction: out, depth: 8}\n",
    );
    let base = second("base", z, "topics:\n  - {name: /scan, direction: in}\n");
    have_keys(&robot, &base);
    let honest_relay = Host::start(&format!(
        "host: second
keys: {}
radio: {{bind: '127.0.0.1:{y2}', rate: 54Mbit/s}}
relay: true
peers:
  - {{name: robot, address: '127.0.0.1:{x}'}}
  - {{name: base, address: '127.0.0.1:{z}'}}
topics: []
",
        keys.of("second").display()
    ));
    let over = |h: &Host| {
        let status = h.status();
        let way = status.ways.iter().find(|w| w.host == "base");
        way.map(|w| w.over.clone())
    };
    until("the second relay is a way", || {
        robot.status().ways.iter().any(|w| w.host == "second") && over(&robot).is_some()
    });
    assert_eq!(
        over(&robot).as_deref(),
        Some("relay"),
        "it claims to be the nearer one"
    );
    let (scan, got) = (robot.publisher("/scan"), base.subscriber("/r/scan"));
    publish_until(&scan, "before", || texts(&got).contains(&"before".into()));
    // It drops everything except greetings and tallies.
    spy.does(Box::new(|p| match p.announcement.name.as_str() {
        "?greeting" => vec![p.clone()],
        _ => Vec::new(),
    }));
    texts(&got);
    let since = std::time::Instant::now();
    publish_until(&scan, "after", || texts(&got).contains(&"after".into()));
    println!("left a black hole after {:?}", since.elapsed());
    // No matter what the relay goes on to promise, or how busy the machine is.
    let mut came = 0;
    publish_until(&scan, "on", || {
        came += texts(&got).iter().filter(|t| *t == "on").count();
        came >= 50
    });
    assert!(honest_relay.status().relay.forwarded > 0);
}

#[test]
fn a_revoked_host_is_neither_heard_nor_sent_anything() {
    let keys = Keys::new(&["robot", "relay", "base"]);
    let [x, y, z] = ports();
    let spy = Spy::start(
        &keys.of("relay"),
        "relay",
        y,
        &[("robot", x), ("base", z)],
        honest(),
    );
    // The base's own copy of the list stays old.
    let old = tempfile::tempdir().expect("a folder");
    for file in std::fs::read_dir(keys.of("base")).expect("reads") {
        let file = file.expect("a file");
        std::fs::copy(file.path(), old.path().join(file.file_name())).expect("copies");
    }
    let robot = robot(&keys.of("robot"), x, y, "");
    let base = base(old.path(), z, y, "");
    let (command, vel) = (base.publisher("/r/cmd_vel"), robot.subscriber("/cmd_vel"));
    publish_until(&command, "go", || texts(&vel).contains(&"go".into()));
    have_keys(&robot, &base);
    Team::open(&keys.team)
        .expect("opens")
        .revoke("base")
        .expect("revokes");
    until("the robot drops its keys", || {
        robot.status().sealing.expect("keys").keys.is_empty()
    });
    texts(&vel);
    // Its further messages, and its earlier ones.
    let recorded = spy.passed("/cmd_vel");
    until("the robot reports why", || {
        publish(&command, "go on");
        let p = recorded.last().expect("a command").clone();
        let number = p.number + 50;
        spy.send(0, Passing { number, ..p });
        std::thread::sleep(Duration::from_millis(20));
        dropped(&robot, "/cmd_vel", DropReason::Unsealed) > 0
    });
    assert!(texts(&vel).is_empty());
    // Its greetings do not help it either.
    std::thread::sleep(Duration::from_secs(2));
    assert!(texts(&vel).is_empty());
    assert!(robot.status().sealing.expect("keys").keys.is_empty());
}
