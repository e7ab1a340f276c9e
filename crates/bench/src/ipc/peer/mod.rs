//! The peer program of our own system: `ropewalk bench ipc-peer`, one for each process.
//!
//! It uses nodes, publishers and subscribers as any program does, with their defaults. Its arguments and output follow
//! the contract of all peers (`peers/CONTRACT.md`). As the system `ropewalk` it publishes a control part that was
//! encoded beforehand, and reads only data parts. As `ropewalk-typed` it writes and reads whole messages as generated
//! structures, as programs in other languages do.

mod pingpong;
mod publish;
mod service;
mod subscribe;
mod typed;

pub use crate::kit::part::PeerError;
use crate::kit::part::say;
use clap::{Args, Subcommand};
use ropewalk::{Flavour, Node, Registry, Schema};
use serde_json::json;

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
