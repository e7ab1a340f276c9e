//! A result: as JSON, as CSV, as tables.

use super::metrics::{Latency, Metrics};
use super::progress::bytes;
use super::{Error, Experiment, HostLoad, Missing, Mode, Params, System};
use super::{elsewhere, figure, usage};
use crate::table::{Align, Table};
use serde::Serialize;
use stats::{Cell, Report};

/// What an experiment gave, with what it lacks.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Machine, versions and cells.
    #[serde(flatten)]
    pub report: Report<Params, Metrics>,
    /// Systems that could not be measured.
    pub missing: Vec<Missing>,
    /// Runs that gave no numbers.
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

/// A run that gave no numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failed {
    /// The system.
    pub system: System,
    /// Under which setting.
    pub params: Params,
    /// Which run, from 0.
    pub run: u32,
    /// What happened.
    pub why: String,
}

/// How quiet the machine was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Health {
    /// Load by whatever else runs here, before the start.
    pub before: HostLoad,
    /// Load averages over 1, 5 and 15 minutes at the end.
    pub loadavg: String,
    /// The floor's latency in each run: where it moves, the machine did.
    pub floor: Vec<Floor>,
}

/// The floor in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Floor {
    /// Bytes of the payload.
    pub size: u64,
    /// Subscribing processes.
    pub subscribers: u32,
    /// Which run, from 0.
    pub run: usize,
    /// Median in microseconds.
    pub p50_us: f64,
    /// 99th percentile in microseconds.
    pub p99_us: f64,
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
        let loadavg = usage::loadavg();
        let floor = floor(&report.cells);
        let health = Health {
            before,
            loadavg,
            floor,
        };
        Outcome {
            report,
            missing,
            failed,
            notes,
            health,
            complete,
            named,
        }
    }

    /// Whether all went as it was asked for.
    ///
    /// # Errors
    /// [`Error::Stopped`], [`Error::Missing`] for a system that was asked for by name, or [`Error::Incomplete`]
    /// for a run that failed.
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

    /// The cells as CSV, one line each, with a head.
    pub fn csv(&self) -> String {
        let mut lines = vec![
            "experiment,system,size,subscribers,rate_hz,messages,runs,mode,p50_us,p99_us,mean_us,min_us,p25_us,p75_us,\
             max_us,received_ratio,publish_p50_us,publish_p99_us,refused,cpu_us_per_message,\
             voluntary_switches_per_message,max_rss_mb,messages_per_s,gb_per_s,copies"
                .to_owned(),
        ];
        let number = |x: Option<f64>| x.map_or_else(String::new, |x| x.to_string());
        for Cell {
            system,
            params: p,
            metrics: m,
        } in &self.report.cells
        {
            let l = m.latency_us.or(m.half_round_trip_us);
            let field = |f: fn(&Latency) -> f64| number(l.as_ref().map(f));
            let mode = match p.mode {
                Mode::Block => "block",
                Mode::Spin => "spin",
                Mode::PingPong => "ping-pong",
            };
            lines.push(
                [
                    p.experiment.name().to_owned(),
                    system.clone(),
                    p.size.to_string(),
                    p.subscribers.to_string(),
                    p.rate_hz.to_string(),
                    p.messages.to_string(),
                    p.runs.to_string(),
                    mode.to_owned(),
                    field(|l| l.p50),
                    field(|l| l.p99),
                    field(|l| l.mean),
                    field(|l| l.min),
                    field(|l| l.p25),
                    field(|l| l.p75),
                    field(|l| l.max),
                    number(m.received_ratio),
                    number(m.publish_us.map(|q| q.p50)),
                    number(m.publish_us.map(|q| q.p99)),
                    m.refused.to_string(),
                    number(m.cpu_us_per_message),
                    number(m.voluntary_switches_per_message),
                    number(m.max_rss_mb),
                    number(m.messages_per_s),
                    number(m.gb_per_s),
                    number(m.copies.map(|c| c.total)),
                ]
                .join(","),
            );
        }
        lines.join("\n") + "\n"
    }

    /// The experiment's figure as SVG; of several experiments that of Fig. 7.
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

    /// Tables for people.
    pub fn text(&self) -> String {
        let mut out = Vec::new();
        let machine = |name: &str| {
            self.report
                .machine
                .get(name)
                .map_or_else(String::new, |v| v.to_string().replace('"', ""))
        };
        out.push(format!(
            "{}, {} processors, Linux {}",
            machine("cpu"),
            machine("cores"),
            machine("kernel")
        ));
        let versions: Vec<String> = self
            .report
            .versions
            .iter()
            .map(|(s, v)| format!("{s} {v}"))
            .collect();
        out.push(versions.join(", "));
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
            out.extend(table(experiment, &rows));
        }
        out.push(String::new());
        for missing in &self.missing {
            out.push(format!("missing: {}: {}", missing.system, missing.why));
        }
        for failed in &self.failed {
            let p = &failed.params;
            let (size, n) = (bytes(p.size), p.subscribers);
            out.push(format!(
                "failed: {} {size} × {n}, run {}: {}",
                p.experiment.name(),
                failed.run,
                failed.why
            ));
        }
        out.extend(self.notes.iter().map(|n| format!("note: {n}")));
        let HostLoad { busy, steal } = self.health.before;
        out.push(format!(
            "before the start others used {:.0} % of the processors, other guests {:.0} %; load averages {}",
            busy * 100.0,
            steal * 100.0,
            self.health.loadavg
        ));
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

fn table(experiment: Experiment, rows: &[&Row]) -> Vec<String> {
    match experiment {
        Experiment::Table1 => copies(rows),
        Experiment::Spin => spin(rows),
        Experiment::Throughput => throughput(rows),
        Experiment::Memory => memory(rows),
        Experiment::Publish => publish(rows),
        Experiment::Fig9 => reliability(rows),
        _ => latency(experiment, rows),
    }
}

fn us(x: f64) -> String {
    if x < 100.0 {
        format!("{x:.1}")
    } else {
        format!("{x:.0}")
    }
}

fn or_dash<T>(x: Option<T>, f: impl FnOnce(T) -> String) -> String {
    x.map_or_else(|| "-".into(), f)
}

fn percent(x: f64) -> String {
    if x >= 1.0 {
        "100 %".into()
    } else {
        format!("{:.1} %", (x * 1000.0).floor() / 10.0)
    }
}

/// The median of `system` in the cell of `like`.
fn median_of(rows: &[&Row], like: &Row, fits: impl Fn(&Row) -> bool) -> Option<f64> {
    let same = |p: &Params| {
        Params { runs: 0, ..p.clone() }
            == Params {
                runs: 0,
                ..like.params.clone()
            }
    };
    let cells = rows.iter().filter(|c| same(&c.params) && fits(c));
    cells
        .filter_map(|c| Some(c.metrics.latency_us?.p50))
        .min_by(f64::total_cmp)
}

fn is_rival(name: &str) -> bool {
    System::ALL.iter().any(|s| s.name() == name && s.is_rival())
}

fn latency(experiment: Experiment, rows: &[&Row]) -> Vec<String> {
    let mut table = Table::new(&[
        ("payload", Align::Right),
        ("subscribers", Align::Right),
        ("system", Align::Left),
        ("p50 µs", Align::Right),
        ("p99", Align::Right),
        ("mean", Align::Right),
        ("max", Align::Right),
        ("× floor", Align::Right),
        ("× best peer", Align::Right),
        ("received", Align::Right),
        ("publish p50", Align::Right),
        ("CPU µs/msg", Align::Right),
        ("switches/msg", Align::Right),
        ("RSS MB", Align::Right),
    ]);
    for row in rows {
        let (m, Some(l)) = (&row.metrics, row.metrics.latency_us) else {
            continue;
        };
        let floor = median_of(rows, row, |c| c.system == System::Floor.name());
        let best = median_of(rows, row, |c| is_rival(&c.system));
        table.row([
            bytes(row.params.size),
            row.params.subscribers.to_string(),
            row.system.clone(),
            us(l.p50),
            us(l.p99),
            us(l.mean),
            us(l.max),
            or_dash(floor, |f| format!("{:.2}", l.p50 / f)),
            or_dash(best, |b| format!("{:.2}", l.p50 / b)),
            or_dash(m.received_ratio, percent),
            or_dash(m.publish_us, |q| us(q.p50)),
            or_dash(m.cpu_us_per_message, us),
            or_dash(m.voluntary_switches_per_message, |x| format!("{x:.1}")),
            or_dash(m.max_rss_mb, |x| format!("{x:.1}")),
        ]);
    }
    let title = match experiment {
        Experiment::Fig8 => "Latency at SCHED_FIFO",
        _ => "Latency from publish to callback; payload filled, then stamped, then published",
    };
    let mut lines = vec![title.to_owned()];
    lines.extend(table.lines());
    if experiment == Experiment::Fig7 {
        lines.extend(measured_elsewhere(rows));
    }
    lines
}

/// The rows of systems that cannot be built here, for the cells that were measured.
fn measured_elsewhere(rows: &[&Row]) -> Vec<String> {
    let mut table = Table::new(&[
        ("payload", Align::Right),
        ("subscribers", Align::Right),
        ("TCPROS p50", Align::Right),
        ("p99", Align::Right),
        ("TZC (original) p50", Align::Right),
        ("p99", Align::Right),
        ("Ach p50", Align::Right),
        ("p99", Align::Right),
    ]);
    let measured = |size, n| {
        rows.iter()
            .any(|r| r.params.size == size && r.params.subscribers == n)
    };
    let mut any = false;
    for (size, n, tcpros, tzc, ach) in elsewhere::ROWS.into_iter().filter(|(s, n, ..)| measured(*s, *n)) {
        any = true;
        let pairs = [tcpros, tzc, ach].map(|(p50, p99)| [p50.to_string(), p99.to_string()]);
        let [[a, b], [c, d], [e, f]] = pairs;
        table.row([bytes(size), n.to_string(), a, b, c, d, e, f]);
    }
    if !any {
        return Vec::new();
    }
    let mut lines = vec![
        String::new(),
        "Measured elsewhere, earlier (a published table, µs): compare only within this table".into(),
    ];
    lines.extend(table.lines());
    lines
}

fn reliability(rows: &[&Row]) -> Vec<String> {
    let mut table = Table::new(&[
        ("payload", Align::Right),
        ("subscribers", Align::Right),
        ("Hz", Align::Right),
        ("system", Align::Left),
        ("received", Align::Right),
        ("p50 µs", Align::Right),
        ("p99", Align::Right),
        ("refused", Align::Right),
        ("lost", Align::Right),
        ("depth", Align::Right),
        ("slow one received", Align::Right),
        ("its p50", Align::Right),
    ]);
    for row in rows {
        let (p, m) = (&row.params, &row.metrics);
        table.row([
            bytes(p.size),
            p.subscribers.to_string(),
            p.rate_hz.to_string(),
            row.system.clone(),
            or_dash(m.received_ratio, percent),
            or_dash(m.latency_us, |l| us(l.p50)),
            or_dash(m.latency_us, |l| us(l.p99)),
            m.refused.to_string(),
            m.lost.to_string(),
            or_dash(p.depth, |d| d.to_string()),
            or_dash(m.slow, |s| s.received.to_string()),
            or_dash(m.slow.and_then(|s| s.latency_us), |l| us(l.p50)),
        ]);
    }
    let mut lines = vec![
        "Received of all that were to be sent; where one subscriber is slow, by the others. Refused: by the publisher, for \
         want of memory; lost: missed by a subscriber though published. Depth: of the slow one's queue, if there is one"
            .to_owned(),
    ];
    lines.extend(table.lines());
    lines
}

fn spin(rows: &[&Row]) -> Vec<String> {
    let mut table = Table::new(&[
        ("payload", Align::Right),
        ("system", Align::Left),
        ("p50 µs", Align::Right),
        ("p99", Align::Right),
        ("min", Align::Right),
    ]);
    for row in rows {
        let Some(l) = row.metrics.half_round_trip_us else {
            continue;
        };
        let three = |x: f64| format!("{x:.3}");
        table.row([
            bytes(row.params.size),
            row.system.clone(),
            three(l.p50),
            three(l.p99),
            three(l.min),
        ]);
    }
    let mut lines = vec!["Half the round trip between two processes that never sleep".to_owned()];
    lines.extend(table.lines());
    lines
}

fn throughput(rows: &[&Row]) -> Vec<String> {
    let mut table = Table::new(&[
        ("payload", Align::Right),
        ("subscribers", Align::Right),
        ("system", Align::Left),
        ("messages/s", Align::Right),
        ("GB/s", Align::Right),
        ("received", Align::Right),
        ("refused", Align::Right),
        ("CPU µs/msg", Align::Right),
    ]);
    for row in rows {
        let m = &row.metrics;
        table.row([
            bytes(row.params.size),
            row.params.subscribers.to_string(),
            row.system.clone(),
            or_dash(m.messages_per_s, |x| format!("{x:.0}")),
            or_dash(m.gb_per_s, |x| format!("{x:.2}")),
            or_dash(m.received_ratio, percent),
            m.refused.to_string(),
            or_dash(m.cpu_us_per_message, us),
        ]);
    }
    let mut lines = vec!["As fast as publishing allows: what each subscriber received".to_owned()];
    lines.extend(table.lines());
    lines
}

fn publish(rows: &[&Row]) -> Vec<String> {
    let mut table = Table::new(&[
        ("payload", Align::Right),
        ("subscriber", Align::Left),
        ("system", Align::Left),
        ("publish p50 µs", Align::Right),
        ("p99", Align::Right),
    ]);
    for row in rows {
        let Some(q) = row.metrics.publish_us else { continue };
        let subscriber = if row.params.mode == Mode::Spin {
            "awake"
        } else {
            "asleep"
        };
        let two = |x: f64| format!("{x:.2}");
        table.row([
            bytes(row.params.size),
            subscriber.into(),
            row.system.clone(),
            two(q.p50),
            two(q.p99),
        ]);
    }
    let mut lines = vec!["What the call of publish takes".to_owned()];
    lines.extend(table.lines());
    lines
}

fn memory(rows: &[&Row]) -> Vec<String> {
    let mut table = Table::new(&[
        ("payload", Align::Right),
        ("subscribers", Align::Right),
        ("system", Align::Left),
        ("publisher RSS MB", Align::Right),
        ("of it shared", Align::Right),
        ("subscriber RSS MB", Align::Right),
    ]);
    for row in rows {
        let m = &row.metrics;
        let mb = |x: Option<f64>| or_dash(x, |x| format!("{x:.1}"));
        table.row([
            bytes(row.params.size),
            row.params.subscribers.to_string(),
            row.system.clone(),
            mb(m.publisher_rss_mb),
            mb(m.shared_mb),
            mb(m.subscriber_rss_mb),
        ]);
    }
    let mut lines = vec!["Most resident memory of one process".to_owned()];
    lines.extend(table.lines());
    lines
}

fn copies(rows: &[&Row]) -> Vec<String> {
    let mut table = Table::new(&[
        ("payload", Align::Right),
        ("subscribers", Align::Right),
        ("system", Align::Left),
        ("copies/msg", Align::Right),
        ("publisher", Align::Right),
        ("to kernel", Align::Right),
        ("subscribers", Align::Right),
        ("from kernel", Align::Right),
        ("measured formula", Align::Left),
        ("paper's Table I", Align::Left),
    ]);
    for row in rows {
        let Some(c) = row.metrics.copies else { continue };
        let two = |x: f64| format!("{x:.2}");
        table.row([
            bytes(row.params.size),
            row.params.subscribers.to_string(),
            row.system.clone(),
            two(c.total),
            two(c.publisher_user),
            two(c.publisher_kernel),
            two(c.subscribers_user),
            two(c.subscribers_kernel),
            formula(rows, row).unwrap_or_else(|| "-".into()),
            papers_formula(&row.system).into(),
        ]);
    }
    let mut lines = vec!["Copied payloads for each message, serializations included".to_owned()];
    lines.extend(table.lines());
    lines
}

/// a + b × sub through the cells with the fewest and the most subscribers.
fn formula(rows: &[&Row], row: &Row) -> Option<String> {
    let same = rows
        .iter()
        .filter(|c| c.system == row.system && c.params.size == row.params.size);
    let mut points: Vec<(f64, f64)> = same
        .filter_map(|c| Some((f64::from(c.params.subscribers), c.metrics.copies?.total)))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ((x0, y0), (x1, y1)) = (points.first()?, points.last()?);
    if x0 == x1 {
        return None;
    }
    let b = (y1 - y0) / (x1 - x0);
    Some(format!("{:.1} + {b:.1} × sub", (y0 - b * x0).abs()))
}

/// Copies and serializations as the paper counts them, where it does.
fn papers_formula(system: &str) -> &'static str {
    match system {
        "ropewalk" => "0 + 0 × sub (TZC)",
        "tcpros" | "nodelay" => "1 + 3 × sub (ROS)",
        _ => "-",
    }
}

#[cfg(test)]
mod tests {
    use super::super::setting::Setting;
    use super::*;
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
            params: setting.params(1),
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
        assert!(!json.contains("elsewhere"), "other people's numbers are no cells");
    }

    #[test]
    fn csv_has_as_many_fields_as_its_head() {
        let csv = outcome(vec![cell(Experiment::Fig7, System::Floor, 25.0)]).csv();
        let fields: Vec<usize> = csv.lines().map(|l| l.split(',').count()).collect();
        assert_eq!(fields, [25, 25]);
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
        assert!(o.verdict().is_ok(), "nobody asked for it by name");
        o.named = true;
        assert!(matches!(o.verdict(), Err(Error::Missing { .. })));
        o.complete = false;
        assert!(matches!(o.verdict(), Err(Error::Stopped)));
    }
}
