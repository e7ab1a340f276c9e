//! Shared by the tests: saturated senders in virtual time.
#![allow(dead_code)] // Each test uses a part.

use medium::{Event, Medium, MediumConfig};
use stats::Time;

/// 1472 B of UDP payload, the most that one Ethernet-sized frame carries.
pub(crate) const PAYLOAD: usize = 1472;
pub(crate) const IP: usize = PAYLOAD + 28;

/// Keeps these flows (sender, final host) saturated for `secs`; returns the throughput of each in bit/s.
pub(crate) fn saturate(
    config: MediumConfig,
    flows: &[(usize, usize)],
    secs: u64,
) -> (Vec<f64>, Medium<usize>) {
    let end = Time::from_millis(secs * 1000);
    let mut air = Medium::new(config).expect("a valid medium");
    let (mut now, mut got) = (Time::ZERO, vec![0usize; flows.len()]);
    while now < end {
        for (n, (from, to)) in flows.iter().enumerate() {
            while air.queue_len(*from) < 20 {
                air.send(now, *from, *to, IP, n).expect("there is room");
            }
        }
        now = air.next_event().expect("a saturated medium never rests");
        while let Some(e) = air.poll(now) {
            if let Event::Delivered { payload, .. } = e {
                got[payload] += 1;
            }
        }
    }
    let rate = |frames: usize| (frames * PAYLOAD * 8) as f64 / end.as_secs_f64();
    (got.into_iter().map(rate).collect(), air)
}

/// Compares a rate with its expected value.
pub(crate) fn within(what: &str, got: f64, want: f64, share: f64) {
    let off = 100.0 * (got / want - 1.0);
    println!(
        "{what}: {:.3} Mbit/s, expected {:.3}, {off:+.2} %",
        got / 1e6,
        want / 1e6
    );
    assert!(
        off.abs() <= 100.0 * share,
        "{what}: {got} is not within {share} of {want}"
    );
}
