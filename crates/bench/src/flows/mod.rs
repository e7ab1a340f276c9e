//! Flows of numbered, stamped messages between the hosts of a lab: what is sent, what is counted, and how it is
//! evaluated.
//!
//! Stamps and arrivals are of CLOCK_MONOTONIC, which all hosts of a lab share.

pub(crate) mod play;
pub(crate) mod said;

use crate::kit::cell::Values;
use said::Received;
use stats::{Drops, Flow, Time};

pub(crate) const LASER: &str = "/laser";
pub(crate) const IMAGE: &str = "/image";
pub(crate) const LASER_BYTES: u64 = 1_000;
pub(crate) const IMAGE_BYTES: u64 = 64_000;
pub(crate) const LASER_US: u64 = 20_000;
/// Duration before counting, in microseconds.
pub(crate) const WARM_UP_US: u64 = 1_200_000;

/// One flow.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) topic: String,
    pub(crate) bytes: u64,
    pub(crate) period_us: u64,
    pub(crate) offset_us: u64,
    /// Messages before the counted ones.
    pub(crate) warm_up: u64,
    pub(crate) counted: u64,
    /// All messages, including those after the counted ones.
    pub(crate) count: u64,
}

impl Sent {
    /// A flow that is counted for `seconds` after the warm-up, and continues for another second.
    pub(crate) fn lasting(topic: &str, bytes: u64, period_us: u64, seconds: u64) -> Sent {
        let warm_up = WARM_UP_US / period_us;
        let counted = seconds * 1_000_000 / period_us;
        Sent {
            topic: topic.to_owned(),
            bytes,
            period_us,
            offset_us: 0,
            warm_up,
            counted,
            count: warm_up + counted + 1_000_000 / period_us,
        }
    }

    /// The same, starting this much later.
    pub(crate) fn offset(mut self, offset_us: u64) -> Sent {
        self.offset_us = offset_us;
        self
    }

    /// Returns the argument for the programs that send and receive.
    pub(crate) fn argument(&self) -> String {
        let Sent {
            topic,
            bytes,
            period_us,
            offset_us,
            count,
            ..
        } = self;
        format!("{topic},{bytes},{period_us},{offset_us},{count}")
    }

    /// From the start until the last message, in microseconds.
    pub(crate) fn takes_us(&self) -> u64 {
        self.offset_us + self.period_us * self.count
    }

    /// Returns the flow's numbers, from its receiver's log.
    pub(crate) fn judge(&self, log: &Received) -> Result<Values, String> {
        let counted = self.warm_up..self.warm_up + self.counted;
        let mut flow = Flow::new();
        let mut seen = vec![false; self.counted as usize];
        for ((&sequence, &stamp), &arrival) in log.sequence.iter().zip(&log.stamp_ns).zip(&log.arrival_ns) {
            if !counted.contains(&sequence) {
                continue;
            }
            let seen = &mut seen[(sequence - self.warm_up) as usize];
            if std::mem::replace(seen, true) {
                return Err(format!("{}: message {sequence} arrived twice", self.topic));
            }
            flow.received(Time(stamp), Time(arrival), self.bytes);
        }
        let m = flow.metrics(self.counted, &Drops::default());
        Ok(Values::from([
            ("sent", m.sent as f64),
            ("received", m.received as f64),
            ("delivery", m.delivery),
            ("period_ms.mean", m.period_ms.mean),
            ("period_ms.std", m.period_ms.std),
            ("delay_ms.mean", m.delay_ms.mean),
            ("delay_ms.std", m.delay_ms.std),
            ("delay_ms.p50", m.delay_ms.p50),
            ("delay_ms.p99", m.delay_ms.p99),
            ("delay_ms.max", m.delay_ms.max),
            ("mbit_s", m.mbit_s),
        ]))
    }
}

/// The paper's period of images over this many hops, in microseconds.
pub(crate) fn image_us(hops: u32) -> u64 {
    if hops == 1 { 150_000 } else { 300_000 }
}

/// Returns how much later than the lasers the images begin, in µs. It differs from run to run.
pub(crate) fn phase_us(run: u32) -> u64 {
    (3_000 + u64::from(run) * 7_000) % LASER_US
}

/// The paper's laser and image (section VI-A). 1,000 lasers are counted, and 500 images (`quick`: as many as fit into
/// 20 s). The laser continues, uncounted, until the images end, so that both compete all the time. The phase between
/// the two differs from run to run.
pub(crate) fn pound(hops: u32, quick: bool, run: u32) -> [Sent; 2] {
    let image_us = image_us(hops);
    let images = if quick { 1000 * LASER_US / image_us } else { 500 };
    let warm_up = WARM_UP_US / image_us;
    let all = (warm_up + images) * image_us;
    let offset_us = phase_us(run);
    [
        Sent {
            topic: LASER.into(),
            bytes: LASER_BYTES,
            period_us: LASER_US,
            offset_us: 0,
            warm_up: WARM_UP_US / LASER_US,
            counted: 1000,
            count: (all / LASER_US).max(WARM_UP_US / LASER_US + 1000),
        },
        Sent {
            topic: IMAGE.into(),
            bytes: IMAGE_BYTES,
            period_us: image_us,
            offset_us,
            warm_up,
            counted: images,
            count: warm_up + images,
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_counted_counts() {
        let flow = Sent {
            topic: LASER.into(),
            bytes: 1000,
            period_us: 20_000,
            offset_us: 0,
            warm_up: 2,
            counted: 4,
            count: 9,
        };
        let ms = |all: &[u64]| all.iter().map(|t| t * 1_000_000).collect::<Vec<_>>();
        let log = Received {
            topic: LASER.into(),
            sequence: vec![0, 1, 2, 3, 5, 6],
            stamp_ns: ms(&[0, 20, 40, 60, 100, 120]),
            arrival_ns: ms(&[900, 901, 42, 65, 102, 900]),
        };
        let v = flow.judge(&log).expect("is right");
        assert_eq!((v["sent"], v["received"], v["delivery"]), (4.0, 3.0, 0.75));
        assert_eq!((v["period_ms.mean"], v["delay_ms.mean"]), (30.0, 3.0));
        let twice = Received {
            sequence: vec![2, 2, 2, 2, 2, 2],
            ..log
        };
        assert!(flow.judge(&twice).expect_err("twice").contains("arrived twice"));
    }

    #[test]
    fn the_flows_are_the_papers() {
        for (hops, period) in [(1, 150_000), (2, 300_000)] {
            let [laser, image] = pound(hops, false, 3);
            assert_eq!(
                (laser.counted, laser.bytes, laser.period_us),
                (1000, 1000, 20_000)
            );
            assert_eq!(
                (image.counted, image.bytes, image.period_us),
                (500, 64_000, period)
            );
            // The laser does not end before the images.
            assert!(laser.count * laser.period_us >= image.count * image.period_us - 20_000);
            assert!(laser.count >= laser.warm_up + laser.counted);
        }
    }
}
