//! Pound's Table V: two flows while the radio of the sender, or of the relay, is off for five seconds. Also, two flows
//! while the direct path fades or ends and one of Ropewalk's relays offers another.

use super::case::{Case, LabSetup, Seen, leg};
use super::network::{Neighbours, Setting, Topic};
use super::{Experiment, Options, Part, Row, System, systems};
use crate::flows::said::Received;
use crate::flows::{LASER_BYTES, LASER_US, Sent};
use crate::kit::cell::{Target, Values};
use crate::kit::error::RunError;
use serde_json::json;
use std::time::Duration;

/// When the scenarios' radios return, from the start of the lab.
const RETURN: Duration = Duration::from_secs(15);
/// When the direct path changes.
const CHANGE: Duration = Duration::from_secs(10);
/// A gap is more than this many periods without a message.
const GAP_PERIODS: u64 = 5;
/// From the first message on: the outage ends within it, with time to recover.
const LASTS_S: u64 = 24;

/// A robot and its base hear each other, and a relay hears both. Then the direct path degrades or ends.
fn two_ways(then: &str) -> String {
    format!(
        "description: A base, a robot and a relay on one channel of 802.11a at 6 Mbit/s; the direct way changes after 10 s.\n\
         hosts: [robot, relay, base]\nmedia:\n  - name: wifi\n    wifi: {{standard: 802.11a, rate: 6Mbit/s, topology: \
         mesh}}\nevents:\n  - {{at: 10s, target: robot-base, set: {{{then}}}}}\n"
    )
}

/// An event, and its target.
struct Trouble {
    place: LabSetup,
    /// What is off, or what happens to the direct path.
    what: (&'static str, &'static str, &'static str),
    neighbours: Neighbours,
    judge: fn(&Seen<'_>) -> Result<Vec<Part>, RunError>,
}

fn troubles() -> Vec<Trouble> {
    let ways = |scenario, then: &'static str, shown| Trouble {
        place: LabSetup {
            scenario,
            yaml: Some(two_ways(then)),
            hops: 2,
        },
        what: ("direct_way", shown, then),
        neighbours: &[("robot", "base"), ("robot", "relay"), ("relay", "base")],
        judge: |seen| judge(seen, CHANGE, disturbed),
    };
    let out = |scenario, hops, who, neighbours| Trouble {
        place: LabSetup::shipped(scenario, hops),
        what: ("out", who, who),
        neighbours,
        judge: |seen| judge(seen, RETURN, after),
    };
    vec![
        out("outage-5s", 1, "sender", &[]),
        out("outage-5s-relay", 2, "relay", &[]),
        out(
            "outage-5s-relay",
            2,
            "relay",
            &[("robot", "relay"), ("relay", "base")],
        ),
        ways(
            "two-ways-fading",
            "loss: 90%",
            "the direct way loses 90 % of its frames",
        ),
        ways("two-ways-ending", "down: true", "the direct way ends"),
    ]
}

pub(super) fn rows(options: &Options) -> Vec<Row> {
    let mut rows = Vec::new();
    for t in troubles().iter().filter(|t| options.wants_hops(t.place.hops)) {
        let ours = !t.neighbours.is_empty();
        let able = |s: &System| options.wants(*s) && (!ours || *s == System::Ropewalk);
        for system in systems().filter(able) {
            let topic = Topic {
                priority: 100,
                depth: 2,
                more: "",
            };
            let setting = |carrier, rate| Setting {
                carrier,
                rate,
                hops: if ours { 1 } else { t.place.hops },
                neighbours: t.neighbours,
                yields: true,
                topics: vec![topic.clone(), topic.clone()],
                called: &[],
            };
            for means in system.all_means(options, Experiment::Reconnect, &["6Mbit/s"], setting) {
                let (key, shown, value) = t.what;
                let shown = if key == "out" {
                    format!("{shown} out")
                } else {
                    shown.into()
                };
                let mut varies = vec![(key, shown, json!(value))];
                if t.place.hops > 1 {
                    let by = if ours { "relay" } else { "kernel" };
                    varies.push(("forwarding", format!("forwarded by {by}s"), json!(by)));
                }
                let case = Case {
                    experiment: Experiment::Reconnect,
                    system,
                    place: t.place.clone(),
                    means,
                    varies,
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
                    judge: Box::new(t.judge),
                };
                rows.push(case.row());
            }
        }
    }
    rows
}

/// Evaluates a flow's log after a point in time, given in ns.
type After = fn(&Received, u64, &Sent) -> Result<Values, RunError>;

/// Evaluates how each flow recovered after an event at this time after the start of the lab.
fn judge(seen: &Seen<'_>, happened: Duration, after: After) -> Result<Vec<Part>, RunError> {
    let since = (seen.lab_began + happened).as_nanos();
    let mut parts = Vec::new();
    for ((leg, log), mut values) in seen.legs.iter().zip(&seen.played.received).zip(seen.flows()?) {
        values.extend(after(log, since, &leg.flow)?);
        let targets = vec![Target::within("back_s", 0.0, 0.5)];
        let mut part = Part::of_flow(leg, values, targets);
        part.over_time = seen.over_time(log);
        parts.push(part);
    }
    Ok(parts)
}

/// Computes the time from a change of the paths until the last gap of the flow, the longest gap, and the delivery from
/// half a second after the change.
fn disturbed(log: &Received, changed: u64, flow: &Sent) -> Result<Values, RunError> {
    let mut times: Vec<u64> = log.arrival_ns.iter().copied().filter(|t| *t >= changed).collect();
    times.sort_unstable();
    // A gap after the last message is unknown: it may have been the last that was sent.
    let gaps = || {
        std::iter::once(changed)
            .chain(times.iter().copied())
            .zip(times.iter().copied())
    };
    let gap = GAP_PERIODS * flow.period_us * 1000;
    let back = gaps()
        .filter(|(a, b)| b - a > gap)
        .map(|(_, b)| b)
        .max()
        .unwrap_or(changed);
    let silence = gaps().map(|(a, b)| b - a).max();
    let silence = silence.ok_or_else(|| RunError::Failed(format!("{}: it did not recover", flow.topic)))?;
    Ok(Values::from([
        ("back_s", (back - changed) as f64 / 1e9),
        ("silence_s", silence as f64 / 1e9),
        ("delivery_after", delivery_after(log, changed, flow)),
    ]))
}

/// Returns the delivery of messages sent from half a second after `since` on.
fn delivery_after(log: &Received, since: u64, flow: &Sent) -> f64 {
    let settled = since + 500_000_000;
    let came = log.stamp_ns.iter().filter(|t| **t >= settled).count() as f64;
    let last = log.stamp_ns.iter().max().copied().unwrap_or_default();
    let sent = (last.saturating_sub(settled) as f64 / 1e3 / flow.period_us as f64).max(1.0);
    (came / sent).min(1.0)
}

/// Computes the time from the return of the radio until the flow is back, and the delivery from half a second later.
fn after(log: &Received, returned: u64, flow: &Sent) -> Result<Values, RunError> {
    let back = log.arrival_ns.iter().filter(|t| **t >= returned).min();
    let back = back.ok_or_else(|| RunError::Failed(format!("{}: it did not recover", flow.topic)))?;
    // The radio was off: an arrival in the half second before its return is an error of the times.
    let silent = log.arrival_ns.iter().filter(|t| **t < returned).max();
    let silence = silent.map_or(0.0, |t| (back - t) as f64 / 1e9);
    Ok(Values::from([
        ("back_s", (back - returned) as f64 / 1e9),
        ("silence_s", silence),
        ("delivery_after", delivery_after(log, returned, flow)),
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

    #[test]
    fn the_scenarios_are_good_and_their_neighbours_are_hosts() {
        for t in troubles() {
            let scenario = match &t.place.yaml {
                Some(text) => lab::Scenario::parse(text, t.place.scenario),
                None => lab::Scenario::load(t.place.scenario),
            };
            let scenario = scenario.unwrap_or_else(|e| panic!("{e}"));
            let known = |h: &str| scenario.hosts().iter().any(|k| k == h);
            assert!(t.neighbours.iter().all(|(a, b)| known(a) && known(b)));
        }
    }

    #[test]
    fn a_flow_is_back_when_its_gaps_end() {
        let ms = |all: &[u64]| all.iter().map(|t| t * 1_000_000).collect::<Vec<_>>();
        let times = [
            980, 1_000, 1_020, 1_040, 1_160, 1_180, 1_400, 1_420, 1_500, 1_520, 1_540,
        ];
        let log = Received {
            topic: "/flow1".into(),
            sequence: (0..times.len() as u64).collect(),
            stamp_ns: ms(&times),
            arrival_ns: ms(&times),
        };
        let flow = Sent::lasting("/flow1", 1000, 20_000, 10);
        let v = disturbed(&log, 1_010_000_000, &flow).expect("is back");
        assert_eq!((v["back_s"], v["silence_s"]), (0.39, 0.22));
        assert!(disturbed(&log, 2_000_000_000, &flow).is_err());
        let early = disturbed(&log, 1_500_000_000, &flow).expect("no gap");
        assert_eq!(early["back_s"], 0.0);
    }
}
