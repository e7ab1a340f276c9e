//! Namespaces that a wire joins: the throughput of a flow that only the hosts limit, and its effect on a joystick.

use super::case::{Seen, leg};
use super::network::{Setting, Topic};
use super::tools::{Means, Tools};
use super::{CarrierKind, Experiment, Options, Part, Row, System};
use crate::flows::Sent;
use crate::flows::play::Leg;
use crate::flows::said::Received;
use crate::kit::cell::{Params, Target, Timing};
use crate::kit::error::RunError;
use crate::kit::roscpp::Source;
use crate::kit::site::Site;
use serde_json::json;
use std::fs;

const BYTES: u64 = 64_000;
/// Period of the messages, 5.1 Gbit/s: more than two cores can encrypt. A publisher without backpressure also spends
/// time on messages that are lost.
const PERIOD_US: u64 = 100;
const SCENARIO: &str = "veth";
/// The lab's own medium between the two hosts, which is unused.
const LAB: &str = "ethernet";
/// Ticks of `/proc/stat` per second (proc(5): sysconf(_SC_CLK_TCK), which Linux fixes for programs).
const TICKS: f64 = 100.0;

/// The compared systems, one after the other in each run.
const WAYS: [(System, Option<CarrierKind>); 5] = [
    (System::Ropewalk, Some(CarrierKind::Quic)),
    (System::ZenohQuic, None),
    (System::Ropewalk, Some(CarrierKind::Udp)),
    (System::ZenohTcp, None),
    (System::Ropewalk, Some(CarrierKind::Tls)),
];

/// A row for the flow alone, and one for it together with a joystick.
pub(super) fn rows(options: &Options) -> Vec<Row> {
    let carriers = options.carriers_of(Experiment::Bandwidth);
    let wanted = |(system, carrier): &(System, Option<CarrierKind>)| {
        options.wants(*system) && carrier.is_none_or(|c| carriers.contains(&c))
    };
    let ways: Vec<_> = WAYS.into_iter().filter(wanted).collect();
    if ways.is_empty() || !options.wants_hops(1) || options.source != Source::Periodic {
        return Vec::new();
    }
    let lasts = if options.quick { 3 } else { 6 };
    [false, true].map(|joystick| row(&ways, joystick, lasts)).into()
}

fn row(ways: &[(System, Option<CarrierKind>)], joystick: bool, lasts: u64) -> Row {
    let ways = ways.to_vec();
    let setting = if joystick {
        "64 KB messages and a joystick"
    } else {
        "64 KB messages"
    };
    Row {
        experiment: Experiment::Bandwidth,
        system: ways[0].0,
        beside: ways.iter().map(|w| w.0).collect(),
        scenario: SCENARIO,
        hops: 1,
        setting: setting.into(),
        params: Params::from([("joystick".into(), json!(joystick))]),
        run: Box::new(move |tools, run| {
            let ways: Vec<_> = ways.iter().filter(|w| tools.has(w.0)).copied().collect();
            measure(tools, &ways, joystick, lasts, run)
        }),
    }
}

fn legs(joystick: bool, lasts: u64) -> Vec<Leg> {
    let flow = Sent::lasting("/flow", BYTES, PERIOD_US, lasts);
    let mut legs = vec![leg(flow, "robot", "base")];
    if joystick {
        legs.push(leg(Sent::lasting("/joy", 64, 10_000, lasts), "robot", "base"));
    }
    legs
}

fn means(system: System, carrier: Option<CarrierKind>, joystick: bool) -> Option<Means> {
    let mut topics = vec![(10, 8)];
    if joystick {
        topics.push((120, 2));
    }
    let topics = topics
        .into_iter()
        .map(|(priority, depth)| Topic {
            priority,
            depth,
            more: "",
        })
        .collect();
    let Some(carrier) = carrier else {
        return Some(Means::Zenoh(system.protocol()?, topics));
    };
    let setting = Setting {
        carrier,
        rate: "unlimited",
        hops: 1,
        neighbours: &[],
        yields: true,
        topics,
        called: &[],
    };
    Some(Means::links(setting))
}

/// Measures them one after the other over the same wire; each run begins with another.
fn measure(
    tools: &Tools<'_>,
    ways: &[(System, Option<CarrierKind>)],
    joystick: bool,
    lasts: u64,
    run: u32,
) -> Result<(Vec<Part>, Timing), RunError> {
    let mut site = Site::up(&tools.ground, LAB, None)?;
    site.let_sleep();
    site.wire(["robot", "base"])?;
    let mut of_ways: Vec<Vec<Part>> = ways.iter().map(|_| Vec::new()).collect();
    let mut timing = None;
    for turn in 0..ways.len() {
        let which = (turn + run as usize) % ways.len();
        let (system, carrier) = ways[which];
        let legs = legs(joystick, lasts);
        let Some(means) = means(system, carrier, joystick) else {
            continue;
        };
        let before = busy_s()?;
        let what = format!("wire, {}", name(system, carrier));
        let played = tools.play(&what, &site, &means, &legs)?;
        let busy = busy_s()? - before;
        let gigabytes = bytes_of(&legs, &played.received) as f64 / 1e9;
        let seen = Seen {
            legs: &legs,
            played: &played,
            lab_began: stats::Time::ZERO,
        };
        for mut part in seen.cells(&[])? {
            part.system = Some(system);
            part.check = format!("{} by {}", part.check, name(system, carrier));
            means.describe(&mut part.params);
            if part.params.get("topic") == Some(&json!("/flow")) {
                let offered = BYTES * 8 / legs[0].flow.period_us;
                part.params.insert("offered_mbit_s".into(), json!(offered));
                part.values.insert("cpu_s_per_gb", busy / gigabytes);
            }
            of_ways[which].push(part);
        }
        timing = Some(played.timing);
    }
    beside(ways, &mut of_ways);
    let timing = timing.ok_or_else(|| "no run".to_owned())?;
    Ok((of_ways.into_iter().flatten().collect(), timing))
}

/// Compares Ropewalk's QUIC with Zenoh's.
fn beside(ways: &[(System, Option<CarrierKind>)], parts: &mut [Vec<Part>]) {
    let of = |system, carrier| ways.iter().position(|w| *w == (system, carrier));
    let (ours, theirs) = (
        of(System::Ropewalk, Some(CarrierKind::Quic)),
        of(System::ZenohQuic, None),
    );
    let (Some(ours), Some(theirs)) = (ours, theirs) else {
        return;
    };
    // The flow is first.
    let theirs = parts[theirs]
        .first()
        .and_then(|p| p.values.get("mbit_s").copied());
    if let (Some(part), Some(theirs)) = (parts[ours].first_mut(), theirs) {
        let mbit_s = part.values.get("mbit_s").copied().unwrap_or_default();
        part.values.insert("of_zenoh_quic", mbit_s / theirs);
        part.targets
            .push(Target::within("of_zenoh_quic", 1.0, f64::INFINITY));
    }
}

fn name(system: System, carrier: Option<CarrierKind>) -> String {
    match carrier {
        Some(carrier) => format!("{} over {}", system.name(), carrier.name()),
        None => system.name().to_owned(),
    }
}

fn bytes_of(legs: &[Leg], received: &[Received]) -> u64 {
    let each = legs.iter().zip(received);
    each.map(|(leg, log)| leg.flow.bytes * log.sequence.len() as u64)
        .sum()
}

/// Returns the seconds for which the processors of this machine were busy since it started, all together.
fn busy_s() -> Result<f64, RunError> {
    let path = "/proc/stat";
    let text = fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    busy_ticks(&text)
        .map(|t| t as f64 / TICKS)
        .ok_or_else(|| format!("{path} does not begin with the processors' times").into())
}

/// User, nice, system, (idle, waiting,) interrupts.
fn busy_ticks(text: &str) -> Option<u64> {
    let mut words = text.lines().next()?.split_whitespace();
    if words.next() != Some("cpu") {
        return None;
    }
    let times: Vec<u64> = words.take(7).map(|w| w.parse().ok()).collect::<Option<_>>()?;
    (times.len() == 7).then(|| [0, 1, 2, 5, 6].iter().map(|i| times[*i]).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_what_is_not_idle() {
        let text = "cpu  100 20 3 9000 800 4 5 600 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(busy_ticks(text), Some(132));
        assert_eq!(busy_ticks("cpu0 1 2 3 4 5 6 7"), None);
        assert_eq!(busy_ticks("cpu 1 2 3"), None);
        assert!(busy_s().is_ok_and(|s| s > 0.0));
    }
}
