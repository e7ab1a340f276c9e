//! Invariants that hold whatever the settings and the changes at run time.

use core::time::Duration;
use medium::*;
use stats::Time;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn pick<T: Clone>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize].clone()
}

fn loss(rng: &mut Rng) -> Loss {
    match rng.below(6) {
        0 | 1 => Loss::NONE,
        2 => Loss::Uniform(rng.unit()),
        3 => Loss::Gilbert {
            to_bad: rng.unit(),
            to_good: rng.unit(),
            good: rng.unit() * 0.1,
            bad: rng.unit(),
        },
        4 => Loss::Trace((0..1 + rng.below(9)).map(|_| rng.chance(0.3)).collect()),
        _ => Loss::OverTime(vec![
            (ms(rng.below(50)), rng.unit()),
            (ms(50 + rng.below(50)), rng.unit()),
        ]),
    }
}

fn path(rng: &mut Rng) -> Path {
    let d = ms(rng.below(20));
    Path {
        loss: loss(rng),
        delay: match rng.below(5) {
            0 | 1 => Delay::Fixed(d * rng.below(2) as u32),
            2 => Delay::Uniform { min: d, max: d * 3 },
            3 => Delay::Normal { mean: d, std: d / 2 },
            _ => Delay::Pareto {
                min: d,
                mean: d * 2,
                max: d * 50,
            },
        },
        keep_order: rng.chance(0.5),
        reorder: Reorder {
            share: rng.unit() * 0.2,
            late: d,
        },
        duplicate: rng.unit() * 0.3,
    }
}

fn outage(rng: &mut Rng) -> Outage {
    let from = ms(rng.below(200));
    Outage {
        from,
        until: from + ms(rng.below(100)),
    }
}

fn quality(rng: &mut Rng, rates: &[u64]) -> Vec<(Duration, Quality)> {
    (0..rng.below(4))
        .map(|i| {
            let q = Quality {
                rate_bits: rng.chance(0.5).then(|| pick(rng, rates)),
                loss: rng.chance(0.5).then(|| rng.unit()),
                gone: rng.chance(0.2),
            };
            (ms(50 * i + rng.below(50)), q)
        })
        .collect()
}

fn link(rng: &mut Rng, rates: &[u64]) -> Link {
    Link {
        rate_bits: rng.chance(0.3).then(|| pick(rng, rates)),
        loss: rng.chance(0.3).then(|| loss(rng)),
        path: rng.chance(0.3).then(|| path(rng)),
        down: rng.chance(0.1),
        outages: (0..rng.below(3)).map(|_| outage(rng)).collect(),
        quality: quality(rng, rates),
    }
}

const START: Time = Time::from_millis(30);

fn radio(rng: &mut Rng) -> (MediumConfig, Vec<u64>) {
    let standard = pick(rng, &[Standard::A, Standard::B, Standard::G, Standard::A]);
    let mbit: &[u64] = match standard {
        Standard::A => &[1, 2, 6, 24, 54, 1000],
        Standard::B { .. } => &[1, 2, 11],
        Standard::G { .. } => &[1, 6, 11, 54],
    };
    let rates: Vec<u64> = mbit.iter().map(|m| m * 1_000_000).collect();
    let hosts = 2 + rng.below(7) as usize;
    let pairs: Vec<_> = (1..hosts).map(|h| (rng.below(h as u64) as usize, h)).collect();
    let topology = match rng.below(4) {
        0 => Topology::Chain,
        1 => Topology::Mesh,
        2 => Topology::AccessPoint {
            ap: rng.below(hosts as u64) as usize,
        },
        _ => Topology::Links(pairs.clone()),
    };
    let hearing = pick(rng, &[Hearing::All, Hearing::Linked, Hearing::Pairs(pairs)]);
    let config = MediumConfig {
        standard,
        rate_bits: pick(rng, &rates),
        hosts,
        topology,
        hearing,
        access: pick(
            rng,
            &[
                Access::Dcf,
                Access::Edca(Mapping::Rfc8325),
                Access::Edca(Mapping::Precedence),
            ],
        ),
        queue_frames: 1 + rng.below(30) as usize,
        loss: loss(rng),
        path: if rng.chance(0.5) { path(rng) } else { Path::CLEAR },
        quality: quality(rng, &rates),
        host_rates: (0..rng.below(3))
            .map(|h| (h as usize % hosts, pick(rng, &rates)))
            .collect(),
        host_outages: (0..rng.below(3))
            .map(|_| (rng.below(hosts as u64) as usize, outage(rng)))
            .collect(),
        retries: rng.below(8) as u8,
        seed: rng.next_u64(),
        start: START,
        ..MediumConfig::chain(1)
    };
    (config, rates)
}

fn wire(rng: &mut Rng) -> (WireConfig, Vec<u64>) {
    let rates = vec![1_000_000, 10_000_000, 1_000_000_000];
    let base = pick(
        rng,
        &[
            WireConfig::direct(),
            WireConfig::ethernet(10_000_000),
            WireConfig::long_haul(1_000_000, ms(20), 20_000),
        ],
    );
    let config = WireConfig {
        loss: loss(rng),
        path: path(rng),
        quality: quality(rng, &rates),
        host_outages: vec![(rng.below(2) as usize, outage(rng))],
        seed: rng.next_u64(),
        start: START,
        ..base
    };
    (config, rates)
}

/// Everything handed in is delivered, lost for a counted reason, or under way.
fn check_books(c: &Channel<u64>) {
    let s = c.stats();
    assert_eq!(
        s.offered + s.duplicated,
        s.delivered + s.drops().total() + c.in_flight(),
        "{s:?}"
    );
    let sum = |of: fn(&HostStats) -> u64| s.hosts.iter().map(of).sum::<u64>();
    assert_eq!(
        (sum(|h| h.offered), sum(|h| h.received), sum(|h| h.received_bytes)),
        (s.offered, s.delivered, s.delivered_bytes)
    );
    for h in s.hosts.iter().filter(|h| !h.categories.is_empty()) {
        let sum = |of: fn(&CategoryStats) -> u64| h.categories.iter().map(of).sum::<u64>();
        assert_eq!(h.attempts, sum(|c| c.attempts));
        assert_eq!(h.drops.total(), sum(|c| c.drops.total()));
    }
}

/// Random traffic and random changes; returns the events.
fn live(seed: u64) -> (Vec<Event<u64>>, MediumStats) {
    let mut rng = Rng::new(seed);
    let (config, rates) = if rng.chance(0.8) {
        let (c, rates) = radio(&mut rng);
        (ChannelConfig::Radio(c), rates)
    } else {
        let (c, rates) = wire(&mut rng);
        (ChannelConfig::Wire(c), rates)
    };
    let mut c = Channel::new(config.clone()).unwrap_or_else(|e| panic!("{e}: {config:?}"));
    let hosts = c.hosts() as u64;
    let (mut now, mut seen) = (Time::ZERO, Vec::<Event<u64>>::new());
    let (mut reported, mut refused) = (0, 0);
    for n in 0..600u64 {
        now += Duration::from_micros(rng.below(5000));
        let (a, b) = (rng.below(hosts) as usize, rng.below(hosts) as usize);
        match rng.below(40) {
            0 => drop(c.set_rate(now, Some(pick(&mut rng, &rates)))),
            1 => c.set_loss(now, loss(&mut rng)),
            2 => c.set_path(now, path(&mut rng)).expect("a valid path"),
            // Refused where the topology has no such link.
            3 | 4 => drop(c.set_link(now, a, b, link(&mut rng, &rates))),
            5 => c.set_host_down(now, a, rng.chance(0.5)).expect("a host"),
            6 => c
                .set_quality(now, quality(&mut rng, &rates))
                .expect("a valid table"),
            _ => {
                let bytes = rng.below(1501) as usize;
                let dscp = rng.below(64) as u8;
                let sent = match rng.chance(0.1) {
                    true => c.broadcast(now, a, bytes, dscp, n),
                    false => c.send_dscp(now, a, b, bytes, dscp, n),
                };
                match sent {
                    Ok(()) => {}
                    Err(SendError::QueueFull { payload, .. } | SendError::NoRoute { payload, .. }) => {
                        assert_eq!(payload, n);
                        refused += 1;
                    }
                    Err(e) => panic!("{e}"),
                }
            }
        }
        if rng.chance(0.3) {
            while let Some(e) = c.poll(now) {
                assert!(e.at() <= now);
                seen.push(e);
            }
            reported += 1;
        }
        check_books(&c);
    }
    let mut steps = 0;
    while let Some(t) = c.next_event() {
        now = now.max(t);
        while let Some(e) = c.poll(now) {
            assert!(
                e.at() >= t.min(now),
                "at {:?} nothing was to come before {t:?}",
                e.at()
            );
            seen.push(e);
        }
        steps += 1;
        assert!(steps < 1_000_000, "it never comes to rest");
    }
    check_books(&c);
    assert!(
        seen.windows(2).all(|w| w[0].at() <= w[1].at()),
        "time runs backwards"
    );
    assert!(reported > 0 && refused < 600);
    (seen, c.stats().clone())
}

#[test]
fn nothing_is_lost_uncounted_whatever_changes() {
    let (mut delivered, mut dropped) = (0, 0);
    for seed in 0..600 {
        let (_, s) = live(seed);
        delivered += s.delivered;
        dropped += s.drops().total();
    }
    println!("{delivered} delivered, {dropped} lost");
    assert!(delivered > 20_000 && dropped > 20_000, "the runs are not empty");
}

#[test]
fn a_seed_repeats_itself() {
    for seed in 1000..1050 {
        assert_eq!(live(seed), live(seed));
    }
}

#[test]
fn late_polling_changes_nothing() {
    for seed in 2000..2100 {
        let run = |polls: u64| {
            let mut rng = Rng::new(seed);
            let mut c = Medium::new(radio(&mut rng).0).expect("a valid medium");
            let hosts = c.hosts() as u64;
            let mut seen = Vec::new();
            for n in 0..300u64 {
                let at = Time::from_micros(n * 700 + rng.below(700));
                let (a, b, dscp) = (
                    rng.below(hosts) as usize,
                    rng.below(hosts) as usize,
                    rng.below(64) as u8,
                );
                let _ = c.send_dscp(at, a, b, rng.below(1501) as usize, dscp, n);
                for k in 0..polls {
                    let at = Time::from_micros((n + 1) * 700 * k / polls).max(at);
                    seen.extend(std::iter::from_fn(|| c.poll(at)));
                }
            }
            seen.extend(std::iter::from_fn(|| c.poll(Time::from_millis(100_000))));
            seen
        };
        let often = run(7);
        assert!(!often.is_empty());
        assert_eq!(often, run(0), "seed {seed}");
    }
}

#[test]
fn no_setting_makes_it_panic() {
    let hosts = [0, 1, 2, 5, 1024, 1025, usize::MAX];
    let floats = [f64::NAN, -1.0, 0.0, 0.5, 1.0, 1.5, f64::INFINITY];
    let times = [Duration::ZERO, ms(5), Duration::MAX];
    let (mut good, mut bad) = (0, 0);
    for seed in 0..3000 {
        let mut rng = Rng::new(seed);
        let (mut config, _) = radio(&mut rng);
        for _ in 0..1 + rng.below(3) {
            let (t, f) = (pick(&mut rng, &times), pick(&mut rng, &floats));
            match rng.below(14) {
                0 => config.hosts = pick(&mut rng, &hosts),
                1 => config.queue_frames = pick(&mut rng, &hosts),
                2 => config.rate_bits = pick(&mut rng, &[0, 1, 6_000_000, u64::MAX]),
                3 => config.basic_rates = vec![pick(&mut rng, &[0, 6_000_000, u64::MAX])],
                4 => config.loss = Loss::Uniform(f),
                5 => config.loss = pick(&mut rng, &[Loss::Trace(Vec::new()), Loss::OverTime(vec![(t, f)])]),
                6 => config.path.delay = Delay::Uniform { min: t, max: ms(9) },
                7 => config.path.delay = Delay::Fixed(t),
                8 => config.path.duplicate = f,
                9 => config.start = Time::MAX,
                10 => {
                    config.quality = vec![(t, Quality::default()), (ms(5), Quality::default())];
                }
                11 => {
                    let l = Link {
                        loss: Some(Loss::Uniform(f)),
                        ..Link::default()
                    };
                    config.links = [((pick(&mut rng, &hosts), 1), l)].into();
                }
                12 => {
                    config.host_outages = vec![(
                        pick(&mut rng, &hosts),
                        Outage {
                            from: t,
                            until: ms(9),
                        },
                    )]
                }
                _ => config.topology = Topology::Links(vec![(0, pick(&mut rng, &hosts))]),
            }
        }
        match Medium::new(config) {
            Err(e) => {
                bad += 1;
                assert!(e.to_string().len() > 20, "{e}");
            }
            Ok(mut air) => {
                good += 1;
                for n in 0..30u64 {
                    let size = pick(&mut rng, &[0, 1500, 65_535, usize::MAX]);
                    let _ = air.send(Time::from_micros(n * 100), 0, 1, size, n);
                }
                for _ in 0..10_000 {
                    let Some(t) = air.next_event() else { break };
                    while air.poll(t).is_some() {}
                }
            }
        }
    }
    println!("{good} accepted, {bad} refused");
    assert!(good > 500 && bad > 500);
}

#[test]
fn refusals_name_the_setting() {
    let base = || MediumConfig::chain(2);
    let bad = |c: MediumConfig| Medium::<()>::new(c).err().expect("refused").to_string();
    let link = |l: Link| [((1, 2), l)].into();
    let cases = [
        (MediumConfig { hosts: 1, ..base() }, "1 hosts"),
        (
            MediumConfig {
                path: Path::delay(Delay::Uniform {
                    min: ms(2),
                    max: ms(1),
                }),
                ..base()
            },
            "path: delay: 2ms is above 1ms",
        ),
        (
            MediumConfig {
                links: link(Link {
                    path: Some(Path::loss(Loss::Uniform(2.0))),
                    ..Link::default()
                }),
                ..base()
            },
            "link 1 to 2: packet loss is 2: give a probability from 0 to 1",
        ),
        (
            MediumConfig {
                links: [((0, 2), Link::default())].into(),
                ..base()
            },
            "link 0 to 2, which the topology does not have",
        ),
        (
            MediumConfig {
                host_rates: [(7, 6_000_000)].into(),
                ..base()
            },
            "host_rates names host 7, but hosts are 0 to 2",
        ),
        (
            MediumConfig {
                quality: vec![(ms(2), Quality::default()), (ms(2), Quality::default())],
                ..base()
            },
            "quality: the entry at 2ms",
        ),
        (
            MediumConfig {
                standard: Standard::B,
                ..base()
            },
            "802.11b: give 1, 2, 5.5 or 11",
        ),
    ];
    for (config, says) in cases {
        let said = bad(config);
        assert!(said.contains(says), "{said}");
    }
    let wire = WireConfig {
        rate_bits: Some(0),
        ..WireConfig::direct()
    };
    assert!(
        Wire::<()>::new(wire)
            .err()
            .expect("refused")
            .to_string()
            .contains("is 0 bit/s")
    );
}
