//! Axes with machine-readable positions, so that a drawing can be read back.

use std::fmt::Write;

/// A logarithmic axis over whole decades, or a linear one from 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
}

impl Axis {
    /// A logarithmic axis over the positive values.
    pub fn log(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Axis {
        let positive = values.filter(|v| v.is_finite() && *v > 0.0);
        let (least, most) = positive.fold((f64::INFINITY, 0.0f64), |(a, b), v| (a.min(v), b.max(v)));
        let (low, high) = if most > 0.0 {
            (least.log10().floor(), most.log10().ceil())
        } else {
            (0.0, 1.0)
        };
        Axis {
            low: 10f64.powf(low),
            high: 10f64.powf(high.max(low + 1.0)),
            from,
            to,
            log: true,
        }
    }

    /// A linear axis from 0.
    pub fn straight(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Axis {
        let most = values.filter(|v| v.is_finite()).fold(0.0f64, f64::max);
        Axis {
            low: 0.0,
            high: if most > 0.0 { most } else { 1.0 },
            from,
            to,
            log: false,
        }
    }

    /// Position of a value; a value beyond the ends is placed at the end.
    pub fn place(&self, value: f64) -> f64 {
        let share = if self.log {
            (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + (self.to - self.from) * share.clamp(0.0, 1.0)
    }

    /// Values for grid lines: decades, or fifths of the range.
    pub fn ticks(&self) -> Vec<f64> {
        if self.log {
            let (a, b) = (self.low.log10().round() as i32, self.high.log10().round() as i32);
            let step = ((b - a) / 8).max(1);
            let decades = (a..=b).step_by(step as usize);
            // Parsed from text: a computed power may be off in its last digit, which would be visible.
            return decades.map(|d| format!("1e{d}").parse().unwrap_or(1.0)).collect();
        }
        (0..=5).map(|i| self.high * f64::from(i) / 5.0).collect()
    }

    /// Attributes from which positions along the axis can be read back.
    pub(crate) fn data(&self, name: &str) -> String {
        format!(
            "data-{name}=\"{} {} {} {} {}\"",
            if self.log { "log" } else { "straight" },
            self.low,
            self.high,
            self.from,
            self.to
        )
    }

    /// Grid lines and numbers below a plot from `top` to `bottom`.
    pub(crate) fn below(&self, out: &mut String, top: f64, bottom: f64, unit: &str) {
        for value in self.ticks() {
            let x = self.place(value);
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{x:.2}\" y1=\"{top}\" x2=\"{x:.2}\" y2=\"{bottom}\"/><text class=\"tick\" x=\"{x:.2}\" \
                 y=\"{}\" text-anchor=\"middle\">{}{unit}</text>",
                bottom + 15.0,
                short(value)
            );
        }
    }

    /// Grid lines and numbers left of a plot from `left` to `right`.
    pub(crate) fn beside(&self, out: &mut String, left: f64, right: f64, unit: &str) {
        for value in self.ticks() {
            let y = self.place(value);
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{left}\" y1=\"{y:.2}\" x2=\"{right}\" y2=\"{y:.2}\"/><text class=\"tick\" x=\"{}\" \
                 y=\"{:.2}\" text-anchor=\"end\">{}{unit}</text>",
                left - 6.0,
                y + 4.0,
                short(value)
            );
        }
    }
}

/// A number in readable form.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if size == 0.0 => "0".into(),
        _ if !(1e-3..1e6).contains(&size) => format!("{value:.2e}"),
        _ if value.fract() == 0.0 => format!("{value}"),
        _ if size >= 100.0 => format!("{value:.1}"),
        _ if size >= 1.0 => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lie_between_the_ends() {
        let a = Axis::log([0.3, 40.0, -1.0, f64::NAN].into_iter(), 100.0, 400.0);
        assert_eq!((a.place(0.1).round(), a.place(100.0).round()), (100.0, 400.0));
        assert!((a.place(1.0) - 200.0).abs() < 1e-6);
        assert_eq!((a.place(0.0), a.place(1e9)), (100.0, 400.0));
        let s = Axis::straight([5.0].into_iter(), 300.0, 0.0);
        assert_eq!((s.place(0.0), s.place(2.5)), (300.0, 150.0));
        let none = Axis::log(std::iter::empty(), 0.0, 1.0);
        assert!(none.place(3.0).is_finite());
    }

    #[test]
    fn decades_hold_all_that_is_above_zero() {
        let axis = Axis::log([0.0, 3.0, 250.0, f64::INFINITY].into_iter(), 0.0, 300.0);
        assert_eq!((axis.low, axis.high, axis.ticks().len()), (1.0, 1000.0, 4));
        assert_eq!(
            (axis.place(1.0), axis.place(1000.0), axis.place(0.0)),
            (0.0, 300.0, 0.0)
        );
        assert_eq!(Axis::log([0.001].into_iter(), 0.0, 1.0).ticks(), [0.001, 0.01]);
    }
}
