//! `ropewalk service`: lists services, and calls them by hand.

mod call;
mod find;
mod info;
mod list;

use super::endpoints::{self, hex};
use crate::failure::{OrFail, Outcome};
use clap::{Args, Subcommand};
use ropewalk::{Node, ServiceInfo};
use serde_json::{Value, json};

/// List, show and call services of this host's bus
///
///   ropewalk service list -t
///   ropewalk service call /add_two_ints '{a: 1, b: 2}'
///   ropewalk service find std_srvs/srv/SetBool
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// List services with their types, servers and clients.
    List(list::Options),
    /// Print a service's type, definition, servers and clients.
    Info(info::Options),
    Call(call::Options),
    /// Print the type of a service: ropewalk service type /add_two_ints
    Type(find::Type),
    /// Print the services of a type: ropewalk service find std_srvs/srv/SetBool
    Find(find::Find),
}

/// Runs the subcommand.
pub(crate) fn run(options: &Options) -> Outcome {
    let node = Node::new("service").or_input()?;
    match &options.what {
        What::List(list) => list::run(&node, list),
        What::Info(info) => info::run(&node, info),
        What::Call(call) => call::run(&node, call),
        What::Type(of) => find::print_type(&node, of),
        What::Find(of) => find::find(&node, of),
    }
}

fn to_json(info: &ServiceInfo) -> Value {
    json!({ "service": info.service.service, "type": info.service.type_name,
            "md5": hex(&info.service.type_hash),
            "servers": endpoints::to_json(&info.servers), "clients": endpoints::to_json(&info.clients) })
}
