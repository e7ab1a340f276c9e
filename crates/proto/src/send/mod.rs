//! The sending half of a radio: topics, their order, and the pace.

mod announcer;
mod breadth;
mod bulk;
mod demand;
mod estimate;
mod flight;
mod latch;
mod ledger;
mod pacer;
mod parity;
mod quota;
mod reliable;
mod rhythm;
mod scheduler;
mod timing;
mod topic;

pub(crate) use breadth::{Breadth, Lately};
pub(crate) use demand::DemandChange;
pub(crate) use estimate::Estimate;
pub(crate) use flight::{Entry, Flight, URGENT};
pub(crate) use pacer::{CONTROL, Pacer};
#[cfg(test)]
pub(crate) use parity::Coder;
pub(crate) use quota::account;
pub(crate) use rhythm::{Foreseen, Rhythm};
pub(crate) use scheduler::{Scheduler, Work};
pub(crate) use timing::Way;
pub(crate) use topic::{Pending, SendTopic, When};
