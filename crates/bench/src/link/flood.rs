//! Laser and image while unauthenticated senders flood both links.

use super::case::leg;
use super::network::{Network, PORT, Setting};
use super::tools::{Means, Tools};
use super::{CarrierKind, Experiment, Options, Part, Row, System, pound};
use crate::flows::play::{Extra, Leg, play_with};
use crate::flows::{self, play};
use crate::kit::cell::{Params, Target, Timing, Values};
use crate::kit::error::RunError;
use crate::kit::site::Site;
use serde_json::json;
use std::time::Duration;

const HOSTS: [&str; 2] = ["robot", "base"];
/// Flood datagrams per second, at each of the two links.
const RATE: u32 = 8_000;
/// Maximum memory growth of a flooded link.
const MOST_MB: f64 = 8.0;
const NAMES: [&str; 8] = [
    "garbage",
    "handshakes",
    "replays",
    "forged",
    "answered_bytes",
    "resident_before_mb",
    "resident_most_mb",
    "resident_after_mb",
];

pub(super) fn rows(options: &Options) -> Vec<Row> {
    if !options.wants(System::Ropewalk) || options.carriers_of(Experiment::Flood).is_empty() {
        return Vec::new();
    }
    let quick = options.quick;
    let setting = Setting {
        carrier: CarrierKind::Quic,
        rate: "6Mbit/s",
        hops: 1,
        neighbours: &[],
        yields: true,
        topics: pound::topics(),
        called: &[],
    };
    let row = |rate: u32| {
        let means = Means::links(setting.clone());
        let senders = match rate {
            0 => "no unknown senders".to_owned(),
            rate => format!("{rate} datagrams of a flood per second at each link"),
        };
        let mut params = Params::from([("flood_per_s".into(), json!(rate))]);
        means.describe(&mut params);
        let setting = setting.clone();
        Row {
            beside: Vec::new(),
            experiment: Experiment::Flood,
            system: System::Ropewalk,
            scenario: "wifi-1hop",
            hops: 1,
            setting: format!("{}, {senders}", means.shown()),
            params,
            run: Box::new(move |tools, run| measure(tools, &setting, (quick, run, rate))),
        }
    };
    vec![row(0), row(RATE)]
}

fn measure(
    tools: &Tools<'_>,
    setting: &Setting,
    (quick, run, rate): (bool, u32, u32),
) -> Result<(Vec<Part>, Timing), RunError> {
    let site = Site::up(&tools.ground, "wifi-1hop", None)?;
    let legs = flows::pound(1, quick, run).map(|flow| leg(flow, HOSTS[0], HOSTS[1]));
    let takes = legs.iter().map(|l| l.flow.takes_us()).max().unwrap_or_default();
    let seconds = takes.div_ceil(1_000_000);
    let network = Network::up(tools, &site, &legs, setting)?;
    let admission = tools
        .file("team")
        .join(link::keys::ADMISSION_SECRET)
        .to_string_lossy()
        .into_owned();
    let (rate, shown) = (rate.to_string(), seconds.to_string());
    let mut extras = Vec::new();
    for host in HOSTS {
        let target = format!("{}:{PORT}", site.address(host)?);
        let of = tools.file(&format!("{host}-link.yaml"));
        let of = of.to_string_lossy();
        let words = [
            "flood",
            "--target",
            &target,
            "--host",
            host,
            "--of",
            &of,
            "--admission",
            &admission,
            "--rate",
            &rate,
            "--seconds",
            &shown,
        ];
        extras.push(Extra {
            name: "the unknown sender",
            // Not at the priority of the processes that it disturbs.
            command: tools.lowly(&site, host, &words),
            takes: Some(Duration::from_secs(seconds)),
        });
    }
    let command = |part: play::Part, host: &str, legs: &[&Leg]| tools.our_part(&site, part, host, legs);
    let played = play_with("flood", &site, &tools.sandbox, &legs, &command, &mut extras);
    let (played, _) = network.end(played, site.stopped())?;
    let delivered = Target::within("delivery", 0.998, 1.0);
    let targets = [
        vec![
            Target::within("period_ms.std", 0.0, 0.6),
            Target::within("delay_ms.mean", 0.0, 2.1),
            delivered.clone(),
        ],
        vec![Target::within("delay_ms.mean", 0.0, 117.0), delivered],
    ];
    let mut parts = Vec::new();
    for ((leg, log), targets) in legs.iter().zip(&played.received).zip(targets) {
        parts.push(Part::of_flow(leg, leg.flow.judge(log)?, targets));
    }
    for (host, reported) in HOSTS.iter().zip(&played.values) {
        let reported = reported.as_deref().filter(|t| t.len() == NAMES.len());
        let reported = reported.ok_or_else(|| format!("the flooding process on {host} reported nothing"))?;
        let mut values = Values::new();
        for (name, value) in NAMES.iter().zip(reported) {
            let bytes = name.ends_with("_mb");
            values.insert(*name, if bytes { value / 1e6 } else { *value });
        }
        values.insert("resident_grown_mb", (reported[6] - reported[5]) / 1e6);
        parts.push(Part {
            check: format!("the link on {host}"),
            system: None,
            params: Params::new(),
            values,
            targets: vec![Target::within("resident_grown_mb", 0.0, MOST_MB)],
            over_time: Vec::new(),
        });
    }
    Ok((parts, played.timing))
}
