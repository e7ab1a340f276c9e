//! Pound's Table V: two flows while the radio of the sender, or of the relay, is off for five seconds.

use super::case::{Case, Place, Seen, leg};
use super::network::{Setting, Topic};
use super::{Carrier, Experiment, Options, Part, Row, System};
use crate::flows::said::Received;
use crate::flows::{LASER_BYTES, LASER_US, Sent};
use crate::ipc::error::RunError;
use crate::lab::cell::{Target, Values};
use clap::ValueEnum;
use serde_json::json;
use std::time::Duration;

/// When the scenarios' radios return, after the lab came up.
const RETURN: Duration = Duration::from_secs(15);
/// From the first message on: the outage ends within it, with time to come back.
const LASTS_S: u64 = 24;

pub(super) fn rows(options: &Options) -> Vec<Row> {
    let places = [
        ("sender", Place::shipped("outage-5s", 1)),
        ("relay", Place::shipped("outage-5s-relay", 2)),
    ];
    let mut rows = Vec::new();
    for (out, place) in places.iter().filter(|p| options.wants_hops(p.1.hops)) {
        for system in System::value_variants().iter().filter(|s| options.wants(**s)) {
            let topic = Topic {
                priority: 100,
                depth: 2,
                more: "",
            };
            let setting = |carrier, rate| Setting {
                carrier,
                rate,
                hops: place.hops,
                yields: true,
                topics: vec![topic.clone(), topic.clone()],
            };
            for means in system.all_means(options, &[Carrier::Quic], &["6Mbit/s"], setting) {
                let case = Case {
                    experiment: Experiment::Reconnect,
                    system: *system,
                    place: place.clone(),
                    means,
                    varies: vec![("out", format!("{out} out"), json!(out))],
                    legs: Box::new(|run| {
                        let offset = u64::from(run) * 3_000 % LASER_US;
                        let flow = |topic: &str, offset| {
                            leg(
                                Sent::lasting(topic, LASER_BYTES, LASER_US, LASTS_S).offset(offset),
                                "robot",
                                "base",
                            )
                        };
                        vec![flow("/flow1", 0), flow("/flow2", 10_000 + offset)]
                    }),
                    judge: Box::new(judge),
                };
                rows.push(case.row());
            }
        }
    }
    rows
}

fn judge(seen: &Seen<'_>) -> Result<Vec<Part>, RunError> {
    let returned = (seen.lab_began + RETURN).as_nanos();
    let mut parts = Vec::new();
    for ((leg, log), mut values) in seen.legs.iter().zip(&seen.played.received).zip(seen.flows()?) {
        values.extend(after(log, returned, &leg.flow)?);
        let targets = vec![Target::within("back_s", 0.0, 0.5)];
        let mut part = Part::of_flow(leg, values, targets);
        part.over_time = seen.over_time(log);
        parts.push(part);
    }
    Ok(parts)
}

/// How long after the radio the flow was back, and what came of it from half a second later on.
fn after(log: &Received, returned: u64, flow: &Sent) -> Result<Values, RunError> {
    let back = log.arrival_ns.iter().filter(|t| **t >= returned).min();
    let back = back.ok_or_else(|| RunError::Failed(format!("{}: it never came back", flow.topic)))?;
    // The radio was off: what came between its return and half a second before is a mistake of times.
    let silent = log.arrival_ns.iter().filter(|t| **t < returned).max();
    let silence = silent.map_or(0.0, |t| (back - t) as f64 / 1e9);
    let settled = returned + 500_000_000;
    let after = |t: &&u64| **t >= settled;
    let came = log.stamp_ns.iter().filter(after).count() as f64;
    let last = log.stamp_ns.iter().max().copied().unwrap_or_default();
    let sent = (last.saturating_sub(settled) as f64 / 1e3 / flow.period_us as f64).max(1.0);
    Ok(Values::from([
        ("back_s", (back - returned) as f64 / 1e9),
        ("silence_s", silence),
        ("delivery_after", (came / sent).min(1.0)),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_message_after_the_radio_counts() {
        let ms = |all: &[u64]| all.iter().map(|t| t * 1_000_000).collect::<Vec<_>>();
        let log = Received {
            topic: "/flow1".into(),
            sequence: vec![0, 1, 2, 3],
            stamp_ns: ms(&[9_980, 15_300, 15_520, 15_560]),
            arrival_ns: ms(&[9_982, 15_302, 15_522, 15_562]),
        };
        let flow = Sent::lasting("/flow1", 1000, 20_000, 10);
        let v = after(&log, 15_000_000_000, &flow).expect("is back");
        assert_eq!((v["back_s"], v["silence_s"]), (0.302, 5.32));
        assert!((v["delivery_after"] - 2.0 / 3.0).abs() < 1e-9, "{v:?}");
        assert!(after(&log, 16_000_000_000, &flow).is_err());
    }
}
