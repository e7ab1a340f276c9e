//! A rate that nobody set is found on every kind of path, and what follows is about what a set rate gives.

use crate::common::*;
use medium::{Delay, Path};
use proto::RateSource;
use std::time::Duration;

const LASER: usize = 0;
const IMAGE: usize = 1;

fn found(w: &World) -> u64 {
    let node = &w.nodes[0];
    let peer = node.radio.peer_stats(node.peer).expect("a peer");
    assert_eq!(peer.rate_source, RateSource::Estimated);
    peer.rate_bit_s
}

#[test]
fn over_hops_it_is_about_as_good_as_a_rate_that_is_set() {
    for (hops, period) in [(1, 150), (2, 300), (3, 600)] {
        for seed in 1..=3 {
            let setup = Setup::hops(hops).seed(seed);
            let set = pound(setup.clone(), period, 20);
            let auto = pound(Setup { auto: true, ..setup }, period, 20);
            auto.print(&format!("unknown rate, {hops} hops, seed {seed}"));
            found(&auto);
            let delay = |w: &World, i| w.metrics(i).delay_ms.mean;
            // The first second, without an estimate, counts.
            assert!(delay(&auto, LASER) <= 1.35 * delay(&set, LASER), "{hops} hops");
            assert!(delay(&auto, IMAGE) <= 1.15 * delay(&set, IMAGE), "{hops} hops");
            assert_eq!(
                (auto.metrics(LASER).delivery, auto.metrics(IMAGE).delivery),
                (1.0, 1.0)
            );
        }
    }
}

#[test]
fn on_a_cable_it_is_found_whatever_the_delay() {
    // Also where few datagrams in flight would leave the cable idle.
    let near = Duration::from_micros(100);
    for (mbit_s, delay, period) in [(4, ms(50), 300), (20, ms(1), 60), (100, near, 10)] {
        let path = Path::delay(Delay::Fixed(delay));
        let w = pound(Setup::cable(mbit_s * 1_000_000, path), period, 12);
        w.print(&format!("cable of {mbit_s} Mbit/s"));
        found(&w);
        let (laser, image) = (w.metrics(LASER), w.metrics(IMAGE));
        assert_eq!((laser.delivery, image.delivery), (1.0, 1.0));
        // What the 64 kB take by themselves.
        let alone = 64.0 * 8.0 / mbit_s as f64;
        let path = delay.as_secs_f64() * 1e3;
        assert!(image.delay_ms.mean <= path + 1.5 * alone, "{image:?}");
        assert!(
            laser.delay_ms.p50 <= path + 1.0 + 12.0 * 1.5 / mbit_s as f64,
            "{laser:?}"
        );
    }
}

#[test]
fn jitter_of_the_path_is_no_queue() {
    let path = Path::delay(Delay::Uniform {
        min: ms(20),
        max: ms(30),
    });
    for seed in 1..=3 {
        let w = pound(Setup::cable(20_000_000, path.clone()).seed(seed), 80, 20);
        w.print("cable with jitter");
        let image = w.metrics(IMAGE);
        assert!(image.delivery >= 0.97, "{image:?}");
        // 25 ms of the path, and 26 of the cable.
        assert!(image.delay_ms.p50 <= 85.0, "{image:?}");
        assert!(w.metrics(LASER).delay_ms.mean <= 30.0);
    }
}
