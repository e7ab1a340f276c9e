#![forbid(unsafe_code)]
//! What all bridges share, and the link with them: which topics and services cross and how (rules, with patterns of names), what of a
//! topic crosses (its rate, the frames of transforms, the level of the log), where messages came from, so that none goes in
//! circles, what a bridge tells of itself, and which nodes of ROS 2 there are ([`nodes`]).
//!
//! It moves nothing itself: no I/O but for configurations and locks, and no clock.

mod config;
mod filter;
mod lock;
mod name;
pub mod nodes;
mod origin;
mod own;
mod problems;
mod rate;
mod read;
mod rule;
mod status;
mod tf;

pub use config::{ConfigError, Rules, parse_config, problem_at, read_config, unplaced};
pub use filter::{Filter, Unfit};
pub use lock::{Lock, LockError, plain};
pub use name::{best, check, covers, is_pattern, renamed};
pub use origin::Graph;
pub use own::Own;
pub use problems::{Problems, printable};
pub use rate::Ticker;
pub use read::{frequencies, maybe_duration, maybe_frequency, maybe_size};
pub use rule::{Direction, MAX_MESSAGE, ServiceRule, TopicRule};
pub use status::{Counts, Flow, ServiceStatus};
pub use tf::{Frames, Passage, TRANSFORMS, TfRule};
