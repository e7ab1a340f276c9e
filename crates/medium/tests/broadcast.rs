//! Frames to everyone: sent once, at the lowest basic rate, without acknowledgement.

use medium::{Event, Hearing, Link, Loss, Medium, MediumConfig, Phy, SendError, Standard, Topology};
use stats::{DropReason, Time};
use std::collections::BTreeMap;

const IP: usize = 500;

fn mesh(hosts: usize) -> MediumConfig {
    MediumConfig {
        standard: Standard::G,
        rate_bits: 54_000_000,
        hosts,
        topology: Topology::Mesh,
        ..MediumConfig::chain(1)
    }
}

fn medium(config: MediumConfig) -> Medium<&'static str> {
    Medium::new(config).expect("a valid medium")
}

/// Runs until nothing is left to do; returns which host received what, and when.
fn deliveries(air: &mut Medium<&'static str>) -> Vec<(Time, usize, &'static str)> {
    let mut all = Vec::new();
    while let Some(now) = air.next_event() {
        while let Some(event) = air.poll(now) {
            if let Event::Delivered {
                at, host, payload, ..
            } = event
            {
                all.push((at, host, payload));
            }
        }
    }
    all
}

fn hosts(air: &mut Medium<&'static str>) -> Vec<(usize, &'static str)> {
    deliveries(air)
        .into_iter()
        .map(|(_, host, what)| (host, what))
        .collect()
}

#[test]
fn one_transmission_reaches_all_at_the_basic_rate_without_acknowledgement() {
    let mut air = medium(mesh(4));
    air.broadcast(Time::ZERO, 1, IP, 0, "all").expect("is taken");
    let phy = Phy::of(Standard::G, 1_000_000, &[]).expect("a rate of the standard");
    let over = Time::ZERO + Standard::G.difs() + phy.data(IP);
    let expected = [0, 2, 3].map(|host| (over, host, "all"));
    assert_eq!(deliveries(&mut air), expected);
    let s = air.stats();
    assert_eq!(
        (s.hosts[1].attempts, s.hosts[1].air, s.busy),
        (1, phy.data(IP), phy.data(IP))
    );
    assert_eq!((s.offered, s.duplicated, s.delivered), (1, 2, 3));
}

#[test]
fn missed_broadcasts_are_not_repeated() {
    let deaf = Link {
        loss: Some(Loss::Uniform(1.0)),
        ..Link::default()
    };
    let gone = Link {
        down: true,
        ..Link::default()
    };
    let mut air = medium(MediumConfig {
        links: BTreeMap::from([((0, 2), deaf), ((0, 3), gone)]),
        ..mesh(5)
    });
    air.broadcast(Time::ZERO, 0, IP, 0, "all").expect("is taken");
    assert_eq!(hosts(&mut air), [(1, "all"), (4, "all")]);
    let s = &air.stats().hosts[0];
    assert_eq!((s.attempts, s.retries, s.lost), (1, 0, 2));
    assert_eq!(
        (s.drops.count(DropReason::Air), s.drops.count(DropReason::Outage)),
        (1, 1)
    );
}

#[test]
fn a_collision_is_not_repaired() {
    let mut air = medium(mesh(3));
    air.broadcast(Time::ZERO, 0, IP, 0, "one").expect("is taken");
    air.broadcast(Time::ZERO, 1, IP, 0, "two").expect("is taken");
    assert_eq!(hosts(&mut air), []);
    let s = air.stats();
    assert_eq!((s.collisions, s.drops().count(DropReason::Air)), (1, 4));
    // A frame to one host is repeated all the same.
    air.broadcast(Time::from_millis(100), 0, IP, 0, "one")
        .expect("is taken");
    air.send(Time::from_millis(100), 1, 2, IP, "to one")
        .expect("is taken");
    assert_eq!(hosts(&mut air).last(), Some(&(2, "to one")));
}

#[test]
fn it_is_spoilt_only_where_another_is_heard() {
    // 0 - 1 - 2 - 3: 1 and 3 do not hear each other, 2 hears both.
    let mut air = medium(MediumConfig {
        topology: Topology::Chain,
        hearing: Hearing::Linked,
        ..mesh(4)
    });
    air.broadcast(Time::ZERO, 1, IP, 0, "one").expect("is taken");
    air.broadcast(Time::ZERO, 3, IP, 0, "three").expect("is taken");
    assert_eq!(hosts(&mut air), [(0, "one")]);
    // The two ends do not disturb anyone.
    air.broadcast(Time::from_millis(100), 0, IP, 0, "zero")
        .expect("is taken");
    air.broadcast(Time::from_millis(100), 3, IP, 0, "three")
        .expect("is taken");
    assert_eq!(hosts(&mut air), [(1, "zero"), (2, "three")]);
}

#[test]
fn an_access_point_sends_it_on_to_the_others() {
    let mut air = medium(MediumConfig {
        topology: Topology::AccessPoint { ap: 1 },
        ..mesh(4)
    });
    air.broadcast(Time::ZERO, 0, IP, 0, "all").expect("is taken");
    assert_eq!(hosts(&mut air), [(1, "all"), (2, "all"), (3, "all")]);
    let s = air.stats();
    assert_eq!((s.hosts[0].attempts, s.hosts[1].attempts), (1, 1));
    let fast = Phy::of(Standard::G, 54_000_000, &[])
        .expect("a rate")
        .exchange(IP);
    let slow = Phy::of(Standard::G, 1_000_000, &[]).expect("a rate").data(IP);
    assert_eq!((s.hosts[0].air, s.hosts[1].air), (fast, slow));
    // The access point's own frame is sent once.
    air.broadcast(Time::from_millis(100), 1, IP, 0, "mine")
        .expect("is taken");
    assert_eq!(hosts(&mut air), [(0, "mine"), (2, "mine"), (3, "mine")]);
}

#[test]
fn hosts_that_are_not_there_send_nothing() {
    let refused = medium(mesh(2)).broadcast(Time::ZERO, 2, IP, 0, "x");
    assert!(matches!(refused, Err(SendError::NoRoute { payload: "x", .. })));
    let refused = medium(mesh(2)).send(Time::ZERO, 0, usize::MAX, IP, "x");
    assert!(matches!(refused, Err(SendError::NoRoute { .. })));
}
