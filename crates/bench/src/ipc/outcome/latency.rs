//! Tables of latencies, compared with the floor and the best other system.

use super::super::progress::bytes;
use super::super::{Experiment, System, all, elsewhere};
use super::Row;
use super::tables::{or_dash, percent, us};
use crate::table::{Align, Table};

pub(super) fn table(experiment: Experiment, rows: &[&Row]) -> Vec<String> {
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

/// Returns the median of `system` in the same cell as `like`.
fn median_of(rows: &[&Row], like: &Row, fits: impl Fn(&Row) -> bool) -> Option<f64> {
    let cells = rows.iter().filter(|c| c.params.is_like(&like.params) && fits(c));
    cells
        .filter_map(|c| Some(c.metrics.latency_us?.p50))
        .min_by(f64::total_cmp)
}

fn is_rival(name: &str) -> bool {
    all().any(|s| s.name() == name && s.is_rival())
}

/// Returns the rows of systems that cannot be built here, for the cells that were measured.
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
