//! A result: as JSON and as tables.

use super::metrics::{Metrics, Params, Spread};
use super::trial::Trial;
use super::{Application, Options, figure, motion};
use crate::ipc::{Error, HostLoad, Missing, System, usage};
use crate::table::{Align, Table};
use serde::Serialize;
use stats::{Cell, Report};

/// What the trials gave, with what they lack.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Machine, versions and cells.
    #[serde(flatten)]
    pub report: Report<Params, Metrics>,
    /// What the paper measured, to compare with; never in cells.
    pub paper: Paper,
    /// Systems that could not be measured.
    pub missing: Vec<Missing>,
    /// Trials that gave no numbers.
    pub failed: Vec<Failed>,
    /// What else is to be known.
    pub notes: Vec<String>,
    /// How quiet the machine was.
    pub health: Health,
    /// Whether it went on to the end.
    pub complete: bool,
    #[serde(skip)]
    named: bool,
}

/// The TZC paper's numbers (section IV-E): a real TurtleBot2, another machine, larger workloads, chosen runs.
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

/// A trial that gave no numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failed {
    /// The system.
    pub system: System,
    /// In which application.
    pub application: Application,
    /// Which trial, from 0.
    pub trial: u32,
    /// What happened.
    pub why: String,
}

/// How quiet the machine was.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Health {
    /// Load by whatever else runs here, before the start.
    pub before: HostLoad,
    /// Load averages over 1, 5 and 15 minutes at the end.
    pub loadavg: String,
}

impl Outcome {
    pub(super) fn new(
        report: Report<Params, Metrics>,
        failed: Vec<Failed>,
        complete: bool,
        named: bool,
    ) -> Self {
        let loadavg = usage::loadavg();
        Outcome {
            report,
            paper: PAPER,
            missing: Vec::new(),
            failed,
            notes: Vec::new(),
            health: Health {
                loadavg,
                ..Health::default()
            },
            complete,
            named,
        }
    }

    /// Whether all went as it was asked for.
    ///
    /// # Errors
    /// [`Error::Stopped`], [`Error::Missing`] for a system that was asked for by name, or [`Error::Incomplete`]
    /// for a trial that failed.
    pub fn verdict(&self) -> Result<(), Error> {
        let missing = self.missing.first().filter(|_| self.named);
        let failed = self.failed.iter().map(|f| &*f.why);
        Error::verdict(self.complete, missing, failed)
    }

    /// The result as JSON.
    pub fn json(&self) -> String {
        // Numbers, texts and maps with text keys: serializing cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Distances and angles as SVG.
    pub fn figure(&self) -> String {
        figure::draw(&self.report.cells)
    }

    /// Tables for people.
    pub fn text(&self) -> String {
        let mut out = vec![];
        let cells = |application| {
            let of = move |c: &&Cell<Params, Metrics>| c.params.application == application;
            self.report.cells.iter().filter(of).collect::<Vec<_>>()
        };
        let versions = &self.report.versions;
        let versions: Vec<String> = versions.iter().map(|(s, v)| format!("{s} {v}")).collect();
        out.push(versions.join(", "));
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
        for missing in &self.missing {
            out.push(format!("missing: {}: {}", missing.system, missing.why));
        }
        for f in &self.failed {
            let application = f.application.name();
            out.push(format!(
                "failed: {application} {}, trial {}: {}",
                f.system, f.trial, f.why
            ));
        }
        out.extend(self.notes.iter().map(|n| format!("note: {n}")));
        out.push(format!(
            "before the start others used {:.0} % of the processors, other guests {:.0} %; load averages {}",
            self.health.before.busy * 100.0,
            self.health.before.steal * 100.0,
            self.health.loadavg
        ));
        out.join("\n")
    }
}

/// A trial, while it goes on.
pub(super) fn one_line(application: Application, trial: &Trial, options: &Options) -> String {
    let Some(stop) = trial.stop else {
        return "nobody stopped the robot".into();
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

/// Median, and least to most.
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
        "Driving at {} cm/s, slowing down by {} m/s² ({:.0} cm): from the line to the standstill; median (least-most)",
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
        "Turning at {}°/s, slowing down by {}°/s² ({degrees}°): past the light at the standstill; median (least-most)",
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
