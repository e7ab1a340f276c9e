//! A result as JSON, CSV and tables.

use super::figure;
use super::measured::{CellMetrics, Metrics, Params};
use super::point::shown_hz;
use super::targets::{self, Aim, knees, points};
use super::{System, Topology};
use crate::kit::error::Error;
use crate::kit::findings::{self, Failure, Findings};
use crate::table::{Align, Table};
use serde::Serialize;
use stats::Cell;
use std::fmt;

/// Result of an experiment, with what is missing.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Machine, versions, cells, and what is missing.
    #[serde(flatten)]
    pub found: Findings<Params, Metrics, Failed>,
    /// Targets, as far as they were measured.
    pub targets: Vec<Aim>,
}

/// A point without a result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failed {
    /// The system.
    pub system: System,
    /// The setting.
    pub params: Params,
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
        let (p, hz) = (&self.params, shown_hz(self.params.hz));
        write!(
            f,
            "{} E{}, {} nodes at {hz} Hz, {}: {}",
            self.system.name(),
            p.experiment,
            p.nodes,
            p.medium,
            self.why
        )
    }
}

impl Outcome {
    pub(super) fn new(found: Findings<Params, Metrics, Failed>) -> Outcome {
        Outcome {
            targets: targets::aims(&found.report.cells),
            found,
        }
    }

    /// Checks whether everything that was requested has a result, and every target was met.
    ///
    /// # Errors
    /// [`Error::Stopped`], [`Error::Missing`] for a system that was selected by name, [`Error::Incomplete`] for a run that
    /// failed, or [`Error::Missed`].
    pub fn verdict(&self) -> Result<(), Error> {
        self.found.verdict()?;
        let mut missed = self.targets.iter().filter(|t| !t.met());
        match missed.next() {
            None => Ok(()),
            Some(first) => Err(Error::Missed {
                count: 1 + missed.count(),
                first: format!("{}: {:.3}, {}", first.what, first.value, first.from),
            }),
        }
    }

    /// Returns the result as JSON.
    pub fn json(&self) -> String {
        findings::json(self)
    }

    /// Returns round trips over load, as SVG.
    pub fn figure(&self) -> String {
        figure::draw(&self.found.report.cells)
    }

    /// Returns a line for each cell.
    pub fn csv(&self) -> String {
        let mut out = String::from(
            "system,what,experiment,medium,hosts,nodes,hz,bytes,cpu_share,topology,runs,delivery,mean_ms,p50_ms,p99_ms,\
             cpu_us_per_message,memory_kib,context_switches_per_message,censored,sustained,messages_per_s,bytes_per_s\n",
        );
        let number = |v: Option<f64>| v.map_or(String::new(), |v| v.to_string());
        for cell in &self.found.report.cells {
            let p = &cell.params;
            let (at, load) = match &cell.metrics {
                Metrics::Cell(at) => (Some(&**at), None),
                Metrics::Knee(knee) => (knee.at.as_ref(), Some((knee.messages_per_s, knee.bytes_per_s))),
            };
            let of = |f: &dyn Fn(&CellMetrics) -> Option<f64>| number(at.and_then(f));
            out.push_str(&format!(
                "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
                cell.system,
                p.what,
                p.experiment,
                p.medium,
                p.hosts,
                p.nodes,
                p.hz,
                p.bytes,
                p.cpu_share,
                topology(p.topology),
                p.runs,
                of(&|m| Some(m.delivery)),
                of(&|m| m.rtt_ms.mean),
                of(&|m| m.rtt_ms.p50),
                of(&|m| m.rtt_ms.p99),
                of(&|m| Some(m.cpu_us_per_message)),
                of(&|m| Some(m.memory_kib)),
                of(&|m| Some(m.context_switches_per_message)),
                at.map_or(String::new(), |m| m.censored.to_string()),
                at.map_or(String::new(), |m| m.sustained.to_string()),
                number(load.map(|l| l.0)),
                number(load.map(|l| l.1)),
            ));
        }
        out
    }

    /// Returns tables for people.
    pub fn text(&self) -> String {
        let cells = &self.found.report.cells;
        let mut out = vec![self.found.versions()];
        let mut groups: Vec<String> = Vec::new();
        for (cell, _) in points(cells) {
            let group = group(&cell.params);
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        for name in groups {
            let here: Vec<_> = points(cells).filter(|(c, _)| group(&c.params) == name).collect();
            out.extend([String::new(), name]);
            out.extend(table(&here));
        }
        if points(cells).any(|(_, m)| m.cpu_profile.is_some()) {
            out.extend([
                String::new(),
                "Processor time of a message and its answer, by function".into(),
            ]);
            out.extend(profiles(cells));
        }
        if knees(cells).next().is_some() {
            out.extend([String::new(), "Highest sustained load, to 5 %".into()]);
            out.extend(self.loads());
        }
        if !self.targets.is_empty() {
            out.push(String::new());
            let mut table = Table::new(&[
                ("what", Align::Left),
                ("target", Align::Right),
                ("measured", Align::Right),
                ("verdict", Align::Left),
                ("from", Align::Left),
            ]);
            for aim in &self.targets {
                table.row([
                    aim.what.clone(),
                    format!("{} {}", if aim.at_least { ">=" } else { "<=" }, aim.target),
                    format!("{:.3}", aim.value),
                    if aim.met() { "met" } else { "MISSED" }.into(),
                    aim.from.clone(),
                ]);
            }
            out.extend(table.lines());
        }
        out.push(String::new());
        out.extend(self.found.lacks());
        out.join("\n")
    }

    fn loads(&self) -> Vec<String> {
        let mut table = Table::new(&[
            ("E", Align::Right),
            ("B", Align::Right),
            ("medium", Align::Left),
            ("hosts", Align::Right),
            ("cpu", Align::Right),
            ("system", Align::Left),
            ("nodes", Align::Right),
            ("Hz", Align::Right),
            ("messages/s", Align::Right),
            ("MB/s", Align::Right),
            ("cause", Align::Left),
        ]);
        for (cell, knee) in knees(&self.found.report.cells) {
            let p = &cell.params;
            table.row([
                p.experiment.to_string(),
                p.bytes.to_string(),
                p.medium.into(),
                p.hosts.to_string(),
                format!("{:.0} %", p.cpu_share * 100.0),
                cell.system.clone(),
                p.nodes.to_string(),
                shown_hz(p.hz),
                format!("{:.0}", knee.messages_per_s),
                format!("{:.3}", knee.bytes_per_s / 1e6),
                knee.cause.clone(),
            ]);
        }
        table.lines()
    }
}

/// Returns a row for each profile.
fn profiles(cells: &[Cell<Params, Metrics>]) -> Vec<String> {
    let mut table = Table::new(&[
        ("B", Align::Right),
        ("medium", Align::Left),
        ("nodes", Align::Right),
        ("Hz", Align::Right),
        ("system", Align::Left),
        ("cpu µs", Align::Right),
        ("of it", Align::Left),
    ]);
    for (cell, m) in points(cells) {
        let Some(profile) = &m.cpu_profile else { continue };
        let p = &cell.params;
        table.row([
            p.bytes.to_string(),
            p.medium.into(),
            p.nodes.to_string(),
            shown_hz(p.hz),
            cell.system.clone(),
            format!("{:.1}", m.cpu_us_per_message),
            profile.line(),
        ]);
    }
    table.lines()
}

/// Returns the title of a table.
fn group(p: &Params) -> String {
    let mut text = format!("Experiment {}, {} B, ", p.experiment, p.bytes);
    text.push_str(match p.medium {
        "bus" | "loopback" => "one host",
        other => other,
    });
    if p.hosts > 1 {
        text.push_str(&format!(", {} hosts", p.hosts));
    }
    if p.cpu_share < 1.0 {
        text.push_str(&format!(", {:.0} % of the processors", p.cpu_share * 100.0));
    }
    if p.topology == Topology::Full {
        text.push_str(", all to all");
    }
    if p.warm {
        text.push_str(", warm");
    }
    text
}

fn topology(topology: Topology) -> &'static str {
    match topology {
        Topology::Pairs => "pairs",
        Topology::Full => "full",
    }
}

/// Returns a row for each point and system.
fn table(cells: &[(&Cell<Params, Metrics>, &CellMetrics)]) -> Vec<String> {
    let mut table = Table::new(&[
        ("nodes", Align::Right),
        ("Hz", Align::Right),
        ("system", Align::Left),
        ("delivery %", Align::Right),
        ("mean ms", Align::Right),
        ("± (95 %)", Align::Right),
        ("p50", Align::Right),
        ("p99", Align::Right),
        ("cpu µs", Align::Right),
        ("switches", Align::Right),
        ("calls", Align::Right),
        ("MiB", Align::Right),
        ("sustained", Align::Left),
    ]);
    let ms = |v: Option<f64>| v.map_or("-".into(), |v| format!("{v:.3}"));
    for (cell, m) in cells {
        let p = &cell.params;
        let half = m.rtt_ms.ci95.mean.map(|[low, high]| (high - low) / 2.0);
        // The mean of the returned messages is not the mean of all sent ones.
        let cut = if m.censored > 0 { ">" } else { "" };
        table.row([
            p.nodes.to_string(),
            shown_hz(p.hz),
            cell.system.clone(),
            format!("{:.2}", m.delivery * 100.0),
            format!("{cut}{}", ms(m.rtt_ms.mean)),
            ms(half),
            ms(m.rtt_ms.p50),
            ms(m.rtt_ms.p99),
            format!("{:.1}", m.cpu_us_per_message),
            format!("{:.1}", m.context_switches_per_message),
            m.system_calls_per_message
                .map_or("-".into(), |c| format!("{c:.1}")),
            format!("{:.1}", m.memory_kib / 1024.0),
            if m.sustained { "yes" } else { "no" }.into(),
        ]);
    }
    table.lines()
}

#[cfg(test)]
mod tests {
    use super::super::Medium;
    use super::super::targets::tests::{cell, peak};
    use super::*;
    use crate::kit::findings::Health;
    use stats::Report;

    fn outcome() -> Outcome {
        let cells = vec![
            cell(System::Ropewalk, |_| {}, 0.2),
            cell(System::Rospy, |_| {}, 5.0),
            peak(System::Ropewalk, Medium::Host, 40_000.0),
            peak(System::Rospy, Medium::Host, 4_001.0),
        ];
        Outcome::new(Findings {
            report: Report {
                experiment: "scale".into(),
                machine: Default::default(),
                versions: Default::default(),
                cells,
            },
            missing: Vec::new(),
            failed: Vec::new(),
            notes: Vec::new(),
            health: Health::default(),
            complete: true,
            named: false,
        })
    }

    #[test]
    fn cells_have_the_shape_that_programs_expect() {
        let json: serde_json::Value = serde_json::from_str(&outcome().json()).expect("is JSON");
        assert_eq!(json["experiment"], "scale");
        let (cell, knee) = (&json["cells"][0], &json["cells"][2]);
        let p = &cell["params"];
        for (name, value) in [
            ("experiment", 7.into()),
            ("what", "cell".into()),
            ("hosts", 1.into()),
            ("nodes", 8.into()),
            ("senders", 4.into()),
            ("hz", 100.0.into()),
            ("bytes", 4250.into()),
            ("medium", "bus".into()),
            ("cpu_share", 1.0.into()),
            ("topology", "pairs".into()),
            ("runs", 2.into()),
            ("messages", 200.into()),
        ] {
            let value: serde_json::Value = value;
            assert_eq!(p[name], value, "{name}: {p}");
        }
        assert_eq!(json["cells"][1]["params"]["medium"], "loopback");
        let m = &cell["metrics"];
        for name in [
            "delivery",
            "cpu_us_per_message",
            "memory_kib",
            "context_switches_per_message",
        ] {
            assert!(m[name].is_number(), "{name}: {m}");
        }
        assert_eq!(
            (&m["rtt_ms"]["p50"], &m["sustained"]),
            (&0.2.into(), &false.into())
        );
        assert_eq!(m["censored"], 3);
        assert_eq!(
            (&knee["params"]["what"], &knee["metrics"]["messages_per_s"]),
            (&"knee".into(), &40_000.0.into())
        );
        assert!(knee["metrics"]["cause"].is_string(), "{knee}");
    }

    #[test]
    fn people_see_points_loads_and_verdicts() {
        let text = outcome().text();
        for part in [
            "Experiment 7, 4250 B, one host",
            "Highest sustained load",
            "cpu: all",
            "MISSED",
            "40000 and 4001 messages/s",
            ">0.200",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(matches!(outcome().verdict(), Err(Error::Missed { count: 1, .. })));
        let csv = outcome().csv();
        assert_eq!(csv.lines().count(), 5, "{csv}");
        assert!(
            csv.contains("rospy,knee,7,loopback,1,8,100,4250,1,pairs,2,,,,,,,,,,4001,17004250"),
            "{csv}"
        );
        let fields: Vec<_> = csv.lines().map(|l| l.split(',').count()).collect();
        assert!(fields.iter().all(|n| *n == fields[0]), "{fields:?}");
    }
}
