//! A seed keeps giving the same result: experiments are repeated by their seed.

use medium::{Event, Loss, Medium, MediumConfig, Rng};
use stats::Time;

/// FNV-1a over every event of a busy chain with traffic in both directions and frames of many sizes.
fn fingerprint(hops: usize, rate_bits: u64, loss: Loss, seed: u64) -> u64 {
    let mut air = Medium::new(MediumConfig {
        rate_bits,
        loss,
        seed,
        queue_frames: 20,
        ..MediumConfig::chain(hops)
    })
    .expect("a valid medium");
    let mut rng = Rng::new(seed + 7);
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |v: u64| {
        for b in v.to_le_bytes() {
            hash = (hash ^ u64::from(b)).wrapping_mul(0x100_0000_01b3);
        }
    };
    let mut now = Time::ZERO;
    for n in 0..20_000u64 {
        let (from, to) = if rng.chance(0.7) { (0, hops) } else { (hops, 0) };
        let bytes = 40 + rng.below(1460) as usize;
        mix(u64::from(air.send(now, from, to, bytes, n).is_ok()));
        now += core::time::Duration::from_nanos(rng.below(6_000_000_000_000_000 / rate_bits));
        while let Some(event) = air.poll(now) {
            match event {
                Event::Delivered {
                    at, host, payload, ..
                } => [at.0, host as u64, payload].into_iter().for_each(&mut mix),
                Event::Dropped {
                    at, host, payload, ..
                } => [at.0, 100 + host as u64, payload].into_iter().for_each(&mut mix),
            }
        }
    }
    hash
}

#[test]
fn a_seed_gives_what_it_gave() {
    let gilbert = Loss::Gilbert {
        to_bad: 0.05,
        to_good: 0.3,
        good: 0.01,
        bad: 0.7,
    };
    assert_eq!(
        [
            fingerprint(1, 6_000_000, Loss::NONE, 1),
            fingerprint(2, 6_000_000, Loss::NONE, 2),
            fingerprint(3, 54_000_000, Loss::Uniform(0.2), 3),
            fingerprint(4, 6_000_000, gilbert, 4),
        ],
        [
            7_156_741_650_173_307_498,
            11_343_179_686_702_390_460,
            4_106_690_812_465_529_064,
            9_344_536_593_450_716_380
        ]
    );
}
