//! Formats a plan, for people and as JSON.

use super::advice::{BreaksFirst, Change};
use super::host::HostCosts;
use super::simulate::{Effort, Simulated};
use super::system::{Fleet, Kind, Medium, System};
use crate::table::{Align, Table};
use serde::Serialize;
use serde_json::{Value, json};
use stats::{Cell, Report};
use std::collections::BTreeMap;

/// Result of a plan.
#[derive(Clone, Debug)]
pub struct Outcome {
    system: System,
    /// Results of each topic, medium and host.
    pub simulated: Simulated,
    /// What breaks first.
    pub breaks_first: Option<BreaksFirst>,
    /// Simulated changes that would help; the best first.
    pub changes: Vec<Change>,
    /// Results of a fleet.
    pub fleet: Option<FleetFigures>,
    /// Confidence of the results, a sentence each.
    pub sure: Vec<String>,
}

/// A fleet's figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetFigures {
    /// Planned number on the fullest access point.
    pub robots_per_access_point: usize,
    /// Most robots per access point with which everything fits; 0: not even one fits.
    pub most_robots_per_access_point: usize,
    /// Access points that the fleet needs, each on its own channel; none if no number is enough.
    pub access_points_needed: Option<u32>,
}

impl FleetFigures {
    pub(super) fn new(fleet: &Fleet, planned: usize, most: usize) -> FleetFigures {
        let needed = u32::try_from(most).ok().filter(|m| *m > 0);
        FleetFigures {
            robots_per_access_point: planned,
            most_robots_per_access_point: most,
            access_points_needed: needed.map(|m| fleet.robots.div_ceil(m)),
        }
    }
}

impl Outcome {
    pub(super) fn new(system: &System, costs: &HostCosts, simulated: Simulated, effort: Effort) -> Outcome {
        let mut sure = vec![format!(
            "air and wires are modelled (802.11a, or full duplex; all stations hear each other; no other traffic), the \
             link's protocol is the real one: {} runs of {} s, the intervals are 95 % by Student's t over these",
            effort.runs,
            effort.span.as_secs_f64()
        )];
        let hosts = match costs.error {
            Some(error) => format!(
                "hosts: {}; median error of knees outside the calibration: {:.0} %",
                costs.source,
                error * 100.0
            ),
            None => format!("hosts: {}", costs.source),
        };
        sure.push(hosts);
        let full = |(m, busy): (&Medium, &f64)| {
            (*busy > 0.85).then(|| {
                format!(
                    "{} is {:.0} % busy: at this load small changes alter delays a lot, so trust only their \
                     order of magnitude",
                    m.name,
                    busy * 100.0
                )
            })
        };
        sure.extend(system.media.iter().zip(&simulated.busy).filter_map(full));
        if let Some(fleet) = &system.fleet {
            sure.push(format!(
                "of {} robots, only those of one access point are simulated; channels do not disturb each \
                 other, and the network behind the access points is not included",
                fleet.robots
            ));
        }
        Outcome {
            system: system.clone(),
            simulated,
            breaks_first: None,
            changes: Vec::new(),
            fleet: None,
            sure,
        }
    }

    /// Whether every topic meets its requirements, and no host is full.
    pub fn fits(&self) -> bool {
        self.simulated.topics.iter().all(|t| t.fits) && self.simulated.processors.iter().all(|p| *p < 1.0)
    }

    /// The result as JSON.
    pub fn json(&self, machine: BTreeMap<String, Value>) -> String {
        let report = Report {
            experiment: "plan".into(),
            machine,
            versions: BTreeMap::from([("ropewalk".into(), env!("CARGO_PKG_VERSION").into())]),
            cells: self.cells(),
        };
        let mut whole = serde_json::to_value(report).unwrap_or_default();
        whole["fits"] = json!(self.fits());
        whole["breaks_first"] = json!(self.breaks_first);
        whole["changes"] = json!(self.changes);
        whole["fleet"] = json!(self.fleet);
        whole["sure"] = json!(self.sure);
        serde_json::to_string_pretty(&whole).unwrap_or_default()
    }

    fn cells(&self) -> Vec<Cell<Value, Value>> {
        let name = |m: Option<usize>| m.map_or("bus", |m| self.system.media[m].name.as_str());
        let host = |h: usize| self.system.hosts[h].as_str();
        let topics = self
            .system
            .topics
            .iter()
            .zip(&self.simulated.topics)
            .map(|(t, f)| {
                let params = json!({
                    "what": "topic", "topic": t.name, "type": t.type_name, "from": host(t.from), "to": host(t.to),
                    "medium": name(t.over), "mean_bytes": t.bytes(), "hz": t.hz, "priority": t.priority, "depth": t.depth,
                    "deadline_ms": t.deadline.map(|d| d.as_secs_f64() * 1e3),
                });
                let metrics = json!({
                    "delivery": f.delivery, "delay_ms": { "mean": f.mean_ms, "p99": f.p99_ms, "max": f.max_ms },
                    "delay_interval_ms": f.mean_interval_ms, "fits": f.fits,
                });
                (params, metrics)
            });
        let media = self
            .system
            .media
            .iter()
            .zip(&self.simulated.busy)
            .map(|(m, busy)| {
                (
                    json!({ "what": "medium", "medium": m.name, "kind": kind(m) }),
                    json!({ "busy": busy }),
                )
            });
        let hosts = self
            .system
            .hosts
            .iter()
            .zip(&self.simulated.processors)
            .map(|(h, p)| {
                (
                    json!({ "what": "host", "host": h }),
                    json!({ "processors_busy": p }),
                )
            });
        let all = topics.chain(media).chain(hosts);
        all.map(|(params, metrics)| Cell {
            system: "plan".into(),
            params,
            metrics,
        })
        .collect()
    }

    /// The result for people.
    pub fn text(&self) -> String {
        let mut out = Vec::new();
        if !self.system.description.is_empty() {
            out.extend([self.system.description.trim().to_owned(), String::new()]);
        }
        out.extend(self.table().lines());
        out.push(String::new());
        for (m, busy) in self.system.media.iter().zip(&self.simulated.busy) {
            out.push(format!("{} ({}): {:.0} % busy", m.name, kind(m), busy * 100.0));
        }
        for (h, p) in self.system.hosts.iter().zip(&self.simulated.processors) {
            out.push(format!("{h}: messages take {:.1} % of its processors", p * 100.0));
        }
        out.push(String::new());
        out.push(
            if self.fits() {
                "It fits."
            } else {
                "It does not fit."
            }
            .into(),
        );
        if let Some(b) = &self.breaks_first {
            out.push(match b.what {
                "nothing" => format!("Nothing breaks soon: {}.", b.why),
                _ if b.at_load == 0.0 => format!("{}: {}.", b.name, b.why),
                _ => format!(
                    "First to break: {}, at {:.2} times the planned frequencies: {}.",
                    b.name, b.at_load, b.why
                ),
            });
        }
        for c in &self.changes {
            let result = if c.fits {
                "everything fits".into()
            } else {
                format!("{} still does not fit", c.left.join(", "))
            };
            out.push(format!("  {}: {result}", c.change));
        }
        if let Some(f) = &self.fleet {
            let needed = f
                .access_points_needed
                .map_or("no number of access points is enough".into(), |n| {
                    format!("{n} access points are needed")
                });
            out.push(format!(
                "Fleet: {} robots on each access point planned, {} fit; {needed}.",
                f.robots_per_access_point, f.most_robots_per_access_point
            ));
        }
        out.push("Confidence:".into());
        out.extend(self.sure.iter().map(|s| format!("  {s}")));
        out.join("\n")
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&[
            ("topic", Align::Left),
            ("from", Align::Left),
            ("to", Align::Left),
            ("over", Align::Left),
            ("bytes", Align::Right),
            ("Hz", Align::Right),
            ("priority", Align::Right),
            ("delay ms", Align::Right),
            ("95 % of it", Align::Right),
            ("p99", Align::Right),
            ("delivery %", Align::Right),
            ("fits", Align::Left),
        ]);
        for (t, f) in self.system.topics.iter().zip(&self.simulated.topics) {
            let interval = f.mean_interval_ms;
            table.row([
                t.name.clone(),
                self.system.hosts[t.from].clone(),
                self.system.hosts[t.to].clone(),
                t.over.map_or("bus".into(), |m| self.system.media[m].name.clone()),
                format!("{:.0}", t.bytes()),
                format!("{:.2}", t.hz),
                t.priority.to_string(),
                format!("{:.2}", f.mean_ms),
                interval.map_or("-".into(), |i| format!("{:.2} to {:.2}", i.low, i.high)),
                format!("{:.2}", f.p99_ms),
                format!("{:.2}", f.delivery * 100.0),
                if f.fits { "yes" } else { "NO" }.into(),
            ]);
        }
        table
    }
}

fn kind(m: &Medium) -> String {
    match m.kind {
        Kind::Radio { rate, hops } => {
            let hops = if hops == 1 {
                String::new()
            } else {
                format!(", {hops} hops")
            };
            format!("radio of {} Mbit/s{hops}", rate as f64 / 1e6)
        }
        Kind::Wire { rate, delay } => format!("wire of {} Mbit/s, {delay:?} each way", rate as f64 / 1e6),
    }
}
