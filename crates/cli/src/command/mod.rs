//! The commands other than the demo, a file each.

pub(crate) mod action;
pub(crate) mod bag;
pub(crate) mod bench;
pub(crate) mod control;
pub(crate) mod doctor;
pub(crate) mod endpoints;
pub(crate) mod generate;
pub(crate) mod import;
pub(crate) mod info;
pub(crate) mod interface;
pub(crate) mod keys;
pub(crate) mod lab;
pub(crate) mod link;
pub(crate) mod msg;
pub(crate) mod node;
mod optional_type;
pub(crate) mod param;
pub(crate) mod play;
pub(crate) mod record;
pub(crate) mod robot;
pub(crate) mod ros1;
pub(crate) mod ros2;
pub(crate) mod service;
pub(crate) mod top;
pub(crate) mod topic;
mod transport;
mod typed;
