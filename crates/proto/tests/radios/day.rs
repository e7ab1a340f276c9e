//! Traffic for hours, over a radio that loses frames and changes its rate, between hosts that restart, with topics
//! whose settings change at run time. Nothing leaks, no topic gets stuck, and the counters of both ends add up.
//!
//! `HOURS` sets the virtual time; `make day` runs a day.

use crate::common::day::{Day, Disorder, Flow};
use crate::common::ms;
use medium::Loss;
use proto::*;
use stats::{DropReason, Time};
use std::time::{Duration, Instant};

/// Time within which a topic must deliver again once all faults are over.
const RECOVERY: Duration = Duration::from_secs(8);

fn flow(name: &str, period: Duration, bytes: u32, config: TopicConfig) -> Flow {
    Flow {
        period,
        geometry: Geometry::new(bytes / 10, &[bytes - bytes / 10]).expect("a geometry"),
        config: TopicConfig {
            name: name.into(),
            type_name: "pkg/Type".into(),
            definition: "float32[] ranges\n".repeat(20),
            ..config
        },
    }
}

fn base(priority: u8, depth: u32) -> TopicConfig {
    TopicConfig {
        priority,
        depth,
        ..TopicConfig::new("", "")
    }
}

/// Topics of every kind, in both directions, within what 6 Mbit/s carry.
pub(crate) fn flows() -> [Vec<Flow>; 2] {
    let robot = vec![
        flow("/laser", ms(20), 1_000, base(100, 5)),
        flow("/image", ms(220), 24_000, base(10, 2)),
        flow(
            "/odom",
            ms(50),
            200,
            TopicConfig {
                ordering: Ordering::Any,
                deadline: Some(ms(100)),
                ..base(60, 3)
            },
        ),
        flow(
            "/scan",
            ms(100),
            1_500,
            TopicConfig {
                reliability: Reliability::Redundant,
                ordering: Ordering::Any,
                ..base(50, 3)
            },
        ),
        flow(
            "/state",
            ms(200),
            300,
            TopicConfig {
                reliability: Reliability::Reliable,
                ordering: Ordering::InOrder,
                expiry: Some(Duration::from_secs(3)),
                ..base(120, 64)
            },
        ),
        flow(
            "/events",
            ms(700),
            3_000,
            TopicConfig {
                reliability: Reliability::Reliable,
                ordering: Ordering::Any,
                ..base(40, 16)
            },
        ),
        flow(
            "/map",
            ms(5_000),
            12_000,
            TopicConfig {
                latched: true,
                ordering: Ordering::Any,
                ..base(5, 1)
            },
        ),
        flow(
            "/log",
            ms(1_100),
            400,
            TopicConfig {
                latched: true,
                reliability: Reliability::Reliable,
                ordering: Ordering::Any,
                expiry: Some(Duration::from_secs(6)),
                ..base(1, 8)
            },
        ),
    ];
    let station = vec![
        flow(
            "/joystick",
            ms(20),
            64,
            TopicConfig {
                deadline: Some(ms(60)),
                ..base(110, 1)
            },
        ),
        flow(
            "/command",
            ms(150),
            64,
            TopicConfig {
                reliability: Reliability::Reliable,
                ordering: Ordering::InOrder,
                expiry: Some(Duration::from_secs(2)),
                ..base(125, 32)
            },
        ),
        flow(
            "/goal",
            ms(400),
            6_000,
            TopicConfig {
                reliability: Reliability::Redundant,
                ..base(20, 2)
            },
        ),
    ];
    [robot, station]
}

/// Causes a fault or a change.
pub(crate) fn disturb(d: &mut Day) {
    match d.rng.below(11) {
        0 => {
            let p = d.rng.unit() * 0.4;
            d.medium.set_loss(d.now, Loss::Uniform(p));
        }
        1 => {
            let gilbert = Loss::Gilbert {
                to_bad: 0.02,
                to_good: 0.1,
                good: 0.0,
                bad: 1.0,
            };
            d.medium.set_loss(d.now, gilbert);
        }
        // An outage, which may or may not be long enough for the peers to be lost.
        2 => d.medium.set_loss(d.now, Loss::Uniform(1.0)),
        3 => d.medium.set_loss(d.now, Loss::NONE),
        4 => {
            let rates = [1, 2, 6, 6, 12, 54];
            let rate = rates[d.rng.below(6) as usize];
            d.set_rate(rate * 1_000_000);
        }
        5 => {
            d.disorder = Disorder {
                duplicate: d.rng.unit() * 0.2,
                reorder: d.rng.unit() * 0.3,
                late: ms(d.rng.below(40)),
            };
        }
        6 => d.disorder = Disorder::default(),
        7 => {
            let host = d.rng.below(2) as usize;
            if d.hosts[host].on {
                d.kill(host);
            }
        }
        8 => {
            let host = d.rng.below(2) as usize;
            d.hosts[host].ears.short = d.rng.chance(0.5);
        }
        9 => withdraw_or_bring_back(d),
        _ => {
            for _ in 0..3 {
                change(d);
            }
        }
    }
}

fn change(d: &mut Day) {
    let host = d.rng.below(2) as usize;
    let i = d.rng.below(d.hosts[host].topics.len() as u64) as usize;
    let maybe = |d: &mut Day, n: u64| d.rng.chance(0.5).then(|| d.rng.below(n));
    let change = TopicChange {
        priority: maybe(d, 128).map(|n| n as u8),
        depth: maybe(d, 8).map(|n| 1 + n as u32),
        deadline: maybe(d, 200).map(|n| (n > 30).then(|| ms(n))),
        max_rate: maybe(d, 30).map(|n| (n > 5).then_some(n as f64)),
        every: maybe(d, 3).map(|n| 1 + n as u32),
        min_share: maybe(d, 3).map(|n| n as f64 / 10.0),
    };
    let (now, h) = (d.now, &mut d.hosts[host]);
    if h.on {
        let id = h.topics[i].id;
        h.radio.set_topic(now, id, change).expect("a valid change");
    }
}

fn withdraw_or_bring_back(d: &mut Day) {
    let host = d.rng.below(2) as usize;
    let i = d.rng.below(d.hosts[host].topics.len() as u64) as usize;
    if d.hosts[host].on {
        toggle(d, host, i);
    }
}

fn toggle(d: &mut Day, host: usize, i: usize) {
    let (now, h) = (d.now, &mut d.hosts[host]);
    let t = &mut h.topics[i];
    if t.withdrawn {
        let again = h.radio.add_topic(now, h.peer, t.flow.config.clone());
        assert_eq!(again, Ok(t.id), "it comes back under its number");
    } else {
        h.radio.withdraw_topic(now, t.id).expect("there is such a topic");
    }
    t.withdrawn = !t.withdrawn;
}

pub(crate) fn restart_the_dead(d: &mut Day) {
    for host in [0, 1] {
        if d.is_cold(host) {
            d.start(host);
        }
    }
}

/// Restores the initial state.
fn restore(d: &mut Day) {
    d.medium.set_loss(d.now, Loss::NONE);
    d.set_rate(6_000_000);
    d.disorder = Disorder::default();
    while d.hosts.iter().any(|h| !h.on) {
        restart_the_dead(d);
        d.run(ms(50));
    }
    for host in [0, 1] {
        d.hosts[host].ears.short = false;
        for i in 0..d.hosts[host].topics.len() {
            if d.hosts[host].topics[i].withdrawn {
                toggle(d, host, i);
            }
            let (now, h) = (d.now, &mut d.hosts[host]);
            let c = &h.topics[i].flow.config;
            let change = TopicChange {
                priority: Some(c.priority),
                depth: Some(c.depth),
                deadline: Some(c.deadline),
                max_rate: Some(None),
                every: Some(1),
                min_share: Some(0.0),
            };
            let id = h.topics[i].id;
            h.radio.set_topic(now, id, change).expect("as it was");
        }
    }
}

/// Checks that every topic flows, and then, without sources, that everything is reported and nothing is left.
fn all_is_well(d: &mut Day) {
    d.run(RECOVERY);
    for (h, other) in [(0, 1), (1, 0)] {
        for t in &d.hosts[h].topics {
            let name = &t.flow.config.name;
            let last = d.hosts[other].ears.got.get(name).map_or(Time::ZERO, |g| g.last);
            let since = d.now.since(last);
            assert!(
                since < t.flow.period * 2 + ms(1_000),
                "{name} is stuck: nothing for {since:?}: {:?}\n{}\nthe other: {}",
                d.hosts[h].radio.topic_stats(t.id),
                d.shown(h),
                d.shown(other)
            );
        }
    }
    d.speaking = false;
    d.run(ms(2_500));
    // The last message of a topic may be lost; only a later one shows that.
    for _ in 0..5 {
        if d.unsettled().is_empty() {
            break;
        }
        d.nudge();
        d.run(ms(2_500));
    }
    assert_eq!(d.unsettled(), [""; 0], "at {:?}", d.now);
    d.check();
    for h in &d.hosts {
        let stats = h.radio.stats();
        assert_eq!(stats.queued_bytes, 0, "bytes that no message has");
        let peer = h.radio.peer_stats(h.peer).expect("a peer");
        assert!(peer.up, "{peer:?}");
    }
    d.speaking = true;
}

/// Resident memory of this process in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("reads");
    let pages = text.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok());
    pages.expect("a number") * 4096
}

pub(crate) fn live_through(seed: u64, auto: bool, span: Duration) {
    let begun = Instant::now();
    let mut d = Day::new(seed, auto, flows());
    let (mut rounds, mut early) = (0u64, None);
    while d.now < Time::ZERO + span {
        for _ in 0..20 {
            let pause = ms(100 + d.rng.below(2_500));
            d.run(pause);
            restart_the_dead(&mut d);
            d.check();
            disturb(&mut d);
        }
        restore(&mut d);
        all_is_well(&mut d);
        rounds += 1;
        if early.is_none() && d.now.since(Time::ZERO) * 10 > span {
            early = Some(resident());
        }
    }
    d.close();
    let grown = resident().saturating_sub(early.unwrap_or_else(resident));
    println!(
        "{:.2} h in {rounds} rounds, {} restarts, {:.0} s of this machine; resident grew by {} KB since the first tenth",
        d.now.as_secs_f64() / 3600.0,
        d.restarts,
        begun.elapsed().as_secs_f64(),
        grown / 1024
    );
    for h in &d.hosts {
        for (name, l) in &h.ledgers {
            let lost_there = l.drops_there.total() - l.drops_there.count(DropReason::Duplicate);
            println!(
                "{name:<10} offered {} = sent {} + died with their host {} + {}",
                l.offered, l.sent, l.died_with_host, l.drops
            );
            println!(
                "{:<10} begun {} (abandoned {}) = delivered {} + abandoned {} + partial at the receiver's end {} + {} of lives that ended + {}",
                "",
                l.begun,
                l.abandoned,
                l.delivered,
                l.abandoned_there,
                l.died_with_receiver,
                l.unseen,
                l.drops_there
            );
            assert_eq!(l.offered, l.sent + l.died_with_host + l.drops.total());
            assert_eq!(
                l.begun,
                l.delivered + lost_there + l.abandoned_there + l.died_with_receiver + l.unseen
            );
            assert!(l.delivered > 0);
        }
        for t in &h.topics {
            // What is sent until the loss of a peer is detected.
            let most = Duration::from_secs(4).as_nanos() / t.flow.period.as_nanos() + 40;
            let l = &h.ledgers[&t.flow.config.name];
            let lives = u128::from(d.restarts) + 1;
            assert!(u128::from(l.unseen) <= most * lives, "{l:?}");
        }
    }
    if span >= Duration::from_secs(3600) {
        assert!(grown < 4 << 20, "{grown} bytes more");
    }
}

/// Virtual time of each run.
fn span() -> Duration {
    let hours = std::env::var("HOURS").map_or(0.05, |h| h.parse().expect("HOURS is a number"));
    Duration::from_secs_f64(hours * 3600.0 / 2.0)
}

#[test]
fn traffic_of_hours_adds_up_with_the_rate_set() {
    live_through(1, false, span());
}

#[test]
fn traffic_of_hours_adds_up_with_the_rate_unknown() {
    live_through(2, true, span());
}
