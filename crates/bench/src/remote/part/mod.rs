//! The processes of `ropewalk bench remote`: the program `ropewalk bench remote-part` on the hosts.
//!
//! They use `Robot` and `Controller` as any program does, and follow the same contract as `peers/remote`
//! (`peers/remote/README.md`), so that one orchestrator runs both.

mod block;
mod files;
mod floor;
mod operator;
mod over;
mod robot;

use crate::kit::part::{Gate, LOOK};
use clap::{Args, Subcommand};
pub use over::{Over, Way};
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The role of one process.
#[derive(Subcommand, Clone, Debug)]
pub enum Role {
    /// A robot that takes twists, sends large telemetry on request, and shares a file.
    Robot {
        /// How it is reached.
        #[command(flatten)]
        over: Over,
        /// A file to share.
        #[arg(long)]
        share: Option<PathBuf>,
        /// Whether to carry out a twist that arrives after a newer one.
        #[arg(long)]
        unordered: bool,
    },
    /// A robot that echoes the operator's telemetry; the operator is a robot to it.
    Repeat {
        /// How they reach each other.
        #[command(flatten)]
        over: Over,
    },
    /// The operator's process: sends twists, and reports the outcome of each.
    Twist {
        /// How it reaches the robot.
        #[command(flatten)]
        over: Over,
        /// Number of twists.
        #[command(flatten)]
        plan: Plan,
        /// Interval in ms; 0: each when the previous one is decided.
        #[arg(long, default_value_t = 0)]
        period_ms: u64,
        /// Expiry of each in ms; 0: a controller's default.
        #[arg(long, default_value_t = 0)]
        expiry_ms: u64,
    },
    /// The operator's process: sends twists until it is stopped, and reports when each was sent and how long it took.
    Drive {
        /// How it reaches the robot.
        #[command(flatten)]
        over: Over,
        /// Pause in ms between the end of one twist and the next.
        #[arg(long, default_value_t = 5)]
        pause_ms: u64,
    },
    /// The operator's process: sends large telemetry and waits until it comes back.
    Throw {
        /// How it and the robot reach each other.
        #[command(flatten)]
        over: Over,
        /// The telemetry.
        #[command(flatten)]
        blocks: Blocks,
    },
    /// The operator's process: makes the robot send large telemetry, and waits for it.
    Catch {
        /// How it reaches the robot.
        #[command(flatten)]
        over: Over,
        /// The telemetry.
        #[command(flatten)]
        blocks: Blocks,
        /// Time after `go` for the path to become known.
        #[arg(long, default_value_t = 0)]
        settle_ms: u64,
    },
    /// Another controller, which fetches the robot's file.
    Fetch {
        /// How it reaches the robot.
        #[command(flatten)]
        over: Over,
        /// Destination folder.
        #[arg(long)]
        into: PathBuf,
    },
    /// Bare sockets: answers messages.
    FloorServe {
        /// Address to listen on.
        #[arg(long)]
        address: SocketAddr,
        /// Bytes of a message.
        #[arg(long)]
        bytes: usize,
        /// Bytes of its answer.
        #[arg(long)]
        answer: usize,
    },
    /// Bare sockets: sends, and waits for the answer.
    FloorCall {
        /// Address to connect to.
        #[arg(long)]
        address: SocketAddr,
        /// Number of messages.
        #[command(flatten)]
        plan: Plan,
        /// Bytes of a message.
        #[arg(long)]
        bytes: usize,
        /// Bytes of its answer.
        #[arg(long)]
        answer: usize,
    },
}

/// Number of repetitions, and time limit.
#[derive(Args, Clone, Copy, Debug)]
pub struct Plan {
    /// Number of measured repetitions.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(super) count: u64,
    /// Number of repetitions before these.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    pub(super) warm_up: u64,
    /// None starts after this time, in ms.
    #[arg(long, default_value_t = 3_600_000)]
    pub(super) budget_ms: u64,
}

impl Plan {
    fn budget(&self) -> Duration {
        Duration::from_millis(self.budget_ms)
    }
}

/// Large telemetry.
#[derive(Args, Clone, Copy, Debug)]
pub struct Blocks {
    /// Number of blocks.
    #[command(flatten)]
    plan: Plan,
    /// Bytes of each block.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=32 << 20))]
    bytes: u64,
    /// How long to wait for a block, in ms.
    #[arg(long)]
    patience_ms: u64,
}

/// Why a process gives up; the text says how to fix it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartError {
    /// An error of the bus.
    #[error(transparent)]
    Node(#[from] ropewalk::NodeError),
    /// An error of an end.
    #[error(transparent)]
    Transport(#[from] ::remote::transport::TransportError),
    /// An error in a link's configuration.
    #[error(transparent)]
    Config(#[from] ::link::ConfigError),
    /// A file was not fetched.
    #[error(transparent)]
    File(#[from] ::remote::controller::FileError),
    /// An unexpected result or option.
    #[error("{0}")]
    Wrong(String),
    /// Standard output is closed, or a basic operation failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// Values for commands that were not carried out; the time of one that was is 0 or more.
pub(super) mod code {
    pub(crate) const EXPIRED: f64 = -1.0;
    pub(crate) const REJECTED: f64 = -2.0;
    pub(crate) const UNREACHABLE: f64 = -3.0;
}

/// Runs `role`. Blocks until standard input sends `stop` or ends.
///
/// # Errors
/// [`PartError`]: the reason why it cannot work.
pub fn run(role: &Role) -> Result<(), PartError> {
    let gate = Gate::watch()?;
    let ms = |ms: &u64| Duration::from_millis(*ms);
    match role {
        Role::Robot {
            over,
            share,
            unordered,
        } => robot::obey(&gate, over, share.as_deref(), *unordered),
        Role::Repeat { over } => robot::repeat(&gate, over),
        Role::Twist {
            over,
            plan,
            period_ms,
            expiry_ms,
        } => operator::twist(&gate, over, *plan, (ms(period_ms), ms(expiry_ms))),
        Role::Drive { over, pause_ms } => operator::drive(&gate, over, ms(pause_ms)),
        Role::Throw { over, blocks } => block::throw(&gate, over, blocks),
        Role::Catch {
            over,
            blocks,
            settle_ms,
        } => block::catch(&gate, over, blocks, ms(settle_ms)),
        Role::Fetch { over, into } => files::fetch(&gate, over, into),
        Role::FloorServe {
            address,
            bytes,
            answer,
        } => floor::serve(&gate, *address, (*bytes, *answer)),
        Role::FloorCall {
            address,
            plan,
            bytes,
            answer,
        } => floor::call(&gate, *address, *plan, (*bytes, *answer)),
    }
}

/// Prints one line.
fn say(line: &impl std::fmt::Display) -> Result<(), PartError> {
    Ok(crate::kit::part::print(line)?)
}

/// Prints the measured values, and waits for the end.
fn tell(gate: &Gate, values: &[f64]) -> Result<(), PartError> {
    say(&json!({ "values": values }))?;
    gate.wait_for_stop();
    Ok(())
}

/// Sleeps; returns false if the run is over.
fn pause(gate: &Gate, time: Duration) -> bool {
    let until = clock::monotonic() + time;
    loop {
        let left = until.since(clock::monotonic());
        if gate.stopped() || left.is_zero() {
            return !gate.stopped();
        }
        std::thread::sleep(left.min(LOOK));
    }
}
