//! A node of `ropewalk bench scale`, in its own process: the program `ropewalk bench scale-part`.
//!
//! It follows the contract of all such nodes (`peers/scale/README.md`), and uses the `ropewalk` crate as any program
//! would.

mod echo;
mod message;
mod send;

use crate::kit::part::{PeerError, say};
use clap::{Args, Subcommand};
use ropewalk::Node;
use serde_json::json;
use stats::Drops;
use std::path::PathBuf;
use std::str::FromStr;

/// The role of one process.
#[derive(Subcommand, Clone, Debug)]
pub enum Role {
    /// Print name and version.
    Version {
        /// Accepted for the contract's sake.
        #[arg(long, default_value = "ropewalk")]
        system: String,
    },
    /// Send on a schedule, and log the answers.
    Send(Send),
    /// Echo received messages.
    Echo(Echo),
}

/// Options of every node.
#[derive(Args, Clone, Debug)]
struct Common {
    /// Accepted for the contract's sake.
    #[arg(long, default_value = "ropewalk")]
    system: String,
    /// Bytes of a message.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1 << 26))]
    bytes: u64,
    /// Queue depth in messages.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4096))]
    queue: u32,
}

/// Options of a sender.
#[derive(Args, Clone, Debug)]
pub struct Send {
    #[command(flatten)]
    common: Common,
    /// Topic to publish on.
    #[arg(long)]
    publish: String,
    /// Topics of the echoes' answers.
    #[arg(long, value_delimiter = ',', required = true)]
    answers: Vec<String>,
    /// Messages per second.
    #[arg(long, value_parser = rate)]
    hz: f64,
    /// Number of messages.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    messages: u32,
    /// Delay of the first message after the start.
    #[arg(long, default_value_t = 0)]
    offset_us: u64,
    /// Maximum time after the last message until the log closes.
    #[arg(long)]
    linger_ms: u64,
    /// Log file.
    #[arg(long)]
    log: PathBuf,
}

/// Options of an echo.
#[derive(Args, Clone, Debug)]
pub struct Echo {
    #[command(flatten)]
    common: Common,
    /// Topic to receive, and topic to answer on: IN:OUT.
    #[arg(long, value_delimiter = ',', required = true)]
    ways: Vec<Way>,
}

/// A topic, and the topic of its answers.
#[derive(Clone, Debug, PartialEq)]
struct Way {
    input: String,
    output: String,
}

impl FromStr for Way {
    type Err = String;

    fn from_str(text: &str) -> Result<Way, String> {
        match text.split_once(':') {
            Some((input, output)) if !input.is_empty() && !output.is_empty() => Ok(Way {
                input: input.to_owned(),
                output: output.to_owned(),
            }),
            _ => Err("give IN:OUT".into()),
        }
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let good = text.parse().ok().filter(|r: &f64| (0.01..=1e6).contains(r));
    good.ok_or_else(|| "give a rate from 0.01 to 1000000 Hz".into())
}

/// Runs `role` to the end. Blocks until standard input sends `stop` or ends.
///
/// # Errors
/// [`PeerError`]: the reason why it cannot work.
pub fn run(role: &Role) -> Result<(), PeerError> {
    match role {
        Role::Version { .. } => say(&json!({ "system": "ropewalk", "version": env!("CARGO_PKG_VERSION") })),
        Role::Send(options) => send::run(options),
        Role::Echo(options) => echo::run(options),
    }
}

fn node() -> Result<Node, PeerError> {
    Ok(Node::new("bench")?)
}

/// Losses by reason, in printed form.
fn named(drops: &Drops) -> serde_json::Value {
    drops
        .iter()
        .map(|(reason, n)| (reason.name().to_owned(), json!(n)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_and_rates_are_understood_or_refused() {
        let way = Way::from_str("/a:/b").expect("is right");
        assert_eq!((&*way.input, &*way.output), ("/a", "/b"));
        for bad in ["", "/a", ":/b", "/a:"] {
            assert!(Way::from_str(bad).is_err(), "{bad}");
        }
        assert_eq!(rate("0.5"), Ok(0.5));
        for bad in ["0", "-1", "nan", "inf", "1e7", "x"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
    }
}
