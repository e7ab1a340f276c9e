//! A large message over a long path with a loss of one packet in five: a bulk topic, Zenoh, and a plain TCP socket.

use super::case::leg;
use super::network::{Network, Setting, Topic};
use super::tools::{Means, Tools};
use super::zenoh::Protocol;
use super::{Experiment, Options, Part, Row, System};
use crate::flows::Sent;
use crate::flows::play::{Leg, Part as Plays};
use crate::flows::said::{Rule, Said};
use crate::kit::cell::{Params, Target, Timing, Values};
use crate::kit::error::RunError;
use crate::kit::processes::Processes;
use crate::kit::site::Site;
use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;

const SCENARIO: &str = "long-haul-rtt-2s-loss-20";
const YAML: &str = "description: A long haul of 10 Mbit/s that takes a second each way and loses one packet in five.\n\
                    hosts: [robot, base]\nmedia:\n  - name: haul\n    wire: {profile: long_haul, rate: 10Mbit/s, \
                    queue_bytes: 250KB}\n    set: {packet_loss: 20%, delay: 1000ms}\n";
const BYTES: u64 = 10_000_000;
/// Time between `go` and the message: connections settle, and links learn the loss of the path.
const BEFORE_S: u64 = 12;
/// How long to wait for Ropewalk, and for others.
const OURS: Duration = Duration::from_secs(25);
const OTHERS: Duration = Duration::from_secs(60);
const READY: Duration = Duration::from_secs(90);
const RESULT: Duration = Duration::from_secs(20);
/// Maximum time until the receiver has the message, in seconds.
const MOST_S: f64 = 13.0;

/// The compared systems.
pub(super) const SYSTEMS: [System; 3] = [System::Ropewalk, System::Tcp, System::ZenohTcp];

pub(super) fn rows(options: &Options) -> Vec<Row> {
    let mut rows = Vec::new();
    for system in SYSTEMS.into_iter().filter(|s| options.wants(*s)) {
        let mut params = Params::from([
            ("topic".into(), json!("/map")),
            ("message_bytes".into(), json!(BYTES)),
            ("packet_loss".into(), json!(0.2)),
            ("round_trip_ms".into(), json!(2_000)),
            ("mbit_s_of_path".into(), json!(10)),
        ]);
        let row = |setting: String, params, run| Row {
            beside: Vec::new(),
            experiment: Experiment::Bulk,
            system,
            scenario: SCENARIO,
            hops: 1,
            setting,
            params,
            run,
        };
        if system != System::Ropewalk {
            params.insert("carrier".into(), json!("tcp"));
            params.insert("given_up_after_s".into(), json!(OTHERS.as_secs()));
            let run = Box::new(move |tools: &Tools<'_>, run| theirs(tools, system, run));
            rows.push(row("10 MB".into(), params, run));
            continue;
        }
        for carrier in options.carriers_of(Experiment::Bulk) {
            let setting = Setting {
                carrier,
                rate: "10Mbit/s, medium: wire",
                hops: 1,
                neighbours: &[],
                yields: true,
                called: &[],
                topics: vec![Topic {
                    priority: 0,
                    depth: 1,
                    more: "reliability: bulk",
                }],
            };
            let means = Means::links(setting.clone());
            let mut params = params.clone();
            params.insert("reliability".into(), json!("bulk"));
            means.describe(&mut params);
            let run = Box::new(move |tools: &Tools<'_>, run| ours(tools, &setting, run));
            rows.push(row(format!("{}, 10 MB", means.shown()), params, run));
        }
    }
    rows
}

fn map(run: u32) -> Leg {
    let message = Sent {
        topic: "/map".into(),
        bytes: BYTES,
        period_us: 1_000_000,
        offset_us: BEFORE_S * 1_000_000 + u64::from(run) * 137_000,
        warm_up: 0,
        counted: 1,
        count: 1,
    };
    leg(message, "robot", "base")
}

type Measured = Result<(Vec<Part>, Timing), RunError>;

fn ours(tools: &Tools<'_>, setting: &Setting, run: u32) -> Measured {
    let site = Site::up(&tools.ground, SCENARIO, Some(YAML))?;
    let legs = [map(run)];
    let network = Network::up(tools, &site, &legs, setting)?;
    let command = |part: Plays, host: &str| tools.our_part(&site, part, host, &[&legs[0]]);
    let values = transfer(tools, &site, &legs[0], OURS, command);
    let (mut values, links) = network.end(values, site.stopped())?;
    values.extend(cost(&links["robot"]));
    Ok((vec![part(values, &legs[0])], Timing::of(&site.status()?)))
}

fn theirs(tools: &Tools<'_>, system: System, run: u32) -> Measured {
    let site = Site::up(&tools.ground, SCENARIO, Some(YAML))?;
    let leg = map(run);
    let zenoh = match system {
        System::ZenohTcp => Some(tools.zenoh()?.far(tools, Protocol::Tcp, &site, &leg)?),
        _ => None,
    };
    let address = site.address(&leg.from)?;
    let command = |part: Plays, host: &str| match &zenoh {
        Some(words) => {
            let words = if part == Plays::Publish {
                &words.0
            } else {
                &words.1
            };
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            site.command(host, true, &words)
        }
        None => {
            let role = if part == Plays::Publish {
                "tcp-send"
            } else {
                "tcp-receive"
            };
            let flow = leg.flow.argument();
            tools.role(
                &site,
                host,
                &[role, "--flow", &flow, "--address", &format!("{address}:7410")],
            )
        }
    };
    let values = transfer(tools, &site, &leg, OTHERS, command)?;
    Ok((vec![part(values, &leg)], Timing::of(&site.status()?)))
}

/// Transfers the message, and returns how long that took.
fn transfer(
    tools: &Tools<'_>,
    site: &Site<'_>,
    leg: &Leg,
    patience: Duration,
    command: impl Fn(Plays, &str) -> Command,
) -> Result<Values, RunError> {
    let rule = Rule { flows: 1, most: 1 };
    let mut processes = Processes::<Said>::new(rule, &tools.sandbox, site.stopped());
    for part in [Plays::Publish, Plays::Subscribe] {
        let host = part.host(leg);
        processes.start(
            format!("bulk: {} on {host}", part.name()),
            &mut command(part, host),
        )?;
    }
    if !processes.listen(clock::monotonic() + READY, |all| all.iter().all(|p| p.said.ready))? {
        return Err(format!("bulk: the two ends did not find each other within {READY:?}").into());
    }
    processes.tell(0, "go");
    let end = clock::monotonic() + Duration::from_micros(leg.flow.offset_us) + patience;
    processes.listen(end, |_| false)?;
    // The sender may still be in the middle of its message: it ends with the run.
    processes.tell(1, "stop");
    let heard = |all: &[crate::kit::processes::Peer<Said>]| all[1].said.received.is_some();
    if !processes.listen(clock::monotonic() + RESULT, heard)? {
        return Err(format!("bulk: no result within {RESULT:?}").into());
    }
    let logs = processes.peers()[1].said.received.as_deref().unwrap_or_default();
    let came = logs
        .first()
        .and_then(|log| Some((log.arrival_ns.first()?, log.stamp_ns.first()?)));
    Ok(match came {
        Some((arrival, stamp)) => Values::from([
            ("took_s", arrival.saturating_sub(*stamp) as f64 / 1e9),
            ("delivery", 1.0),
        ]),
        None => Values::from([("delivery", 0.0)]),
    })
}

/// Returns the bytes that the sender's link sent per byte of the message, and the same for symbols other than the
/// message itself.
fn cost(sender: &Value) -> Values {
    let number = |v: &Value| v.as_f64().unwrap_or_default();
    Values::from([
        (
            "sent_of_message",
            number(&sender["peers"][0]["bytes_sent"]) / BYTES as f64,
        ),
        (
            "repair_of_message",
            number(&sender["sent"][0]["parity_bytes"]) / BYTES as f64,
        ),
    ])
}

fn part(values: Values, leg: &Leg) -> Part {
    Part {
        system: None,
        check: format!("bulk {}", leg.flow.topic),
        params: Params::new(),
        values,
        targets: vec![
            Target::within("took_s", 0.0, MOST_S),
            Target::within("delivery", 1.0, 1.0),
        ],
        over_time: Vec::new(),
    }
}
