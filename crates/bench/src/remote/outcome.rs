//! A result as JSON, CSV and tables.

use super::figure;
use super::options::{Network, What};
use super::paper::{Given, REMARKS, given};
use super::properties::{Measured, lines};
use crate::kit::cell::{Metrics, Params};
use crate::kit::error::Error;
use crate::kit::findings::{self, Findings};
use crate::kit::outcome::{Failed, csv, validation, verdict};
use crate::table::{Align, Table};
use clap::ValueEnum;
use serde::Serialize;
use stats::Cell;

/// Results of the rows, with numbers for comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Machine, versions, cells, and what is missing.
    #[serde(flatten)]
    pub found: Findings<Params, Metrics, Failed>,
    /// The measured properties of the networks.
    pub networks: Vec<Measured>,
    /// Results of the paper and upstream, for comparison; never in cells.
    pub given: Vec<Given>,
}

impl Outcome {
    pub(super) fn new(found: Findings<Params, Metrics, Failed>, networks: Vec<Measured>) -> Outcome {
        let here = |g: &Given| found.report.cells.iter().any(|c| is_of(c, g.network, g.what));
        let given = given().into_iter().filter(here).collect();
        Outcome {
            found,
            networks,
            given,
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

    /// Returns the paper's Figures 1 to 3 as SVG, with the measured values and the paper's means.
    pub fn figure(&self) -> String {
        figure::draw(&self.found.report.cells, &self.given)
    }

    /// Returns a line for each number.
    pub fn csv(&self) -> String {
        csv(&self.found.report.cells)
    }

    /// Returns tables for people.
    pub fn text(&self) -> String {
        let mut out = vec![self.found.versions()];
        if !self.networks.is_empty() {
            out.push(String::new());
            out.extend(lines(&self.networks));
        }
        let cells = &self.found.report.cells;
        for what in What::value_variants() {
            for network in Network::value_variants() {
                let here: Vec<_> = cells.iter().filter(|c| is_of(c, network.name(), *what)).collect();
                if !here.is_empty() {
                    out.push(String::new());
                    out.push(format!("{}, {}", what.name(), network.name()));
                    out.extend(self.comparison(&here, *network, *what));
                }
            }
        }
        let aimed = cells.iter().filter(|c| !c.metrics.targets.is_empty());
        let aimed: Vec<_> = aimed.collect();
        if !aimed.is_empty() {
            out.push(String::new());
            out.extend(validation(&aimed, true));
        }
        out.push(String::new());
        out.extend(REMARKS.iter().map(|r| format!("note: {r}")));
        out.extend(self.found.lacks());
        out.join("\n")
    }

    /// The measured values, and below them those of others.
    fn comparison(&self, cells: &[&Cell<Params, Metrics>], network: Network, what: What) -> Vec<String> {
        let mut table = Table::new(&[
            ("system", Align::Left),
            ("how", Align::Left),
            ("runs", Align::Right),
            ("mean ms", Align::Right),
            ("p50", Align::Right),
            ("p99", Align::Right),
            ("max", Align::Right),
            ("decided %", Align::Right),
            ("delivery %", Align::Right),
            ("least ms", Align::Right),
            ("verdict", Align::Left),
            ("lab late p99 us", Align::Right),
        ]);
        for cell in cells {
            let m = &cell.metrics;
            let value = |name: &str| m.values.get(name).copied();
            let ms = |name: &str| value(name).map_or("-".into(), shown);
            let percent = |name: &str| value(name).map_or("-".into(), |v| format!("{:.1}", v * 100.0));
            let text = |name: &str| cell.params.get(name).and_then(|v| v.as_str()).unwrap_or_default();
            let least = value("closed_form_ms").or(value("floor_ms"));
            // Two scenarios may belong to one network.
            let how = match (network, text("scenario")) {
                (Network::Loss20, scenario) => format!("{scenario}: {}", text("setting")),
                _ => text("setting").to_owned(),
            };
            table.row([
                cell.system.clone(),
                how,
                cell.params.get("runs").map_or(String::new(), ToString::to_string),
                ms("latency_ms.mean"),
                ms("latency_ms.p50"),
                ms("latency_ms.p99"),
                ms("latency_ms.max"),
                percent("decided"),
                percent("delivery"),
                least.map_or("-".into(), shown),
                m.verdict.to_string(),
                m.late_p99(),
            ]);
        }
        for g in self
            .given
            .iter()
            .filter(|g| g.network == network.name() && g.what == what)
        {
            let none = String::new;
            let how = match g.says {
                "" => g.by.to_owned(),
                says => format!("{}: {says}", g.by),
            };
            table.row([
                g.system.into(),
                how,
                none(),
                g.mean_ms.map_or_else(none, shown),
                g.p50_ms.map_or_else(none, shown),
                none(),
                none(),
                none(),
                none(),
                none(),
                none(),
                none(),
            ]);
        }
        table.lines()
    }
}

fn is_of(cell: &Cell<Params, Metrics>, network: &str, what: What) -> bool {
    let is = |name: &str, value: &str| cell.params.get(name).and_then(|v| v.as_str()) == Some(value);
    is("network", network) && is("what", what.name())
}

/// Formats milliseconds with the significant digits.
pub(super) fn shown(ms: f64) -> String {
    match ms {
        ms if ms < 10.0 => format!("{ms:.3}"),
        ms if ms < 1_000.0 => format!("{ms:.1}"),
        ms => format!("{ms:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::cell;
    use super::*;
    use crate::kit::findings::Health;
    use stats::Report;

    fn outcome() -> Outcome {
        let cells = vec![
            cell("ropewalk-link", Network::Loopback, What::Twist, 0.3),
            cell("ros1", Network::Delay2000, What::Telemetry10Mb, 50_000.0),
        ];
        let found = Findings {
            report: Report {
                experiment: "remote".into(),
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
        };
        Outcome::new(found, Vec::new())
    }

    #[test]
    fn cells_have_the_shape_that_programs_expect() {
        let json: serde_json::Value = serde_json::from_str(&outcome().json()).expect("is JSON");
        assert_eq!(json["experiment"], "remote");
        let cell = &json["cells"][0];
        assert_eq!(cell["system"], "ropewalk-link");
        assert_eq!(
            (&cell["params"]["network"], &cell["params"]["what"]),
            (&"loopback".into(), &"twist".into())
        );
        let m = &cell["metrics"];
        for name in ["mean", "p50", "p99", "max"] {
            assert_eq!(m["latency_ms"][name], 0.3, "{cell}");
        }
        assert_eq!((&m["decided"], &m["delivery"]), (&1.0.into(), &1.0.into()));
        assert!(m.get("lab").is_none(), "{cell}");
        // The paper's values are listed only for what was measured.
        let given = json["given"].as_array().expect("a list");
        assert!(
            given
                .iter()
                .any(|g| g["system"] == "UDT" && g["mean_ms"] == 44_700.0),
            "{json}"
        );
        assert!(given.iter().all(|g| g["network"] != "default"), "{json}");
    }

    #[test]
    fn people_see_the_papers_numbers_beside() {
        let text = outcome().text();
        for part in [
            "twist, loopback",
            "telemetry-10mb, delay-2000",
            "61600",
            "cannot explain its Fig. 2",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let csv = outcome().csv();
        assert!(
            csv.contains("loopback,\"twist\",ropewalk-link,latency_ms.p50,0.3,"),
            "{csv}"
        );
    }
}
