#![forbid(unsafe_code)]
//! Code that all bridges and the link share: which topics and services cross and how (rules, with name
//! patterns), what part of a topic crosses (rate, frames of transforms, log level), the origin of messages,
//! which prevents loops, the status of a bridge, and the list of ROS 2 nodes ([`nodes`]).
//!
//! It transports nothing itself: it does no I/O except for configurations and locks, and has no clock.

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
