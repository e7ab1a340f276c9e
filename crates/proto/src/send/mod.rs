//! The sending half of a radio: topics, their order, and the pace.

mod announcer;
mod pacer;
mod scheduler;
mod topic;

pub(crate) use pacer::{CONTROL, Pacer};
pub(crate) use scheduler::{Scheduler, Work};
pub(crate) use topic::{OutTopic, Pending};
