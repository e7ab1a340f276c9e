//! Small messages together with a file over a serial line.

use super::case::leg;
use super::network::{Network, Setting, Topic};
use super::tools::Tools;
use super::{CarrierKind, Experiment, Options, Part, Row, System};
use crate::flows::Sent;
use crate::flows::play::{self, Leg};
use crate::kit::cell::{Params, Target, Timing};
use crate::kit::error::RunError;
use crate::kit::site::{Job, Site};
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const BAUD: u32 = 115_200;
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn rows(options: &Options) -> Vec<Row> {
    if !options.wants(System::Ropewalk) || options.carriers_of(Experiment::Serial).is_empty() {
        return Vec::new();
    }
    let lasts = if options.quick { 15 } else { 40 };
    vec![Row {
        beside: Vec::new(),
        experiment: Experiment::Serial,
        system: System::Ropewalk,
        // For the hosts; no message uses their network.
        scenario: "ethernet",
        hops: 1,
        setting: format!("serial, {BAUD} baud"),
        params: Params::from([("carrier".into(), json!("serial")), ("baud".into(), json!(BAUD))]),
        run: Box::new(move |tools, run| measure(tools, lasts, run)),
    }]
}

/// 40 B at 20 Hz, and every four seconds 20 KB, which take 1.8 s.
fn legs(site: &Site<'_>, lasts: u64, run: u32) -> Result<[Leg; 2], RunError> {
    let status = site.status()?;
    let mut hosts = status.hosts.iter().map(|h| h.name.clone());
    let (Some(from), Some(to)) = (hosts.next(), hosts.next()) else {
        return Err("the lab has less than two hosts".to_owned().into());
    };
    let offset = u64::from(run) * 7_000 % 50_000;
    Ok([
        leg(
            Sent::lasting("/status", 40, 50_000, lasts).offset(offset),
            &from,
            &to,
        ),
        leg(Sent::lasting("/file", 20_000, 4_000_000, lasts), &from, &to),
    ])
}

fn measure(tools: &Tools<'_>, lasts: u64, run: u32) -> Result<(Vec<Part>, Timing), RunError> {
    let site = Site::up(&tools.ground, "ethernet", None)?;
    let legs = legs(&site, lasts, run)?;
    let ends: [PathBuf; 2] = ["line-a", "line-b"].map(|name| tools.file(name));
    ends.iter().for_each(|e| drop(std::fs::remove_file(e)));
    let [a, b] = ends.each_ref().map(|e| e.to_string_lossy().into_owned());
    let baud = BAUD.to_string();
    let words = ["line", "--baud", &baud, "--end", &a, "--end", &b];
    let mut line = Job::start(&mut tools.role(&site, &legs[0].from, &words))?;
    let deadline = Instant::now() + PATIENCE;
    while !ends.iter().all(|e| e.exists()) {
        if Instant::now() > deadline {
            return Err(format!("the serial line did not appear within {PATIENCE:?}").into());
        }
        site.pause(Duration::from_millis(20))?;
    }
    let topic = |priority, depth| Topic {
        priority,
        depth,
        more: "",
    };
    let setting = Setting {
        carrier: CarrierKind::Serial,
        rate: "",
        hops: 1,
        neighbours: &[],
        yields: true,
        topics: vec![topic(100, 2), topic(10, 2)],
        called: &[],
    };
    let lines = [(&*legs[0].from, BAUD, a), (&*legs[0].to, BAUD, b)];
    let network = Network::over_lines(tools, &site, &legs, &setting, &lines)?;
    let command = |part: play::Part, host: &str, legs: &[&Leg]| tools.our_part(&site, part, host, legs);
    let played = play::play("serial", &site, &tools.sandbox, &legs, &command);
    let (played, _) = network.end(played, site.stopped())?;
    line.close_input();
    site.finish(line, PATIENCE)?;
    let targets = [vec![Target::within("delay_ms.p99", 0.0, 60.0)], vec![]];
    let mut parts = Vec::new();
    for ((leg, log), targets) in legs.iter().zip(&played.received).zip(targets) {
        parts.push(Part::of_flow(leg, leg.flow.judge(log)?, targets));
    }
    Ok((parts, played.timing))
}
