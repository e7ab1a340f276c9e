//! Copies per message, compared with the paper's Table I.

use super::super::progress::bytes;
use super::Row;
use crate::table::{Align, Table};

pub(super) fn table(rows: &[&Row]) -> Vec<String> {
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
    let mut lines = vec!["Copied payloads per message, serializations included".to_owned()];
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

/// Copies and serializations as the paper counts them, where it lists the system.
fn papers_formula(system: &str) -> &'static str {
    match system {
        "ropewalk" => "0 + 0 × sub (TZC)",
        "tcpros" | "nodelay" => "1 + 3 × sub (ROS)",
        _ => "-",
    }
}
