//! Result of the analysis, as JSON, CSV and a table.

use super::figure;
use super::gather::Gathered;
use super::layout::Layout;
use super::pattern::Fields;
use super::{CellMetrics, Run};
use crate::model::{self, Params, Validation};
use crate::table::{Align, Table};
use serde::Serialize;
use serde_json::{Value, json};
use stats::{Cell, Interval, Report};
use std::collections::BTreeMap;

/// The cells of all systems, in the order of the folders.
pub type Cells = Vec<Cell<Params, CellMetrics>>;

/// The analysis of a folder.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// One entry per cell.
    pub cells: Cells,
    /// Knees of the sweeps, by system.
    pub knees: Vec<Cell<Params, model::KneeMetrics>>,
    /// CSLV and its window, by system and platform.
    pub windows: Vec<Cell<Params, model::WindowMetrics>>,
    /// Fit of both models, by system.
    pub models: Vec<Validation>,
    /// The [`AXES`] of the layout.
    axes: Vec<&'static str>,
    /// Method of the intervals.
    pub interval: &'static str,
    /// Remarks.
    pub notes: Vec<String>,
}

/// Axes in addition to system, medium, size, nodes and frequency: columns of the table if the layout has them.
const AXES: [&str; 3] = ["hosts", "cpu_share", "topology"];

/// Method of the intervals, as printed in the result.
const INTERVAL: &str = "95 %, Student's t over the runs of a cell";

impl Outcome {
    pub(super) fn of(gathered: Gathered, layout: &Layout) -> Outcome {
        let mut cells: Cells = (gathered.cells.iter())
            .map(|(fields, runs)| cell(fields, runs, layout))
            .collect();
        cells.sort_by(|a, b| {
            let key = |c: &Cell<Params, CellMetrics>| (c.system.clone(), c.params.medium.clone());
            (key(a).cmp(&key(b)))
                .then(a.params.hosts.cmp(&b.params.hosts))
                .then(a.params.cpu_share.total_cmp(&b.params.cpu_share))
                .then(a.params.topology.cmp(&b.params.topology))
                .then(a.params.bytes.cmp(&b.params.bytes))
                .then(a.params.nodes.cmp(&b.params.nodes))
                .then(a.params.hz.total_cmp(&b.params.hz))
        });
        rank(&mut cells);
        let mut notes = gathered.notes;
        let censored = cells.iter().filter(|c| c.metrics.censored).count();
        if censored > 0 {
            notes.push(format!(
                "{censored} of {} cells are right-censored: messages are missing, so the true means are larger than those \
                 marked with >; such cells are ranked by delivery",
                cells.len()
            ));
        }
        let samples: Vec<(String, model::Sample)> =
            (cells.iter()).map(|c| (c.system.clone(), sample(c))).collect();
        let mut outcome = Outcome {
            cells,
            knees: Vec::new(),
            windows: Vec::new(),
            models: Vec::new(),
            axes: AXES.into_iter().filter(|a| layout.files.has(a)).collect(),
            interval: INTERVAL,
            notes,
        };
        outcome.fit(&samples);
        outcome
    }

    fn fit(&mut self, samples: &[(String, model::Sample)]) {
        let mut systems: Vec<&String> = samples.iter().map(|(s, _)| s).collect();
        systems.sort();
        systems.dedup();
        for system in systems {
            let own: Vec<model::Sample> = samples
                .iter()
                .filter(|(s, _)| s == system)
                .map(|(_, s)| s.clone())
                .collect();
            let knees = model::knees(&own);
            self.knees.extend(knees.iter().map(|k| k.cell(system)));
            let windows = model::Window::all(&own);
            self.windows.extend(windows.iter().map(|w| w.cell(system)));
            match model::validate(system, &own, &knees) {
                Ok(validation) => self.models.push(validation),
                Err(why) => self.notes.push(format!("no model of {system}: {why}")),
            }
        }
    }

    /// The result as JSON, in the format of every benchmark.
    pub fn json(&self) -> String {
        let cells = self.cells.iter().map(value);
        let knees = self.knees.iter().map(value);
        let windows = self.windows.iter().map(value);
        let models = self.models.iter().map(|m| value(&m.cell()));
        let report = Report {
            experiment: "analyze".into(),
            machine: BTreeMap::from([("cpu".into(), json!("foreign: as the raw data's author says"))]),
            versions: BTreeMap::from([("ropewalk".into(), env!("CARGO_PKG_VERSION").into())]),
            cells: cells
                .chain(knees)
                .chain(windows)
                .chain(models)
                .collect::<Vec<Cell<Value, Value>>>(),
        };
        let mut whole = serde_json::to_value(report).unwrap_or_default();
        whole["interval"] = json!(self.interval);
        whole["notes"] = json!(self.notes);
        serde_json::to_string_pretty(&whole).unwrap_or_default()
    }

    /// One line per cell.
    pub fn csv(&self) -> String {
        let mut out = String::from(
            "system,medium,hosts,cpu_share,topology,nodes,senders,hz,bytes,runs,delivery,delivery_low,delivery_high,mean_ms,mean_low_ms,\
             mean_high_ms,p50_ms,p99_ms,censored,mean_at_least_ms,sustained,rank\n",
        );
        let some = |v: Option<f64>| v.map_or(String::new(), |v| v.to_string());
        for Cell {
            system,
            params: p,
            metrics: m,
        } in &self.cells
        {
            let delivery = m.intervals.map(|i| i.delivery);
            let mean = m.intervals.and_then(|i| i.mean_ms);
            out.push_str(&format!(
                "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
                quoted(system),
                quoted(&p.medium),
                p.hosts,
                p.cpu_share,
                quoted(&p.topology),
                p.nodes,
                p.senders,
                p.hz,
                p.bytes,
                p.runs,
                m.delivery,
                some(delivery.map(|i| i.low)),
                some(delivery.map(|i| i.high)),
                some(m.rtt_ms.mean),
                some(mean.map(|i| i.low)),
                some(mean.map(|i| i.high)),
                some(m.rtt_ms.p50),
                some(m.rtt_ms.p99),
                m.censored,
                m.mean_at_least_ms,
                m.sustained,
                m.rank
            ));
        }
        out
    }

    /// Delays by frequency, a curve for each number of nodes.
    pub fn figure(&self) -> String {
        figure::draw(&self.cells)
    }

    /// Tables for people.
    pub fn text(&self) -> String {
        let mut out = self.table().lines();
        out.push(String::new());
        out.extend(self.knees.iter().map(|k| self.knee(k)));
        out.extend(self.windows.iter().map(|w| self.window(w)));
        for model in &self.models {
            out.extend(model.lines());
        }
        out.push(format!("intervals: {}", self.interval));
        out.extend(self.notes.iter().map(|n| format!("note: {n}")));
        out.join("\n")
    }

    /// Settings of a cell other than its nodes, size and frequency.
    fn platform(&self, p: &Params) -> String {
        let axes = self
            .axes
            .iter()
            .map(|axis| format!(", {axis} {}", axis_of(axis, p)));
        format!("{}{}", p.medium, axes.collect::<String>())
    }

    fn knee(&self, knee: &Cell<Params, model::KneeMetrics>) -> String {
        let (p, m) = (&knee.params, &knee.metrics);
        let [works, breaks] = [m.works, m.breaks].map(|end| end.unwrap_or_default());
        let (at, works, breaks) = match m.varied {
            model::Varied::Hz => (
                format!("{} nodes", p.nodes),
                format!("{} Hz", works.hz),
                format!("{} Hz", breaks.hz),
            ),
            model::Varied::Nodes => (
                format!("{} Hz", p.hz),
                format!("{} nodes", works.nodes),
                format!("{} nodes", breaks.nodes),
            ),
        };
        format!(
            "knee of {}: {at}, {} B, {}: {works} work ({:.0} messages/s), {breaks} do not ({:.0})",
            knee.system,
            p.bytes,
            self.platform(p),
            m.sustained_per_s,
            m.broken_per_s
        )
    }

    fn window(&self, window: &Cell<Params, model::WindowMetrics>) -> String {
        let m = &window.metrics;
        let kb = |v: f64| format!("{:.0} kB/s", v / 1e3);
        let value = match (m.low_bytes_per_s, m.high_bytes_per_s) {
            (Some(low), Some(high)) => format!("{}, window {} to {}", kb(m.bytes_per_s), kb(low), kb(high)),
            (Some(low), None) => format!("at least {}: every cell works", kb(low)),
            (None, high) => format!("less than {}: no cell works", kb(high.unwrap_or_default())),
        };
        let against = match m.contradicting {
            0 => String::new(),
            count => {
                let each = m.against.iter();
                let each = each.map(|p| format!("{} nodes at {} Hz, {} B", p.nodes, p.hz, p.bytes));
                let more = if count > m.against.len() { "; …" } else { "" };
                format!(
                    "; {count} of {} cells contradict it: {}{more}",
                    m.cells,
                    each.collect::<Vec<_>>().join("; ")
                )
            }
        };
        format!(
            "CSLV of {}, {} (senders x Hz x bytes, each way): {value}{against}",
            window.system,
            self.platform(&window.params)
        )
    }

    fn table(&self) -> Table {
        let mut head = vec![("system", Align::Left), ("medium", Align::Left)];
        head.extend(self.axes.iter().map(|axis| (*axis, Align::Right)));
        head.extend([
            ("bytes", Align::Right),
            ("nodes", Align::Right),
            ("Hz", Align::Right),
            ("runs", Align::Right),
            ("delivery %", Align::Right),
            ("mean ms", Align::Right),
            ("95 % of it", Align::Right),
            ("p50", Align::Right),
            ("p99", Align::Right),
            ("sustained", Align::Left),
            ("rank", Align::Right),
        ]);
        let mut table = Table::new(&head);
        for Cell {
            system,
            params: p,
            metrics: m,
        } in &self.cells
        {
            let some = |v: Option<f64>| v.map_or("-".into(), |v| format!("{v:.2}"));
            let at_least = if m.censored { "> " } else { "" };
            let interval = |i: Interval| format!("{:.2} to {:.2}", i.low, i.high);
            let mut cells = vec![system.clone(), p.medium.clone()];
            cells.extend(self.axes.iter().map(|axis| axis_of(axis, p)));
            cells.extend([
                p.bytes.to_string(),
                p.nodes.to_string(),
                p.hz.to_string(),
                p.runs.to_string(),
                format!("{:.2}", m.delivery * 100.0),
                format!("{at_least}{}", some(m.rtt_ms.mean)),
                (m.intervals.and_then(|i| i.mean_ms)).map_or("-".into(), interval),
                some(m.rtt_ms.p50),
                some(m.rtt_ms.p99),
                if m.sustained { "yes" } else { "no" }.into(),
                m.rank.to_string(),
            ]);
            table.push(cells);
        }
        table
    }
}

fn axis_of(axis: &str, p: &Params) -> String {
    match axis {
        "hosts" => p.hosts.to_string(),
        "cpu_share" => p.cpu_share.to_string(),
        _ => p.topology.clone(),
    }
}

fn cell(fields: &Fields, runs: &BTreeMap<String, Run>, layout: &Layout) -> Cell<Params, CellMetrics> {
    let number = |name: &str| fields.get(name).and_then(|v| v.parse::<f64>().ok());
    let text = |name: &str| fields.get(name).cloned();
    let senders = runs.values().map(|r| r.senders).max().unwrap_or(1);
    let params = Params {
        experiment: json!("analyze"),
        what: "cell".into(),
        hosts: number("hosts").map_or(layout.hosts, |v| v as u32),
        nodes: number("nodes").map_or(senders.saturating_mul(2), |v| v as u32),
        senders,
        hz: number("hz").unwrap_or(0.0),
        bytes: number("bytes").map_or(layout.payload_bytes, |v| v as u64),
        medium: text("medium").unwrap_or_else(|| layout.medium.clone()),
        cpu_share: number("cpu_share").unwrap_or(1.0),
        topology: text("topology").unwrap_or_else(|| "pairs".into()),
        runs: runs.len() as u32,
        messages: layout.messages,
        ..Params::default()
    };
    Cell {
        system: text("system").unwrap_or_else(|| layout.system.clone()),
        params,
        metrics: CellMetrics::of(runs),
    }
}

fn sample(cell: &Cell<Params, CellMetrics>) -> model::Sample {
    model::Sample {
        params: cell.params.clone(),
        delivery: cell.metrics.delivery,
        mean_ms: cell.metrics.rtt_ms.mean,
        cpu_us: None,
        switches: None,
        sustained: cell.metrics.sustained,
    }
}

/// Assigns ranks within each system and medium.
fn rank(cells: &mut Cells) {
    let mut order: Vec<usize> = (0..cells.len()).collect();
    order.sort_by(|a, b| cells[*a].metrics.order(&cells[*b].metrics));
    let mut last = BTreeMap::<(String, String), (u32, u32, usize)>::new();
    for i in order {
        let key = (cells[i].system.clone(), cells[i].params.medium.clone());
        let place = match last.get(&key) {
            None => (1, 1, i),
            Some((rank, count, before)) => {
                let equal = cells[*before].metrics.order(&cells[i].metrics).is_eq();
                (if equal { *rank } else { count + 1 }, count + 1, i)
            }
        };
        cells[i].metrics.rank = place.0;
        last.insert(key, place);
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

pub(crate) fn value<P: Serialize, M: Serialize>(cell: &Cell<P, M>) -> Cell<Value, Value> {
    Cell {
        system: cell.system.clone(),
        params: serde_json::to_value(&cell.params).unwrap_or_default(),
        metrics: serde_json::to_value(&cell.metrics).unwrap_or_default(),
    }
}
