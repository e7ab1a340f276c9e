//! Tables for people: selects the table of each experiment, and builds the short ones.

use super::super::progress::bytes;
use super::super::{Experiment, Mode, Params, System};
use super::{Row, copies, latency};
use crate::table::{Align, Table};

/// Returns the table of an experiment, with a title.
pub(super) fn of(experiment: Experiment, rows: &[&Row]) -> Vec<String> {
    match experiment {
        Experiment::Table1 => copies::table(rows),
        Experiment::Spin => spin(rows),
        Experiment::Service => service(rows),
        Experiment::Throughput => throughput(rows),
        Experiment::Memory => memory(rows),
        Experiment::Publish => publish(rows),
        Experiment::Fig9 => reliability(rows),
        _ => latency::table(experiment, rows),
    }
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
        "Share of received messages; with a slow subscriber, of the others. Refused: by the publisher, for \
         lack of memory; lost: published but missed by a subscriber. Depth: of the slow one's queue, if there is one"
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

fn service(rows: &[&Row]) -> Vec<String> {
    let mut table = Table::new(&[
        ("payload", Align::Right),
        ("clients", Align::Right),
        ("Hz", Align::Right),
        ("system", Align::Left),
        ("p50 µs", Align::Right),
        ("p99", Align::Right),
        ("max", Align::Right),
        ("× floor", Align::Right),
    ]);
    for row in rows {
        let (p, Some(l)) = (&row.params, row.metrics.round_trip_us) else {
            continue;
        };
        let cell = |p: &Params| (p.size, p.subscribers, p.rate_hz.to_bits());
        let floor = rows
            .iter()
            .find(|c| c.system == System::Floor.name() && cell(&c.params) == cell(p));
        let floor = floor.and_then(|c| Some(c.metrics.round_trip_us?.p50));
        table.row([
            bytes(p.size),
            p.subscribers.to_string(),
            if p.rate_hz > 0.0 {
                p.rate_hz.to_string()
            } else {
                "all out".into()
            },
            row.system.clone(),
            us(l.p50),
            us(l.p99),
            us(l.max),
            or_dash(floor, |f| format!("{:.2}", l.p50 / f)),
        ]);
    }
    let mut lines = vec!["From a request to its reply; clients and server sleep while they wait".to_owned()];
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
    let mut lines = vec!["Duration of the publish call".to_owned()];
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
    let mut lines = vec!["Peak resident memory of one process".to_owned()];
    lines.extend(table.lines());
    lines
}

pub(super) fn us(x: f64) -> String {
    if x < 100.0 {
        format!("{x:.1}")
    } else {
        format!("{x:.0}")
    }
}

pub(super) fn or_dash<T>(x: Option<T>, f: impl FnOnce(T) -> String) -> String {
    x.map_or_else(|| "-".into(), f)
}

pub(super) fn percent(x: f64) -> String {
    if x >= 1.0 {
        "100 %".into()
    } else {
        format!("{:.1} %", (x * 1000.0).floor() / 10.0)
    }
}
