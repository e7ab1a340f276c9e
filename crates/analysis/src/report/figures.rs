//! Figures of a result of any shape, in the style of the papers.

use super::page::attribute;
use super::read::{Document, Flat, find, plain};
use crate::axis::{Axis, short};
use crate::svg::escape;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 300.0;
const RIGHT: f64 = WIDTH - 40.0;
const ROW: f64 = 22.0;
const PLOT: f64 = 280.0;
/// Left edges of curves and of their names.
const CURVES_LEFT: f64 = 90.0;
const CURVES_RIGHT: f64 = WIDTH - 250.0;
/// Most characters of a label.
const MOST_LABEL: usize = 46;
/// Most rows or curves in one figure.
const MOST_ROWS: usize = 80;
const MOST_CURVES: usize = 16;
/// Colours of the style sheet.
const COLORS: usize = 8;
/// Settings over which to draw curves, in order of preference.
const OVER: [&str; 9] = [
    "hz",
    "nodes",
    "senders",
    "bytes",
    "size_bytes",
    "subscribers",
    "rate_mbit_s",
    "loss",
    "hops",
];

/// A figure with a title.
pub(super) struct Figure {
    pub(super) title: String,
    pub(super) svg: String,
}

/// All figures of a document, which is number `file` on the page.
pub(super) fn all(document: &Document, file: usize) -> Vec<Figure> {
    let mut names = BTreeSet::new();
    for cell in &document.cells {
        names.extend(cell.distributions());
    }
    let mut figures: Vec<Figure> = Vec::new();
    for name in &names {
        figures.extend(curves(document, file, name));
    }
    figures.extend(names.iter().filter_map(|name| boxes(document, file, name)));
    figures.extend(series(document, file));
    figures
}

/// Attributes that identify a drawn value.
fn mark(file: usize, cell: usize, metric: &str, value: f64) -> String {
    let metric = attribute(metric);
    format!("data-file=\"{file}\" data-cell=\"{cell}\" data-metric=\"{metric}\" data-value=\"{value}\"")
}

/// A cell's name: its system and the settings in which cells differ, words before numbers.
pub(super) fn label(cell: &Flat, differing: &BTreeSet<String>) -> String {
    let settings = || cell.params.iter().filter(|(n, _)| differing.contains(n));
    let words = settings().filter_map(|(_, v)| v.as_str().map(str::to_owned));
    let numbers = settings().filter_map(|(n, v)| Some(format!("{n} {}", short(v.as_f64()?))));
    let all: Vec<String> = words.chain(numbers).collect();
    format!("{} {}", cell.system, all.join(", "))
}

/// Settings in which these cells differ.
pub(super) fn differing<'a>(cells: impl Iterator<Item = &'a Flat>) -> BTreeSet<String> {
    let mut values = BTreeMap::<&str, BTreeSet<String>>::new();
    let mut count = 0;
    let mut seen = BTreeMap::<&str, usize>::new();
    for cell in cells {
        count += 1;
        for (name, v) in &cell.params {
            values.entry(name).or_default().insert(plain(v));
            *seen.entry(name).or_default() += 1;
        }
    }
    let names = values
        .iter()
        .filter(|(n, v)| v.len() > 1 || seen.get(*n).is_some_and(|s| *s < count));
    names.map(|(n, _)| (*n).to_owned()).collect()
}

/// Box plots: known quartiles and whiskers, the mean as a dot.
fn boxes(document: &Document, file: usize, name: &str) -> Option<Figure> {
    let get = |cell: &Flat, what: &str| cell.number(&format!("{name}.{what}"));
    let cells: Vec<(usize, &Flat)> = (document.cells.iter().enumerate())
        .filter(|(_, c)| get(c, "mean").or(get(c, "p50")).is_some())
        .take(MOST_ROWS)
        .collect();
    if cells.is_empty() {
        return None;
    }
    let names = differing(cells.iter().map(|(_, c)| *c));
    let paper: Vec<&Flat> = document
        .paper
        .iter()
        .filter(|p| get(p, "mean").is_some())
        .take(MOST_ROWS)
        .collect();
    let all = ["min", "p25", "p50", "p75", "p99", "max", "mean"];
    let values = cells.iter().map(|(_, c)| *c).chain(paper.iter().copied());
    let values = values.flat_map(|c| all.iter().filter_map(move |w| get(c, w)));
    let axis = Axis::log(values, LEFT, RIGHT);
    let height = 40.0 + (cells.len() + paper.len()) as f64 * ROW;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {}\" {}>\n",
        height + 10.0,
        axis.data("x")
    );
    axis.below(&mut svg, 10.0, height - 20.0, "");
    let mut y = 14.0;
    for (i, cell) in &cells {
        let middle = y + ROW / 2.0 - 2.0;
        text(&mut svg, LEFT - 8.0, middle + 4.0, "end", &label(cell, &names));
        let first = |of: &[&str]| of.iter().find_map(|w| get(cell, w));
        let whisker = (
            first(&["min", "p25", "p50", "mean"]),
            first(&["max", "p99", "p75", "p50", "mean"]),
        );
        if let (Some(low), Some(high)) = whisker {
            let _ = writeln!(
                svg,
                "<line class=\"whisker\" x1=\"{:.2}\" y1=\"{middle}\" x2=\"{:.2}\" y2=\"{middle}\"/>",
                axis.place(low),
                axis.place(high)
            );
        }
        if let (Some(low), Some(high)) = (get(cell, "p25"), get(cell, "p75")) {
            let (a, b) = (axis.place(low), axis.place(high));
            let _ = writeln!(
                svg,
                "<rect class=\"box\" x=\"{a:.2}\" y=\"{}\" width=\"{:.2}\" height=\"12\"/>",
                middle - 6.0,
                (b - a).max(0.5)
            );
        }
        for what in all.iter().filter(|w| **w != "mean") {
            if let Some(value) = get(cell, what) {
                let half = if *what == "p50" { 7.0 } else { 4.0 };
                let metric = format!("{name}.{what}");
                let _ = writeln!(
                    svg,
                    "<line class=\"mark {what}\" x1=\"{0:.2}\" y1=\"{1}\" x2=\"{0:.2}\" y2=\"{2}\" {3}><title>{4} {what} \
                     {5}</title></line>",
                    axis.place(value),
                    middle - half,
                    middle + half,
                    mark(file, *i, &metric, value),
                    escape(&cell.system),
                    short(value)
                );
            }
        }
        if let Some(mean) = get(cell, "mean") {
            dot(
                &mut svg,
                axis.place(mean),
                middle,
                0,
                &mark(file, *i, &format!("{name}.mean"), mean),
                "",
            );
        }
        y += ROW;
    }
    for row in paper {
        let middle = y + ROW / 2.0 - 2.0;
        let settings: BTreeSet<String> = row.params.iter().map(|(n, _)| n.clone()).collect();
        let name_ = format!("{} (the paper's)", label(row, &settings));
        text(&mut svg, LEFT - 8.0, middle + 4.0, "end", &name_);
        if let Some(mean) = get(row, "mean") {
            let _ = writeln!(
                svg,
                "<circle class=\"paper\" cx=\"{:.2}\" cy=\"{middle}\" r=\"4\"/>",
                axis.place(mean)
            );
        }
        y += ROW;
    }
    svg.push_str("</svg>\n");
    Some(Figure {
        title: format!(
            "{name}: box from 25 to 75 %, strokes at the quantiles that are known, dot at the mean"
        ),
        svg,
    })
}

/// Means over the setting with the most values, a curve for each combination of the others, with the deviation.
fn curves(document: &Document, file: usize, name: &str) -> Vec<Figure> {
    let metric = format!("{name}.mean");
    let cells: Vec<(usize, &Flat)> = (document.cells.iter().enumerate())
        .filter(|(_, c)| c.number(&metric).is_some_and(|v| v > 0.0))
        .collect();
    let mut values = BTreeMap::<&str, BTreeSet<u64>>::new();
    for (_, cell) in &cells {
        for over in OVER {
            if let Some(v) = find(&cell.params, over)
                .and_then(Value::as_f64)
                .filter(|v| *v > 0.0)
            {
                values.entry(over).or_default().insert(v.to_bits());
            }
        }
    }
    let most = values.values().map(BTreeSet::len).max().unwrap_or(0);
    let over = OVER
        .iter()
        .find(|o| values.get(**o).is_some_and(|v| v.len() == most));
    let Some(over) = over.filter(|_| most >= 3) else {
        return Vec::new();
    };
    let mut names = differing(cells.iter().map(|(_, c)| *c));
    names.remove(*over);
    // Settings that depend on others, or belong to a run, do not separate curves.
    let mut lines = BTreeMap::<String, Vec<(f64, f64, usize, &Flat)>>::new();
    for (i, cell) in &cells {
        let at = find(&cell.params, over)
            .and_then(Value::as_f64)
            .filter(|v| *v > 0.0);
        if let (Some(x), Some(y)) = (at, cell.number(&metric)) {
            lines
                .entry(label(cell, &names))
                .or_default()
                .push((x, y, *i, cell));
        }
    }
    lines.retain(|_, points| points.len() >= 2);
    let lines: Vec<_> = lines.into_iter().collect();
    let chunks = lines.chunks(MOST_CURVES);
    chunks
        .map(|chunk| curve_figure(chunk, file, name, over))
        .collect()
}

type Curve<'a> = (String, Vec<(f64, f64, usize, &'a Flat)>);

/// A drawing with its axes, from 20 down to `bottom`, and space below.
fn canvas(bottom: f64, below: f64, x: &Axis, y: &Axis) -> String {
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {}\" {} {}>\n",
        bottom + below,
        x.data("x"),
        y.data("y")
    );
    x.below(&mut svg, 20.0, bottom, "");
    y.beside(&mut svg, CURVES_LEFT, CURVES_RIGHT, "");
    svg
}

fn curve_figure(lines: &[Curve<'_>], file: usize, name: &str, over: &str) -> Figure {
    let points = || lines.iter().flat_map(|(_, p)| p.iter());
    let bottom = 20.0 + PLOT;
    let x = Axis::log(points().map(|p| p.0), CURVES_LEFT, CURVES_RIGHT);
    let y = Axis::log(points().map(|p| p.1), bottom, 20.0);
    let mut svg = canvas(bottom, 40.0, &x, &y);
    text(
        &mut svg,
        (CURVES_LEFT + CURVES_RIGHT) / 2.0,
        bottom + 34.0,
        "middle",
        over,
    );
    for (n, (label, points)) in lines.iter().enumerate() {
        let color = n % COLORS;
        let mut points = points.clone();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let path: Vec<String> = points
            .iter()
            .map(|p| format!("{:.2},{:.2}", x.place(p.0), y.place(p.1)))
            .collect();
        let _ = writeln!(
            svg,
            "<polyline class=\"curve c{color}\" points=\"{}\"/>",
            path.join(" ")
        );
        for (at, value, i, cell) in &points {
            let (px, py) = (x.place(*at), y.place(*value));
            let std = cell
                .number(&format!("{name}.std"))
                .or(cell.number("spread_ms.std"));
            if let Some(std) = std.filter(|s| s.is_finite()) {
                let _ = writeln!(
                    svg,
                    "<line class=\"deviation c{color}\" x1=\"{px:.2}\" y1=\"{:.2}\" x2=\"{px:.2}\" y2=\"{:.2}\"/>",
                    y.place((value - std).max(value / 10.0)),
                    y.place(value + std)
                );
            }
            let censored = find(&cell.metrics, "censored").and_then(Value::as_bool) == Some(true);
            let marked = mark(file, *i, &format!("{name}.mean"), *value);
            dot(
                &mut svg,
                px,
                py,
                color,
                &marked,
                if censored { "hollow" } else { "" },
            );
        }
        let at = 30.0 + n as f64 * 17.0;
        let _ = writeln!(
            svg,
            "<circle class=\"dot c{color}\" cx=\"{}\" cy=\"{}\" r=\"4\"/>",
            CURVES_RIGHT + 16.0,
            at - 4.0
        );
        text(&mut svg, CURVES_RIGHT + 26.0, at, "start", label);
    }
    svg.push_str("</svg>\n");
    Figure {
        title: format!(
            "{name} by {over}: means with their deviation; hollow: right-censored, the true mean is larger"
        ),
        svg,
    }
}

/// Delays by message, distributions: all metrics that are pairs of numbers.
fn series(document: &Document, file: usize) -> Vec<Figure> {
    let mut by_name = BTreeMap::<&str, Vec<(usize, &Flat, &Vec<[f64; 2]>)>>::new();
    for (i, cell) in document.cells.iter().enumerate() {
        for (name, pairs) in &cell.series {
            by_name.entry(name).or_default().push((i, cell, pairs));
        }
    }
    let mut figures = Vec::new();
    for (name, all) in by_name {
        let names = differing(all.iter().map(|(_, c, _)| *c));
        for chunk in all.chunks(MOST_CURVES) {
            figures.push(series_figure(name, chunk, file, &names));
        }
    }
    figures
}

fn series_figure(
    name: &str,
    chunk: &[(usize, &Flat, &Vec<[f64; 2]>)],
    file: usize,
    names: &BTreeSet<String>,
) -> Figure {
    let shares = name.contains("cumulative");
    let bottom = 20.0 + PLOT;
    let pairs = || chunk.iter().flat_map(|(_, _, p)| p.iter());
    let (x, y) = if shares {
        let x = Axis::log(pairs().map(|p| p[0]), CURVES_LEFT, CURVES_RIGHT);
        (x, Axis::straight([1.0].into_iter(), bottom, 20.0))
    } else {
        let x = Axis::straight(pairs().map(|p| p[0]), CURVES_LEFT, CURVES_RIGHT);
        (x, Axis::log(pairs().map(|p| p[1]), bottom, 20.0))
    };
    let mut svg = canvas(bottom, 30.0, &x, &y);
    for (n, (i, cell, pairs)) in chunk.iter().enumerate() {
        let color = n % COLORS;
        let places: Vec<String> = pairs
            .iter()
            .map(|p| format!("{:.2},{:.2}", x.place(p[0]), y.place(p[1])))
            .collect();
        let values: Vec<String> = pairs.iter().map(|p| format!("{} {}", p[0], p[1])).collect();
        let _ = writeln!(
            svg,
            "<polyline class=\"curve c{color}\" points=\"{}\" data-file=\"{file}\" data-cell=\"{i}\" data-metric=\"{}\" \
             data-pairs=\"{}\"/>",
            places.join(" "),
            attribute(name),
            values.join(";")
        );
        let at = 30.0 + n as f64 * 17.0;
        let _ = writeln!(
            svg,
            "<circle class=\"dot c{color}\" cx=\"{}\" cy=\"{}\" r=\"4\"/>",
            CURVES_RIGHT + 16.0,
            at - 4.0
        );
        text(&mut svg, CURVES_RIGHT + 26.0, at, "start", &label(cell, names));
    }
    svg.push_str("</svg>\n");
    let title = match name {
        _ if shares => format!("{name}: share of messages within"),
        _ if name.starts_with("by_number") => format!("{name}: delay by message number, means over runs"),
        _ => name.to_owned(),
    };
    Figure { title, svg }
}

fn dot(svg: &mut String, x: f64, y: f64, color: usize, mark: &str, class: &str) {
    let _ = writeln!(
        svg,
        "<circle class=\"dot c{color} {class}\" cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"4\" {mark}/>"
    );
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let mut short: String = text.chars().take(MOST_LABEL).collect();
    if text.chars().count() > MOST_LABEL {
        short.push('…');
    }
    let _ = writeln!(
        svg,
        "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{}</text>",
        escape(&short)
    );
}
