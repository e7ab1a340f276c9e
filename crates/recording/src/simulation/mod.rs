//! A simulated robot that drives a loop through a furnished room: the same stream as a recording, without
//! a file, the same for the same seed.
//!
//! | topic | type | rate | size |
//! |---|---|---|---|
//! | `/scan` | sensor_msgs/LaserScan | 30 Hz | 2.6 kB |
//! | `/tf` | tf2_msgs/TFMessage | 80 Hz | 87 B – 1 kB |
//! | `/camera/image/compressed` | sensor_msgs/CompressedImage | 6.67 Hz | about 77 kB |

use std::path::Path;

use crate::error::WriteError;
use crate::model::{Channel, Message, Summary};
use crate::write::Options;

/// The simulated recording's channels, in the order of their ids.
pub fn channels() -> Vec<Channel> {
    todo!()
}

/// The messages of `seconds` of driving, in time order, made as they are asked for. Times count from zero.
pub fn generate(_seconds: f64, _seed: u64) -> impl Iterator<Item = Message> + Send + 'static {
    std::iter::empty()
}

/// Writes `seconds` of driving as an MCAP file.
pub fn write(
    _path: impl AsRef<Path>,
    _seconds: f64,
    _seed: u64,
    _options: &Options,
) -> Result<Summary, WriteError> {
    todo!()
}
