//! Pound's flows as SVG: jitter and delay of each system, the paper's next to the measured ones.

use crate::kit::cell::{Metrics, Params};
use crate::kit::outcome::{Group, Series, groups, label};
use crate::kit::paper::PaperRow;
use crate::svg::{close, escape, open};
use stats::Cell;
use std::fmt::Write;

const LEFT: f64 = 190.0;
const WIDTH: f64 = 900.0;
const RIGHT: f64 = WIDTH - 90.0;
const ROW: f64 = 26.0;
const JITTER: &str = "#d95f02";
const DELAY: &str = "#1b9e77";
/// The axis is logarithmic, from this value over five decades, in ms.
const LEAST_MS: f64 = 0.1;
const DECADES: i32 = 6;
/// Height of the plots over time.
const PLOT: f64 = 140.0;

/// One system's two bars.
struct Bars {
    name: String,
    std_ms: f64,
    delay_ms: f64,
    opacity: f64,
}

/// A panel for each measured topic and number of hops.
pub(crate) fn draw(cells: &[Cell<Params, Metrics>], paper: &[PaperRow], series: &[Series]) -> String {
    let flows: Vec<_> = cells.iter().filter(|c| c.params.contains_key("topic")).collect();
    let panels: Vec<(String, Vec<Bars>)> = groups(&flows)
        .into_iter()
        .map(|group| (group.to_string(), bars(&flows, paper, &group)))
        .collect();
    let rows: usize = panels.iter().map(|p| p.1.len()).sum();
    let height = 80.0 + rows as f64 * ROW + panels.len() as f64 * 56.0 + series.len() as f64 * (PLOT + 60.0);
    let mut svg = open(
        WIDTH,
        height,
        20.0,
        "Jitter and delay of Pound's flows at 6 Mbit/s",
        "std of the period (orange) and mean delay (green) in ms; pale: the paper's, over real radios",
    );
    let mut y = 60.0;
    for (title, bars) in &panels {
        let _ = writeln!(
            svg,
            "<text x=\"20\" y=\"{}\" font-weight=\"bold\">{}</text>",
            y + 14.0,
            escape(title)
        );
        y += 22.0;
        let bottom = y + bars.len() as f64 * ROW;
        for decade in 0..=DECADES {
            let value = LEAST_MS * 10f64.powi(decade);
            let x = place(value);
            let _ = writeln!(
                svg,
                "<line x1=\"{x:.1}\" y1=\"{y}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#ddd\"/>\
                 <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">{value}</text>",
                bottom + 14.0
            );
        }
        for row in bars {
            one(&mut svg, row, y);
            y += ROW;
        }
        y += 34.0;
    }
    for one in series {
        over_time(&mut svg, one, y);
        y += PLOT + 60.0;
    }
    close(svg)
}

/// The longest delay of each second, on the same axis, vertically.
fn over_time(svg: &mut String, series: &Series, y: f64) {
    let _ = writeln!(
        svg,
        "<text x=\"20\" y=\"{}\" font-weight=\"bold\">{} (longest delay of each second, ms)</text>",
        y + 14.0,
        escape(&series.name)
    );
    let (top, bottom) = (y + 24.0, y + 24.0 + PLOT);
    let up = |ms: f64| bottom - PLOT * (place(ms) - LEFT) / (RIGHT - LEFT);
    for decade in 0..=DECADES {
        let value = LEAST_MS * 10f64.powi(decade);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{0:.1}\" x2=\"{RIGHT}\" y2=\"{0:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{1}\" y=\"{2:.1}\" text-anchor=\"end\" fill=\"#555\">{value}</text>",
            up(value),
            LEFT - 6.0,
            up(value) + 4.0
        );
    }
    let last = series.max_delay_ms.iter().map(|p| p[0]).fold(1.0, f64::max);
    let across = |s: f64| LEFT + (RIGHT - LEFT) * s / last;
    for second in (0..=last as u64).step_by(10) {
        let x = across(second as f64);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{top}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#ddd\"/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">{second} s</text>",
            bottom + 14.0
        );
    }
    let points = series.max_delay_ms.iter();
    let points: Vec<String> = points
        .map(|[s, ms]| format!("{:.1},{:.1}", across(*s), up(*ms)))
        .collect();
    let _ = writeln!(
        svg,
        "<polyline class=\"time\" points=\"{}\" fill=\"none\" stroke=\"{DELAY}\" stroke-width=\"1.5\"/>",
        points.join(" ")
    );
}

fn bars(flows: &[&Cell<Params, Metrics>], paper: &[PaperRow], group: &Group<'_>) -> Vec<Bars> {
    let value = |c: &Cell<Params, Metrics>, name: &str| c.metrics.values.get(name).copied().unwrap_or(0.0);
    let measured = flows.iter().filter(|c| Group::of(c) == *group).map(|c| Bars {
        name: label(c),
        std_ms: value(c, "period_ms.std"),
        delay_ms: value(c, "delay_ms.mean"),
        opacity: 1.0,
    });
    let papers = paper.iter().filter(|p| group.has(p)).map(|p| Bars {
        name: format!("{} (paper)", p.system),
        std_ms: p.period_std_ms,
        delay_ms: p.delay_mean_ms,
        opacity: 0.35,
    });
    measured.chain(papers).collect()
}

fn place(ms: f64) -> f64 {
    let decades = (ms.max(LEAST_MS) / LEAST_MS).log10().min(DECADES.into());
    LEFT + (RIGHT - LEFT) * decades / f64::from(DECADES)
}

fn one(svg: &mut String, row: &Bars, y: f64) {
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
        LEFT - 8.0,
        y + 16.0,
        escape(&row.name)
    );
    for (value, color, at) in [(row.std_ms, JITTER, y + 3.0), (row.delay_ms, DELAY, y + 13.0)] {
        let end = place(value);
        let _ = writeln!(
            svg,
            "<rect class=\"bar\" x=\"{LEFT}\" y=\"{at}\" width=\"{:.1}\" height=\"9\" fill=\"{color}\" opacity=\"{}\"/>\
             <text x=\"{:.1}\" y=\"{}\" font-size=\"9\">{value:.1}</text>",
            end - LEFT,
            row.opacity,
            end + 4.0,
            at + 8.0
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::cell::{Timing, Values};
    use serde_json::json;

    #[test]
    fn measured_and_the_papers_stand_in_one_panel() {
        let timing = Timing {
            events: 1,
            late_p50_us: 1.0,
            late_p99_us: 1.0,
            late_max_us: 1.0,
            stalls: 0,
            verdict: lab::Verdict::Good,
            trusted: true,
        };
        let values = Values::from([("period_ms.std", 37.9), ("delay_ms.mean", 41.4)]);
        let metrics = Metrics::new(&[(values, timing)], 1, vec![], "", true).expect("a run");
        let params = Params::from([("hops".into(), json!(1)), ("topic".into(), json!("/laser"))]);
        let cell = Cell {
            system: "udpros".into(),
            params,
            metrics,
        };
        let series = Series {
            name: "flow /laser".into(),
            max_delay_ms: vec![[0.0, 2.0], [1.0, 40.0]],
        };
        let svg = draw(&[cell], &crate::kit::paper::rows(), &[series]);
        assert_eq!(svg.matches("class=\"time\"").count(), 1);
        assert_eq!(svg.matches("class=\"bar\"").count(), 18);
        assert!(
            svg.contains(">37.9<") && svg.contains(">42.5<") && svg.ends_with("</svg>\n"),
            "{svg}"
        );
        assert!(!draw(&[], &[], &[]).contains("NaN"));
    }
}
