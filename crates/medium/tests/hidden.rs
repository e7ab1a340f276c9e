//! Hosts that do not hear each other.

mod common;
use common::*;
use medium::{Event, Hearing, Medium, MediumConfig, Phy, Standard, Topology, theory};
use stats::{DropReason, Time};

#[test]
fn hosts_hidden_from_each_other_spoil_each_other() {
    let config = |hearing| MediumConfig {
        hearing,
        ..MediumConfig::chain(2)
    };
    let flows = [(0, 1), (2, 1)];
    let total = |hearing| {
        let (got, air) = saturate(config(hearing), &flows, 60);
        println!("{got:.0?} bit/s, {:?}", air.stats().hosts[0]);
        got.iter().sum::<f64>()
    };
    let (hearing, hidden) = (total(Hearing::All), total(Hearing::Linked));
    assert!(hidden < 0.5 * hearing, "{hidden} beside {hearing}");
    // A lone sender is not hidden from anyone, whichever hosts hear its acknowledgements.
    let alone = saturate(config(Hearing::Linked), &flows[..1], 30).0[0];
    let phy = Phy::new(6_000_000).expect("a rate");
    within("alone", alone, theory::lone_sender(&phy, IP, PAYLOAD), 0.005);
}

#[test]
fn those_far_apart_use_the_air_at_once() {
    // 0→1 and 4→5: two hosts between them hear neither.
    let config = MediumConfig {
        hearing: Hearing::Linked,
        ..MediumConfig::chain(5)
    };
    let (got, air) = saturate(config, &[(0, 1), (4, 5)], 30);
    let want = theory::lone_sender(&Phy::new(6_000_000).expect("a rate"), IP, PAYLOAD);
    for g in got {
        within("of two", g, want, 0.005);
    }
    assert_eq!(air.stats().collisions, 0);
    assert!(
        air.stats().busy_share(core::time::Duration::from_secs(30)) < 1.0,
        "time counts once"
    );
}

#[test]
fn hosts_that_hear_only_the_receiver_wait_only_for_its_acknowledgement() {
    // Host 2 hears 1 but not 0. It begins in the middle of 0's frame to 1, and 1 decodes neither.
    let config = MediumConfig {
        hearing: Hearing::Linked,
        ..MediumConfig::chain(3)
    };
    let mut air = Medium::new(config).expect("a valid medium");
    air.send(Time::ZERO, 0, 1, 1500, 'a').expect("there is room");
    air.send(Time::from_micros(1000), 2, 3, 100, 'b')
        .expect("there is room");
    let mut seen = Vec::new();
    while let Some(t) = air.next_event() {
        seen.extend(std::iter::from_fn(|| air.poll(t)));
    }
    // 3 does not hear 0: at DIFS 34, preamble 20 and 47 symbols.
    let b = Time::from_micros(1000 + 34 + 20 + 47 * 4);
    assert!(
        matches!(seen[0], Event::Delivered { at, payload: 'b', .. } if at == b),
        "{seen:?}"
    );
    assert!(
        matches!(seen[1], Event::Delivered { payload: 'a', .. }),
        "{seen:?}"
    );
    let h = &air.stats().hosts;
    assert_eq!((h[0].collisions, h[0].retries, h[2].collisions), (1, 1, 0));
    assert_eq!(air.stats().collisions, 1);
}

/// 1→0 with short frames and 2→3 with long ones. 1 and 2 hear each other, and sometimes begin in the same slot. Then
/// both receivers decode their frames, but 2 is still sending when 0 acknowledges, so 1 does not hear it.
fn missed_acknowledgements(retries: u8) -> (Vec<Event<u64>>, Medium<u64>) {
    let config = MediumConfig {
        hearing: Hearing::Linked,
        retries,
        ..MediumConfig::chain(3)
    };
    let mut air = Medium::new(config).expect("a valid medium");
    let (mut now, mut n, mut seen) = (Time::ZERO, 0, Vec::new());
    while n < 8_000 {
        for (from, to, bytes) in [(1, 0, 100), (2, 3, 1500)] {
            while air.queue_len(from) < 5 {
                air.send(now, from, to, bytes, n).expect("there is room");
                n += 1;
            }
        }
        now = air.next_event().expect("a saturated medium never rests");
        seen.extend(std::iter::from_fn(|| air.poll(now)));
    }
    while let Some(t) = air.next_event() {
        seen.extend(std::iter::from_fn(|| air.poll(t)));
    }
    assert_eq!(seen.len() as u64, n, "each has one outcome");
    (seen, air)
}

#[test]
fn received_frames_are_not_delivered_again() {
    let (seen, air) = missed_acknowledgements(7);
    let h = &air.stats().hosts[1];
    println!("{h:?}");
    assert!(h.retries > 100 && h.retries == h.collisions);
    let mut payloads: Vec<u64> = (seen.iter())
        .map(|e| match e {
            Event::Delivered { payload, .. } | Event::Dropped { payload, .. } => *payload,
        })
        .collect();
    payloads.sort_unstable();
    payloads.dedup();
    assert_eq!(payloads.len(), seen.len());
    assert_eq!(
        air.stats().hosts[2].retries,
        0,
        "its receiver and it are undisturbed"
    );

    // Without retries the sender gives up a frame that has long arrived: nothing is lost.
    let (_, air) = missed_acknowledgements(0);
    assert_eq!(air.stats().drops().count(DropReason::Air), 0);
    assert!(air.stats().hosts[1].collisions > 100);
}

#[test]
fn stations_of_an_access_point_may_be_hidden() {
    let cell = |hearing| MediumConfig {
        standard: Standard::G,
        rate_bits: 54_000_000,
        hosts: 4,
        topology: Topology::AccessPoint { ap: 0 },
        hearing,
        ..MediumConfig::chain(1)
    };
    let through = |hearing| {
        saturate(cell(hearing), &[(1, 2), (3, 0)], 20)
            .0
            .iter()
            .sum::<f64>()
    };
    let (all, hidden, one) = (
        through(Hearing::All),
        through(Hearing::Linked),
        through(Hearing::Pairs(vec![(1, 3), (1, 2), (2, 3)])),
    );
    println!("{all:.0} {hidden:.0} {one:.0}");
    // Only two of the three senders are hidden from each other.
    assert!(hidden < 0.95 * all);
    assert_eq!(one, all, "pairs that name everyone are everyone");
}
