//! Predicts what a machine and a medium can carry, fitted to few measured cells.
//!
//! The thesis has one number, CSLV = N · f · S (section 4.1), which holds in the middle and is wrong at the ends: 256
//! processes at 1 Hz, small messages limited by the processor, large ones limited by the wire. [`Model`] has three
//! limits, the first of which to be reached is the knee: one process, the processors, or the medium is always busy. See
//! `docs/decisions/250-performance-model.md`.

mod costs;
mod cslv;
mod fit;
mod knee;
mod least_squares;
mod network;
mod read;
mod setting;
mod validate;

pub use costs::{Costs, Limit, Model, Prediction};
pub use cslv::{Cslv, Window, WindowMetrics};
pub use fit::{FitError, MOST_CELLS};
pub use knee::{End, Knee, KneeMetrics, Varied, knees};
pub use network::{Network, Share};
pub use read::{Read, ReadError, UNBROKEN, read};
pub use setting::{Params, Sample};
pub use validate::{Compared, Validation, ValidationMetrics, validate};

/// Criterion by which a cell works.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Criterion {
    /// Least share of messages received.
    pub delivery: f64,
    /// Largest mean round trip.
    pub mean_ms: f64,
}

/// The benchmarks' criterion for a sustained load.
pub const SUSTAINED: Criterion = Criterion {
    delivery: 0.999,
    mean_ms: 100.0,
};

impl Criterion {
    /// Whether a cell with this delivery and mean works.
    pub fn holds(&self, delivery: f64, mean_ms: Option<f64>) -> bool {
        delivery >= self.delivery && mean_ms.is_some_and(|m| m <= self.mean_ms)
    }
}
