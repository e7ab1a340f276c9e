//! A result as JSON, CSV and a table.

use super::cell::{Metrics, Params, Values, Verdict, number};
use crate::kit::error::Error;
use crate::kit::figure;
use crate::kit::findings::{self, Failure, Findings, Health};
use crate::kit::paper::PaperRow;
use crate::kit::usage::HostLoad;
use crate::table::{Align, Table};
use serde::Serialize;
use stats::{Cell, Report};
use std::fmt;

/// Results of the rows, with what is missing.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Machine, versions, cells, and what is missing.
    #[serde(flatten)]
    pub found: Findings<Params, Metrics, Failed>,
    /// The Pound paper's results over real radios, for comparison; never in cells.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paper: Vec<PaperRow>,
    /// Delays over time of a row's first run, if the row is about that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Series>,
}

/// A flow's delays over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Seconds since the lab came up, and the longest delay of messages sent in that second, in ms.
    pub max_delay_ms: Vec<[f64; 2]>,
}

/// A row without a result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failed {
    /// The row's check.
    pub check: String,
    /// Its scenario.
    pub scenario: &'static str,
    /// The reason.
    pub why: String,
}

impl Failure for Failed {
    fn why(&self) -> &str {
        &self.why
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.scenario, self.check, self.why)
    }
}

impl Outcome {
    pub(crate) fn new(
        report: Report<Params, Metrics>,
        failed: Vec<Failed>,
        mut notes: Vec<String>,
        before: HostLoad,
        complete: bool,
        paper: Vec<PaperRow>,
    ) -> Self {
        let untrusted = report
            .cells
            .iter()
            .filter(|c| c.metrics.verdict == Verdict::Untrusted)
            .count();
        if untrusted > 0 {
            notes.push(format!(
                "{untrusted} rows prove nothing: the lab did not keep its time, or had no SCHED_FIFO; run as root on a quiet \
                 machine"
            ));
        }
        let found = Findings {
            report,
            missing: Vec::new(),
            failed,
            notes,
            health: Health::now(before),
            complete,
            named: false,
        };
        Outcome {
            found,
            paper,
            series: Vec::new(),
        }
    }

    /// Checks whether everything that was requested has a result, and no row missed its target.
    ///
    /// # Errors
    /// [`Error::Stopped`], [`Error::Missing`] for a system that was selected by name, [`Error::Incomplete`] for a run that
    /// failed, or [`Error::Missed`].
    pub fn verdict(&self) -> Result<(), Error> {
        verdict(&self.found)
    }

    /// Returns the result as JSON.
    pub fn json(&self) -> String {
        findings::json(self)
    }

    /// Returns jitter and delay of Pound's flows as SVG.
    pub fn figure(&self) -> String {
        figure::draw(&self.found.report.cells, &self.paper, &self.series)
    }

    /// Returns a line for each number.
    pub fn csv(&self) -> String {
        csv(&self.found.report.cells)
    }

    /// Returns tables for people.
    pub fn text(&self) -> String {
        let mut out = vec![self.found.versions()];
        let flows = |c: &&Cell<Params, Metrics>| c.params.contains_key("topic");
        let (flows, rows): (Vec<_>, Vec<_>) = self.found.report.cells.iter().partition(flows);
        if !rows.is_empty() {
            out.push(String::new());
            out.extend(validation(&rows, false));
        }
        for group in groups(&flows) {
            let here: Vec<_> = flows.iter().filter(|c| Group::of(c) == group).copied().collect();
            out.push(String::new());
            out.push(group.to_string());
            let paper = self.paper.iter().filter(|p| group.has(p));
            out.extend(comparison(&here, paper));
        }
        let aimed = |c: &&&Cell<Params, Metrics>| !c.metrics.targets.is_empty();
        let aimed: Vec<_> = flows.iter().filter(aimed).copied().collect();
        if !aimed.is_empty() {
            out.push(String::new());
            out.extend(validation(&aimed, true));
        }
        out.push(String::new());
        out.extend(self.found.lacks());
        out.join("\n")
    }
}

/// Checks whether everything that was requested has a result, and no row missed its target.
///
/// # Errors
/// [`Error::Stopped`], [`Error::Missing`] for a system that was selected by name, [`Error::Incomplete`] for a run that
/// failed, or [`Error::Missed`].
pub(crate) fn verdict(found: &Findings<Params, Metrics, Failed>) -> Result<(), Error> {
    found.verdict()?;
    let missed = |c: &&Cell<Params, Metrics>| c.metrics.verdict == Verdict::Missed;
    let mut missed = found.report.cells.iter().filter(missed);
    match missed.next() {
        None => Ok(()),
        Some(first) => Err(Error::Missed {
            count: 1 + missed.count(),
            first: format!("{}: {}", name(first), one_line(&first.metrics)),
        }),
    }
}

/// Returns a line for each number.
pub(crate) fn csv(cells: &[Cell<Params, Metrics>]) -> String {
    let mut out = String::from(
        "scenario,check,system,metric,value,verdict,tries,late_p99_us,stalls,setting,hops,topic\n",
    );
    for cell in cells {
        let (text, m) = (
            |key: &str| {
                let value = cell.params.get(key).and_then(|v| v.as_str());
                value.unwrap_or_default().to_owned()
            },
            &cell.metrics,
        );
        let hops = cell.params.get("hops").map_or(String::new(), |h| h.to_string());
        for (metric, value) in &m.values {
            out.push_str(&format!(
                "{},\"{}\",{},{metric},{value},{},{},{},{},\"{}\",{},{}\n",
                text("scenario"),
                text("check"),
                cell.system,
                m.verdict,
                m.tries,
                m.lab.map_or(0.0, |t| t.late_p99_us),
                m.lab.map_or(0, |t| t.stalls),
                text("setting"),
                hops,
                text("topic")
            ));
        }
    }
    out
}

/// Flows of one table.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Group<'a> {
    experiment: &'a str,
    hops: u64,
    topic: &'a str,
}

impl<'a> Group<'a> {
    pub(crate) fn of(cell: &'a Cell<Params, Metrics>) -> Group<'a> {
        let text = |key: &str| cell.params.get(key).and_then(|v| v.as_str()).unwrap_or_default();
        Group {
            experiment: text("experiment"),
            hops: cell
                .params
                .get("hops")
                .and_then(|h| h.as_u64())
                .unwrap_or_default(),
            topic: text("topic"),
        }
    }

    /// Returns whether the paper's row belongs in it: the paper has only its own experiment.
    pub(crate) fn has(&self, row: &PaperRow) -> bool {
        let pounds = ["", "pound"].contains(&self.experiment);
        pounds && u64::from(row.hops) == self.hops && row.topic == self.topic
    }
}

impl fmt::Display for Group<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Group {
            experiment,
            hops,
            topic,
        } = self;
        if !["", "pound"].contains(experiment) {
            write!(f, "{experiment}: ")?;
        }
        write!(f, "{topic}, {hops} hop{}", if *hops == 1 { "" } else { "s" })
    }
}

/// Returns the groups of these flows, in their order.
pub(crate) fn groups<'a>(flows: &[&'a Cell<Params, Metrics>]) -> Vec<Group<'a>> {
    let mut groups = Vec::new();
    for group in flows.iter().map(|c| Group::of(c)) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

/// Returns the system, with its setting if there is more than one.
pub(crate) fn label(cell: &Cell<Params, Metrics>) -> String {
    match cell.params.get("setting").and_then(|s| s.as_str()) {
        Some(setting) if !setting.is_empty() => format!("{} {setting}", cell.system),
        _ => cell.system.clone(),
    }
}

/// The measured values, and below them the paper's.
fn comparison<'a>(
    cells: &[&Cell<Params, Metrics>],
    paper: impl Iterator<Item = &'a PaperRow>,
) -> Vec<String> {
    let mut table = Table::new(&[
        ("system", Align::Left),
        ("by", Align::Left),
        ("J ms", Align::Right),
        ("std(J)", Align::Right),
        ("D ms", Align::Right),
        ("std(D)", Align::Right),
        ("p99(D)", Align::Right),
        ("delivery %", Align::Right),
        ("Mbit/s", Align::Right),
        ("verdict", Align::Left),
        ("lab late p99 us", Align::Right),
    ]);
    for cell in cells {
        let m = &cell.metrics;
        let one = |name: &str| m.values.get(name).map_or("-".into(), |v| format!("{v:.1}"));
        let share = m
            .values
            .get("delivery")
            .map_or("-".into(), |v| format!("{:.1}", v * 100.0));
        table.row([
            label(cell),
            "measured".into(),
            one("period_ms.mean"),
            one("period_ms.std"),
            one("delay_ms.mean"),
            one("delay_ms.std"),
            one("delay_ms.p99"),
            share,
            m.values.get("mbit_s").map_or("-".into(), |v| format!("{v:.3}")),
            m.verdict.to_string(),
            m.late_p99(),
        ]);
    }
    for row in paper {
        let one = |v: f64| format!("{v:.1}");
        table.row([
            row.system.into(),
            "the paper".into(),
            one(row.period_mean_ms),
            one(row.period_std_ms),
            one(row.delay_mean_ms),
            one(row.delay_std_ms),
            String::new(),
            one(row.delivery * 100.0),
            format!("{:.3}", row.mbit_s),
            String::new(),
            String::new(),
        ]);
    }
    table.lines()
}

/// Each row with its targets and their source; `aimed`: only rows with a target.
pub(crate) fn validation(cells: &[&Cell<Params, Metrics>], aimed_only: bool) -> Vec<String> {
    let mut table = Table::new(&[
        ("scenario", Align::Left),
        ("what", Align::Left),
        ("by", Align::Left),
        ("target", Align::Left),
        ("measured", Align::Left),
        ("verdict", Align::Left),
        ("lab late p99 us", Align::Right),
    ]);
    for cell in cells {
        let m = &cell.metrics;
        let tries = if m.tries > 1 {
            format!(" ({} tries)", m.tries)
        } else {
            String::new()
        };
        let mut first = [
            cell.params["scenario"].as_str().unwrap_or_default().to_owned(),
            cell.params["check"].as_str().unwrap_or_default().to_owned(),
            label(cell),
        ];
        let mut last = [format!("{}{tries}", m.verdict), m.late_p99()];
        // Values with targets first, then the others.
        let aimed = m.targets.iter().map(|t| (t.to_string(), t.metric));
        let rest = m
            .values
            .keys()
            .filter(|k| !aimed_only && m.targets.iter().all(|t| t.metric != **k));
        for (target, metric) in aimed.chain(rest.map(|k| (String::new(), *k))) {
            let value = m.values.get(metric).map_or("-".into(), |v| number(*v));
            let [a, b, c] = std::mem::take(&mut first);
            let [d, e] = std::mem::take(&mut last);
            table.row([a, b, c, target, format!("{metric} {value}"), d, e]);
        }
    }
    let mut out = table.lines();
    out.push(String::new());
    for cell in cells.iter().filter(|c| !c.metrics.source.is_empty()) {
        out.push(format!(
            "closed form or target of {}: {}",
            name(cell),
            cell.metrics.source
        ));
    }
    out
}

fn name(cell: &Cell<Params, Metrics>) -> String {
    let text = |key: &str| cell.params[key].as_str().unwrap_or_default();
    format!("{} {}", text("scenario"), text("check"))
}

/// Describes a row while the experiment runs.
pub(crate) fn one_line(metrics: &Metrics) -> String {
    let values = values_line(&metrics.values);
    format!(
        "{values}: {} (lab late p99 {} us)",
        metrics.verdict,
        metrics.late_p99()
    )
}

/// Returns the measured values with their names.
pub(crate) fn values_line(values: &Values) -> String {
    let all = values.iter().map(|(k, v)| format!("{k} {}", number(*v)));
    all.collect::<Vec<_>>().join(", ")
}
