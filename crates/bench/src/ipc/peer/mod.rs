//! The peer program of our own system: `ropewalk bench ipc-peer`, one for each process.
//!
//! It uses nodes, publishers and subscribers as any program does, with their defaults. Its arguments and output follow
//! the contract of all peers (`peers/CONTRACT.md`). As the system `ropewalk` it publishes a control part that was
//! encoded beforehand, and reads only data parts. As `ropewalk-typed` it writes and reads whole messages as generated
//! structures, as programs in other languages do.

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
/// How often a waiting thread checks whether it should stop.
pub(crate) const LOOK: Duration = Duration::from_millis(100);
/// Position of the stamp in the payload: nanoseconds of CLOCK_MONOTONIC, u64 little-endian.
pub(crate) const STAMP: std::ops::Range<usize> = 0..8;
/// Position of the sequence number, u64 little-endian, from 0.
pub(crate) const SEQUENCE: std::ops::Range<usize> = 8..16;

/// The system that a process represents.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum As {
    /// With a control part encoded beforehand.
    Ropewalk,
    /// With generated structures.
    RopewalkTyped,
}

/// The role of one process.
#[derive(Subcommand, Clone, Debug)]
pub enum Role {
    /// Print name, version and modes.
    Version {
        /// System.
        #[arg(long, value_enum, default_value = "ropewalk")]
        system: As,
    },
    /// Publish on a schedule.
    Publish(Publish),
    /// Log received messages.
    Subscribe(Subscribe),
    /// Send, and wait for the echo, spinning.
    Ping(Common),
    /// Echo, spinning.
    Pong(Common),
    /// Call a service, sleeping until its reply arrives.
    Call(Call),
    /// Serve, sleeping between requests.
    Serve(Serve),
}

/// Options of every role.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// System.
    #[arg(long, value_enum, default_value = "ropewalk")]
    system: As,
    /// The topic, unique to this run.
    #[arg(long)]
    topic: String,
    /// Bytes of the image's data.
    #[arg(long, value_parser = clap::value_parser!(u64).range(16..=1 << 30))]
    size: u64,
    /// Messages before the measured ones.
    #[arg(long)]
    warmup: u32,
    /// Measured messages.
    #[arg(long)]
    messages: u32,
    /// Use SCHED_FIFO at this priority.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=99))]
    fifo: Option<u8>,
}

/// Options of a publisher.
#[derive(Args, Clone, Debug)]
pub struct Publish {
    #[command(flatten)]
    common: Common,
    /// Number of subscribers to wait for.
    #[arg(long)]
    subscribers: usize,
    /// Messages per second; 0: as fast as publishing allows.
    #[arg(long, value_parser = rate)]
    rate: f64,
    /// Maximum bytes of shared memory.
    #[arg(long)]
    limit: Option<u64>,
    /// Accepted for the contract's sake: each subscriber has its own queue.
    #[arg(long, value_parser = depth())]
    depth: Option<u32>,
}

/// Options of a server.
#[derive(Args, Clone, Debug)]
pub struct Serve {
    #[command(flatten)]
    common: Common,
    /// Accepted for the contract's sake: number of clients.
    #[arg(long)]
    subscribers: usize,
}

/// Options of a client.
#[derive(Args, Clone, Debug)]
pub struct Call {
    #[command(flatten)]
    common: Common,
    /// Index of this client.
    #[arg(long)]
    index: u32,
    /// Accepted for the contract's sake: number of clients.
    #[arg(long)]
    subscribers: usize,
    /// Calls per second; 0: each as soon as the previous one is answered.
    #[arg(long, value_parser = rate)]
    rate: f64,
}

/// Options of a subscriber.
#[derive(Args, Clone, Debug)]
pub struct Subscribe {
    #[command(flatten)]
    common: Common,
    /// Index of this subscriber.
    #[arg(long)]
    index: u32,
    /// Number of subscribers.
    #[arg(long)]
    subscribers: usize,
    /// Duration of the callback in microseconds (it sleeps).
    #[arg(long, default_value_t = 0)]
    work_us: u64,
    /// Poll for messages without ever sleeping.
    #[arg(long)]
    spin: bool,
    /// Capacity of the queue in messages.
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

/// Why a peer gives up; the text says how to fix it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// An error of the bus.
    #[error(transparent)]
    Node(#[from] ropewalk::NodeError),
    /// The peers did not connect.
    #[error(
        "only {connected} of {wanted} peers connected within {}: check that they run",
        seconds(CONNECT)
    )]
    Alone {
        /// Peers that are connected.
        connected: usize,
        /// Peers to wait for.
        wanted: usize,
    },
    /// Real-time scheduling is not permitted.
    #[error("SCHED_FIFO {priority} is not permitted: run as root, or raise the limit rtprio (ulimit -r)")]
    Fifo {
        /// The requested priority.
        priority: u8,
    },
    /// A standard type differs from what this program expects.
    #[error("{0}")]
    Type(String),
    /// Taking a message failed.
    #[error(transparent)]
    Take(#[from] bus::TakeError),
    /// Publishing failed.
    #[error(transparent)]
    Publish(#[from] bus::PublishError),
    /// A message is not an image.
    #[error(transparent)]
    Field(#[from] ropewalk::typed::FieldError),
    /// Reserving memory failed where nothing may be refused.
    #[error(transparent)]
    Loan(#[from] bus::LoanError),
    /// A service cannot be created.
    #[error(transparent)]
    Create(#[from] bus::CreateError),
    /// A call failed.
    #[error(transparent)]
    Call(#[from] bus::CallError),
    /// A reply does not belong to the request.
    #[error("the reply to request {0} answers another request: give each cell its own --topic")]
    Echo(u64),
    /// Standard output is closed, or waiting failed.
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

/// Runs `role` to the end. Blocks until standard input sends `stop` or ends.
///
/// # Errors
/// [`PeerError`]: the reason why it cannot work.
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

/// Prints one line and flushes it.
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

/// Moves the calling thread to SCHED_FIFO if the options require it.
fn schedule(common: &Common) -> Result<(), PeerError> {
    match common.fifo {
        Some(priority) if clock::realtime_thread(priority) == clock::Scheduling::Other => {
            Err(PeerError::Fifo { priority })
        }
        _ => Ok(()),
    }
}

/// Waits until `connected` returns `n` peers, or until the run is over (false).
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

/// Returns a number of a payload; `None` if the payload is too short.
pub(crate) fn number(payload: &[u8], range: std::ops::Range<usize>) -> Option<u64> {
    Some(u64::from_le_bytes(payload.get(range)?.try_into().ok()?))
}
