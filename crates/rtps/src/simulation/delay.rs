//! How long a short sample waits while long ones are on the way to the same address.

use super::{Faults, Network, config, topic};
use crate::{Qos, WriteOptions};
use core::time::Duration;

/// Longest delay of short samples, one every 7 ms, next to images of a megabyte, one per 100 ms from each of `cameras`
/// writers.
fn longest_delay(cameras: usize, qos: &Qos) -> Duration {
    let mut net = Network::new(1, Faults::default(), (0..2).map(config));
    let now = net.now;
    let mut add = |name: &str| {
        net.p(1)
            .add_reader(now, topic(name, qos.clone()))
            .expect("a reader");
        net.p(0)
            .add_writer(now, topic(name, qos.clone()))
            .expect("a writer")
    };
    let images: Vec<_> = (0..cameras).map(|n| add(&format!("image{n}"))).collect();
    let short = add("short");
    net.run_ms(1000);
    let mut longest = Duration::ZERO;
    let begin = net.now;
    let mut sent = 0;
    while net.now < begin + Duration::from_secs(1) {
        let now = net.now;
        if now >= begin + Duration::from_millis(100) * sent {
            sent += 1;
            for image in &images {
                net.p(0)
                    .write(now, *image, vec![7; 1_000_000], WriteOptions::default())
                    .expect("a sample");
            }
            net.run_ms(3);
        }
        let written = net.now;
        net.p(0)
            .write(written, short, vec![7; 100], WriteOptions::default())
            .expect("a sample");
        while !net.samples(1).iter().any(|s| s.payload.len() < 1000) {
            net.run(Duration::from_micros(10));
        }
        longest = longest.max(net.now - written);
        net.run_ms(4);
    }
    longest
}

/// Airtime of a fragment at the default pace, plus the network's delay.
const FRAGMENT: Duration = Duration::from_micros(325);
const NETWORK: Duration = Duration::from_micros(160);

#[test]
fn a_short_sample_waits_for_one_fragment_of_each_writer_of_images_at_most() {
    for qos in [Qos::writer(), Qos::reader()] {
        assert!(longest_delay(0, &qos) <= NETWORK);
        for cameras in 1..=4 {
            let longest = longest_delay(cameras, &qos);
            let most = NETWORK + FRAGMENT * cameras as u32;
            assert!(longest <= most, "{cameras} cameras: {longest:?}");
        }
    }
}
