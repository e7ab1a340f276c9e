//! The paper's Figures 1 to 3 as SVG: box plots on a logarithmic axis, a panel for each network and measurement.

use super::options::{Network, What};
use super::outcome::shown;
use super::paper::Given;
use crate::kit::cell::{Metrics, Params};
use crate::svg::{close, escape, open};
use analysis::axis::Axis;
use stats::Cell;
use std::fmt::Write;

const WIDTH: f64 = 900.0;
const LEFT: f64 = 260.0;
const RIGHT: f64 = WIDTH - 80.0;
const ROW: f64 = 24.0;
const TOP: f64 = 60.0;
const OURS: &str = "#1f77a4";
const OTHERS: &str = "#66a182";
const PAPER: &str = "#d1495b";

/// The paper's figures, and additional ones.
const PANELS: [(&str, Network, What); 10] = [
    ("Twist, loopback", Network::Loopback, What::Twist),
    ("Fig. 1: twist, default network", Network::Default, What::Twist),
    (
        "Fig. 1: twist, one packet in five lost",
        Network::Loss20,
        What::Twist,
    ),
    ("Fig. 1: twist, 2000 ms of delay", Network::Delay2000, What::Twist),
    (
        "Fig. 2: 1 MB there and back, default network",
        Network::Default,
        What::Telemetry1Mb,
    ),
    (
        "Fig. 2: 10 MB there and back, default network",
        Network::Default,
        What::Telemetry10Mb,
    ),
    (
        "Fig. 3: 1 MB there and back, 2000 ms of delay",
        Network::Delay2000,
        What::Telemetry1Mb,
    ),
    (
        "Fig. 3: 10 MB there and back, 2000 ms of delay",
        Network::Delay2000,
        What::Telemetry10Mb,
    ),
    (
        "1 MB there and back, loopback",
        Network::Loopback,
        What::Telemetry1Mb,
    ),
    (
        "10 MB there and back, loopback",
        Network::Loopback,
        What::Telemetry10Mb,
    ),
];

/// One line of a panel.
struct Line {
    name: String,
    /// Minimum, quartiles, 99th percentile; a single number is drawn as a diamond.
    ms: Vec<f64>,
    color: &'static str,
}

struct Panel {
    title: &'static str,
    lines: Vec<Line>,
    /// The theoretical minimum.
    least: Option<f64>,
}

pub(super) fn draw(cells: &[Cell<Params, Metrics>], given: &[Given]) -> String {
    let panels: Vec<Panel> = PANELS
        .iter()
        .map(|(title, network, what)| panel(title, (*network, *what), cells, given))
        .filter(|p| !p.lines.is_empty())
        .collect();
    let rows: usize = panels.iter().map(|p| p.lines.len()).sum();
    let height = TOP + rows as f64 * ROW + panels.len() as f64 * 62.0 + 20.0;
    let mut svg = open(
        WIDTH,
        height,
        20.0,
        "Commands and telemetry of a robot",
        "box: quartiles and median; whiskers: minimum to 99th percentile; diamond: the paper's mean; dashed: delay + size / rate",
    );
    let mut y = TOP;
    for panel in &panels {
        one(&mut svg, panel, y);
        y += panel.lines.len() as f64 * ROW + 62.0;
    }
    close(svg)
}

fn panel(
    title: &'static str,
    (network, what): (Network, What),
    cells: &[Cell<Params, Metrics>],
    given: &[Given],
) -> Panel {
    let text = |c: &Cell<Params, Metrics>, name: &str| {
        let value = c.params.get(name).and_then(|v| v.as_str());
        value.unwrap_or_default().to_owned()
    };
    let here = |c: &&Cell<Params, Metrics>| {
        // A round trip of 2 s is a separate network, which the paper does not have.
        let long = text(c, "scenario").ends_with("rtt-2s");
        text(c, "network") == network.name() && text(c, "what") == what.name() && !long
    };
    let cells: Vec<_> = cells.iter().filter(here).collect();
    let value = |c: &Cell<Params, Metrics>, name: &str| c.metrics.values.get(name).copied();
    let mut lines = Vec::new();
    for cell in &cells {
        let names = ["min", "p25", "p50", "p75", "p99"];
        let ms = names
            .iter()
            .filter_map(|n| value(cell, &format!("latency_ms.{n}")));
        lines.push(Line {
            name: format!("{} ({})", cell.system, text(cell, "setting")),
            ms: ms.collect(),
            color: if cell.system.starts_with("ropewalk") {
                OURS
            } else {
                OTHERS
            },
        });
    }
    if !cells.is_empty() {
        let papers = given
            .iter()
            .filter(|g| g.network == network.name() && g.what == what);
        for (given, ms) in papers.filter_map(|g| Some((g, g.mean_ms.or(g.p50_ms)?))) {
            lines.push(Line {
                name: format!("{} ({})", given.system, given.by),
                ms: vec![ms],
                color: PAPER,
            });
        }
    }
    Panel {
        title,
        least: cells.first().and_then(|c| value(c, "closed_form_ms")),
        lines,
    }
}

fn one(svg: &mut String, panel: &Panel, y: f64) {
    let all = panel.lines.iter().flat_map(|l| l.ms.iter().copied());
    let axis = Axis::log(all.chain(panel.least), LEFT, RIGHT);
    let top = y + 24.0;
    let bottom = top + panel.lines.len() as f64 * ROW;
    // Writing to a String cannot fail.
    let _ = writeln!(
        svg,
        "<text x=\"20\" y=\"{}\" font-weight=\"bold\">{}</text>",
        y + 14.0,
        escape(panel.title)
    );
    for ms in axis.ticks() {
        let x = axis.place(ms);
        let label = if ms >= 1e3 {
            format!("{} s", ms / 1e3)
        } else {
            format!("{ms} ms")
        };
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{top:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555\">{label}</text>",
            bottom + 14.0
        );
    }
    if let Some(least) = panel.least {
        let x = axis.place(least);
        let _ = writeln!(
            svg,
            "<line class=\"least\" x1=\"{x:.1}\" y1=\"{top:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"#333\" \
             stroke-dasharray=\"4 3\"/>"
        );
    }
    for (i, line) in panel.lines.iter().enumerate() {
        draw_line(svg, &axis, line, top + i as f64 * ROW + ROW / 2.0);
    }
}

fn draw_line(svg: &mut String, axis: &Axis, line: &Line, y: f64) {
    let color = line.color;
    let _ = write!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        LEFT - 8.0,
        y + 4.0,
        escape(&line.name)
    );
    let middle = match line.ms[..] {
        [min, p25, p50, p75, p99] => {
            let x = [min, p25, p50, p75, p99].map(|ms| axis.place(ms));
            let _ = writeln!(
                svg,
                "<g class=\"box\" stroke=\"{color}\"><line x1=\"{:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\"/>\
                 <rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"12\" fill=\"{color}\" fill-opacity=\"0.4\"/>\
                 <line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"black\" stroke-width=\"1.5\"/></g>",
                x[0],
                x[4],
                x[1],
                y - 6.0,
                (x[3] - x[1]).max(1.0),
                x[2],
                y - 6.0,
                x[2],
                y + 6.0
            );
            Some((p50, x[4]))
        }
        [mean] => {
            let x = axis.place(mean);
            let _ = writeln!(
                svg,
                "<path class=\"given\" d=\"M{:.1} {y:.1} L{x:.1} {:.1} L{:.1} {y:.1} L{x:.1} {:.1} Z\" fill=\"{color}\"/>",
                x - 6.0,
                y - 6.0,
                x + 6.0,
                y + 6.0
            );
            Some((mean, x))
        }
        _ => None,
    };
    let (said, x) = match middle {
        Some((ms, x)) => (shown(ms), x),
        None => ("nothing came".to_owned(), LEFT),
    };
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"9\">{said}</text>",
        x + 9.0,
        y + 3.0
    );
}

#[cfg(test)]
mod tests {
    use super::super::paper;
    use super::super::tests::cell;
    use super::*;

    #[test]
    fn a_panel_has_a_box_for_each_system_and_the_papers_means() {
        let cells = [
            cell("ropewalk-link", Network::Default, What::Telemetry10Mb, 16_000.0),
            cell("ros1", Network::Default, What::Telemetry10Mb, 19_000.0),
        ];
        let svg = draw(&cells, &paper::given());
        assert_eq!(svg.matches("class=\"box\"").count(), 2, "{svg}");
        assert_eq!(svg.matches("class=\"given\"").count(), 3, "{svg}");
        assert_eq!(svg.matches("class=\"least\"").count(), 1, "{svg}");
        assert!(
            svg.contains("Fig. 2: 10 MB") && svg.ends_with("</svg>\n"),
            "{svg}"
        );
        assert!(!draw(&[], &[]).contains("NaN"));
    }

    #[test]
    fn an_axis_holds_all_that_is_on_it() {
        let axis = Axis::log([0.3, 40.0].into_iter(), LEFT, RIGHT);
        assert_eq!(axis.ticks(), [0.1, 1.0, 10.0, 100.0]);
        assert!(axis.place(0.3) > LEFT && axis.place(40.0) < RIGHT);
        assert_eq!(axis.place(0.0), LEFT);
    }
}
