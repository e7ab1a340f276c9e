//! A team of robots as they come: two of ROS 2 over DDS and one of ROS 1, commanded from a base of ROS 2, on one radio.

use super::bridged::{Masters, domains, ends, to_zenoh};
use super::case::leg;
use super::network::{Called, Network, Setting, Topic};
use super::ros2::Carried;
use super::tools::Tools;
use super::{CarrierKind, Experiment, Options, Part, Row, System};
use crate::flows::play::{self, Extra, Leg, Played, play_with};
use crate::flows::{LASER_BYTES, Sent};
use crate::kit::cell::{Params, Target, Timing, Values};
use crate::kit::error::RunError;
use crate::kit::roscpp::Source;
use crate::kit::site::Site;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

const SCENARIO: &str = "wifi-robots";
const RATE: &str = "6Mbit/s";
/// The robot of ROS 1.
const OLD: &str = "old";
const BASE: &str = "base";
const CALLED: &[Called] = &[
    Called {
        name: "/one/switch",
        is_action: false,
        server: "one",
        caller: BASE,
    },
    Called {
        name: "/two/fibonacci",
        is_action: true,
        server: "two",
        caller: BASE,
    },
];
/// Between two calls of the service.
const CALL_US: u64 = 200_000;

/// What is at the ends, and what carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Links between processes on the hosts' buses: what the bridges are measured by.
    Bus,
    /// Links between the robots' own nodes, with bridges.
    Bridged,
    /// Fast DDS from host to host, all robots of ROS 2.
    Fastdds,
    /// The robots' own nodes, with bridges, and Zenoh instead of links.
    Zenoh,
}

impl Way {
    fn system(self) -> System {
        match self {
            Way::Bus | Way::Bridged => System::Ropewalk,
            Way::Fastdds => System::RclpyFastdds,
            Way::Zenoh => System::DdsZenoh,
        }
    }

    fn shown(self) -> &'static str {
        match self {
            Way::Bus => "links, processes on the buses",
            Way::Bridged => "links, nodes of ROS 1 and 2 with bridges",
            Way::Fastdds => "Fast DDS alone, all nodes of ROS 2",
            Way::Zenoh => "Zenoh, nodes of ROS 1 and 2 with bridges",
        }
    }
}

/// A row for each way.
pub(super) fn rows(options: &Options) -> Vec<Row> {
    let lasts = if options.quick { 15 } else { 30 };
    let ways = [Way::Bus, Way::Bridged, Way::Fastdds, Way::Zenoh];
    // A system that needs a program that users do not have is measured only on request.
    let wanted = |w: &Way| match w.system() {
        System::DdsZenoh => options.names(|s| s == System::DdsZenoh),
        system => options.wants(system),
    };
    let all = ways.into_iter().filter(wanted);
    all.map(|way| Row {
        beside: Vec::new(),
        experiment: Experiment::Robots,
        system: way.system(),
        scenario: SCENARIO,
        hops: 1,
        setting: way.shown().to_owned(),
        params: Params::from([("ends".into(), json!(format!("{way:?}").to_lowercase()))]),
        run: Box::new(move |tools, run| measure(tools, way, lasts, run)),
    })
    .collect()
}

fn scenario() -> String {
    format!(
        "description: Three robots and their base on one channel of 802.11a at 6 Mbit/s.\nhosts: [one, two, {OLD}, {BASE}]\n\
         media:\n  - name: wifi\n    wifi: {{standard: 802.11a, rate: 6Mbit/s, topology: mesh}}\n"
    )
}

/// Lasers of 1 KB at 20 Hz of all robots, an image of 64 KB at 2 Hz of one, and joysticks of 64 B at 50 Hz to two.
fn legs(lasts: u64, run: u32) -> Vec<(Leg, Topic)> {
    let topic = |priority| Topic {
        priority,
        depth: 2,
        more: "",
    };
    let shift = u64::from(run) * 7_000 % 50_000;
    let mut all = Vec::new();
    for (i, robot) in ["one", "two", OLD].into_iter().enumerate() {
        let laser = Sent::lasting(&format!("/{robot}/scan"), LASER_BYTES, 50_000, lasts);
        let laser = laser.offset(i as u64 * 16_000 + shift);
        all.push((leg(laser, robot, BASE), topic(100)));
    }
    let image = Sent::lasting("/one/image", 64_000, 500_000, lasts).offset(11_000 + shift);
    all.push((leg(image, "one", BASE), topic(10)));
    for (i, robot) in ["one", OLD].into_iter().enumerate() {
        let joy = Sent::lasting(&format!("/{robot}/joy"), 64, 20_000, lasts);
        all.push((leg(joy.offset(i as u64 * 9_000), BASE, robot), topic(120)));
    }
    all
}

/// A joystick between two nodes of one host, over DDS alone: the part of the delay that the nodes cause while all others run. Where robots
/// are measured by their bridges, it would delay that host's laser.
fn floor(lasts: u64) -> Leg {
    let joy = Sent::lasting("/two/floor", 64, 20_000, lasts);
    leg(joy.offset(5_000), "two", "two")
}

fn measure(tools: &Tools<'_>, way: Way, lasts: u64, run: u32) -> Result<(Vec<Part>, Timing), RunError> {
    let text = scenario();
    let site = Site::up(&tools.ground, SCENARIO, Some(&text))?;
    let (mut legs, topics): (Vec<Leg>, Vec<Topic>) = legs(lasts, run).into_iter().unzip();
    let what = format!("robots {}", way.system().name());
    if way == Way::Fastdds {
        legs.push(floor(lasts));
    }
    let (played, said) = played(tools, way, &site, (&legs, topics), &what, lasts)?;
    tools.keep(&what, way.shown(), &played, &said)?;
    let mut parts = Vec::new();
    for (leg, log) in legs.iter().zip(&played.received) {
        let values = leg.flow.judge(log)?;
        let targets = match leg.to == BASE || leg.from == leg.to {
            true => Vec::new(),
            false => vec![Target::within("delay_ms.p99", 0.0, 8.0)],
        };
        parts.push(Part::of_flow(leg, values, targets));
    }
    let calls = played.values.into_iter().flatten().find(|v| v.len() == 6);
    if let Some([called, answered, p50, p99, goals, succeeded]) = calls.as_deref() {
        let values = Values::from([
            ("calls", *called),
            ("answered", *answered),
            ("call_ms.p50", *p50),
            ("call_ms.p99", *p99),
            ("goals", *goals),
            ("goals_succeeded", *succeeded),
        ]);
        parts.push(Part {
            check: "a service and an action".into(),
            system: None,
            params: Params::new(),
            values,
            targets: Vec::new(),
            over_time: Vec::new(),
        });
    }
    Ok((parts, played.timing))
}

type Ended = Result<(Played, BTreeMap<String, Value>), RunError>;

fn played(
    tools: &Tools<'_>,
    way: Way,
    site: &Site<'_>,
    (legs, topics): (&[Leg], Vec<Topic>),
    what: &str,
    lasts: u64,
) -> Ended {
    let setting = Setting {
        carrier: CarrierKind::Quic,
        rate: RATE,
        hops: 1,
        neighbours: &[],
        yields: true,
        topics: topics.clone(),
        called: if way == Way::Bus { &[] } else { CALLED },
    };
    if way == Way::Bus {
        let network = Network::up(tools, site, legs, &setting)?;
        let command = |part: play::Part, host: &str, legs: &[&Leg]| tools.our_part(site, part, host, legs);
        let played = play::play(what, site, &tools.sandbox, legs, &command);
        return network.end(played, site.stopped());
    }
    let rclpy = tools.rclpy()?;
    let carried = match way {
        Way::Fastdds => Carried::Fastdds,
        _ => Carried::FastddsLocal,
    };
    let mut extras = extras(tools, site, carried, lasts)?;
    if way == Way::Fastdds {
        let command = |part: play::Part, host: &str, legs: &[&Leg]| {
            rclpy.part(site, (part, host), Carried::Fastdds, legs)
        };
        let played = play_with(what, site, &tools.sandbox, legs, &command, &mut extras)?;
        return Ok((played, BTreeMap::new()));
    }
    let others: BTreeSet<&str> = ends(legs).into_iter().filter(|h| *h != OLD).collect();
    let carrier = match way {
        Way::Zenoh => to_zenoh(tools, site, legs, &topics, CALLED, BASE)?,
        _ => Network::up(tools, site, legs, &setting)?.into_daemons(),
    };
    let domains = domains(tools, site, (legs, CALLED), &others)?;
    let masters = Masters::up(tools, site, legs, &BTreeSet::from([OLD]))?;
    let command = |part: play::Part, host: &str, legs: &[&Leg]| match host {
        OLD => masters.part(site, (part, host), Source::Periodic, legs),
        _ => rclpy.part(site, (part, host), Carried::FastddsLocal, legs),
    };
    let played = play_with(what, site, &tools.sandbox, legs, &command, &mut extras);
    let ended = masters.end(played, site.stopped());
    let ended = domains.end_too(ended, site.stopped());
    carrier.end_too(ended, site.stopped())
}

/// The servers on the robots, and what calls them from the base.
fn extras(tools: &Tools<'_>, site: &Site<'_>, carried: Carried, lasts: u64) -> Result<Vec<Extra>, RunError> {
    let rclpy = tools.rclpy()?;
    let words = |c: &Called| {
        [
            if c.is_action { "--action" } else { "--service" }.to_owned(),
            c.name.to_owned(),
        ]
    };
    let serve = |host: &str| -> Command {
        let words: Vec<String> = CALLED
            .iter()
            .filter(|c| c.server == host)
            .flat_map(words)
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        rclpy.calls(site, ("serve", host), carried, &words)
    };
    let mut words: Vec<String> = CALLED.iter().flat_map(words).collect();
    let count = lasts * 1_000_000 / CALL_US;
    words.extend([
        "--count".into(),
        count.to_string(),
        "--period-us".into(),
        CALL_US.to_string(),
    ]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let extra = |name, command, takes| Extra { name, command, takes };
    Ok(vec![
        extra("the service", serve("one"), None),
        extra("the action", serve("two"), None),
        extra(
            "calls",
            rclpy.calls(site, ("call", BASE), carried, &words),
            Some(Duration::from_secs(lasts + 20)),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_radio_has_room_for_what_all_robots_say() {
        let scenario = lab::Scenario::parse(&scenario(), SCENARIO).unwrap_or_else(|e| panic!("{e}"));
        let legs = legs(30, 0);
        let bits: f64 = legs
            .iter()
            .map(|(l, _)| l.flow.bytes as f64 * 8e6 / l.flow.period_us as f64)
            .sum();
        assert!(bits < 2.5e6, "{bits} bit/s");
        for (leg, _) in &legs {
            assert!([&leg.from, &leg.to].iter().all(|h| scenario.hosts().contains(h)));
        }
    }
}
