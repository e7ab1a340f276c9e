//! Impairments by links and paths.

mod common;
use core::time::Duration;
use medium::*;
use stats::{DropReason, Time};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Sends one packet of 100 B every `every` from host 0 to the last one; returns the events.
fn probe(config: MediumConfig, count: u64, every: Duration) -> (Vec<Event<u64>>, Medium<u64>) {
    let far = config.hosts - 1;
    let mut air = Medium::new(config).expect("a valid medium");
    let mut seen = Vec::new();
    for n in 0..count {
        let at = Time::ZERO + every * n as u32;
        seen.extend(std::iter::from_fn(|| air.poll(at)));
        air.send(at, 0, far, 100, n).expect("there is room");
    }
    while let Some(t) = air.next_event() {
        seen.extend(std::iter::from_fn(|| air.poll(t)));
    }
    (seen, air)
}

fn delivered(events: &[Event<u64>]) -> Vec<(u64, Time)> {
    let one = |e: &Event<u64>| match e {
        Event::Delivered { at, payload, .. } => Some((*payload, *at)),
        Event::Dropped { .. } => None,
    };
    events.iter().filter_map(one).collect()
}

fn with_path(path: Path) -> MediumConfig {
    MediumConfig {
        path,
        ..MediumConfig::chain(1)
    }
}

#[test]
fn packet_loss_is_accurate_and_not_repaired() {
    let (seen, air) = probe(with_path(Path::loss(Loss::Uniform(0.2))), 100_000, ms(1));
    let lost = 1.0 - delivered(&seen).len() as f64 / 100_000.0;
    println!("{:.2} % lost of 20", 100.0 * lost);
    assert!((0.195..0.205).contains(&lost), "{lost}");
    let host = &air.stats().hosts[0];
    assert_eq!((host.retries, air.stats().lost), (0, 0));
    assert_eq!(host.drops.count(DropReason::PathLoss), host.drops.total());

    // The same loss of frames is repaired.
    let config = MediumConfig {
        loss: Loss::Uniform(0.2),
        ..MediumConfig::chain(1)
    };
    let (seen, air) = probe(config, 10_000, ms(5));
    assert!(delivered(&seen).len() > 9_990 && air.stats().hosts[0].retries > 2_000);
}

#[test]
fn traces_lose_what_they_say() {
    let trace = Loss::from_trace("0 1 1 0 0".replace(' ', "\n").as_str()).expect("a trace");
    let (seen, _) = probe(with_path(Path::loss(trace)), 10, ms(1));
    let arrived: Vec<u64> = delivered(&seen).into_iter().map(|(n, _)| n).collect();
    assert_eq!(arrived, [0, 3, 4, 5, 8, 9]);
}

#[test]
fn a_fixed_delay_is_exact() {
    let clear = delivered(&probe(MediumConfig::chain(1), 200, ms(7)).0);
    let late = delivered(&probe(with_path(Path::delay(ms(2000))), 200, ms(7)).0);
    for (a, b) in clear.iter().zip(&late) {
        assert_eq!(b.1.since(a.1), ms(2000));
    }
}

#[test]
fn distributed_delay_keeps_order_if_asked() {
    let delay = Delay::Normal {
        mean: ms(50),
        std: ms(20),
    };
    let order = |keep_order| {
        let path = Path {
            keep_order,
            ..Path::delay(delay.clone())
        };
        let (seen, _) = probe(with_path(path), 2000, ms(5));
        let n: Vec<u64> = delivered(&seen).into_iter().map(|(n, _)| n).collect();
        assert_eq!(n.len(), 2000);
        n.is_sorted()
    };
    assert!(order(true));
    assert!(!order(false));
}

#[test]
fn copies_and_overtaking_have_their_shares() {
    let path = Path {
        duplicate: 0.1,
        reorder: Reorder {
            share: 0.2,
            late: ms(30),
        },
        ..Path::delay(ms(10))
    };
    let (seen, air) = probe(with_path(path), 20_000, ms(4));
    let got = delivered(&seen);
    let copies = got.len() - 20_000;
    assert!((1_800..2_200).contains(&copies), "{copies}");
    assert_eq!(air.stats().duplicated, copies as u64);
    // It is 30 ms late, and seven others have overtaken it.
    let late = |(n, at): &&(u64, Time)| at.since(Time::from_millis(4 * n)) > ms(39);
    let late = got.iter().filter(late).count();
    assert!((4_000..4_800).contains(&late), "{late}");
}

#[test]
fn links_have_their_own_settings_by_direction() {
    let mut air = Medium::new(MediumConfig::chain(1)).expect("a valid medium");
    let time_of = |air: &mut Medium<u8>, from: usize| {
        let start = air.next_event().unwrap_or(Time::ZERO).max(Time::from_millis(1));
        let start = start + ms(100 * (1 + u64::from(air.stats().delivered as u8)));
        air.send(start, from, 1 - from, 1500, 0).expect("there is room");
        let mut at = None;
        while let Some(t) = air.next_event() {
            while let Some(e) = air.poll(t) {
                at = Some(e.at());
            }
        }
        at.expect("it arrives").since(start).as_micros() as u64
    };
    let at_6 = 34 + 20 + 513 * 4;
    assert_eq!([0, 1].map(|h| time_of(&mut air, h)), [at_6, at_6]);
    let mut link = air.link(0, 1);
    link.rate_bits = Some(54_000_000);
    link.path = Some(Path::delay(ms(3)));
    air.set_link(Time::ZERO, 0, 1, link)
        .expect("there is such a link");
    assert_eq!(
        [0, 1].map(|h| time_of(&mut air, h)),
        [34 + 20 + 57 * 4 + 3000, at_6]
    );
    air.set_host_rate(Time::ZERO, 1, Some(12_000_000))
        .expect("a host");
    assert_eq!(time_of(&mut air, 1), 34 + 20 + 257 * 4);
    assert!(air.set_link(Time::ZERO, 0, 7, Link::default()).is_err());
}

/// Goodput in Mbit/s of each second of a saturated hop.
fn by_second(config: MediumConfig, secs: u64) -> Vec<f64> {
    let mut air = Medium::new(config).expect("a valid medium");
    let (mut now, mut got) = (Time::ZERO, vec![0.0; secs as usize]);
    while now < Time::from_millis(secs * 1000) {
        while air.queue_len(0) < 5 {
            air.send(now, 0, 1, common::IP, ()).expect("there is room");
        }
        now = air.next_event().expect("a saturated medium never rests");
        while let Some(e) = air.poll(now) {
            if let (Event::Delivered { at, .. }, true) = (&e, e.at() < Time::from_millis(secs * 1000)) {
                got[at.as_secs_f64() as usize] += common::PAYLOAD as f64 * 8e-6;
            }
        }
    }
    println!("{got:.2?}");
    got
}

fn rates(table: &[(u64, u64)]) -> Vec<(Duration, Quality)> {
    let entry = |(s, bits): &(u64, u64)| {
        let q = Quality {
            rate_bits: Some(*bits),
            ..Quality::default()
        };
        (ms(s * 1000), q)
    };
    table.iter().map(entry).collect()
}

#[test]
fn a_drive_away_follows_its_table() {
    let table = rates(&[(2, 2_000_000), (4, 1_000_000), (6, 6_000_000)]);
    let config = MediumConfig {
        standard: Standard::G,
        quality: table,
        ..MediumConfig::chain(1)
    };
    let got = by_second(config, 8);
    let expected = [6, 6, 2, 2, 1, 1, 6, 6].map(|mbit| {
        let phy = Phy::of(Standard::G, mbit * 1_000_000, &[]).expect("a rate");
        theory::lone_sender(&phy, common::IP, common::PAYLOAD) / 1e6
    });
    for (got, want) in got.iter().zip(expected) {
        assert!((got / want - 1.0).abs() < 0.03, "{got} instead of {want}");
    }
}

#[test]
fn a_link_may_leave_and_return() {
    let mut table = rates(&[(0, 6_000_000)]);
    let gone = Quality {
        gone: true,
        ..Quality::default()
    };
    let lossy = Quality {
        loss: Some(0.5),
        ..Quality::default()
    };
    table.extend([
        (ms(1000), gone),
        (ms(2000), lossy),
        (ms(3000), Quality::default()),
    ]);
    let link = Link {
        quality: table,
        outages: vec![Outage {
            from: ms(4000),
            until: ms(5000),
        }],
        ..Link::default()
    };
    let config = MediumConfig {
        links: [((0, 1), link)].into(),
        ..MediumConfig::chain(1)
    };
    let got = by_second(config, 6);
    assert_eq!((got[1], got[4]), (0.0, 0.0));
    assert!(got[0] > 5.0 && (1.0..3.5).contains(&got[2]) && got[3] > 5.0 && got[5] > 4.9);
}

#[test]
fn an_outage_is_distinguished_from_loss() {
    let link = Link {
        down: true,
        ..Link::default()
    };
    let config = MediumConfig {
        links: [((0, 1), link)].into(),
        ..MediumConfig::chain(1)
    };
    let (seen, air) = probe(config, 10, ms(100));
    assert!(delivered(&seen).is_empty());
    assert_eq!(air.stats().hosts[0].drops.count(DropReason::Outage), 10);
    assert_eq!(air.stats().hosts[0].attempts, 80, "tried like any other loss");
}

#[test]
fn a_host_that_is_off_loses_its_queue_and_returns() {
    let config = MediumConfig {
        host_outages: vec![(
            0,
            Outage {
                from: ms(50),
                until: ms(100),
            },
        )],
        ..MediumConfig::chain(1)
    };
    let mut air = Medium::new(config).expect("a valid medium");
    for n in 0..40u64 {
        air.send(Time::from_millis(n), 0, 1, 1500, n)
            .expect("there is room");
    }
    let mut seen = Vec::new();
    seen.extend(std::iter::from_fn(|| air.poll(Time::from_millis(70))));
    // About 22 are through at 50 ms, and the one on the air ends.
    let through = delivered(&seen).len();
    assert!((20..26).contains(&through), "{through}");
    assert_eq!(seen.len(), 40, "the rest is lost at once");
    air.send(Time::from_millis(80), 0, 1, 1500, 50)
        .expect("is taken, and lost");
    assert!(matches!(
        air.poll(Time::from_millis(80)),
        Some(Event::Dropped {
            reason: DropReason::Outage,
            ..
        })
    ));
    air.send(Time::from_millis(120), 0, 1, 1500, 51)
        .expect("there is room");
    let e = air.poll(Time::from_millis(130)).expect("arrives");
    assert_eq!(e.at(), Time::from_micros(120_000 + 34 + 20 + 513 * 4));
    // The receiver is off: retries are in vain.
    air.set_host_down(Time::from_millis(200), 1, true)
        .expect("a host");
    air.send(Time::from_millis(200), 0, 1, 1500, 52)
        .expect("there is room");
    let e = air.poll(Time::from_millis(900)).expect("is lost");
    assert!(
        matches!(
            e,
            Event::Dropped {
                host: 0,
                reason: DropReason::Outage,
                payload: 52,
                ..
            }
        ),
        "{e:?}"
    );
}
