//! What all experiments share: processes and their output, programs of `peers/`, labs and hosts, links, cells and outcomes.

pub(crate) mod cell;
pub(crate) mod error;
pub(crate) mod figure;
pub(crate) mod findings;
pub(crate) mod group;
pub(crate) mod keep;
pub(crate) mod line;
pub(crate) mod links;
pub(crate) mod noise;
pub(crate) mod outcome;
pub(crate) mod paper;
pub(crate) mod part;
pub mod probe;
pub(crate) mod processes;
pub(crate) mod program;
pub(crate) mod programs;
pub(crate) mod progress;
pub(crate) mod roscore;
pub(crate) mod roscpp;
pub(crate) mod sandbox;
pub(crate) mod site;
pub(crate) mod systems;
pub(crate) mod traffic;
pub(crate) mod tries;
pub(crate) mod usage;
