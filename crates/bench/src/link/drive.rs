//! A robot that drives away and comes back: the radio's rate falls from 6 to 2 to 1 Mbit/s and returns, without notice
//! to the links.

use super::case::{Case, LabSetup, Seen, leg};
use super::network::Setting;
use super::{Experiment, Options, Part, Row, pound, systems};
use crate::flows::{IMAGE, IMAGE_BYTES, LASER, LASER_BYTES, LASER_US, Sent, image_us, phase_us};
use crate::kit::cell::{Target, Values};
use crate::kit::error::RunError;
use serde_json::json;
use stats::Histogram;

/// Rates in Mbit/s, in order.
const PHASES: [u64; 4] = [6, 2, 1, 6];
const PHASE_P99: [&str; 4] = [
    "delay_ms.p99_at_6",
    "delay_ms.p99_at_2",
    "delay_ms.p99_at_1",
    "delay_ms.p99_at_6_again",
];

pub(super) fn rows(options: &Options) -> Vec<Row> {
    // Quick: the same in a third of the time.
    let phase_s = if options.quick { 7 } else { 20 };
    let (scenario, yaml) = if options.quick {
        ("drive-away-quick", Some(quick(phase_s)))
    } else {
        ("drive-away", None)
    };
    let mut rows = Vec::new();
    for system in systems().filter(|s| options.wants(*s)) {
        let setting = |carrier, rate| Setting {
            carrier,
            rate,
            hops: 1,
            neighbours: &[],
            yields: true,
            topics: pound::topics(),
            called: &[],
        };
        for means in system.all_means(options, Experiment::DriveAway, &["auto"], setting) {
            let case = Case {
                experiment: Experiment::DriveAway,
                system,
                place: LabSetup {
                    scenario,
                    yaml: yaml.clone(),
                    hops: 1,
                },
                means,
                varies: vec![("phase_s", String::new(), json!(phase_s))],
                legs: Box::new(move |run| {
                    // It has to end in the last phase.
                    let lasts = PHASES.len() as u64 * phase_s - 3;
                    let offset = phase_us(run);
                    vec![
                        leg(
                            Sent::lasting(LASER, LASER_BYTES, LASER_US, lasts),
                            "robot",
                            "base",
                        ),
                        leg(
                            Sent::lasting(IMAGE, IMAGE_BYTES, image_us(1), lasts).offset(offset),
                            "robot",
                            "base",
                        ),
                    ]
                }),
                judge: Box::new(move |seen| judge(seen, phase_s)),
            };
            rows.push(case.row());
        }
    }
    rows
}

fn quick(phase_s: u64) -> String {
    let mut yaml = String::from(
        "description: drive-away in a third of its time.\nhosts: [robot, base]\nmedia:\n  - name: wifi\n    wifi: {standard: \
         802.11g, rate: 6Mbit/s}\nevents:\n",
    );
    for (i, rate) in PHASES.iter().enumerate().skip(1) {
        let at = i as u64 * phase_s;
        yaml.push_str(&format!(
            "  - {{at: {at}s, target: wifi, set: {{rate: {rate}Mbit/s}}}}\n"
        ));
    }
    yaml
}

fn judge(seen: &Seen<'_>, phase_s: u64) -> Result<Vec<Part>, RunError> {
    let targets = [
        vec![
            Target::within("delay_ms.p99", 0.0, 50.0),
            Target::within("delivery", 0.99, 1.0),
        ],
        vec![],
    ];
    let mut parts = seen.cells(&targets)?;
    for (part, log) in parts.iter_mut().zip(&seen.played.received) {
        let stamped = log.stamp_ns.iter().zip(&log.arrival_ns);
        let mut phases: [Histogram; 4] = Default::default();
        for (stamp, arrival) in stamped {
            let since = stamp.saturating_sub(seen.lab_began.as_nanos()) / 1_000_000_000;
            let phase = (since / phase_s).min(PHASES.len() as u64 - 1);
            phases[phase as usize].record(arrival.saturating_sub(*stamp));
        }
        part.over_time = seen.over_time(log);
        let p99 = |h: &Histogram| h.quantile(0.99) as f64 / 1e6;
        part.values.extend(
            PHASE_P99
                .into_iter()
                .zip(phases.iter().map(p99))
                .collect::<Values>(),
        );
    }
    Ok(parts)
}
