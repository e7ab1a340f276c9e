//! `ropewalk node`: lists nodes and their endpoints.

mod info;
mod list;

use crate::failure::{OrFail, Outcome};
use clap::{Args, Subcommand};
use ropewalk::Node;

/// List nodes, and show what each publishes, subscribes to and serves
///
/// Nodes of ROS 2 over rmw_ropewalk appear with all their endpoints; those of
/// other hosts appear over links with `ros2: true`. Other programs state a node
/// with each publisher. If a process states a single node, its subscribers and
/// services count as that node's.
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

/// Runs the subcommand.
pub(crate) fn run(options: &Options) -> Outcome {
    let node = Node::new("node").or_input()?;
    match &options.what {
        What::List(list) => list::run(&node, list),
        What::Info(info) => info::run(&node, info),
    }
}
