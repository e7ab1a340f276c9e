//! What the pacer knows ahead, and what it does where it knows nothing: prediction, the in-flight limit, an unknown
//! rate. The scenario is Pound's (`papers/pound.txt` section VI): a laser of 1 KB at 50 Hz next to images of 64 KB at 6
//! Mbit/s.

use crate::common::*;
use std::time::Duration;

const LASER: usize = 0;
const IMAGE: usize = 1;

#[test]
fn a_periodic_laser_finds_the_air_free_at_one_hop() {
    for seed in [1, 2, 3, 4, 5] {
        let w = pound(Setup::hops(1).seed(seed), 150, 20);
        w.print(&format!("1 hop, predicted, seed {seed}"));
        let (laser, image) = (w.metrics(LASER), w.metrics(IMAGE));
        assert_eq!((laser.delivery, image.delivery), (1.0, 1.0));
        assert!(
            laser.period_ms.std <= 0.6 && laser.delay_ms.mean <= 2.1,
            "{laser:?}"
        );
        assert!(image.delay_ms.mean <= 117.0, "{image:?}");
    }
}

#[test]
fn a_periodic_laser_finds_the_air_free_at_two_hops() {
    for seed in [1, 2, 3, 4, 5] {
        let w = pound(Setup::hops(2).seed(seed), 300, 20);
        w.print(&format!("2 hops, predicted, seed {seed}"));
        let (laser, image) = (w.metrics(LASER), w.metrics(IMAGE));
        assert_eq!((laser.delivery, image.delivery), (1.0, 1.0));
        assert!(
            laser.period_ms.std <= 1.0 && laser.delay_ms.mean <= 4.0,
            "{laser:?}"
        );
        assert!(image.delay_ms.mean <= 290.0, "{image:?}");
    }
}

#[test]
fn with_the_rate_unknown_the_laser_is_nearly_as_early() {
    for seed in [1, 2, 3, 4, 5] {
        let setup = Setup {
            auto: true,
            ..Setup::hops(1).seed(seed)
        };
        let w = pound(setup, 150, 20);
        w.print(&format!("1 hop, rate unknown, seed {seed}"));
        let (laser, image) = (w.metrics(LASER), w.metrics(IMAGE));
        assert_eq!((laser.delivery, image.delivery), (1.0, 1.0));
        assert!(
            laser.period_ms.std <= 2.3 && laser.delay_ms.mean <= 3.7,
            "{laser:?}"
        );
        assert!(image.delay_ms.mean <= 123.0, "{image:?}");
    }
}

#[test]
fn a_radio_that_slows_down_and_recovers_is_followed_without_configuration() {
    for seed in [1, 2, 3, 4, 5] {
        let mut w = Setup {
            auto: true,
            ..Setup::hops(1).seed(seed)
        }
        .build();
        let run = Duration::from_secs(24);
        w.source(0, topic("/laser", 100, 5), ms(20), run, fixed(50, 950));
        w.source(0, topic("/image", 10, 2), ms(150), run, fixed(50, 63_950));
        for rate in [6, 2, 1, 6] {
            w.medium.set_rate(w.now, Some(rate * 1_000_000)).expect("a rate");
            w.run(ms(6_000));
        }
        w.run(Duration::from_secs(3));
        w.print(&format!("6, 2, 1, 6 Mbit/s, rate unknown, seed {seed}"));
        let laser = w.metrics(LASER);
        assert!(laser.delay_ms.p99 <= 50.0 && laser.delivery >= 0.99, "{laser:?}");
    }
}

#[test]
fn a_rate_set_too_high_cannot_fill_the_device_queue() {
    let setup = Setup::hops(1);
    let mut w = setup.build();
    w.medium.set_rate(w.now, Some(1_000_000)).expect("a rate");
    let run = Duration::from_secs(20);
    w.source(0, topic("/laser", 100, 5), ms(40), run, fixed(50, 950));
    w.source(0, topic("/image", 10, 2), ms(150), run, fixed(50, 63_950));
    w.run(run + Duration::from_secs(3));
    w.print("1 Mbit/s, set to 6");
    let laser = w.metrics(LASER);
    assert!(laser.delay_ms.p99 <= 50.0 && laser.delivery >= 0.99, "{laser:?}");
}
