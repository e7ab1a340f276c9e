//! The sending half of a radio: topics, their order, and what is retransmitted.

mod announcer;
mod bulk;
mod demand;
mod latch;
mod ledger;
mod parity;
mod quota;
mod reliable;
mod rhythm;
mod scheduler;
mod timing;
mod topic;

pub(crate) use demand::DemandChange;
#[cfg(test)]
pub(crate) use parity::Coder;
pub(crate) use quota::account;
pub(crate) use rhythm::{Foreseen, Rhythm};
pub(crate) use scheduler::{Scheduler, Work};
pub(crate) use timing::Way;
pub(crate) use topic::{Pending, SendTopic, When};
