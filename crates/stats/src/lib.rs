#![forbid(unsafe_code)]
//! One set of numbers: instants, histograms, jitter, delivery and drop reasons. They are computed here, and the bench,
//! the command line, the API and the dashboard show them the same way.
//!
//! This crate does no I/O and reads no clock: every instant is passed in as a [`Time`]. The caller that runs an
//! experiment finds out which machine a [`Report`] was made on.
//!
//! ```
//! use stats::{Drops, Flow, Time};
//!
//! let mut scan = Flow::new();
//! for i in 0..100 {
//!     let stamp = Time::from_millis(i * 33);
//!     scan.received(stamp, stamp + std::time::Duration::from_millis(4), 2631);
//! }
//! let metrics = scan.metrics(100, &Drops::default());
//! assert_eq!(metrics.delivery, 1.0);
//! assert_eq!(metrics.delay_ms.max, 4.0);
//! ```

mod drops;
mod flow;
mod histogram;
mod interval;
pub mod quantity;
mod report;
mod seldom;
pub mod text;
mod time;
mod window;

pub use drops::{DropReason, Drops};
pub use flow::{Delay, Flow, FlowMetrics, Jitter, Spread};
pub use histogram::{Histogram, Moments};
pub use interval::Interval;
pub use report::{Cell, Report};
pub use seldom::Seldom;
pub use time::Time;
pub use window::{Rates, Window};
