//! The processes of `ropewalk bench link`: the program `ropewalk bench link-part` on the hosts of a lab.
//!
//! They follow the same contract as `peers/flow` (`peers/flow/README.md`), so that one orchestrator runs both. The
//! messages are `std_msgs/UInt8MultiArray` of the flow's size as ROS 1 serializes it, with stamp and number in their
//! first bytes.

mod circuit;
mod command;
mod flood;
mod line;
pub(super) mod plant;
mod publish;
mod subscribe;
pub(crate) mod tcp;

use crate::kit::part::{Gate, PeerError, say};
use clap::{Args, Subcommand};
use ropewalk::{Flavour, Node, Registry, Schema};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Bytes that ROS 1 writes before the data of a std_msgs/UInt8MultiArray without dimensions.
const HEADER: usize = 12;
/// Bytes of stamp and number in the data.
const STAMPED: usize = 16;

/// The role of one process.
#[derive(Subcommand, Clone, Debug)]
pub enum Role {
    /// Send flows.
    Publish {
        /// TOPIC,BYTES,PERIOD_US,OFFSET_US,COUNT.
        #[arg(long, required = true)]
        flow: Vec<Flow>,
        /// Program that releases each flow's messages (`peers/flow tick`), in place of the schedule.
        #[arg(long)]
        ticks: Option<PathBuf>,
    },
    /// Log the arrival of messages.
    Subscribe {
        /// As the publisher's.
        #[arg(long, required = true)]
        flow: Vec<Flow>,
    },
    /// Send a flow over a TCP connection.
    TcpSend {
        /// As the publisher's.
        #[arg(long)]
        flow: Flow,
        /// Address to listen on.
        #[arg(long)]
        address: SocketAddr,
    },
    /// Log the arrival of its messages.
    TcpReceive {
        /// As the publisher's.
        #[arg(long)]
        flow: Flow,
        /// Address to connect to.
        #[arg(long)]
        address: SocketAddr,
    },
    /// Run a serial line between two pseudo-terminals.
    Line {
        /// Speed, with ten bits per byte.
        #[arg(long, value_parser = clap::value_parser!(u32).range(300..=10_000_000))]
        baud: u32,
        /// Paths for links to its two ends.
        #[arg(long = "end", num_args = 1, required = true)]
        ends: Vec<PathBuf>,
    },
    /// Run the RLC circuit of Pound's control loop.
    Circuit {
        /// Its topics.
        #[command(flatten)]
        ends: Ends,
        /// Number of samples.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        samples: u32,
    },
    /// Send commands, and wait for their answers.
    Command {
        /// Its topics.
        #[command(flatten)]
        ends: Ends,
        /// Number of commands.
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000))]
        count: u64,
        /// Interval in ms.
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..=60_000))]
        period_ms: u64,
        /// How long to wait for the last answers, in ms.
        #[arg(long, value_parser = clap::value_parser!(u64).range(0..=600_000))]
        linger_ms: u64,
    },
    /// Answer commands.
    Answer {
        /// Its topics.
        #[command(flatten)]
        ends: Ends,
    },
    /// Flood a link from unauthenticated addresses.
    Flood(flood::Flood),
    /// Run the controller of the RLC circuit.
    Controller {
        /// Its topics.
        #[command(flatten)]
        ends: Ends,
    },
}

/// The topics of a part of a loop.
#[derive(Args, Clone, Debug)]
pub struct Ends {
    /// Topic to receive.
    #[arg(long)]
    input: String,
    /// Topic to publish.
    #[arg(long)]
    output: String,
}

/// A flow, in the form of an argument.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    topic: String,
    bytes: usize,
    period_us: u64,
    offset_us: u64,
    count: u64,
}

impl FromStr for Flow {
    type Err = String;

    fn from_str(text: &str) -> Result<Flow, String> {
        let parts: Vec<&str> = text.split(',').collect();
        let number = |text: &str, what: &str, least: u64, most: u64| match text.parse() {
            Ok(n) if (least..=most).contains(&n) => Ok(n),
            _ => Err(format!("{what} is {text:?}; give {least} to {most}")),
        };
        let &[topic, bytes, period, offset, count] = parts.as_slice() else {
            return Err("give TOPIC,BYTES,PERIOD_US,OFFSET_US,COUNT".into());
        };
        Ok(Flow {
            topic: topic.to_owned(),
            bytes: number(bytes, "the size", (HEADER + STAMPED) as u64, 1 << 24)? as usize,
            period_us: number(period, "the period", 100, 60_000_000)?,
            offset_us: number(offset, "the offset", 0, 60_000_000)?,
            count: number(count, "the count", 1, 1_000_000)?,
        })
    }
}

/// Runs `role` to the end. Blocks until standard input sends `stop` or ends.
///
/// # Errors
/// [`PeerError`]: the reason why it cannot work.
pub fn run(role: &Role) -> Result<(), PeerError> {
    match role {
        Role::Publish { flow, ticks } => publish::run(flow, ticks.as_deref()),
        Role::Subscribe { flow } => subscribe::run(flow),
        Role::TcpSend { flow, address } => tcp::send(flow, *address),
        Role::TcpReceive { flow, address } => tcp::receive(flow, *address),
        Role::Line { baud, ends } => match <&[PathBuf; 2]>::try_from(ends.as_slice()) {
            Ok(ends) => line::run(*baud, ends),
            Err(_) => Err(PeerError::Type("a line has two ends: give --end twice".into())),
        },
        Role::Circuit { ends, samples } => plant::circuit(&ends.input, &ends.output, *samples as usize),
        Role::Command {
            ends,
            count,
            period_ms,
            linger_ms,
        } => {
            let plan = command::Plan {
                count: *count,
                period: Duration::from_millis(*period_ms),
                linger: Duration::from_millis(*linger_ms),
            };
            command::command(&ends.input, &ends.output, plan)
        }
        Role::Flood(flood) => flood::run(flood),
        Role::Answer { ends } => command::answer(&ends.input, &ends.output),
        Role::Controller { ends } => plant::controller(&ends.input, &ends.output),
    }
}

fn node() -> Result<(Node, Schema), PeerError> {
    let array = Registry::new(Flavour::Ros1).schema("std_msgs/UInt8MultiArray");
    let array = array.map_err(|e| PeerError::Type(format!("std_msgs/UInt8MultiArray: {e}")))?;
    Ok((Node::new("bench")?, array))
}

/// Returns a message of this many bytes on ROS 1's wire, all zero.
fn message(bytes: usize) -> Vec<u8> {
    let mut message = vec![0; bytes];
    message[8..HEADER].copy_from_slice(&((bytes - HEADER) as u32).to_le_bytes());
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_understood_or_refused() {
        let flow = Flow::from_str("/laser,1000,20000,3000,50").expect("is right");
        assert_eq!((flow.bytes, flow.period_us, flow.offset_us), (1000, 20_000, 3000));
        for bad in [
            "",
            "/laser,1000",
            "/laser,27,1000,0,1",
            "/laser,1000,0,0,1",
            "/laser,1000,20000,0,0",
            "/laser,-1,20000,0,1",
            "/laser,1000,20000,0,1,1",
        ] {
            assert!(Flow::from_str(bad).is_err(), "{bad}");
        }
    }
}
