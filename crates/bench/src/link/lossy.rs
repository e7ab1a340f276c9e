//! Reliable commands of 64 B with a loss of one packet in five in each direction; and a redundant topic with a loss of
//! one packet in ten in bursts.

use super::case::leg;
use super::network::{Network, Setting, Topic};
use super::tools::{Means, Tools};
use super::{CarrierKind, Experiment, Options, Part, Row, System};
use crate::flows::Sent;
use crate::flows::play::{self, Extra, Leg, Part as Plays, play_with};
use crate::kit::cell::{Params, Target, Timing, Values};
use crate::kit::error::RunError;
use crate::kit::site::Site;
use serde_json::json;
use stats::Histogram;
use std::time::Duration;

const HOSTS: [&str; 2] = ["controller", "robot"];

/// A round-trip time, and the limit for the 99th percentile.
struct Path {
    scenario: &'static str,
    each_way: &'static str,
    round_trip_ms: u64,
    most_ms: f64,
    period_ms: u64,
    /// Commands of a run, and of a quick run: with fewer than some hundred, the 99th percentile is chance.
    count: u64,
    quick: u64,
}

const PATHS: [Path; 2] = [
    Path {
        scenario: "loss-20-rtt-20ms",
        each_way: "10ms",
        round_trip_ms: 20,
        most_ms: 110.0,
        period_ms: 50,
        count: 1_000,
        quick: 600,
    },
    Path {
        scenario: "loss-20-rtt-2s",
        each_way: "1s",
        round_trip_ms: 2_000,
        most_ms: 4_500.0,
        period_ms: 100,
        count: 1_000,
        quick: 500,
    },
];

/// One packet in ten, three in a row: 0.1 = 3 / (3 + 27).
const BURSTS: &str = "loss-10-in-bursts-rtt-20ms";
const BURSTS_YAML: &str = "description: A wire that loses one packet in ten, each way, in bursts of three.\n\
                           hosts: [controller, robot]\nmedia:\n  - name: wire\n    wire: {rate: 100Mbit/s}\n    set: \
                           {packet_loss: {gilbert: {to_bad: 3.7037%, to_good: 33.3333%}}, delay: 10ms}\n";

pub(super) fn rows(options: &Options) -> Vec<Row> {
    if !options.wants(System::Ropewalk) {
        return Vec::new();
    }
    let mut rows = Vec::new();
    for path in &PATHS {
        let count = if options.quick { path.quick } else { path.count };
        for carrier in options.carriers_of(Experiment::Lossy) {
            let topic = Topic {
                priority: 110,
                depth: 64,
                more: "reliability: reliable, expiry: 30s",
            };
            let setting = Setting {
                carrier,
                rate: "6Mbit/s",
                hops: 1,
                neighbours: &[],
                yields: true,
                topics: vec![topic.clone(), topic],
                called: &[],
            };
            let means = Means::links(setting.clone());
            let mut params = Params::from([
                ("topic".into(), json!("/command")),
                ("message_bytes".into(), json!(64)),
                ("packet_loss".into(), json!(0.2)),
                ("round_trip_ms".into(), json!(path.round_trip_ms)),
                ("sent_period_ms".into(), json!(path.period_ms)),
                ("messages".into(), json!(count)),
                ("reliability".into(), json!("reliable")),
            ]);
            means.describe(&mut params);
            rows.push(Row {
                beside: Vec::new(),
                experiment: Experiment::Lossy,
                system: System::Ropewalk,
                scenario: path.scenario,
                hops: 1,
                setting: format!("{}, {} ms round trip", means.shown(), path.round_trip_ms),
                params,
                run: Box::new(move |tools, _| measure(tools, path, &setting, count)),
            });
        }
    }
    for carrier in options.carriers_of(Experiment::Lossy) {
        rows.push(redundant(carrier, options.quick));
    }
    rows
}

/// Messages of 1 KB, which parity can repair.
fn redundant(carrier: CarrierKind, quick: bool) -> Row {
    let setting = Setting {
        carrier,
        rate: "54Mbit/s",
        hops: 1,
        neighbours: &[],
        yields: true,
        called: &[],
        topics: vec![Topic {
            priority: 50,
            depth: 5,
            more: "reliability: redundant",
        }],
    };
    let means = Means::links(setting.clone());
    let mut params = Params::from([
        ("packet_loss".into(), json!(0.1)),
        ("packets_in_a_burst".into(), json!(3)),
        ("round_trip_ms".into(), json!(20)),
        ("reliability".into(), json!("redundant")),
    ]);
    means.describe(&mut params);
    Row {
        beside: Vec::new(),
        experiment: Experiment::Lossy,
        system: System::Ropewalk,
        scenario: BURSTS,
        hops: 1,
        setting: format!("{}, redundant", means.shown()),
        params,
        run: Box::new(move |tools, run| {
            let site = Site::up(&tools.ground, BURSTS, Some(BURSTS_YAML))?;
            // In the first seconds, the link learns the loss of the path.
            let flow = Sent {
                warm_up: 750,
                counted: if quick { 1_000 } else { 3_000 },
                count: if quick { 1_800 } else { 3_800 },
                ..Sent::lasting("/odometry", 1_000, 20_000, 1).offset(u64::from(run) * 3_000 % 20_000)
            };
            let legs = [leg(flow, HOSTS[1], HOSTS[0])];
            let network = Network::up(tools, &site, &legs, &setting)?;
            let ours = |part: Plays, host: &str, legs: &[&Leg]| tools.our_part(&site, part, host, legs);
            let played = play::play("lossy", &site, &tools.sandbox, &legs, &ours);
            let (played, links) = network.end(played, site.stopped())?;
            tools.keep("lossy", BURSTS, &played, &links)?;
            let mut values = legs[0].flow.judge(&played.received[0])?;
            let sent = &links[HOSTS[1]]["sent"][0];
            let bytes = |name: &str| sent[name].as_f64().unwrap_or_default();
            values.insert("overhead", bytes("parity_bytes") / bytes("sent_bytes"));
            let targets = vec![
                Target::within("delivery", 0.995, 1.0),
                Target::within("overhead", 0.0, 1.0),
            ];
            Ok((vec![Part::of_flow(&legs[0], values, targets)], played.timing))
        }),
    }
}

fn measure(
    tools: &Tools<'_>,
    path: &Path,
    setting: &Setting,
    count: u64,
) -> Result<(Vec<Part>, Timing), RunError> {
    let yaml = format!(
        "description: A wire that loses one packet in five, each way.\nhosts: [{}]\nmedia:\n  - name: wire\n    wire: {{rate: \
         100Mbit/s}}\n    set: {{packet_loss: 20%, delay: {}}}\n",
        HOSTS.join(", "),
        path.each_way
    );
    let site = Site::up(&tools.ground, path.scenario, Some(&yaml))?;
    // For the links' configuration, which ignores sizes and rates.
    let topic = |name: &str, from: &str, to: &str| leg(Sent::lasting(name, 64, 50_000, 1), from, to);
    let legs = [
        topic("/command", HOSTS[0], HOSTS[1]),
        topic("/answer", HOSTS[1], HOSTS[0]),
    ];
    let network = Network::up(tools, &site, &legs, setting)?;
    let (number, period) = (count.to_string(), path.period_ms.to_string());
    let linger = Duration::from_millis(10 * path.round_trip_ms).max(Duration::from_secs(5));
    let linger_ms = linger.as_millis().to_string();
    let plan = [
        "--count",
        &number,
        "--period-ms",
        &period,
        "--linger-ms",
        &linger_ms,
    ];
    let mut extras = [
        Extra {
            name: "who commands",
            command: tools.answering(&site, ("command", HOSTS[0]), ["/answer", "/command"], &plan),
            takes: Some(Duration::from_millis(path.period_ms * count) + linger),
        },
        Extra {
            name: "who answers",
            command: tools.answering(&site, ("answer", HOSTS[1]), ["/command", "/answer"], &[]),
            takes: None,
        },
    ];
    let none = |part: Plays, host: &str, legs: &[&Leg]| tools.our_part(&site, part, host, legs);
    let played = play_with("lossy", &site, &tools.sandbox, &[], &none, &mut extras);
    let (played, links) = network.end(played, site.stopped())?;
    tools.keep("lossy", path.scenario, &played, &links)?;
    let took = played.values.into_iter().flatten().next().unwrap_or_default();
    if took.len() as u64 != count {
        return Err(format!("only {} of {count} commands were reported", took.len()).into());
    }
    let mut times = Histogram::default();
    let answered = took.iter().filter(|ms| **ms >= 0.0);
    answered.for_each(|ms| times.record((ms * 1e6) as u64));
    let ms = |ns: u64| ns as f64 / 1e6;
    let values = Values::from([
        ("sent", count as f64),
        ("received", times.count() as f64),
        ("delivery", times.count() as f64 / count as f64),
        ("delay_ms.mean", times.mean() / 1e6),
        ("delay_ms.p50", ms(times.quantile(0.5))),
        ("delay_ms.p99", ms(times.quantile(0.99))),
        ("delay_ms.max", ms(times.max())),
    ]);
    let part = Part {
        check: "command until answer".into(),
        system: None,
        params: Params::new(),
        values,
        targets: vec![
            Target::within("delay_ms.p99", 0.0, path.most_ms),
            Target::within("delivery", 1.0, 1.0),
        ],
        over_time: Vec::new(),
    };
    Ok((vec![part], played.timing))
}
