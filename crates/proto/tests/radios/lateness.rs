//! Late hosts: readers wake up late, and processors are taken from them now and then.

use crate::common::stalls::Stalls;
use crate::common::*;
use std::time::Duration;

/// Reading is up to this late on both hosts.
const READS_LATE: Duration = Duration::from_micros(400);
/// And now and then nothing runs for a while.
const STALLS: Stalls = Stalls {
    every: Duration::from_millis(100),
    mean: Duration::from_millis(1),
};

pub(crate) fn late(setup: Setup) -> Setup {
    Setup {
        around: QUIC,
        reads_late: READS_LATE,
        stalls: Some(STALLS),
        ..setup
    }
}

fn mean(of: impl Iterator<Item = f64>) -> f64 {
    let all: Vec<f64> = of.collect();
    all.iter().sum::<f64>() / all.len() as f64
}

/// A receipt that is late because of late reading does not collide with the next fragment. So nothing in the device
/// queue delays the laser, and no air is given up needlessly.
#[test]
fn late_reading_costs_pounds_flows_little() {
    let runs: Vec<World> = (0..4)
        .map(|seed| pound(late(Setup::hops(1)).seed(seed), 150, 20))
        .collect();
    runs.iter().for_each(|w| w.print("late"));
    let (laser, image) = (|w: &World| w.metrics(0), |w: &World| w.metrics(1));
    assert!(
        runs.iter()
            .all(|w| laser(w).delivery == 1.0 && image(w).delivery == 1.0)
    );
    // Without listening for receipts 3.5, 0.43 and 116.3.
    assert!(mean(runs.iter().map(|w| laser(w).delay_ms.p99)) < 3.1);
    assert!(mean(runs.iter().map(|w| laser(w).period_ms.std)) < 0.4);
    assert!(mean(runs.iter().map(|w| image(w).delay_ms.mean)) < 115.5);
}
