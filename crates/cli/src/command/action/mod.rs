//! `ropewalk action`: lists actions, and sends goals by hand.

mod actionlib;
mod goal;
mod list;
pub(crate) mod names;
mod ros2;
mod send;

use crate::failure::{OrFail, Outcome};
use clap::{Args, Subcommand};
use ropewalk::Node;

/// List and show actions, and send goals
///
/// Actions of ROS 2 and of actionlib in ROS 1:
///
///   ropewalk action list -t
///   ropewalk action info /fibonacci
///   ropewalk action send_goal /fibonacci '{order: 5}' --feedback
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    List(list::List),
    Info(list::Info),
    /// Print the type of an action: ropewalk action type /fibonacci
    Type(list::Type),
    /// Print the actions of a type: ropewalk action find example_interfaces/action/Fibonacci
    Find(list::Find),
    #[command(name = "send_goal", alias = "send-goal")]
    SendGoal(send::Options),
}

/// Runs the subcommand.
pub(crate) fn run(options: &Options) -> Outcome {
    let node = Node::new("action").or_input()?;
    match &options.what {
        What::List(list) => list::list(&node, list),
        What::Info(info) => list::info(&node, info),
        What::Type(of) => list::print_type(&node, of),
        What::Find(of) => list::find(&node, of),
        What::SendGoal(goal) => send::run(&node, goal),
    }
}
