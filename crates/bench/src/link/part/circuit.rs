//! The RLC circuit of the Pound paper's section VI-G, and its controller. `peers/zenoh` contains the same file.

use std::time::Duration;

/// Farad, henry, ohm, volt, and the controller's gain.
const C: f64 = 0.1;
const L: f64 = 0.1;
const R: f64 = 1.0;
const STEP: f64 = 1.0;
const GAIN: f64 = 1.0;
/// Sampling period.
pub(crate) const PERIOD: Duration = Duration::from_millis(20);
/// The circuit is computed in steps of this share of a period.
const FINE: u32 = 200;
/// A series circuit of resistor, coil and capacitor, driven by a voltage that is held between two samples.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Circuit {
    current: f64,
    voltage: f64,
}

impl Circuit {
    /// Returns the voltage of the capacitor.
    pub(crate) fn voltage(&self) -> f64 {
        self.voltage
    }

    /// Advances by a period with `input` volts, by the fourth-order Runge-Kutta method: its error is far below the
    /// measured differences.
    pub(crate) fn pass(&mut self, input: f64) {
        let h = PERIOD.as_secs_f64() / f64::from(FINE);
        let slope = |i: f64, v: f64| ((input - R * i - v) / L, i / C);
        for _ in 0..FINE {
            let (i, v) = (self.current, self.voltage);
            let a = slope(i, v);
            let b = slope(i + h / 2.0 * a.0, v + h / 2.0 * a.1);
            let c = slope(i + h / 2.0 * b.0, v + h / 2.0 * b.1);
            let d = slope(i + h * c.0, v + h * c.1);
            self.current += h / 6.0 * (a.0 + 2.0 * b.0 + 2.0 * c.0 + d.0);
            self.voltage += h / 6.0 * (a.1 + 2.0 * b.1 + 2.0 * c.1 + d.1);
        }
    }
}

/// Returns the controller's answer to a voltage.
pub(crate) fn control(voltage: f64) -> f64 {
    GAIN * (STEP - voltage)
}
