//! Delays as SVG.

use std::fmt::Write;
use terminal::svg::{self, escape};

/// One distribution: a name and its cumulative points (value in nanoseconds, share at or below it).
pub(crate) struct Series<'a> {
    pub(crate) name: &'a str,
    pub(crate) cumulative: &'a [(u64, f64)],
    /// Marked by a dashed line, in milliseconds.
    pub(crate) p99_ms: f64,
    /// Share of the messages that did not arrive, which the histogram does not show.
    pub(crate) lost: f64,
}

/// One panel: the distributions of one topic.
pub(crate) struct Panel<'a> {
    pub(crate) title: String,
    pub(crate) series: Vec<Series<'a>>,
}

const COLORS: [&str; 4] = ["#d1495b", "#1f77a4", "#edae49", "#66a182"];
const WIDTH: f64 = 760.0;
const PANEL: f64 = 220.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 64.0;
const BINS_PER_DECADE: f64 = 12.0;

/// Histograms of delay on a logarithmic axis, a panel for each topic, as in Pound's Fig. 13.
pub(crate) fn delays(title: &str, subtitle: &str, panels: &[Panel<'_>]) -> String {
    let height = TOP + PANEL * panels.len() as f64 + 20.0;
    let mut svg = svg::open(WIDTH, height, LEFT, title, subtitle);
    let range = range(panels);
    for (i, panel) in panels.iter().enumerate() {
        draw(&mut svg, panel, TOP + PANEL * i as f64, range);
    }
    svg::close(svg)
}

/// Whole decades (log10 of milliseconds) that hold every value.
fn range(panels: &[Panel<'_>]) -> (f64, f64) {
    let values = panels
        .iter()
        .flat_map(|p| &p.series)
        .flat_map(|s| s.cumulative)
        .map(|p| log_ms(p.0));
    let (low, high) = values.fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)));
    if low > high {
        (0.0, 2.0)
    } else {
        (low.floor(), high.ceil().max(low.floor() + 1.0))
    }
}

fn log_ms(ns: u64) -> f64 {
    (ns.max(1_000) as f64 / 1e6).log10()
}

fn draw(svg: &mut String, panel: &Panel<'_>, top: f64, (low, high): (f64, f64)) {
    let (y0, y1) = (top + 42.0, top + PANEL - 40.0);
    let x = |log: f64| LEFT + (log - low) / (high - low) * (WIDTH - LEFT - RIGHT);
    let bins = ((high - low) * BINS_PER_DECADE).round() as usize;
    let shares: Vec<Vec<f64>> = panel
        .series
        .iter()
        .map(|s| histogram(s.cumulative, low, bins))
        .collect();
    let most = shares.iter().flatten().fold(0.0f64, |a, b| a.max(*b)).max(1e-9);
    let y = |share: f64| y1 - share / most * (y1 - y0);

    // Writing to a String cannot fail.
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{}\" font-weight=\"bold\">{}</text>",
        top + 14.0,
        escape(&panel.title)
    );
    for decade in low as i64..=high as i64 {
        let px = x(decade as f64);
        let label = 10f64.powi(decade as i32);
        let _ = writeln!(
            svg,
            "<line x1=\"{px:.1}\" y1=\"{y0}\" x2=\"{px:.1}\" y2=\"{y1}\" stroke=\"#ddd\"/>\
             <text x=\"{px:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">{label}</text>",
            y1 + 15.0
        );
    }
    let _ = writeln!(
        svg,
        "<line x1=\"{LEFT}\" y1=\"{y1}\" x2=\"{}\" y2=\"{y1}\" stroke=\"#333\"/>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#555\">delay (ms)</text>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#555\">{:.0} %</text>",
        WIDTH - RIGHT,
        WIDTH - RIGHT,
        y1 + 29.0,
        LEFT - 6.0,
        y0 + 4.0,
        most * 100.0
    );
    for (i, (series, shares)) in panel.series.iter().zip(&shares).enumerate() {
        let color = COLORS[i % COLORS.len()];
        for (bin, share) in shares.iter().enumerate().filter(|(_, s)| **s > 0.0) {
            let left = x(low + bin as f64 / BINS_PER_DECADE);
            let right = x(low + (bin + 1) as f64 / BINS_PER_DECADE);
            let _ = writeln!(
                svg,
                "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{color}\" \
                 fill-opacity=\"0.55\"/>",
                y(*share),
                (right - left - 0.5).max(0.5),
                y1 - y(*share)
            );
        }
        // Above the plot, where it hides nothing.
        let legend = LEFT + 300.0 * i as f64;
        let line = top + 32.0;
        let _ = writeln!(
            svg,
            "<rect x=\"{legend}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{color}\"/>\
             <text x=\"{}\" y=\"{}\">{}: 99 % below {:.1} ms, {:.0} % lost</text>",
            line - 9.0,
            legend + 15.0,
            line,
            escape(series.name),
            series.p99_ms,
            series.lost * 100.0
        );
        if !series.cumulative.is_empty() {
            let px = x((series.p99_ms.max(1e-3)).log10().clamp(low, high));
            let _ = writeln!(
                svg,
                "<line x1=\"{px:.1}\" y1=\"{y0}\" x2=\"{px:.1}\" y2=\"{y1}\" stroke=\"{color}\" \
                 stroke-dasharray=\"4 3\"/>"
            );
        }
    }
}

/// Shares of a distribution in logarithmic bins from `low` (log10 of ms).
fn histogram(cumulative: &[(u64, f64)], low: f64, bins: usize) -> Vec<f64> {
    let mut shares = vec![0.0; bins];
    let mut before = 0.0;
    for (value, share) in cumulative {
        let bin = ((log_ms(*value) - low) * BINS_PER_DECADE) as usize;
        if let Some(s) = shares.get_mut(bin.min(bins.saturating_sub(1))) {
            *s += share - before;
        }
        before = *share;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_hold_the_whole_distribution() {
        let points = [(1_500_000, 0.25), (2_000_000, 0.5), (900_000_000, 1.0)];
        let shares = histogram(&points, 0.0, 36);
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert_eq!(shares.iter().filter(|s| **s > 0.0).count(), 3);
    }

    #[test]
    fn names_cannot_break_the_markup() {
        let series = Series {
            name: "<b>&",
            cumulative: &[(1_000_000, 1.0)],
            p99_ms: 1.0,
            lost: 0.15,
        };
        let svg = delays(
            "a<b",
            "c&d",
            &[Panel {
                title: "/scan".into(),
                series: vec![series],
            }],
        );
        assert!(svg.contains("99 % below 1.0 ms, 15 % lost"), "{svg}");
        assert!(svg.contains("&lt;b&gt;&amp;") && svg.contains("a&lt;b") && !svg.contains("<b>"));
    }

    #[test]
    fn an_empty_distribution_draws_an_empty_panel() {
        let series = Series {
            name: "none",
            cumulative: &[],
            p99_ms: 0.0,
            lost: 0.0,
        };
        let svg = delays(
            "t",
            "s",
            &[Panel {
                title: "/scan".into(),
                series: vec![series],
            }],
        );
        assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN"));
    }
}
