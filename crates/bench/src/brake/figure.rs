//! Distances and angles as SVG, as in the paper's Fig. 10 and 11.

use super::metrics::{Metrics, Params, Spread};
use super::{Application, motion};
use crate::svg::{self, close, escape};
use stats::Cell;
use std::fmt::Write;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 120.0;
const TOP: f64 = 84.0;
const ROW: f64 = 34.0;
const PARTS: [(&str, &str); 4] = [
    ("L1 until the image is drawn", "#b0b7bf"),
    ("L2 until it is received", "#d1495b"),
    ("L3 recognition", "#edae49"),
    ("L4 command and braking", "#1f77a4"),
];

/// Bars of L1 to L4 for each system, and below them the angles.
pub(super) fn draw(cells: &[Cell<Params, Metrics>]) -> String {
    let of = |application: Application| cells.iter().filter(move |c| c.params.application == application);
    let rows = |application| of(application).count() as f64;
    let below = TOP + ROW * rows(Application::Straight) + 80.0;
    let height = below + ROW * rows(Application::Turn) + 60.0;
    let mut svg = svg::open(
        WIDTH,
        height,
        LEFT,
        "Stopping at a red light",
        "1920x1080 images at 30 Hz; medians; whiskers: minimum to maximum",
    );
    let most = of(Application::Straight).filter_map(|c| Some(c.metrics.distance_cm?.max));
    let axis = Axis::to(most, "cm");
    for (i, (name, color)) in PARTS.iter().enumerate() {
        let x = LEFT + 160.0 * i as f64;
        // Writing to a String cannot fail.
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"56\" width=\"9\" height=\"9\" fill=\"{color}\"/>\
             <text x=\"{}\" y=\"64\" font-size=\"11\">{name}</text>",
            x + 13.0
        );
    }
    for (i, cell) in of(Application::Straight).enumerate() {
        let y = TOP + ROW * i as f64;
        label(&mut svg, &cell.system, y);
        let mut from = 0.0;
        for (part, (_, color)) in cell.metrics.parts_cm.into_iter().flatten().zip(PARTS) {
            bar(&mut svg, "part", axis.x(from), axis.x(from + part), y, color);
            from += part;
        }
        whisker(&mut svg, &axis, cell.metrics.distance_cm, y, "cm");
    }
    axis.draw(&mut svg, TOP, TOP + ROW * rows(Application::Straight));

    let most = of(Application::Turn).filter_map(|c| Some(c.metrics.angle_deg?.max));
    let axis = Axis::to(most, "°");
    if rows(Application::Turn) > 0.0 {
        let _ = writeln!(
            svg,
            "<text x=\"{LEFT}\" y=\"{}\" font-weight=\"bold\">Turning: degrees past the light, {:.1} of them braking</text>",
            below - 12.0,
            motion::turn_braking().0
        );
    }
    for (i, cell) in of(Application::Turn).enumerate() {
        let y = below + ROW * i as f64;
        label(&mut svg, &cell.system, y);
        if let Some(angle) = cell.metrics.angle_deg {
            bar(
                &mut svg,
                "angle",
                axis.x(0.0),
                axis.x(angle.median),
                y,
                PARTS[3].1,
            );
        }
        whisker(&mut svg, &axis, cell.metrics.angle_deg, y, "°");
        let missed = cell.metrics.missed_revolutions.unwrap_or(0);
        if missed > 0 {
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" font-size=\"10\">{missed} turns too many</text>",
                WIDTH - 8.0,
                y + 30.0
            );
        }
    }
    axis.draw(&mut svg, below, below + ROW * rows(Application::Turn));
    close(svg)
}

/// An axis from zero to a round number.
struct Axis {
    step: f64,
    steps: u32,
    unit: &'static str,
}

impl Axis {
    fn to(values: impl Iterator<Item = f64>, unit: &'static str) -> Axis {
        let most = values.fold(1.0, f64::max);
        let magnitude = 10f64.powf((most / 5.0).log10().floor());
        let rounded = [1.0, 2.0, 5.0, 10.0].map(|f| f * magnitude);
        let step = rounded.into_iter().find(|s| *s >= most / 6.0).unwrap_or(most);
        let steps = (most / step).ceil().max(1.0) as u32;
        Axis { step, steps, unit }
    }

    fn x(&self, value: f64) -> f64 {
        let share = value / (self.step * f64::from(self.steps));
        LEFT + share.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn draw(&self, svg: &mut String, y0: f64, y1: f64) {
        for i in 0..=self.steps {
            let value = self.step * f64::from(i);
            let x = self.x(value);
            let _ = writeln!(
                svg,
                "<line x1=\"{x:.1}\" y1=\"{y0}\" x2=\"{x:.1}\" y2=\"{y1}\" stroke=\"#ddd\" stroke-opacity=\"0.5\"/>\
                 <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">{value} {}</text>",
                y1 + 15.0,
                self.unit
            );
        }
    }
}

fn label(svg: &mut String, system: &str, y: f64) {
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
        LEFT - 8.0,
        y + 18.0,
        escape(system)
    );
}

fn bar(svg: &mut String, class: &str, from: f64, to: f64, y: f64, color: &str) {
    let (left, width) = (from.min(to), (to - from).abs());
    let _ = writeln!(
        svg,
        "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{}\" width=\"{width:.1}\" height=\"20\" fill=\"{color}\"/>",
        y + 4.0
    );
}

fn whisker(svg: &mut String, axis: &Axis, spread: Option<Spread>, y: f64, unit: &str) {
    let Some(s) = spread else { return };
    let y = y + 14.0;
    let _ = writeln!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{y}\" x2=\"{:.1}\" y2=\"{y}\" stroke=\"black\"/>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"end\" font-weight=\"bold\">{:.1} {unit}</text>",
        axis.x(s.min),
        axis.x(s.max),
        WIDTH - 8.0,
        y + 4.0,
        s.median
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(application: Application, system: &str) -> Cell<Params, Metrics> {
        let spread = Spread::of(vec![38.0, 40.0, 44.0]);
        let options = crate::brake::Options::default();
        let mut metrics = Metrics {
            parts_cm: Some([1.0, 0.1, 1.2, 37.7]),
            distance_cm: spread,
            ..Metrics::default()
        };
        if application == Application::Turn {
            metrics.angle_deg = spread;
            metrics.missed_revolutions = Some(2);
        }
        Cell {
            system: system.into(),
            params: Params::new(application, 3, &options),
            metrics,
        }
    }

    #[test]
    fn four_parts_for_each_system_and_an_angle() {
        let svg = draw(&[
            cell(Application::Straight, "ropewalk"),
            cell(Application::Straight, "tcpros"),
            cell(Application::Turn, "ropewalk"),
        ]);
        assert_eq!(svg.matches("class=\"part\"").count(), 8);
        assert_eq!(svg.matches("class=\"angle\"").count(), 1);
        assert!(
            svg.contains("40.0 cm") && svg.contains("2 turns too many"),
            "{svg}"
        );
    }

    #[test]
    fn nothing_draws_an_empty_figure() {
        let svg = draw(&[]);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && !svg.contains("NaN"));
    }
}
