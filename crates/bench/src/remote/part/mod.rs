//! The processes of `ropewalk bench remote`: what `ropewalk bench remote-part` runs on the hosts.
//!
//! They use `Robot` and `Controller` as any program would, and speak as `peers/remote` does (`peers/remote/README.md`), so
//! that one orchestrator runs both.

mod block;
mod desk;
mod files;
mod floor;
mod over;
mod robot;

use crate::ipc::peer::{Gate, LOOK};
use clap::{Args, Subcommand};
pub use over::{Over, Way};
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// What one process does.
#[derive(Subcommand, Clone, Debug)]
pub enum Role {
    /// A robot that takes twists, tells large telemetry when it is asked to, and shares a file.
    Robot {
        /// How it is reached.
        #[command(flatten)]
        over: Over,
        /// A file that it shares.
        #[arg(long)]
        share: Option<PathBuf>,
        /// Whether a twist that came after a newer one is carried out all the same.
        #[arg(long)]
        unordered: bool,
    },
    /// A robot that tells again what it hears of the desk, which is a robot to it.
    Repeat {
        /// How they reach each other.
        #[command(flatten)]
        over: Over,
    },
    /// The desk: sends twists, and tells what became of each.
    Twist {
        /// How it reaches the robot.
        #[command(flatten)]
        over: Over,
        /// How many.
        #[command(flatten)]
        plan: Plan,
        /// Between two, in ms; 0: each when the one before is decided.
        #[arg(long, default_value_t = 0)]
        period_ms: u64,
        /// How long each stays good, in ms; 0: what a controller takes by itself.
        #[arg(long, default_value_t = 0)]
        expiry_ms: u64,
    },
    /// The desk: sends twists until it is told to stop, and tells when each was sent and how long it took.
    Drive {
        /// How it reaches the robot.
        #[command(flatten)]
        over: Over,
        /// From one's end to the next, in ms.
        #[arg(long, default_value_t = 5)]
        pause_ms: u64,
    },
    /// The desk: tells large telemetry and waits until it comes back.
    Throw {
        /// How it and the robot reach each other.
        #[command(flatten)]
        over: Over,
        /// What.
        #[command(flatten)]
        blocks: Blocks,
    },
    /// The desk: lets the robot tell large telemetry and waits for it.
    Catch {
        /// How it reaches the robot.
        #[command(flatten)]
        over: Over,
        /// What.
        #[command(flatten)]
        blocks: Blocks,
        /// After `go`: the path becomes known meanwhile.
        #[arg(long, default_value_t = 0)]
        settle_ms: u64,
    },
    /// Another controller, which fetches the robot's file.
    Fetch {
        /// How it reaches the robot.
        #[command(flatten)]
        over: Over,
        /// Where to.
        #[arg(long)]
        into: PathBuf,
    },
    /// Bare sockets: sends back what comes.
    FloorServe {
        /// Where.
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
        /// Where to.
        #[arg(long)]
        address: SocketAddr,
        /// How many.
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

/// How many, and how long at most.
#[derive(Args, Clone, Copy, Debug)]
pub struct Plan {
    /// How many count.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(super) count: u64,
    /// How many come before those.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    pub(super) warm_up: u64,
    /// None begins after so long, in ms.
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
    /// How many.
    #[command(flatten)]
    plan: Plan,
    /// Bytes of each.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=32 << 20))]
    bytes: u64,
    /// How long one is waited for, in ms.
    #[arg(long)]
    patience_ms: u64,
}

/// Why a process gives up; the text tells the mend.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartError {
    /// The bus refuses.
    #[error(transparent)]
    Node(#[from] ropewalk::NodeError),
    /// An end refuses.
    #[error(transparent)]
    Transport(#[from] ::remote::transport::TransportError),
    /// A link's configuration.
    #[error(transparent)]
    Config(#[from] ::link::ConfigError),
    /// A file was not fetched.
    #[error(transparent)]
    File(#[from] ::remote::controller::FileError),
    /// It is not what was asked for.
    #[error("{0}")]
    Wrong(String),
    /// Standard output is gone, or something basic failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// What stands for a command in a process's values that was not carried out: its time would be 0 or more.
pub(super) mod code {
    pub(crate) const EXPIRED: f64 = -1.0;
    pub(crate) const REJECTED: f64 = -2.0;
    pub(crate) const UNREACHABLE: f64 = -3.0;
}

/// Does what `role` says. Blocks until standard input says `stop` or ends.
///
/// # Errors
/// [`PartError`]: what keeps it from working.
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
        } => desk::twist(&gate, over, *plan, (ms(period_ms), ms(expiry_ms))),
        Role::Drive { over, pause_ms } => desk::drive(&gate, over, ms(pause_ms)),
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
    Ok(crate::ipc::peer::print(line)?)
}

/// Prints what was measured, and stays until the end.
fn tell(gate: &Gate, values: &[f64]) -> Result<(), PartError> {
    say(&json!({ "values": values }))?;
    gate.wait_for_stop();
    Ok(())
}

/// Sleeps; false if it is over.
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
