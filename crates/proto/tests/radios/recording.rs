//! A load like that of a real recording: scans, transforms and a camera that together fill 98 % of the air at 6 Mbit/s
//! over one hop.

use crate::common::*;
use proto::*;
use std::time::Duration;

const SCAN: usize = 0;
const TF: usize = 1;
const CAMERA: usize = 2;

pub(crate) fn recording(setup: Setup) -> World {
    let mut w = setup.build();
    let (run, mut rng) = (Duration::from_secs(25), medium::Rng::new(setup.seed + 77));
    let bytes = |n: u32| Geometry::new(60, &[n - 60]).expect("a geometry");
    let mut scans: Vec<_> = times(&mut rng, 30.0, run, ms(3))
        .into_iter()
        .map(|t| (t, bytes(2631)))
        .collect();
    // Sometimes the source stalls, and two scans arrive at once.
    for i in (40..scans.len()).step_by(97) {
        scans[i - 1].0 = scans[i].0;
    }
    // Several publishers share the topic, as on the robot.
    let mut transforms = Vec::new();
    for (hz, n) in [(50.0, 98), (20.0, 87), (5.0, 3212), (5.0, 205)] {
        transforms.extend(times(&mut rng, hz, run, ms(3)).into_iter().map(|t| (t, bytes(n))));
    }
    let frames = times(&mut rng, 6.67, run, Duration::ZERO);
    let frames = frames
        .into_iter()
        .map(|t| (t, bytes(76_000 + rng.below(2_000) as u32)))
        .collect();
    for events in [&mut scans, &mut transforms] {
        events.sort_by_key(|(t, _)| *t);
    }
    let tf = TopicConfig {
        ordering: Ordering::Any,
        ..topic("/tf", 90, 50)
    };
    w.source_of(0, topic("/scan", 100, 10), scans.into());
    w.source_of(0, tf, transforms.into());
    w.source_of(0, topic("/camera", 10, 2), frames);
    w.run(run + Duration::from_secs(2));
    w.check_books();
    w
}

#[test]
fn by_priority_the_important_is_on_time_at_one_hop() {
    for seed in [1, 2, 3] {
        let w = recording(Setup::hops(1).seed(seed));
        w.print(&format!("recording by priority, 1 hop, seed {seed}"));
        // Transforms wait for the scans, and now and then for a receipt too.
        for (i, p99) in [(SCAN, 12.0), (TF, 13.0)] {
            let m = w.metrics(i);
            assert!(
                m.delivery >= 0.995 && m.delay_ms.p99 <= p99,
                "{}: {m:?}",
                w.sources[i].name
            );
        }
        assert!(w.metrics(CAMERA).delivery > 0.9, "and the camera has the rest");
    }
}

#[test]
fn first_in_first_out_the_scan_waits_for_the_camera() {
    let p99 = |s: Setup| {
        let w = recording(s);
        w.print("recording, 1 hop");
        w.metrics(SCAN).delay_ms.p99
    };
    assert!(p99(Setup::hops(1).fifo()) >= 5.0 * p99(Setup::hops(1)));
}

#[test]
fn at_two_hops_the_camera_pays() {
    for seed in [1, 2, 3] {
        let w = recording(Setup::hops(2).seed(seed));
        w.print(&format!("recording by priority, 2 hops, seed {seed}"));
        let (scan, camera) = (w.metrics(SCAN), w.metrics(CAMERA));
        assert!(scan.delivery >= 0.995 && scan.delay_ms.p99 <= 25.0, "{scan:?}");
        assert!(w.metrics(TF).delivery >= 0.995);
        assert!((0.2..0.7).contains(&camera.delivery), "{camera:?}");
        let replaced = camera.drops.count(stats::DropReason::Replaced);
        assert_eq!(
            camera.sent - camera.received,
            replaced,
            "every lost frame has its reason: {}",
            camera.drops
        );
    }
}
