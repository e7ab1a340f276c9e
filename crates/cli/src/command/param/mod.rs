//! `ropewalk param`: parameters of ROS 2 nodes, through the parameter services of each node.

mod change;
mod describe;
mod file;
mod list;
mod read;
mod remote;
mod value;
mod yaml;

use crate::failure::{OrFail, Outcome};
use crate::numbers;
use clap::{Args, Subcommand};
use ropewalk::Node;
use std::time::Duration;

/// List, read and change parameters of ROS 2 nodes, also over a link
///
///   ropewalk param list /talker
///   ropewalk param get /talker use_sim_time
///   ropewalk param set /talker use_sim_time true
///   ropewalk param dump /talker >talker.yaml
///   ropewalk param load /talker talker.yaml
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    List(list::Options),
    Get(read::Get),
    Set(change::Set),
    Dump(read::Dump),
    Load(file::Load),
    Delete(change::Delete),
    Describe(describe::Options),
}

/// The node whose parameters are meant.
#[derive(Args)]
struct Target {
    /// The node, with its namespace.
    node: String,
    #[command(flatten)]
    patience: Patience,
}

#[derive(Args)]
struct Patience {
    /// Wait this many seconds for the node to answer.
    #[arg(long, default_value_t = 5.0, value_parser = numbers::seconds)]
    timeout: f64,
}

impl Target {
    fn remote<'a>(&self, node: &'a Node) -> remote::Remote<'a> {
        remote::Remote::new(node, &self.node, self.patience.duration())
    }
}

impl Patience {
    fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.timeout)
    }
}

/// Runs the subcommand.
pub(crate) fn run(options: &Options) -> Outcome {
    let node = Node::new("param").or_input()?;
    match &options.what {
        What::List(list) => list::run(&node, list),
        What::Get(get) => read::get(&node, get),
        What::Set(set) => change::set(&node, set),
        What::Dump(dump) => read::dump(&node, dump),
        What::Load(load) => file::load(&node, load),
        What::Delete(delete) => change::delete(&node, delete),
        What::Describe(describe) => describe::run(&node, describe),
    }
}
