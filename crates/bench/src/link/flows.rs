//! More flows, more hops (section VI-H), competing flows, and robots that share a radio.

use super::case::{Case, LabSetup, Seen, leg};
use super::network::{Neighbours, Setting, Topic};
use super::{Experiment, Options, Part, Row, System, systems};
use crate::flows::play::Leg;
use crate::flows::{IMAGE, IMAGE_BYTES, LASER, LASER_BYTES, LASER_US, Sent, image_us, phase_us};
use crate::kit::cell::{Target, Values};
use crate::kit::error::RunError;
use serde_json::{Value, json};

const RATE: &str = "6Mbit/s";
const OTHER: &str = "/other";
/// Three hosts that hear each other: two robots, and the host that commands them.
const PAIR: [&str; 3] = ["robot", "base", "other"];

type Judge = fn(&Seen<'_>) -> Result<Vec<Part>, RunError>;

/// What is the same for all systems.
struct Plan {
    what: &'static str,
    place: LabSetup,
    rate: &'static str,
    /// Which hosts hear each other, if Ropewalk's links forward and nothing else does.
    neighbours: Neighbours,
    /// Whether Ropewalk's links yield to each other; without it, other systems have no row.
    yields: bool,
    topics: Vec<Topic>,
    legs: Box<dyn Fn(u32) -> Vec<Leg>>,
    judge: Judge,
    varies: Vec<(&'static str, String, Value)>,
}

impl Plan {
    fn rows(self, experiment: Experiment, options: &Options) -> Vec<Row> {
        if !options.wants_hops(self.place.hops) {
            return Vec::new();
        }
        let legs = std::rc::Rc::new(self.legs);
        let mut rows = Vec::new();
        let ours = !self.neighbours.is_empty();
        let alone = ours || !self.yields;
        let able = |s: &System| options.wants(*s) && (!alone || *s == System::Ropewalk);
        for system in systems().filter(able) {
            let setting = |carrier, rate| Setting {
                carrier,
                rate,
                hops: if ours { 1 } else { self.place.hops },
                neighbours: self.neighbours,
                yields: self.yields,
                topics: self.topics.clone(),
                called: &[],
            };
            for means in system.all_means(options, experiment, &[self.rate], setting) {
                let mut varies = vec![("case", self.what.to_owned(), json!(self.what))];
                varies.extend(self.varies.clone());
                let legs = std::rc::Rc::clone(&legs);
                let case = Case {
                    experiment,
                    system,
                    place: self.place.clone(),
                    means,
                    varies,
                    legs: Box::new(move |run| legs(run)),
                    judge: Box::new(self.judge),
                };
                rows.push(case.row());
            }
        }
        rows
    }
}

/// How hosts contend for the channel: all packets alike (DCF), or by their DSCP (EDCA), as radios have done since about
/// 2010.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Dcf,
    Edca,
}

impl Access {
    fn varies(self) -> Option<(&'static str, String, Value)> {
        (self == Access::Edca).then(|| ("access", "EDCA".to_owned(), json!("EDCA")))
    }

    /// Hosts that hear each other on one channel of 802.11a at 6 Mbit/s.
    fn place(self, scenario: &'static str, hosts: &[&str]) -> LabSetup {
        let hosts = hosts.join(", ");
        let edca = self == Access::Edca;
        let yaml = format!(
            "description: Hosts on one channel of 802.11a at 6 Mbit/s that hear each other.\nhosts: [{hosts}]\nmedia:\n  - \
             name: wifi\n    wifi: {{standard: 802.11a, rate: 6Mbit/s, topology: mesh, edca: {edca}}}\n"
        );
        LabSetup {
            scenario,
            yaml: Some(yaml),
            hops: 1,
        }
    }
}

fn topic(priority: u8, depth: u32) -> Topic {
    Topic {
        priority,
        depth,
        more: "",
    }
}

/// Joystick against video, several flows in one direction, several hops.
pub(super) fn rows(options: &Options) -> Vec<Row> {
    let lasts = if options.quick { 15 } else { 30 };
    let mut rows = joystick(lasts, Access::Dcf).rows(Experiment::Flows, options);
    rows.extend(joystick(lasts, Access::Edca).rows(Experiment::Flows, options));
    for count in [3, 4, 5] {
        rows.extend(several(count, lasts).rows(Experiment::Flows, options));
    }
    for (hops, scenario) in [(3, "wifi-chain-4"), (4, "wifi-chain-5"), (5, "wifi-chain-6")] {
        rows.extend(chain(hops, scenario, lasts).rows(Experiment::Flows, options));
    }
    for by in ["relay", "kernel"] {
        rows.extend(forwarded(by, lasts).rows(Experiment::Flows, options));
    }
    for (saturated, access, yields) in [
        (false, Access::Dcf, true),
        (true, Access::Dcf, true),
        (true, Access::Dcf, false),
        (true, Access::Edca, true),
    ] {
        rows.extend(second(saturated, yields, lasts, access).rows(Experiment::Flows, options));
    }
    rows
}

/// 100 Hz of 64 B to the robot, which sends images of 64 KB at the same time.
fn joystick(lasts: u64, access: Access) -> Plan {
    Plan {
        what: "joystick",
        place: match access {
            Access::Dcf => LabSetup::shipped("wifi-1hop", 1),
            Access::Edca => access.place("wifi-1hop-edca", &PAIR[..2]),
        },
        rate: RATE,
        neighbours: &[],
        yields: true,
        topics: vec![topic(120, 2), topic(10, 2)],
        legs: Box::new(move |run| {
            let offset = u64::from(run) * 3_000 % 10_000;
            vec![
                leg(Sent::lasting("/joy", 64, 10_000, lasts), "base", "robot"),
                leg(
                    Sent::lasting(IMAGE, IMAGE_BYTES, image_us(1), lasts).offset(offset),
                    "robot",
                    "base",
                ),
            ]
        }),
        judge: |seen| seen.cells(&[vec![Target::within("delay_ms.p99", 0.0, 8.0)]]),
        varies: access.varies().into_iter().collect(),
    }
}

/// This many flows in the same direction: the paper's two, and others of 1 KB and 10 Hz in between.
fn several(count: usize, lasts: u64) -> Plan {
    const MORE: [&str; 3] = ["/flow3", "/flow4", "/flow5"];
    let more = &MORE[..count - 2];
    let mut topics = vec![topic(100, 2), topic(10, 2)];
    topics.extend((0..more.len()).map(|i| topic(90 - 10 * i as u8, 2)));
    Plan {
        what: ["3 flows", "4 flows", "5 flows"][count - 3],
        place: LabSetup::shipped("wifi-1hop", 1),
        rate: RATE,
        neighbours: &[],
        yields: true,
        topics,
        legs: Box::new(move |run| {
            let offset = phase_us(run);
            let mut legs = pair(lasts, 1, offset);
            legs.extend(more.iter().zip(1..).map(|(topic, i)| {
                let flow = Sent::lasting(topic, LASER_BYTES, 100_000, lasts);
                leg(flow.offset(i * 17_000 + offset), "robot", "base")
            }));
            legs
        }),
        judge: |seen| seen.cells(&[]),
        varies: vec![],
    }
}

fn pair(lasts: u64, hops: u32, offset: u64) -> Vec<Leg> {
    let image = Sent::lasting(IMAGE, IMAGE_BYTES, image_us(hops), lasts).offset(offset);
    vec![
        leg(
            Sent::lasting(LASER, LASER_BYTES, LASER_US, lasts),
            "robot",
            "base",
        ),
        leg(image, "robot", "base"),
    ]
}

/// Laser and smaller images along a chain whose kernels forward.
fn chain(hops: u32, scenario: &'static str, lasts: u64) -> Plan {
    Plan {
        what: ["3 hops", "4 hops", "5 hops"][hops as usize - 3],
        place: LabSetup::shipped(scenario, hops),
        rate: RATE,
        neighbours: &[],
        yields: true,
        topics: vec![topic(100, 2), topic(10, 2)],
        legs: Box::new(move |run| {
            let offset = phase_us(run);
            let last = format!("h{}", hops + 1);
            // A fifth of the airtime that the laser leaves.
            let image = Sent::lasting(IMAGE, 16_000, 300_000, lasts).offset(offset);
            let laser = Sent::lasting(LASER, LASER_BYTES, 50_000, lasts);
            vec![leg(laser, "h1", &last), leg(image, "h1", &last)]
        }),
        judge: |seen| seen.cells(&[]),
        varies: vec![],
    }
}

/// Laser and large images over three hops, forwarded by Ropewalk's relays or by the kernels of the hosts between.
fn forwarded(by: &'static str, lasts: u64) -> Plan {
    Plan {
        what: "forwarding",
        place: LabSetup::shipped("wifi-chain-4", 3),
        rate: RATE,
        neighbours: match by {
            "relay" => &[("h1", "h2"), ("h2", "h3"), ("h3", "h4")],
            _ => &[],
        },
        yields: true,
        topics: vec![topic(100, 2), topic(10, 2)],
        legs: Box::new(move |run| {
            let offset = phase_us(run);
            let image = Sent::lasting(IMAGE, IMAGE_BYTES, 500_000, lasts).offset(offset);
            let laser = Sent::lasting(LASER, LASER_BYTES, LASER_US, lasts);
            vec![leg(laser, "h1", "h4"), leg(image, "h1", "h4")]
        }),
        judge: |seen| seen.cells(&[]),
        varies: vec![("forwarding", format!("forwarded by {by}s"), json!(by))],
    }
}

/// One robot's laser, alone or while another robot keeps the radio busy with traffic of the lowest priority. The links
/// of both know of that traffic and yield, or do not.
fn second(saturated: bool, yields: bool, lasts: u64, access: Access) -> Plan {
    let other = if saturated { "saturated" } else { "silent" };
    let scenario = match access {
        Access::Dcf => "wifi-pair",
        Access::Edca => "wifi-pair-edca",
    };
    let mut varies = vec![("other", format!("the other {other}"), json!(other))];
    varies.extend(access.varies());
    Plan {
        what: "second robot",
        place: access.place(scenario, &PAIR),
        rate: RATE,
        neighbours: &[],
        yields,
        topics: vec![topic(100, 2), topic(1, 8)],
        legs: Box::new(move |run| {
            let offset = u64::from(run) * 3_000;
            let mut legs = vec![leg(
                Sent::lasting(LASER, LASER_BYTES, LASER_US, lasts).offset(offset),
                "robot",
                "base",
            )];
            if saturated {
                let period_us = 16_000 * 8 / 9;
                legs.push(leg(
                    Sent::lasting(OTHER, 16_000, period_us, lasts),
                    "other",
                    "base",
                ));
            }
            legs
        }),
        judge: |seen| seen.cells(&[]),
        varies,
    }
}

/// Eight robots on one radio: each sends laser (1 KB, 20 Hz) and image (16 KB, 2 Hz) to the next.
pub(super) fn team(options: &Options) -> Vec<Row> {
    const ROBOTS: u64 = 8;
    let lasts = if options.quick { 10 } else { 30 };
    // The robots' names are the scenario's; topics begin with them.
    let each = move |run: u32| {
        (0..ROBOTS).flat_map(move |i| {
            let (own, next) = (
                format!("robot{}", i + 1),
                format!("robot{}", (i + 1) % ROBOTS + 1),
            );
            let laser = Sent::lasting(&format!("/{own}/laser"), LASER_BYTES, 50_000, lasts);
            let image = Sent::lasting(&format!("/{own}/image"), 16_000, 500_000, lasts);
            let offset = (i * 6_100 + u64::from(run) * 1_300) % 50_000;
            [
                leg(laser.offset(offset), &own, &next),
                leg(image.offset(i * 61_000 + offset), &own, &next),
            ]
        })
    };
    let plan = Plan {
        what: "8 robots",
        place: LabSetup::shipped("team-of-8", 1),
        rate: "24Mbit/s",
        neighbours: &[],
        yields: true,
        topics: (0..ROBOTS).flat_map(|_| [topic(100, 2), topic(10, 2)]).collect(),
        legs: Box::new(move |run| each(run).collect()),
        judge: judge_team,
        varies: vec![],
    };
    plan.rows(Experiment::Team, options)
}

/// All lasers in one cell and all images in another: the lowest delivery, and the fairness among the others.
fn judge_team(seen: &Seen<'_>) -> Result<Vec<Part>, RunError> {
    let flows = seen.flows()?;
    let of = |kind: &str| {
        let legs = seen.legs.iter().zip(&flows);
        legs.filter(|(leg, _)| leg.flow.topic.ends_with(kind))
            .map(|(leg, values)| (leg.clone(), values.clone()))
            .collect::<Vec<_>>()
    };
    let mut parts = Vec::new();
    for kind in [LASER, IMAGE] {
        let all = of(kind);
        let each =
            |name: &str| -> Vec<f64> { all.iter().filter_map(|(_, v)| v.get(name).copied()).collect() };
        let least = |v: Vec<f64>| v.into_iter().fold(f64::INFINITY, f64::min);
        let most = |v: Vec<f64>| v.into_iter().fold(0.0, f64::max);
        let rates = each("mbit_s");
        let mut values = Values::from([
            ("lowest_delivery", least(each("delivery"))),
            ("delivery", mean(&each("delivery"))),
            ("jain", jain(&rates)),
            ("mbit_s", rates.iter().sum()),
            ("period_ms.mean", mean(&each("period_ms.mean"))),
            ("period_ms.std", most(each("period_ms.std"))),
            ("delay_ms.mean", mean(&each("delay_ms.mean"))),
        ]);
        values.insert("delay_ms.p99", most(each("delay_ms.p99")));
        values.insert("delay_ms.max", most(each("delay_ms.max")));
        let target = match kind {
            LASER => Target::within("lowest_delivery", 0.99, 1.0),
            _ => Target::within("jain", 0.9, 1.0),
        };
        let Some((leg, _)) = all.into_iter().next() else {
            continue;
        };
        let mut leg = leg;
        leg.flow.topic = kind.to_owned();
        parts.push(Part::of_flow(&leg, values, vec![target]));
    }
    Ok(parts)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Jain's index of fairness: 1 if all have the same.
fn jain(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|v| v * v).sum();
    if squares > 0.0 {
        sum * sum / (values.len() as f64 * squares)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_is_one_where_all_have_the_same() {
        assert_eq!((jain(&[2.0, 2.0]), jain(&[1.0, 0.0])), (1.0, 0.5));
        assert_eq!((jain(&[]), jain(&[0.0])), (0.0, 0.0));
    }

    #[test]
    fn a_team_has_two_flows_for_each_robot() {
        let plan = several(5, 10);
        let legs = (plan.legs)(0);
        assert_eq!((legs.len(), plan.topics.len()), (5, 5));
        assert!(legs.iter().all(|l| l.from == "robot" && l.to == "base"));
    }
}
