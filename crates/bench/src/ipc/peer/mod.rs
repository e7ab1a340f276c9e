//! The peer program of our own system: what `ropewalk bench ipc-peer` runs, once in each process.
//!
//! It uses nodes, publishers and subscribers as any program would, with their defaults. What it is told and what
//! it prints is the contract that all peers keep (`peers/CONTRACT.md`). As the system `ropewalk` it publishes a control
//! part that was made beforehand, and reads data parts alone; as `ropewalk-typed` it writes and reads whole messages
//! as generated structures, which is what programs in other languages do.

mod gate;
mod pingpong;
mod publish;
mod service;
mod subscribe;
mod typed;

use clap::{Args, Subcommand};
pub(crate) use gate::Gate;
pub(crate) use publish::{control_part, sleep_until};
use ropewalk::{Flavour, Node, Registry, Schema};
use serde_json::json;
use std::io::Write;
use std::time::Duration;

/// How long a peer waits for others to connect before it gives up.
const CONNECT: Duration = Duration::from_secs(30);
/// How often something that waits looks whether it should stop.
pub(crate) const LOOK: Duration = Duration::from_millis(100);
/// Where the stamp lies in the payload: nanoseconds of CLOCK_MONOTONIC, u64 little-endian.
pub(crate) const STAMP: std::ops::Range<usize> = 0..8;
/// Where the sequence number lies, u64 little-endian, from 0.
pub(crate) const SEQUENCE: std::ops::Range<usize> = 8..16;

/// As which system a process is measured.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum As {
    /// With a control part made beforehand.
    Ropewalk,
    /// With generated structures.
    RopewalkTyped,
}

/// What one process does.
#[derive(Subcommand, Clone, Debug)]
pub enum Role {
    /// Print name, version and modes.
    Version {
        /// Of which system.
        #[arg(long, value_enum, default_value = "ropewalk")]
        system: As,
    },
    /// Publish on a schedule.
    Publish(Publish),
    /// Log what comes.
    Subscribe(Subscribe),
    /// Send, and wait for the echo, spinning.
    Ping(Common),
    /// Echo, spinning.
    Pong(Common),
    /// Call a service, sleeping until its reply comes.
    Call(Call),
    /// Serve, sleeping between requests.
    Serve(Serve),
}

/// What every role is told.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// As which system.
    #[arg(long, value_enum, default_value = "ropewalk")]
    system: As,
    /// The topic, unique to this run.
    #[arg(long)]
    topic: String,
    /// Bytes of the image's data.
    #[arg(long, value_parser = clap::value_parser!(u64).range(16..=1 << 30))]
    size: u64,
    /// Messages before those that count.
    #[arg(long)]
    warmup: u32,
    /// Messages that count.
    #[arg(long)]
    messages: u32,
    /// SCHED_FIFO at this priority.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=99))]
    fifo: Option<u8>,
}

/// What a publisher is told.
#[derive(Args, Clone, Debug)]
pub struct Publish {
    #[command(flatten)]
    common: Common,
    /// Subscribers to wait for.
    #[arg(long)]
    subscribers: usize,
    /// Messages a second; 0: as fast as publishing allows.
    #[arg(long, value_parser = rate)]
    rate: f64,
    /// Most bytes of shared memory.
    #[arg(long)]
    limit: Option<u64>,
    /// Accepted for the contract's sake: each subscriber brings its own queue.
    #[arg(long, value_parser = depth())]
    depth: Option<u32>,
}

/// What a server is told.
#[derive(Args, Clone, Debug)]
pub struct Serve {
    #[command(flatten)]
    common: Common,
    /// Accepted for the contract's sake: how many clients there are.
    #[arg(long)]
    subscribers: usize,
}

/// What a client is told.
#[derive(Args, Clone, Debug)]
pub struct Call {
    #[command(flatten)]
    common: Common,
    /// Which client this is.
    #[arg(long)]
    index: u32,
    /// Accepted for the contract's sake: how many there are.
    #[arg(long)]
    subscribers: usize,
    /// Calls a second; 0: each as soon as the last is answered.
    #[arg(long, value_parser = rate)]
    rate: f64,
}

/// What a subscriber is told.
#[derive(Args, Clone, Debug)]
pub struct Subscribe {
    #[command(flatten)]
    common: Common,
    /// Which subscriber this is.
    #[arg(long)]
    index: u32,
    /// How many there are.
    #[arg(long)]
    subscribers: usize,
    /// Microseconds that the callback takes (it sleeps).
    #[arg(long, default_value_t = 0)]
    work_us: u64,
    /// Look for messages without ever sleeping.
    #[arg(long)]
    spin: bool,
    /// Messages that the queue holds.
    #[arg(long, value_parser = depth())]
    depth: Option<u32>,
}

fn depth() -> impl clap::builder::TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(1..=256)
}

fn rate(text: &str) -> Result<f64, String> {
    let good = text.parse().ok().filter(|r: &f64| (0.0..=1e6).contains(r));
    good.ok_or_else(|| "give a rate in Hz from 0 to 1000000".into())
}

/// Why a peer gives up; the text tells the mend.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The bus refuses.
    #[error(transparent)]
    Node(#[from] ropewalk::NodeError),
    /// The subscribers did not come.
    #[error(
        "only {connected} of {wanted} peers connected within {}: look whether they run",
        seconds(CONNECT)
    )]
    Alone {
        /// Peers that are connected.
        connected: usize,
        /// Peers that were waited for.
        wanted: usize,
    },
    /// Real-time scheduling was asked for.
    #[error("SCHED_FIFO {priority} is not permitted: run as root, or raise the limit rtprio (ulimit -r)")]
    Fifo {
        /// The priority asked for.
        priority: u8,
    },
    /// A standard type is not what this program knows.
    #[error("{0}")]
    Type(String),
    /// Taking a message failed.
    #[error(transparent)]
    Take(#[from] bus::TakeError),
    /// Publishing failed.
    #[error(transparent)]
    Publish(#[from] bus::PublishError),
    /// Something else than images came.
    #[error(transparent)]
    Field(#[from] ropewalk::typed::FieldError),
    /// Reserving memory failed where nothing may be refused.
    #[error(transparent)]
    Loan(#[from] bus::LoanError),
    /// A service cannot be made.
    #[error(transparent)]
    Create(#[from] bus::CreateError),
    /// A call failed.
    #[error(transparent)]
    Call(#[from] bus::CallError),
    /// A reply is not the request's.
    #[error("the reply to request {0} is another's: give each cell its own --topic")]
    Echo(u64),
    /// Standard output is gone, or waiting failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl From<ropewalk::typed::TypedError> for PeerError {
    fn from(error: ropewalk::typed::TypedError) -> Self {
        match error {
            ropewalk::typed::TypedError::Loan(error) => PeerError::Loan(error),
            other => PeerError::Type(format!("sensor_msgs/Image: {other}")),
        }
    }
}

fn seconds(d: Duration) -> String {
    format!("{} s", d.as_secs())
}

/// Does what `role` says, to the end. Blocks until standard input says `stop` or ends.
///
/// # Errors
/// [`PeerError`]: what keeps it from working.
pub fn run(role: &Role) -> Result<(), PeerError> {
    match role {
        Role::Version { system } => say(&version(*system)),
        Role::Publish(options) => publish::run(options),
        Role::Subscribe(options) => subscribe::run(options),
        Role::Ping(options) => pingpong::ping(options),
        Role::Pong(options) => pingpong::pong(options),
        Role::Call(options) => service::call(options),
        Role::Serve(options) => service::serve(&options.common),
    }
}

fn version(system: As) -> serde_json::Value {
    let version = env!("CARGO_PKG_VERSION");
    match system {
        As::Ropewalk => {
            json!({ "system": "ropewalk", "version": version, "modes": ["block", "spin", "call"] })
        }
        As::RopewalkTyped => json!({ "system": "ropewalk-typed", "version": version, "modes": ["block"] }),
    }
}

/// Prints one line of the contract.
pub(crate) fn say(line: &impl std::fmt::Display) -> Result<(), PeerError> {
    Ok(print(line)?)
}

/// Prints one line at once.
pub(crate) fn print(line: &impl std::fmt::Display) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn node() -> Result<(Node, Schema), PeerError> {
    let image = Registry::new(Flavour::Ros1).schema("sensor_msgs/Image");
    let image = image.map_err(|e| PeerError::Type(format!("sensor_msgs/Image: {e}")))?;
    Ok((Node::new("bench")?, image))
}

/// Moves the calling thread to SCHED_FIFO if the contract asks for it.
fn schedule(common: &Common) -> Result<(), PeerError> {
    match common.fifo {
        Some(priority) if clock::realtime_thread(priority) == clock::Scheduling::Other => {
            Err(PeerError::Fifo { priority })
        }
        _ => Ok(()),
    }
}

/// Waits for `n` peers, asking `connected`, or until the run is over (false).
pub(crate) fn connect(
    gate: &Gate,
    n: usize,
    connected: impl Fn(Duration) -> (bool, usize),
) -> Result<bool, PeerError> {
    let deadline = clock::monotonic() + CONNECT;
    loop {
        let (enough, count) = connected(LOOK);
        if enough {
            return Ok(true);
        }
        if gate.stopped() {
            return Ok(false);
        }
        if clock::monotonic() > deadline {
            return Err(PeerError::Alone {
                connected: count,
                wanted: n,
            });
        }
    }
}

/// A number of a payload; `None` if the payload is too short.
pub(crate) fn number(payload: &[u8], range: std::ops::Range<usize>) -> Option<u64> {
    Some(u64::from_le_bytes(payload.get(range)?.try_into().ok()?))
}
