//! `ropewalk foxglove`: topics for Foxglove, Lichtblick and PlotJuggler.

use super::reach::{Reach, shown_host};
use super::web::{Robots, Speeds};
use crate::failure::{Failure, OrFail, Outcome};
use crate::screen::tell;
use crate::signals::Signals;
use clap::{Args, ValueEnum};
use ropewalk::Node;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use web::foxglove::{Dialect, Foxglove, FoxgloveOptions};

/// Show this host's bus in Foxglove, Lichtblick or PlotJuggler
///
/// Runs until Ctrl-C and prints the address to open. A topic is taken from the
/// bus only while a client watches it:
///
///   ropewalk foxglove                          # look, from this machine
///   ropewalk foxglove --allow-publish /goal    # and publish
///   ropewalk foxglove --drive /cmd_vel=rover   # and drive with Teleop
///
/// Other machines need a token, which gives a role: view, operate (change
/// settings of links) or drive (publish, call services). Without a
/// certificate nothing is encrypted: beyond a network that you trust, give
/// one, or use a tunnel.
///
///   ropewalk foxglove --host 0.0.0.0 --token view=$(openssl rand -hex 16)
///   ropewalk foxglove --host 0.0.0.0 --token-file tokens \
///       --certificate robot.crt --key robot.key
///
/// The viewer shows settings of a link on this bus as parameters, such as
/// /link/NAME/topics/scan/priority.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    /// The port.
    #[arg(long, short, default_value_t = 8765)]
    port: u16,
    #[command(flatten)]
    reach: Reach,
    /// Serialization; auto: CDR for clients such as PlotJuggler, ROS 1 for others.
    #[arg(long = "as", value_enum, default_value_t = As::Auto)]
    dialect: As,
    /// A topic, or a pattern such as /cmd/*, that clients with the role drive may publish (may be repeated).
    #[arg(long, alias = "client-topic-whitelist", value_name = "PATTERN")]
    allow_publish: Vec<String>,
    /// Drive ROBOT with the twists that clients with the role drive publish on TOPIC, as with Foxglove's Teleop panel;
    /// without new twists the robot stops by itself, by default after 0.5 s (may be repeated).
    #[arg(long, value_name = "TOPIC=ROBOT")]
    drive: Vec<String>,
    #[command(flatten)]
    limits: Speeds,
    /// Topics to show, names or patterns such as /camera/* (may be repeated; default: all).
    #[arg(long, alias = "topic-whitelist", value_name = "PATTERN", num_args = 1..)]
    topics: Vec<String>,
    /// Topics not to show, names or patterns (may be repeated).
    #[arg(long, value_name = "PATTERN", num_args = 1..)]
    exclude: Vec<String>,
    /// Priority (0 to 127, higher first) of topics, names or patterns, that wait for the same client; by default messages
    /// up to 64 KiB have 100, longer ones 50 (may be repeated).
    #[arg(long = "priority", value_name = "PATTERN=N")]
    priorities: Vec<String>,
    /// A folder of packages, or one package, whose files clients may fetch as package://PACKAGE/FILE (may be repeated).
    #[arg(long, value_name = "DIR")]
    assets: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum As {
    Ros1,
    Ros2,
    Auto,
}

/// Runs the server.
pub(crate) fn run(options: &Options) -> Outcome {
    let mut shown = FoxgloveOptions::default();
    shown.dialect = match options.dialect {
        As::Ros1 => Dialect::Ros1,
        As::Ros2 => Dialect::Ros2,
        As::Auto => Dialect::Auto,
    };
    for pattern in options
        .topics
        .iter()
        .chain(&options.exclude)
        .chain(&options.allow_publish)
    {
        bridge::check(pattern, true).or_input()?;
    }
    for stated in &options.priorities {
        shown.priorities.push(priority(stated)?);
    }
    shown.topics = options.topics.clone();
    shown.exclude = options.exclude.clone();
    shown.allow_publish = options.allow_publish.clone();
    for folder in &options.assets {
        if !folder.is_dir() {
            let folder = folder.display();
            return Err(Failure::input(format_args!(
                "--assets {folder}: there is no such folder"
            )));
        }
    }
    shown.assets = options.assets.clone();
    for stated in &options.drive {
        let (topic, robot) = stated
            .split_once('=')
            .ok_or_else(|| Failure::input(format_args!("--drive {stated}: write TOPIC=ROBOT")))?;
        bridge::check(topic, false).or_input()?;
        shown
            .drives
            .push((topic.to_owned(), robot.trim_matches('/').to_owned()));
    }
    shown.limits = options.limits.limits();
    let guard = options.reach.guard()?;
    let (has_token, is_encrypted) = (guard.access.has_tokens(), guard.tls.is_some());
    let signals = Signals::watch().or_job("watching signals")?;
    let node = Node::new("foxglove").or_input()?;
    if !shown.drives.is_empty() {
        let robots = Robots::start(node.clone(), &[]).or_job("starting a thread")?;
        shown.fleet = Some(Arc::new(robots));
    }
    let site = Arc::new(Foxglove::start(node, shown).or_job("starting a thread")?);
    let server = options.reach.serve(options.port, guard, site.clone())?;
    print_address(server.address(), has_token, is_encrypted);
    while !signals.stopped() {
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(server);
    Ok(())
}

/// A pattern and its priority.
fn priority(stated: &str) -> Result<(String, u8), Failure> {
    let split = stated.rsplit_once('=');
    let read = split.and_then(|(pattern, n)| Some((pattern, n.parse().ok().filter(|n| *n <= 127)?)));
    let (pattern, n) = read.ok_or_else(|| {
        Failure::input(format_args!(
            "--priority {stated}: write TOPIC=N with N from 0 to 127"
        ))
    })?;
    bridge::check(pattern, true).or_input()?;
    Ok((pattern.to_owned(), n))
}

/// Prints where to connect, without the tokens themselves.
fn print_address(address: SocketAddr, has_token: bool, is_encrypted: bool) {
    let host = shown_host(address);
    let query = if has_token { "/?token=TOKEN" } else { "" };
    let scheme = if is_encrypted { "wss" } else { "ws" };
    let url = format!("{scheme}://{host}:{}{query}", address.port());
    let quoted = url
        .replace(':', "%3A")
        .replace('/', "%2F")
        .replace('?', "%3F")
        .replace('=', "%3D");
    tell!("open {url} in Foxglove, Lichtblick or PlotJuggler");
    tell!("or https://app.foxglove.dev/?ds=foxglove-websocket&ds.url={quoted}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_belongs_to_a_pattern() {
        assert_eq!(priority("/camera/*=5").ok(), Some(("/camera/*".to_owned(), 5)));
        for bad in ["/camera", "/camera=", "/camera=128", "/camera=-1", "=5", "/a*b=5"] {
            assert!(priority(bad).is_err(), "{bad}");
        }
    }
}
