//! Pound's Fig. 19: the throughput of one flow that always has a message to send.

use super::case::{Seen, leg};
use super::network::{Setting, Topic};
use super::tools::Means;
use super::{CarrierKind, Experiment, Options, Part, Row, Run, System, systems};
use crate::flows::Sent;
use crate::kit::cell::{Params, Target};
use crate::kit::site::Site;
use serde_json::json;

const SIZES: [u64; 4] = [1_000, 4_000, 16_000, 64_000];
/// More than the radio carries, in bit/s: a message always waits.
const OFFERED: u64 = 9_000_000;

/// Returns a row for each size. Ropewalk's UDP and QUIC carriers run one after the other in the same lab, because they
/// are compared with each other.
pub(super) fn rows(options: &Options) -> Vec<Row> {
    let lasts = if options.quick { 8 } else { 20 };
    let mut rows = Vec::new();
    let carriers = options.carriers_of(Experiment::Bandwidth);
    // QUIC's throughput is compared with that of UDP.
    let carriers = [CarrierKind::Udp, CarrierKind::Quic].map(|c| carriers.contains(&c).then_some(c));
    let carriers: Vec<_> = carriers.into_iter().flatten().collect();
    // Zenoh's flow has its own row, over a wire (`wire`).
    let wanted = |s: &System| options.wants(*s) && (*s == System::Ropewalk || s.transport().is_some());
    for system in systems().filter(wanted) {
        for bytes in SIZES {
            rows.push(match system.transport() {
                None if carriers.is_empty() => continue,
                None => ours(&carriers, bytes, lasts),
                Some(_) => theirs(system, bytes, lasts, options),
            });
        }
    }
    rows
}

fn flow(bytes: u64, lasts: u64, run: u32) -> Sent {
    let period_us = bytes * 8 * 1_000_000 / OFFERED;
    // The phase relative to the lab's clock does not matter here; the run's number varies the back-offs.
    Sent::lasting("/flow", bytes, period_us, lasts).offset(u64::from(run) * 137)
}

fn row(system: System, bytes: u64, run: Run) -> Row {
    Row {
        beside: Vec::new(),
        experiment: Experiment::Bandwidth,
        system,
        scenario: "wifi-1hop",
        hops: 1,
        setting: format!("{bytes} B"),
        params: Params::from([("offered_mbit_s".into(), json!(OFFERED as f64 / 1e6))]),
        run,
    }
}

fn setting(carrier: CarrierKind, rate: &'static str) -> Setting {
    Setting {
        carrier,
        rate,
        hops: 1,
        neighbours: &[],
        yields: true,
        called: &[],
        topics: vec![Topic {
            priority: 50,
            depth: 8,
            more: "",
        }],
    }
}

fn ours(carriers: &[CarrierKind], bytes: u64, lasts: u64) -> Row {
    let carriers = carriers.to_vec();
    row(
        System::Ropewalk,
        bytes,
        Box::new(move |tools, run| {
            let site = Site::up(&tools.ground, "wifi-1hop", None)?;
            let legs = [leg(flow(bytes, lasts, run), "robot", "base")];
            let mut parts: Vec<Part> = Vec::new();
            let mut timing = None;
            let mut udp = None;
            for carrier in &carriers {
                let means = Means::links(setting(*carrier, "6Mbit/s"));
                let played = tools.play("bandwidth", &site, &means, &legs)?;
                let seen = Seen {
                    legs: &legs,
                    played: &played,
                    lab_began: stats::Time::ZERO,
                };
                for mut part in seen.cells(&[])? {
                    let goodput = part.values.get("mbit_s").copied().unwrap_or_default();
                    if *carrier == CarrierKind::Udp {
                        udp = Some(goodput);
                    } else {
                        if let Some(udp) = udp {
                            part.values.insert("of_udp", goodput / udp);
                            part.targets.push(Target::within("of_udp", 0.95, f64::INFINITY));
                        }
                        if bytes == SIZES[0] {
                            part.targets.push(Target::within("mbit_s", 4.75, f64::INFINITY));
                        }
                    }
                    part.check = format!("{} by {}", part.check, carrier.name());
                    means.describe(&mut part.params);
                    parts.push(part);
                }
                // Covers the whole lab so far.
                timing = Some(played.timing);
            }
            let timing = timing.ok_or_else(|| "no run".to_owned())?;
            Ok((parts, timing))
        }),
    )
}

fn theirs(system: System, bytes: u64, lasts: u64, options: &Options) -> Row {
    let means = system.all_means(options, Experiment::Bandwidth, &[], setting);
    row(
        system,
        bytes,
        Box::new(move |tools, run| {
            let site = Site::up(&tools.ground, "wifi-1hop", None)?;
            let legs = [leg(flow(bytes, lasts, run), "robot", "base")];
            let means = means.first().ok_or_else(|| "it has no such source".to_owned())?;
            let played = tools.play("bandwidth", &site, means, &legs)?;
            let seen = Seen {
                legs: &legs,
                played: &played,
                lab_began: stats::Time::ZERO,
            };
            Ok((seen.cells(&[])?, played.timing))
        }),
    )
}
