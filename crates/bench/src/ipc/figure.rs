//! The experiments' figures as SVG.

use super::metrics::{Latency, Metrics};
use super::progress::bytes;
use super::{Experiment, Params, all};
use crate::svg::{self, close, escape};
use stats::Cell;
use std::fmt::Write;

type Row = Cell<Params, Metrics>;

const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 84.0;
const BOTTOM: f64 = 50.0;
const HEIGHT: f64 = 460.0;
/// Width of one box with the space next to it.
const BOX: f64 = 13.0;
const COLORS: [&str; 16] = [
    "#1f77a4", "#777777", "#d1495b", "#edae49", "#b8860b", "#66a182", "#2f6b4f", "#8e6bbf", "#c06c84",
    "#4a4e69", "#3fa7d6", "#0b3954", "#9c6644", "#7fb069", "#89c2d9", "#014f86",
];

/// Returns the figure of an experiment. One without a figure of its own gets box plots of its latencies.
pub(super) fn draw(experiment: Experiment, cells: &[Row]) -> String {
    match experiment {
        Experiment::Fig8 => histogram(cells),
        Experiment::Fig9 => lines(cells),
        _ => boxes(cells),
    }
}

/// Box plots on a logarithmic axis, grouped by test case, as in the paper's Fig. 7: quartiles and median; whiskers from
/// the minimum to the 99th percentile.
fn boxes(cells: &[Row]) -> String {
    let plotted = |c: &Row| c.metrics.time_us();
    let mut cases: Vec<String> = Vec::new();
    for cell in cells.iter().filter(|c| plotted(c).is_some()) {
        if !cases.contains(&case(&cell.params)) {
            cases.push(case(&cell.params));
        }
    }
    let systems = systems(cells);
    let group = BOX * (systems.len() as f64 + 1.5);
    let width = (LEFT + RIGHT + group * cases.len() as f64).max(760.0);
    let mut svg = open(
        width,
        "Latency from publish to callback",
        "box: quartiles and median; whiskers: minimum to 99th percentile",
    );
    legend(&mut svg, &systems, width);
    let values = cells.iter().filter_map(plotted).flat_map(|l| [l.min, l.p99]);
    let axis = Log::over(values);
    axis.draw(&mut svg, width, "µs");
    for (i, name) in cases.iter().enumerate() {
        let left = LEFT + group * i as f64;
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            left + group / 2.0,
            HEIGHT - BOTTOM + 18.0,
            escape(name)
        );
        for cell in cells.iter().filter(|c| case(&c.params) == *name) {
            let Some((l, place)) = plotted(cell).zip(systems.iter().position(|s| *s == cell.system)) else {
                continue;
            };
            one_box(
                &mut svg,
                &axis,
                left + BOX * (place as f64 + 1.25),
                &l,
                color(&cell.system),
            );
        }
    }
    close(svg)
}

fn one_box(svg: &mut String, axis: &Log, x: f64, l: &Latency, color: &str) {
    let [min, p25, p50, p75, p99] = [l.min, l.p25, l.p50, l.p75, l.p99].map(|v| axis.y(v));
    let half = BOX * 0.38;
    // Writing to a String cannot fail.
    let _ = writeln!(
        svg,
        "<g class=\"box\" stroke=\"{color}\"><line x1=\"{x:.1}\" y1=\"{min:.1}\" x2=\"{x:.1}\" y2=\"{p99:.1}\"/>\
         <rect x=\"{:.1}\" y=\"{p75:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{color}\" fill-opacity=\"0.4\"/>\
         <line x1=\"{:.1}\" y1=\"{p50:.1}\" x2=\"{:.1}\" y2=\"{p50:.1}\" stroke=\"black\" stroke-width=\"1.5\"/></g>",
        x - half,
        2.0 * half,
        (p25 - p75).max(0.5),
        x - half,
        x + half
    );
}

/// Histograms on a linear axis, one system below the other, as in the paper's Fig. 8.
fn histogram(cells: &[Row]) -> String {
    const PANEL: f64 = 130.0;
    const BINS: usize = 100;
    let drawn: Vec<(&Row, Latency)> = cells
        .iter()
        .filter_map(|c| Some((c, c.metrics.latency_us?)))
        .collect();
    let height = TOP + PANEL * drawn.len() as f64 + 10.0;
    let mut svg = svg::open(
        760.0,
        height,
        LEFT,
        "Latency at SCHED_FIFO",
        "share of messages; each axis ends at its 99th percentile",
    );
    for (i, (cell, latency)) in drawn.iter().enumerate() {
        let top = TOP + PANEL * i as f64;
        let (y0, y1) = (top, top + PANEL - 40.0);
        let end = latency.p99.max(1e-3);
        let mut shares = vec![0.0; BINS];
        let mut before = 0.0;
        for (us, share) in &cell.metrics.cumulative {
            if let Some(s) = shares.get_mut((us / end * BINS as f64) as usize) {
                *s += share - before;
            }
            before = *share;
        }
        let most = shares.iter().fold(1e-9f64, |a, b| a.max(*b));
        let width = (760.0 - LEFT - RIGHT) / BINS as f64;
        let _ = writeln!(
            svg,
            "<text x=\"{LEFT}\" y=\"{}\" font-weight=\"bold\">{} ({}), mean {:.1} µs</text>\
             <line x1=\"{LEFT}\" y1=\"{y1}\" x2=\"{}\" y2=\"{y1}\" stroke=\"#333\"/>\
             <text x=\"{LEFT}\" y=\"{}\" fill=\"#555\">0</text>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#555\">{end:.0} µs</text>",
            y0 - 4.0,
            escape(&cell.system),
            escape(&case(&cell.params)),
            latency.mean,
            760.0 - RIGHT,
            y1 + 14.0,
            760.0 - RIGHT,
            y1 + 14.0
        );
        for (bin, share) in shares.iter().enumerate().filter(|(_, s)| **s > 0.0) {
            let tall = share / most * (y1 - y0 - 4.0);
            let _ = writeln!(
                svg,
                "<rect class=\"bin\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{tall:.1}\" fill=\"{}\"/>",
                LEFT + bin as f64 * width,
                y1 - tall,
                color(&cell.system)
            );
        }
    }
    close(svg)
}

/// Share of received messages over the rate, a line for each system and number of subscribers, as in the paper's Fig.
/// 9.
fn lines(cells: &[Row]) -> String {
    let plotted =
        |c: &&Row| c.params.slow_us.is_none() && c.params.rate_hz > 0.0 && c.metrics.received_ratio.is_some();
    let cells: Vec<&Row> = cells.iter().filter(plotted).collect();
    let mut rates: Vec<f64> = cells.iter().map(|c| c.params.rate_hz).collect();
    rates.sort_by(f64::total_cmp);
    let (low, high) = (
        rates.first().copied().unwrap_or(1.0),
        rates.last().copied().unwrap_or(10.0),
    );
    let mut cases: Vec<(u64, u32)> = cells
        .iter()
        .map(|c| (c.params.size, c.params.subscribers))
        .collect();
    cases.sort_unstable();
    cases.dedup();
    const PANEL: f64 = 170.0;
    let height = TOP + PANEL * cases.len() as f64 + 10.0;
    let mut svg = svg::open(
        760.0,
        height,
        LEFT,
        "Received messages",
        "share of all messages to be sent, over the rate",
    );
    let systems = systems_of(cells.iter().map(|c| &c.system));
    legend(&mut svg, &systems, 760.0);
    let x = |rate: f64| LEFT + (rate / low).ln() / (high / low).ln().max(1e-9) * (760.0 - LEFT - RIGHT);
    for (i, (size, subscribers)) in cases.iter().enumerate() {
        let (y0, y1) = (TOP + PANEL * i as f64, TOP + PANEL * (i as f64 + 1.0) - 45.0);
        let y = |ratio: f64| y1 - ratio.clamp(0.0, 1.0) * (y1 - y0);
        let _ = writeln!(
            svg,
            "<text x=\"{LEFT}\" y=\"{}\" font-weight=\"bold\">{} × {subscribers}</text>\
             <line x1=\"{LEFT}\" y1=\"{y1}\" x2=\"{}\" y2=\"{y1}\" stroke=\"#333\"/>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#555\">100 %</text>\
             <text x=\"{}\" y=\"{y1}\" text-anchor=\"end\" fill=\"#555\">0 %</text>",
            y0 - 4.0,
            bytes(*size),
            760.0 - RIGHT,
            LEFT - 6.0,
            y0 + 8.0,
            LEFT - 6.0
        );
        let mut marks = rates.clone();
        marks.dedup();
        for rate in marks {
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">{rate} Hz</text>",
                x(rate),
                y1 + 15.0
            );
        }
        for system in &systems {
            let of = |c: &&&Row| {
                c.system == *system && (c.params.size, c.params.subscribers) == (*size, *subscribers)
            };
            let mut points: Vec<(f64, f64)> = cells
                .iter()
                .filter(of)
                .filter_map(|c| Some((c.params.rate_hz, c.metrics.received_ratio?)))
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let path: Vec<String> = points
                .iter()
                .map(|(r, s)| format!("{:.1},{:.1}", x(*r), y(*s)))
                .collect();
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>",
                path.join(" "),
                color(system)
            );
        }
    }
    close(svg)
}

fn case(p: &Params) -> String {
    format!("{} × {}", bytes(p.size), p.subscribers)
}

fn systems(cells: &[Row]) -> Vec<String> {
    systems_of(cells.iter().map(|c| &c.system))
}

/// In the order of [`SYSTEMS`](super::SYSTEMS), so that a system has the same position and color in every figure.
fn systems_of<'a>(names: impl Iterator<Item = &'a String> + Clone) -> Vec<String> {
    let known = all().map(|s| s.name());
    known
        .filter(|s| names.clone().any(|n| n == s))
        .map(str::to_owned)
        .collect()
}

fn color(system: &str) -> &'static str {
    let place = all().position(|s| s.name() == system);
    COLORS[place.unwrap_or(0) % COLORS.len()]
}

fn legend(svg: &mut String, systems: &[String], width: f64) {
    let step = ((width - LEFT - RIGHT) / systems.len().max(1) as f64).min(110.0);
    for (i, system) in systems.iter().enumerate() {
        let x = LEFT + step * i as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"54\" width=\"9\" height=\"9\" fill=\"{}\"/>\
             <text x=\"{:.1}\" y=\"62\" font-size=\"10\">{}</text>",
            color(system),
            x + 12.0,
            escape(system)
        );
    }
}

/// A vertical logarithmic axis over whole decades.
struct Log {
    low: f64,
    high: f64,
}

impl Log {
    fn over(values: impl Iterator<Item = f64>) -> Log {
        let logs = values.filter(|v| v.is_finite()).map(|v| v.max(1e-3).log10());
        let (low, high) = logs.fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)));
        if low > high {
            return Log { low: 0.0, high: 3.0 };
        }
        Log {
            low: low.floor(),
            high: high.ceil().max(low.floor() + 1.0),
        }
    }

    fn y(&self, value: f64) -> f64 {
        let share = (value.max(1e-3).log10() - self.low) / (self.high - self.low);
        HEIGHT - BOTTOM - share.clamp(0.0, 1.0) * (HEIGHT - BOTTOM - TOP)
    }

    fn draw(&self, svg: &mut String, width: f64, unit: &str) {
        for decade in self.low as i32..=self.high as i32 {
            let value = 10f64.powi(decade);
            let y = self.y(value);
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{value} {unit}</text>",
                width - RIGHT,
                LEFT - 6.0,
                y + 4.0
            );
        }
    }
}

fn open(width: f64, title: &str, subtitle: &str) -> String {
    svg::open(width, HEIGHT, LEFT, title, subtitle)
}

#[cfg(test)]
mod tests {
    use super::super::System;
    use super::super::setting::Setting;
    use super::*;

    fn cell(system: System, subscribers: u32, us: f64) -> Row {
        let setting = Setting::plain(Experiment::Fig7, 4096, subscribers);
        let latency = Latency {
            mean: us,
            min: us,
            p25: us,
            p50: us * 2.0,
            p75: us * 3.0,
            p99: us * 4.0,
            max: us * 5.0,
        };
        let metrics = Metrics {
            latency_us: Some(latency),
            received_ratio: Some(0.5),
            cumulative: vec![(us, 0.5), (us * 4.0, 0.99), (us * 5.0, 1.0)],
            ..Metrics::default()
        };
        Cell {
            system: system.name().into(),
            params: setting.params(system, 1),
            metrics,
        }
    }

    #[test]
    fn a_box_for_each_cell_grouped_by_test_case() {
        let cells = [
            cell(System::Ropewalk, 1, 30.0),
            cell(System::Zeromq, 1, 300.0),
            cell(System::Ropewalk, 8, 90.0),
        ];
        let svg = draw(Experiment::Fig7, &cells);
        assert_eq!(svg.matches("class=\"box\"").count(), 3);
        assert_eq!(svg.matches(">4 KiB × 1<").count(), 1);
        assert_eq!(svg.matches(">4 KiB × 8<").count(), 1);
        assert!(
            svg.contains(">10 µs<") && svg.contains(">10000 µs<"),
            "whole decades"
        );
        let axis = Log::over([30.0, 1200.0].into_iter());
        assert!(axis.y(30.0) > axis.y(300.0) && axis.y(10.0) == HEIGHT - BOTTOM && axis.y(1e4) == TOP);
    }

    #[test]
    fn histograms_hold_what_lies_below_their_end() {
        let svg = draw(Experiment::Fig8, &[cell(System::Floor, 8, 10.0)]);
        // The 99th percentile itself is the end of the axis, and so outside.
        assert_eq!(svg.matches("class=\"bin\"").count(), 1);
        assert!(svg.contains("mean 10.0 µs") && svg.contains(">40 µs<"));
    }

    #[test]
    fn a_line_for_each_system_and_case() {
        let mut fast = cell(System::Floor, 8, 10.0);
        fast.params.rate_hz = 1000.0;
        let mut slow = cell(System::Floor, 2, 10.0);
        slow.params.slow_us = Some(1);
        let svg = draw(Experiment::Fig9, &[cell(System::Floor, 8, 10.0), fast, slow]);
        assert_eq!(
            svg.matches("<polyline").count(),
            1,
            "the slow cell has no rate to plot against"
        );
        assert!(svg.contains("30 Hz") && svg.contains("1000 Hz"));
    }

    #[test]
    fn nothing_draws_an_empty_figure() {
        for experiment in [
            Experiment::Fig7,
            Experiment::Fig8,
            Experiment::Fig9,
            Experiment::Spin,
        ] {
            let svg = draw(experiment, &[]);
            assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
