//! Mean round trips over the frequency, as in the thesis' figure 4.4: both axes logarithmic, with the deviation.

use super::Cells;
use crate::axis::Axis;
use crate::svg::{close, escape, open};
use std::collections::BTreeMap;
use std::fmt::Write;

const WIDTH: f64 = 900.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = WIDTH - 170.0;
const PLOT: f64 = 300.0;
const COLORS: [&str; 8] = [
    "#1b9e77", "#d95f02", "#7570b3", "#e7298a", "#66a61e", "#e6ab02", "#a6761d", "#666666",
];

/// A panel for each platform and size, a curve for each number of nodes; hollow points are right-censored.
pub(super) fn draw(cells: &Cells) -> String {
    // A setting common to all cells is not part of the title.
    let p = |i: usize| &cells[i].params;
    let vary = |of: &dyn Fn(usize) -> String| (0..cells.len()).any(|i| of(i) != of(0));
    let hosts: &dyn Fn(usize) -> String = &|i| format!(", {} hosts", p(i).hosts);
    let share: &dyn Fn(usize) -> String = &|i| format!(", {} of the processors", p(i).cpu_share);
    let topology: &dyn Fn(usize) -> String = &|i| format!(", {}", p(i).topology);
    let varied: Vec<_> = [hosts, share, topology]
        .into_iter()
        .filter(|of| vary(of))
        .collect();
    let mut panels = BTreeMap::<(String, String, u64, String), BTreeMap<u32, Vec<usize>>>::new();
    for (i, c) in cells.iter().enumerate() {
        let rest: String = varied.iter().map(|of| of(i)).collect();
        let key = (c.system.clone(), c.params.medium.clone(), c.params.bytes, rest);
        panels
            .entry(key)
            .or_default()
            .entry(c.params.nodes)
            .or_default()
            .push(i);
    }
    let height = 70.0 + panels.len() as f64 * (PLOT + 70.0);
    let mut svg = open(
        WIDTH,
        height,
        20.0,
        "Round trips by frequency and number of nodes",
        "mean with standard deviation, ms; hollow: messages are missing, so the true mean is larger",
    );
    let positive = |v: f64| (v > 0.0).then_some(v);
    let hz = Axis::log(cells.iter().filter_map(|c| positive(c.params.hz)), LEFT, RIGHT);
    let mut top = 70.0;
    for ((system, medium, bytes, rest), curves) in &panels {
        let bottom = top + PLOT;
        let times = cells
            .iter()
            .filter_map(|c| c.metrics.rtt_ms.mean)
            .filter_map(positive);
        let ms = Axis::log(times, bottom, top + 24.0);
        let _ = writeln!(
            svg,
            "<text x=\"20\" y=\"{}\" font-weight=\"bold\">{}</text>",
            top + 8.0,
            escape(&format!("{system}, {medium}, {bytes} B{rest}"))
        );
        for value in hz.ticks() {
            let x = hz.place(value);
            let _ = writeln!(
                svg,
                "<line x1=\"{x:.1}\" y1=\"{}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#ddd\"/><text x=\"{x:.1}\" \
                 y=\"{}\" text-anchor=\"middle\" fill=\"#555\">{value} Hz</text>",
                top + 24.0,
                bottom + 16.0
            );
        }
        for value in ms.ticks() {
            let y = ms.place(value);
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{RIGHT}\" y2=\"{y:.1}\" stroke=\"#ddd\"/><text x=\"{}\" \
                 y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{value} ms</text>",
                LEFT - 6.0,
                y + 4.0
            );
        }
        for (n, (nodes, members)) in curves.iter().enumerate() {
            let color = COLORS[n % COLORS.len()];
            let mut points = Vec::new();
            for c in members.iter().map(|i| &cells[*i]) {
                let (Some(mean), Some(f)) = (c.metrics.rtt_ms.mean.and_then(positive), positive(c.params.hz))
                else {
                    continue;
                };
                let (x, y) = (hz.place(f), ms.place(mean));
                let std = c.metrics.spread_ms.std;
                let fill = if c.metrics.censored { "white" } else { color };
                points.push(format!("{x:.1},{y:.1}"));
                let _ = writeln!(
                    svg,
                    "<line x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{:.1}\" stroke=\"{color}\"/><circle class=\"cell\" \
                     cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{fill}\" stroke=\"{color}\"/>",
                    ms.place((mean - std).max(mean / 10.0)),
                    ms.place(mean + std),
                );
            }
            let y = top + 34.0 + n as f64 * 16.0;
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\"/><text x=\"{}\" y=\"{y}\" fill=\"{color}\">{nodes} \
                 nodes</text>",
                points.join(" "),
                RIGHT + 12.0
            );
        }
        top = bottom + 70.0;
    }
    close(svg)
}
