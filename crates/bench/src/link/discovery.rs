//! Nodes of ROS 2 on two hosts that find each other: how long it takes, and how many bytes it costs on the radio.

use super::network::Network;
use super::ros2::Carried;
use super::tools::Tools;
use super::{Experiment, Options, Part, Row, System};
use crate::flows::play::{Extra, Leg, play_with};
use crate::kit::cell::{Params, Timing, Values};
use crate::kit::error::RunError;
use crate::kit::site::Site;
use lab::Status;
use serde_json::json;
use std::process::Command;
use std::time::Duration;

const SCENARIO: &str = "wifi-1hop";
const HOSTS: [&str; 2] = ["robot", "base"];
const RATE: &str = "6Mbit/s";
/// Number of nodes on both hosts together.
const NODES: [u32; 3] = [2, 8, 32];
const PATIENCE: Duration = Duration::from_secs(120);

/// A row for each number of nodes, for Ropewalk and for Fast DDS.
pub(super) fn rows(options: &Options) -> Vec<Row> {
    let ways = [
        (System::Ropewalk, Carried::Ropewalk),
        (System::RclpyFastdds, Carried::Fastdds),
    ];
    let wanted = ways.into_iter().filter(|(system, _)| options.wants(*system));
    let all = wanted.flat_map(|way| NODES.map(|nodes| (way, nodes)));
    all.map(|((system, carried), nodes)| Row {
        beside: Vec::new(),
        experiment: Experiment::Discovery,
        system,
        scenario: SCENARIO,
        hops: 1,
        setting: format!("{nodes} nodes of rclpy"),
        params: Params::from([("nodes".into(), json!(nodes))]),
        run: Box::new(move |tools, _| run(tools, system, carried, nodes)),
    })
    .collect()
}

fn run(
    tools: &Tools<'_>,
    system: System,
    carried: Carried,
    nodes: u32,
) -> Result<(Vec<Part>, Timing), RunError> {
    let site = Site::up(&tools.ground, SCENARIO, None)?;
    let what = format!("discovery {}", system.name());
    let network = match carried {
        Carried::Ropewalk => Some(Network::of_ros2(tools, &site, HOSTS, RATE)?),
        Carried::Fastdds | Carried::FastddsLocal => None,
    };
    // The links are up before there is a node.
    site.pause(Duration::from_secs(2))?;
    let before = delivered_bytes(&site.status()?);
    let rclpy = tools.rclpy()?;
    let mut extras = HOSTS.map(|host| Extra {
        name: host,
        command: rclpy.know(&site, host, carried, nodes / 2, nodes),
        takes: Some(PATIENCE),
    });
    // There are no flows.
    let none = |_, _: &str, _: &[&Leg]| Command::new("false");
    let played = play_with(&what, &site, &tools.sandbox, &[], &none, &mut extras);
    let (played, links) = match network {
        Some(network) => network.end(played, site.stopped())?,
        None => (played?, std::collections::BTreeMap::new()),
    };
    tools.keep(&what, &format!("{nodes} nodes"), &played, &links)?;
    let known = played.values.iter().flatten().flatten().copied();
    let part = Part {
        check: "nodes that know each other".into(),
        system: None,
        params: Params::new(),
        values: Values::from([
            ("known_s", known.fold(0.0, f64::max)),
            ("air_bytes", (delivered_bytes(&played.lab) - before) as f64),
        ]),
        targets: Vec::new(),
        over_time: Vec::new(),
    };
    Ok((vec![part], played.timing))
}

/// Returns the bytes of IP that reached a host, on all media.
fn delivered_bytes(status: &Status) -> u64 {
    status.media.iter().map(|m| m.delivered_bytes).sum()
}
