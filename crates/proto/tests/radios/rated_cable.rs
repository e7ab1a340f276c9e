//! Cables of a known rate, short or long, that hold the data on its way, and whose delay varies.

use crate::common::*;
use medium::Delay;
use proto::*;
use std::time::Duration;

const RATE: u64 = 10_450_000;
const BYTES: u32 = 1_000_000;

fn varies(most: u64) -> Delay {
    Delay::Uniform {
        min: Duration::ZERO,
        max: ms(most),
    }
}

/// How long 1 MB takes there and back, three times, in seconds.
pub(crate) fn there_and_back(delay: Delay, reliability: Reliability) -> Vec<f64> {
    let mut w = Setup::rated_cable(RATE, delay).build();
    let geometry = Geometry::new(12, &[BYTES - 12]).expect("a geometry");
    let large = |name: &str| TopicConfig {
        reliability,
        ordering: Ordering::Any,
        expiry: Some(Duration::from_secs(60)),
        ..topic(name, 10, 2)
    };
    let times = (Duration::from_secs(3), Duration::from_secs(12), 3);
    w.later(0, large("/there"), times, geometry);
    w.answer(1, large("/back"), "/there", geometry);
    w.run(Duration::from_secs(45));
    w.check_books();
    let came = |node: usize, name: &str| -> Vec<_> {
        let arrived = w.nodes[node].sink.arrived.get(name);
        arrived
            .map(|a| a.iter().map(|(s, t)| (*s, *t)).collect())
            .unwrap_or_default()
    };
    let (there, back) = (came(1, "/there"), came(0, "/back"));
    assert_eq!((there.len(), back.len()), (3, 3));
    let trips = there.iter().zip(&back);
    trips
        .map(|((sent, _), (_, back))| back.since(stats::Time(*sent)).as_secs_f64())
        .collect()
}

#[test]
fn a_megabyte_there_and_back_takes_its_time_on_the_wire() {
    let bytes_s = f64::from(BYTES) * 8.0 / RATE as f64;
    // With the longest delay in each direction, in ms.
    for (delay, longest) in [
        (Delay::Fixed(Duration::from_micros(4_800)), 4.8),
        (varies(10), 10.0),
        (Delay::Fixed(ms(20)), 20.0),
        (Delay::Fixed(ms(300)), 300.0),
    ] {
        let least = 2.0 * (bytes_s + longest / 1e3);
        for reliability in [Reliability::BestEffort, Reliability::Reliable, Reliability::Bulk] {
            let took = there_and_back(delay.clone(), reliability);
            println!("{delay:?} {reliability:?}: {took:.2?} s, {least:.2} at least");
            // The first one measures how long the path is.
            assert!(
                took[1..].iter().all(|s| *s < least * 1.15),
                "{delay:?} {reliability:?}: {took:?}"
            );
        }
    }
}
