//! Round trips over load, as SVG: a panel for each setting, a line for each system and number of nodes.

use super::measured::{CellMetrics, Metrics, Params};
use super::targets::{knees, points};
use crate::svg;
use analysis::axis::Axis;
use stats::Cell;
use std::fmt::Write;

const PANEL: (f64, f64) = (420.0, 230.0);
const LEFT: f64 = 60.0;
const TOP: f64 = 60.0;
const GAP: f64 = 70.0;
const COLUMNS: usize = 2;
const COLOURS: [&str; 6] = ["#0b6", "#084", "#d33", "#e80", "#36c", "#939"];

type Measured = Cell<Params, Metrics>;

/// Mean round trips over N·f, both logarithmic; hollow points are not sustained, and a dashed line is the highest load.
pub(super) fn draw(cells: &[Measured]) -> String {
    let mut panels: Vec<String> = Vec::new();
    let mut systems: Vec<&str> = Vec::new();
    for cell in cells {
        if !panels.contains(&panel(&cell.params)) {
            panels.push(panel(&cell.params));
        }
        if !systems.contains(&cell.system.as_str()) {
            systems.push(&cell.system);
        }
    }
    let rows = panels.len().div_ceil(COLUMNS).max(1);
    let width = LEFT + COLUMNS as f64 * (PANEL.0 + GAP);
    let height = TOP + rows as f64 * (PANEL.1 + GAP) + 30.0;
    let subtitle = "mean round trip in ms over messages per second, all senders; hollow: not sustained; dashed: highest load";
    let mut out = svg::open(width, height, LEFT, "Scalability", subtitle);
    for (i, system) in systems.iter().enumerate() {
        let x = LEFT + 120.0 * i as f64;
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "<circle cx=\"{x}\" cy=\"{}\" r=\"4\" fill=\"{}\"/><text x=\"{}\" y=\"{}\">{}</text>",
            height - 16.0,
            colour(i),
            x + 8.0,
            height - 12.0,
            svg::escape(system)
        );
    }
    for (i, name) in panels.iter().enumerate() {
        let x = LEFT + (i % COLUMNS) as f64 * (PANEL.0 + GAP);
        let y = TOP + (i / COLUMNS) as f64 * (PANEL.1 + GAP) + 16.0;
        one(&mut out, name, cells, &systems, (x, y));
    }
    svg::close(out)
}

fn colour(i: usize) -> &'static str {
    COLOURS[i % COLOURS.len()]
}

fn panel(p: &Params) -> String {
    let medium = if ["bus", "loopback"].contains(&p.medium) {
        "one host"
    } else {
        p.medium
    };
    let mut name = format!("E{}, {} B, {medium}", p.experiment, p.bytes);
    if p.hosts > 1 {
        name.push_str(&format!(", {} hosts", p.hosts));
    }
    if p.cpu_share < 1.0 {
        name.push_str(&format!(", {:.0} % cpu", p.cpu_share * 100.0));
    }
    name
}

fn load(p: &Params) -> f64 {
    f64::from(p.senders) * p.hz
}

fn one(out: &mut String, name: &str, cells: &[Measured], systems: &[&str], (x0, y0): (f64, f64)) {
    let here: Vec<(&Measured, &CellMetrics)> =
        points(cells).filter(|(c, _)| panel(&c.params) == name).collect();
    let most: Vec<(&Measured, f64)> = knees(cells)
        .filter(|(c, _)| panel(&c.params) == name)
        .map(|(c, k)| (c, k.messages_per_s))
        .collect();
    let xs = here
        .iter()
        .map(|(c, _)| load(&c.params))
        .chain(most.iter().map(|m| m.1));
    let x = Axis::log(xs, x0, x0 + PANEL.0);
    let y = Axis::log(here.iter().filter_map(|(_, m)| m.rtt_ms.mean), y0 + PANEL.1, y0);
    let _ = writeln!(
        out,
        "<text x=\"{x0}\" y=\"{}\" font-weight=\"bold\">{}</text>\n\
         <rect x=\"{x0}\" y=\"{y0}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#999\"/>",
        y0 - 6.0,
        svg::escape(name),
        PANEL.0,
        PANEL.1
    );
    for power in x.ticks() {
        let at = x.place(power);
        let _ = writeln!(
            out,
            "<line x1=\"{at:.1}\" y1=\"{y0}\" x2=\"{at:.1}\" y2=\"{}\" stroke=\"#eee\"/>\
             <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{power}</text>",
            y0 + PANEL.1,
            y0 + PANEL.1 + 16.0
        );
    }
    for power in y.ticks() {
        let at = y.place(power);
        let _ = writeln!(
            out,
            "<line x1=\"{x0}\" y1=\"{at:.1}\" x2=\"{}\" y2=\"{at:.1}\" stroke=\"#eee\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{power}</text>",
            x0 + PANEL.0,
            x0 - 5.0,
            at + 4.0
        );
    }
    for (i, system) in systems.iter().enumerate() {
        let mut nodes: Vec<u32> = here
            .iter()
            .filter(|(c, _)| c.system == *system)
            .map(|(c, _)| c.params.nodes)
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        for n in nodes {
            let of = here
                .iter()
                .filter(|(c, _)| c.system == *system && c.params.nodes == n);
            let mut line: Vec<(f64, f64, bool)> = of
                .filter_map(|(c, m)| Some((load(&c.params), m.rtt_ms.mean?, m.sustained)))
                .collect();
            line.sort_by(|a, b| a.0.total_cmp(&b.0));
            let path: Vec<String> = line
                .iter()
                .map(|p| format!("{:.1},{:.1}", x.place(p.0), y.place(p.1)))
                .collect();
            let _ = writeln!(
                out,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-opacity=\"0.6\"/>",
                path.join(" "),
                colour(i)
            );
            for (load, ms, sustained) in line {
                let fill = if sustained { colour(i) } else { "white" };
                let _ = writeln!(
                    out,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{fill}\" stroke=\"{}\"><title>{} {n} nodes: {load:.0}/s, \
                     {ms:.3} ms</title></circle>",
                    x.place(load),
                    y.place(ms),
                    colour(i),
                    svg::escape(system)
                );
            }
        }
        for (_, load) in most.iter().filter(|(c, load)| c.system == *system && *load > 0.0) {
            let at = x.place(*load);
            let _ = writeln!(
                out,
                "<line x1=\"{at:.1}\" y1=\"{y0}\" x2=\"{at:.1}\" y2=\"{}\" stroke=\"{}\" stroke-dasharray=\"4 3\"/>",
                y0 + PANEL.1,
                colour(i)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::targets::tests::{cell, peak};
    use super::super::{Medium, System};
    use super::*;

    #[test]
    fn every_system_and_setting_is_drawn() {
        let cells = [
            cell(System::Ropewalk, |_| {}, 0.2),
            cell(System::Rospy, |p| p.hz = 300.0, 5.0),
            cell(System::Rospy, |p| p.bytes = 11, 5.0),
            peak(System::Ropewalk, Medium::Host, 40_000.0),
        ];
        let svg = draw(&cells);
        for part in [
            "E7, 4250 B, one host",
            "E7, 11 B, one host",
            "ropewalk 8 nodes: 400/s",
            "stroke-dasharray",
            "</svg>",
        ] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(draw(&[]).ends_with("</svg>\n"));
    }
}
