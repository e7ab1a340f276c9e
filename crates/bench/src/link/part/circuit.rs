//! The RLC circuit of the Pound paper's section VI-G, and what its controller answers. `peers/zenoh` has this very file.

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
    /// The capacitor's.
    pub(crate) fn voltage(&self) -> f64 {
        self.voltage
    }

    /// Lets a period pass with `input` volts; Runge and Kutta's fourth order: the error
    /// is far below what is measured.
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

/// What the controller answers to a voltage.
pub(crate) fn control(voltage: f64) -> f64 {
    GAIN * (STEP - voltage)
}
