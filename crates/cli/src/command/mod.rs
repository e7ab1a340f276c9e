//! The commands other than the demo, a file each.

pub(crate) mod bench;
mod endpoints;
pub(crate) mod link;
pub(crate) mod msg;
pub(crate) mod play;
pub(crate) mod record;
pub(crate) mod service;
pub(crate) mod topic;
