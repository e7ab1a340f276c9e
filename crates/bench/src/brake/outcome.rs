//! A result as JSON and as tables.

use super::metrics::{Metrics, Params, Spread};
use super::trial::Trial;
use super::{Application, Options, figure, motion};
use crate::kit::error::Error;
use crate::kit::findings::{self, Failure, Findings, Health};
use crate::kit::systems::System;
use crate::kit::usage::HostLoad;
use crate::table::{Align, Table};
use serde::Serialize;
use stats::{Cell, Report};
use std::fmt;

/// Results of the trials, with what is missing.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Machine, versions, cells, and what is missing.
    #[serde(flatten)]
    pub found: Findings<Params, Metrics, Failed>,
    /// The paper's results, for comparison; never in cells.
    pub paper: Paper,
}

/// The TZC paper's numbers (section IV-E): a real TurtleBot2, another machine, larger workloads, selected runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names say all")]
pub struct Paper {
    pub tzc_distance_cm: f64,
    pub ros_distance_cm: f64,
    pub tzc_t2_ms: f64,
    pub ros_t2_ms: f64,
    pub t3_ms: f64,
    pub tzc_angle_deg: f64,
    pub ros_angle_deg: f64,
}

const PAPER: Paper = Paper {
    tzc_distance_cm: 53.0,
    ros_distance_cm: 63.0,
    tzc_t2_ms: 1.0,
    ros_t2_ms: 160.0,
    t3_ms: 20.0,
    tzc_angle_deg: 30.0,
    ros_angle_deg: 60.0,
};

/// A trial without a result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failed {
    /// The system.
    pub system: System,
    /// The application.
    pub application: Application,
    /// Number of the trial, from 0.
    pub trial: u32,
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
        let (application, system) = (self.application.name(), self.system);
        write!(f, "{application} {system}, trial {}: {}", self.trial, self.why)
    }
}

impl Outcome {
    pub(super) fn new(
        report: Report<Params, Metrics>,
        failed: Vec<Failed>,
        complete: bool,
        named: bool,
    ) -> Self {
        let found = Findings {
            report,
            missing: Vec::new(),
            failed,
            notes: Vec::new(),
            health: Health::now(HostLoad::default()),
            complete,
            named,
        };
        Outcome { found, paper: PAPER }
    }

    /// Checks whether everything that was requested has a result.
    ///
    /// # Errors
    /// [`Error::Stopped`], [`Error::Missing`] for a system that was selected by name, or [`Error::Incomplete`] for a run that
    /// failed.
    pub fn verdict(&self) -> Result<(), Error> {
        self.found.verdict()
    }

    /// Returns the result as JSON.
    pub fn json(&self) -> String {
        findings::json(self)
    }

    /// Returns distances and angles as SVG.
    pub fn figure(&self) -> String {
        figure::draw(&self.found.report.cells)
    }

    /// Returns tables for people.
    pub fn text(&self) -> String {
        let mut out = vec![self.found.versions()];
        let cells = |application| {
            let of = move |c: &&Cell<Params, Metrics>| c.params.application == application;
            self.found.report.cells.iter().filter(of).collect::<Vec<_>>()
        };
        let straight = cells(Application::Straight);
        if !straight.is_empty() {
            out.push(String::new());
            out.extend(driving(&straight));
        }
        let turn = cells(Application::Turn);
        if !turn.is_empty() {
            out.push(String::new());
            out.extend(turning(&turn));
        }
        out.push(String::new());
        out.extend(self.found.lacks());
        out.join("\n")
    }
}

/// Describes a trial while the experiment runs.
pub(super) fn one_line(application: Application, trial: &Trial, options: &Options) -> String {
    let Some(stop) = trial.stop else {
        return "the robot was never stopped".into();
    };
    let way = match application {
        Application::Straight => format!("{:.1} cm", stop.distance_cm()),
        Application::Turn => {
            let entry = motion::entry_degrees(options.roi.width);
            let missed = match stop.missed(entry) {
                0 => String::new(),
                n => format!(" and {n} turns"),
            };
            format!("{:.1}°{missed}", stop.angle_deg(entry))
        }
    };
    format!(
        "{way}; T1 {:.1} ms, T2 {:.1} ms, T3 {:.1} ms, command {:.1} ms; {:.0} % of images received",
        stop.t1_ms,
        stop.t2_ms,
        stop.t3_ms,
        stop.command_ms,
        trial.received_ratio * 100.0
    )
}

/// Median, and minimum to maximum.
fn shown(spread: Option<Spread>) -> String {
    spread.map_or_else(
        || "-".into(),
        |s| format!("{:.1} ({:.1}-{:.1})", s.median, s.min, s.max),
    )
}

const TIMES: [(&str, Align); 8] = [
    ("T1 ms", Align::Right),
    ("T2 ms", Align::Right),
    ("T3 ms", Align::Right),
    ("T4 ms", Align::Right),
    ("command ms", Align::Right),
    ("received", Align::Right),
    ("never stopped", Align::Right),
    ("trials", Align::Right),
];

fn times(c: &Cell<Params, Metrics>) -> [String; 8] {
    let m = &c.metrics;
    [
        shown(m.t1_ms),
        shown(m.t2_ms),
        shown(m.t3_ms),
        shown(m.t4_ms),
        shown(m.command_ms),
        format!("{:.1} %", m.received_ratio * 100.0),
        m.never_stopped.to_string(),
        c.params.trials.to_string(),
    ]
}

fn table(
    first: &[(&'static str, Align)],
    rows: impl Iterator<Item = ([String; 3], [String; 8])>,
) -> Vec<String> {
    let mut head = first.to_vec();
    head.extend(TIMES);
    let mut table = Table::new(&head);
    for ([a, b, c], [d, e, f, g, h, i, j, k]) in rows {
        table.row([a, b, c, d, e, f, g, h, i, j, k]);
    }
    table.lines()
}

fn driving(cells: &[&Cell<Params, Metrics>]) -> Vec<String> {
    let (cm, _) = motion::braking();
    let mut lines = vec![format!(
        "Driving at {} cm/s, slowing down by {} m/s² ({:.0} cm): from the line to the standstill; median (minimum-maximum)",
        motion::SPEED * 100.0,
        motion::DECELERATION,
        cm * 100.0
    )];
    let head = [
        ("system", Align::Left),
        ("distance cm", Align::Right),
        ("L1+L2+L3+L4 cm", Align::Right),
    ];
    lines.extend(table(
        &head,
        cells.iter().map(|c| {
            let parts = c
                .metrics
                .parts_cm
                .map_or_else(|| "-".into(), |p| p.map(|x| format!("{x:.1}")).join(" + "));
            ([c.system.clone(), shown(c.metrics.distance_cm), parts], times(c))
        }),
    ));
    lines.push(format!(
        "the paper, a real robot on another machine: TZC {} cm, ROS {} cm; T2 {} ms and {} ms; T3 {} ms",
        PAPER.tzc_distance_cm, PAPER.ros_distance_cm, PAPER.tzc_t2_ms, PAPER.ros_t2_ms, PAPER.t3_ms
    ));
    lines
}

fn turning(cells: &[&Cell<Params, Metrics>]) -> Vec<String> {
    let (degrees, _) = motion::turn_braking();
    let mut lines = vec![format!(
        "Turning at {}°/s, slowing down by {}°/s² ({degrees}°): past the light at the standstill; median (minimum-maximum)",
        motion::TURN,
        motion::TURN_DECELERATION,
    )];
    let head = [
        ("system", Align::Left),
        ("angle °", Align::Right),
        ("turns too many", Align::Right),
    ];
    lines.extend(table(
        &head,
        cells.iter().map(|c| {
            let missed = c.metrics.missed_revolutions.unwrap_or(0).to_string();
            ([c.system.clone(), shown(c.metrics.angle_deg), missed], times(c))
        }),
    ));
    lines.push(format!(
        "the paper, a real robot on another machine: TZC {}°, ROS {}° after a turn too many in many rounds",
        PAPER.tzc_angle_deg, PAPER.ros_angle_deg
    ));
    lines
}
