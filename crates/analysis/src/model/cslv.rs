//! The thesis' limit: one number for all.

use super::Knee;
use super::setting::Params;

/// CSLV = N · f · S (`papers/ros-scalability.txt`, section 4.1), N the senders.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cslv {
    /// In bytes a second, each way.
    pub bytes_per_s: f64,
}

impl Cslv {
    /// The one limit that is nearest to all knees, by their ratios.
    pub fn of(knees: &[Knee]) -> Option<Cslv> {
        let logs: Vec<f64> = knees
            .iter()
            .map(|k| (k.rate() * k.params.bytes.max(1) as f64).ln())
            .collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        (!logs.is_empty() && mean.is_finite()).then(|| Cslv {
            bytes_per_s: mean.exp(),
        })
    }

    /// At how many round trips a second it breaks.
    pub fn knee(&self, params: &Params) -> f64 {
        self.bytes_per_s / params.bytes.max(1) as f64
    }
}
