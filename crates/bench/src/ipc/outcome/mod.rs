//! A result as JSON, as CSV, and as tables.

mod copies;
mod csv;
mod latency;
mod tables;

use super::progress::bytes;
use super::{Experiment, HostLoad, Metrics, Missing, Mode, Params, System, figure};
use crate::kit::findings::{Failure, Findings, Floor, Health};
use serde::Serialize;
use stats::{Cell, Report};
use std::fmt;

/// Result of an experiment, with what is missing.
pub type Outcome = Findings<Params, Metrics, Failed>;

/// A run without a result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failed {
    /// The system.
    pub system: System,
    /// Its setting.
    pub params: Params,
    /// Number of the run, from 0.
    pub run: u32,
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
        let (p, size) = (&self.params, bytes(self.params.size));
        write!(
            f,
            "{} {size} × {} {}, run {}: {}",
            p.experiment.name(),
            p.subscribers,
            self.system,
            self.run,
            self.why
        )
    }
}

type Row = Cell<Params, Metrics>;

impl Outcome {
    pub(super) fn new(
        report: Report<Params, Metrics>,
        missing: Vec<Missing>,
        named: bool,
        failed: Vec<Failed>,
        notes: Vec<String>,
        before: HostLoad,
        complete: bool,
    ) -> Self {
        let floor = Some(floor(&report.cells));
        Findings {
            report,
            missing,
            failed,
            notes,
            health: Health {
                floor,
                ..Health::now(before)
            },
            complete,
            named,
        }
    }

    /// Returns the cells as CSV, one line each, after a header.
    pub fn csv(&self) -> String {
        csv::lines(&self.report.cells)
    }

    /// Returns the experiment's figure as SVG; for several experiments that of Fig. 7.
    pub fn figure(&self, experiment: Experiment) -> String {
        let experiment = if experiment == Experiment::All {
            Experiment::Fig7
        } else {
            experiment
        };
        let cells = self
            .report
            .cells
            .iter()
            .filter(|c| c.params.experiment == experiment);
        figure::draw(experiment, &cells.cloned().collect::<Vec<_>>())
    }

    /// Returns tables for people.
    pub fn text(&self) -> String {
        let machine = |name: &str| {
            self.report
                .machine
                .get(name)
                .map_or_else(String::new, |v| v.to_string().replace('"', ""))
        };
        let mut out = vec![format!(
            "{}, {} processors, Linux {}",
            machine("cpu"),
            machine("cores"),
            machine("kernel")
        )];
        out.push(self.versions());
        let mut experiments: Vec<Experiment> = Vec::new();
        for cell in &self.report.cells {
            if !experiments.contains(&cell.params.experiment) {
                experiments.push(cell.params.experiment);
            }
        }
        for experiment in experiments {
            let rows: Vec<&Row> = self
                .report
                .cells
                .iter()
                .filter(|c| c.params.experiment == experiment)
                .collect();
            out.push(String::new());
            out.extend(tables::of(experiment, &rows));
        }
        out.push(String::new());
        out.extend(self.lacks());
        out.join("\n")
    }
}

fn floor(cells: &[Row]) -> Vec<Floor> {
    let floor = cells
        .iter()
        .filter(|c| c.system == System::Floor.name() && c.params.mode == Mode::Block);
    let runs = floor.flat_map(|c| {
        let runs = c.metrics.p50_by_run.iter().zip(&c.metrics.p99_by_run).enumerate();
        runs.map(|(run, (p50, p99))| Floor {
            size: c.params.size,
            subscribers: c.params.subscribers,
            run,
            p50_us: *p50,
            p99_us: *p99,
        })
    });
    runs.collect()
}

#[cfg(test)]
mod tests {
    use super::super::Latency;
    use super::super::setting::Setting;
    use super::*;
    use crate::kit::error::Error;
    use std::collections::BTreeMap;

    fn cell(experiment: Experiment, system: System, p50: f64) -> Row {
        let setting = Setting::plain(experiment, 4096, 1);
        let l = Latency {
            mean: p50,
            min: p50,
            p25: p50,
            p50,
            p75: p50,
            p99: p50,
            max: p50,
        };
        let metrics = Metrics {
            latency_us: Some(l),
            p50_by_run: vec![p50],
            p99_by_run: vec![p50],
            received_ratio: Some(1.0),
            ..Metrics::default()
        };
        Cell {
            system: system.name().into(),
            params: setting.params(system, 1),
            metrics,
        }
    }

    fn outcome(cells: Vec<Row>) -> Outcome {
        let report = Report {
            experiment: "fig7".into(),
            machine: BTreeMap::new(),
            versions: BTreeMap::new(),
            cells,
        };
        Outcome::new(report, vec![], false, vec![], vec![], HostLoad::default(), true)
    }

    #[test]
    fn ratios_are_to_the_same_cell() {
        let mut other = cell(Experiment::Fig7, System::Floor, 1.0);
        other.params.subscribers = 8;
        let cells = vec![
            cell(Experiment::Fig7, System::Ropewalk, 30.0),
            cell(Experiment::Fig7, System::Floor, 25.0),
            cell(Experiment::Fig7, System::Iceoryx2, 60.0),
            cell(Experiment::Fig7, System::Nodelet, 10.0),
            other,
        ];
        let text = outcome(cells).text();
        let line = text.lines().find(|l| l.contains("ropewalk")).expect("a row");
        assert!(line.contains("1.20") && line.contains("0.50"), "{line}");
        assert!(text.contains("Measured elsewhere, earlier"), "{text}");
        assert!(
            text.lines().any(|l| l.contains("154") && l.contains("306")),
            "{text}"
        );
    }

    #[test]
    fn the_json_has_its_shape() {
        let json = outcome(vec![cell(Experiment::Fig7, System::Floor, 25.0)]).json();
        let v: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(v["experiment"], "fig7");
        assert_eq!(v["cells"][0]["system"], "floor");
        assert_eq!(v["cells"][0]["params"]["size"], 4096);
        assert_eq!(v["cells"][0]["params"]["subscribers"], 1);
        assert_eq!(v["cells"][0]["metrics"]["latency_us"]["p50"], 25.0);
        assert_eq!(v["health"]["floor"][0]["p50_us"], 25.0);
        assert_eq!(v["missing"], serde_json::json!([]));
        assert!(!json.contains("elsewhere"), "published numbers are not cells");
    }

    #[test]
    fn csv_has_as_many_fields_as_its_head() {
        let csv = outcome(vec![cell(Experiment::Fig7, System::Floor, 25.0)]).csv();
        let fields: Vec<usize> = csv.lines().map(|l| l.split(',').count()).collect();
        assert_eq!(fields, [26, 26]);
    }

    #[test]
    fn the_formula_is_a_line_through_the_ends() {
        let with = |n: u32, total: f64| {
            let mut c = cell(Experiment::Table1, System::Tcpros, 1.0);
            c.params.subscribers = n;
            c.metrics.copies = Some(super::super::Copies {
                publisher_user: 1.0,
                publisher_kernel: 0.0,
                subscribers_user: 0.0,
                subscribers_kernel: 0.0,
                total,
            });
            c
        };
        let text = outcome(vec![with(1, 4.0), with(4, 13.0)]).text();
        assert!(
            text.contains("1.0 + 3.0 × sub") && text.contains("1 + 3 × sub (ROS)"),
            "{text}"
        );
    }

    #[test]
    fn the_verdict_names_what_is_wrong() {
        let mut o = outcome(vec![]);
        assert!(o.verdict().is_ok());
        o.missing.push(Missing {
            system: System::Zeromq,
            why: "no compiler".into(),
        });
        assert!(o.verdict().is_ok(), "it was not selected by name");
        o.named = true;
        assert!(matches!(o.verdict(), Err(Error::Missing { .. })));
        o.complete = false;
        assert!(matches!(o.verdict(), Err(Error::Stopped)));
    }
}
