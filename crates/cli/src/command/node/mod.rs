//! `ropewalk node`: which nodes there are, and what each has.

mod info;
mod list;

use crate::failure::{OrFail, Outcome};
use clap::{Args, Subcommand};
use ropewalk::Node;

/// List nodes, and show what each publishes, subscribes to, serves and calls.
///
/// Nodes of ROS 2 over rmw_ropewalk come with all that they have, those of
/// other hosts over links with `ros2: true`. Other programs state a node with
/// each publisher; if a process states one node, its subscribers and services
/// are that node's.
///
///   ropewalk node list
///   ropewalk node info /talker
///   ropewalk node info /talker --json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    List(list::Options),
    Info(info::Options),
}

/// Runs one of the commands.
pub(crate) fn run(options: &Options) -> Outcome {
    let node = Node::new("node").or_input()?;
    match &options.what {
        What::List(list) => list::run(&node, list),
        What::Info(info) => info::run(&node, info),
    }
}
