//! Capacity of a machine and a network: `ropewalk bench scale`.
//!
//! The experiments of "Scalability in ROS" (chapters 3 and 4), and the one that it proposed and did not run. Every node
//! is a process. Half of the nodes send, the others echo, and round trips are measured on the sender's clock. Systems
//! alternate within each point, and a search ends each setting: the highest sustained load, with its cause.

pub mod agents;
mod bisect;
mod calls;
mod cause;
mod cgroup;
mod counters;
mod figure;
mod links;
mod measured;
mod nodes_of_run;
mod options;
mod outcome;
pub mod part;
mod peers;
mod plan;
mod point;
mod profile;
mod raw;
mod said;
mod session;
mod sockets;
mod stage;
mod statistics;
mod store;
mod system;
mod targets;
mod tools;
mod trial;
mod watch;

pub use crate::kit::systems::System;
pub use measured::{Busiest, CellMetrics, Ci95, KneeMetrics, Metrics, NodesKnee, Params, Rtt, Wire};
pub use options::Options;
pub use outcome::{Failed, Outcome};
pub use point::{Medium, Topology};
pub use profile::{Function, Profile};
pub(crate) use system::SYSTEMS;
pub use targets::Aim;

use crate::kit::error::Error;

/// Measures according to `options`. Blocks for minutes to hours, with its progress on standard error. It calls
/// `stopped` at least ten times a second; true ends it early, with the results so far.
///
/// The calling process must be `ropewalk`: nodes, labs and links are started by running it again.
///
/// # Errors
/// [`Error`]: nothing can be measured, or a file cannot be written. Failed points are in the [`Outcome`].
pub fn run(options: &Options, stopped: &dyn Fn() -> bool) -> Result<Outcome, Error> {
    run_with(options, || tools::Tools::prepare(options, stopped))
}

/// The same with tools that are created only if there is something to measure.
fn run_with<'a>(
    options: &Options,
    tools: impl FnOnce() -> Result<tools::Tools<'a>, Error>,
) -> Result<Outcome, Error> {
    options.check()?;
    let mut plan = plan::plan(options);
    if plan.points.is_empty() && plan.sweeps.is_empty() {
        return Err(Error::Input("nothing is left to measure".into()));
    }
    if options.lacks_machines(&plan) {
        return Err(Error::Input(
            "experiment 8 and the medium `machines` need real machines: `ropewalk bench agent HOST,HOST -- scale --experiment 8`".into(),
        ));
    }
    let mut notes = Vec::new();
    // Agents report this for their machines.
    if options.machines == 0
        && plan.has_shares()
        && let Err(why) = cgroup::Quota::new(0.5)
    {
        if !options.cpu.is_empty() {
            return Err(Error::Nothing(why));
        }
        notes.push(format!("only all processors are measured: {why}"));
        plan = plan.without_shares();
    }
    let mut tools = tools()?;
    if options.media.is_empty() && tools.wired() {
        notes.push("no machine has a radio, so links send without a limit (--media machines-wired); --media machines lets them find out how much the network carries".into());
        plan = plan.wired();
    }
    notes.iter().for_each(|note| eprintln!("{note}"));
    tools.notes.append(&mut notes);
    session::Session::open(options, &tools)?.measure(&plan)
}
