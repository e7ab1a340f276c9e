//! Lines between two hosts.

use core::time::Duration;
use medium::*;
use stats::{DropReason, Time};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn rest(wire: &mut Wire<u64>) -> Vec<Event<u64>> {
    let mut seen = Vec::new();
    while let Some(t) = wire.next_event() {
        seen.extend(std::iter::from_fn(|| wire.poll(t)));
    }
    seen
}

#[test]
fn a_direct_wire_adds_nothing() {
    let mut wire = Wire::new(WireConfig::direct()).expect("a valid wire");
    for n in 0..10_000u64 {
        let at = Time::from_micros(n / 100);
        wire.send(at, 0, 1, 1500, n).expect("there is room");
        wire.send(at, 1, 0, 64, n).expect("there is room");
        let ends = [(1, 0), (0, 1)];
        for (host, from) in ends {
            let payload = n;
            assert_eq!(
                wire.poll(at),
                Some(Event::Delivered {
                    at,
                    host,
                    from,
                    payload
                })
            );
        }
    }
    assert_eq!((wire.stats().busy, wire.in_flight()), (Duration::ZERO, 0));
}

#[test]
fn ethernet_carries_what_its_frames_leave() {
    // 1500 of 1538 B and 46 of 84: 97.53 and 54.76 %.
    for (ip, share) in [(1500, 1500.0 / 1538.0), (46, 46.0 / 84.0), (20, 20.0 / 84.0)] {
        let mut wire = Wire::new(WireConfig::ethernet(10_000_000)).expect("a valid wire");
        let (mut now, mut bytes) = ([Time::ZERO; 2], [0usize; 2]);
        let end = Time::from_millis(5_000);
        while now[0] < end {
            for host in 0..2 {
                while wire.queue_len(host) < 3 {
                    wire.send(now[0], host, 1 - host, ip, 0).expect("there is room");
                }
            }
            now[0] = wire.next_event().expect("a saturated wire never rests");
            while let Some(e) = wire.poll(now[0]) {
                if let Event::Delivered { host, .. } = e {
                    bytes[host] += ip;
                }
            }
        }
        for got in bytes {
            let got = (got * 8) as f64 / 5.0 / 10e6;
            assert!((got / share - 1.0).abs() < 0.001, "{got} of {share}");
        }
    }
    // One frame: preamble, header, content, checksum; the gap follows it.
    let mut wire = Wire::new(WireConfig::ethernet(10_000_000)).expect("a valid wire");
    wire.send(Time::ZERO, 0, 1, 1500, 1).expect("there is room");
    assert_eq!(rest(&mut wire)[0].at(), Time::from_nanos(1526 * 800));
}

#[test]
fn a_long_haul_has_its_queue_and_its_delay() {
    let mut wire = Wire::new(WireConfig::long_haul(10_000_000, ms(1000), 250_000)).expect("a valid wire");
    let mut refused = 0;
    for n in 0..300u64 {
        refused += u64::from(wire.send(Time::ZERO, 0, 1, 1000, n).is_err());
    }
    assert_eq!((refused, wire.queue_len(0)), (50, 250));
    let seen = rest(&mut wire);
    for (n, e) in seen.iter().enumerate() {
        assert_eq!(e.at(), Time::from_micros(1_000_000 + 800 * (n as u64 + 1)));
    }
    assert_eq!(wire.stats().hosts[0].drops.count(DropReason::DeviceQueue), 50);
    assert_eq!(wire.stats().hosts[0].queue_high_water, 250);
}

#[test]
fn a_flood_into_a_long_delay_is_bounded() {
    let mut wire = Wire::new(WireConfig {
        path: Path::delay(ms(3_600_000)),
        ..WireConfig::direct()
    })
    .expect("a valid wire");
    for n in 0..300_000u64 {
        wire.send(Time::from_micros(n), 0, 1, 100, n).expect("is taken");
    }
    wire.poll(Time::from_millis(1_000)).expect("some are lost");
    assert_eq!(wire.in_flight(), 250_000);
    assert_eq!(wire.stats().drops().count(DropReason::PathLoss), 50_000);
}

#[test]
fn changes_hold_for_what_starts_after_them() {
    let mut wire = Wire::new(WireConfig::ethernet(1_000_000)).expect("a valid wire");
    let send = |wire: &mut Wire<u64>, at: u64| {
        wire.send(Time::from_millis(at), 0, 1, 1500, at)
            .expect("is taken");
        rest(wire).pop().expect("something happens")
    };
    assert_eq!(send(&mut wire, 0).at(), Time::from_nanos(1526 * 8000));
    wire.set_rate(Time::from_millis(100), None).expect("a rate");
    assert_eq!(send(&mut wire, 100).at(), Time::from_millis(100));
    wire.set_path(Time::from_millis(110), Path::delay(ms(5)))
        .expect("a path");
    assert_eq!(send(&mut wire, 120).at(), Time::from_millis(125));
    let back = Link {
        down: true,
        ..wire.link(0, 1)
    };
    wire.set_link(Time::from_millis(130), 0, 1, back)
        .expect("a direction");
    let lost = |e: &Event<u64>, why| matches!(e, Event::Dropped { reason, .. } if *reason == why);
    assert!(lost(&send(&mut wire, 140), DropReason::Outage));
    wire.set_link(Time::from_millis(150), 0, 1, Link::default())
        .expect("a direction");
    wire.set_loss(Time::from_millis(150), Loss::Uniform(1.0));
    assert!(lost(&send(&mut wire, 160), DropReason::Air));
    wire.set_host_down(Time::from_millis(170), 0, true)
        .expect("a host");
    assert!(lost(&send(&mut wire, 180), DropReason::Outage));
    assert!(wire.set_rate(Time::from_millis(190), Some(0)).is_err());
    assert!(matches!(
        wire.send(Time::ZERO, 0, 2, 1, 0),
        Err(SendError::NoRoute { .. })
    ));
}

#[test]
fn a_channel_is_either() {
    let deliver = |config: ChannelConfig| {
        let mut c = Channel::new(config).expect("a valid channel");
        c.send_dscp(Time::ZERO, 0, 1, 1028, 46, 7u8)
            .expect("there is room");
        let mut at = None;
        while let Some(t) = c.next_event() {
            at = c.poll(t).map(|e| e.at()).or(at);
        }
        assert_eq!((c.hosts(), c.stats().delivered), (2, 1));
        at
    };
    let radio = ChannelConfig::Radio(MediumConfig::chain(1));
    assert_eq!(deliver(radio), Some(Time::from_micros(1478)));
    assert_eq!(
        deliver(ChannelConfig::Wire(WireConfig::direct())),
        Some(Time::ZERO)
    );
}
