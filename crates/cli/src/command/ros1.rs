//! `ropewalk ros1`: the bridge to ROS 1.

use crate::failure::{Failure, OrFail, Outcome};
use crate::signals::Signals;
use bus::BusConfig;
use clap::Args;
use ros1::{Bridge, BridgeError, Config, Direction, ServiceRule, TopicRule};
use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Bridge topics and services between a ROS 1 master and this host's bus
///
/// Runs until Ctrl-C; no ROS needs to be installed here. The configuration
/// lists what crosses:
///
///   master: http://localhost:11311     # default: ROS_MASTER_URI
///   topics:
///     - {name: /scan, direction: to_bus, priority: 100}
///     - name: '/camera/*'
///       direction: to_bus
///       bus: '/front/*'
///       rate_limit: 5Hz
///     - {name: /cmd_vel, direction: to_ros}
///     - name: /tf
///       direction: to_bus
///       tf: {frames: [odom, base_link], rate: 10Hz}
///     - {name: /rosout, direction: to_bus, level: warn}
///   services:
///     - {name: /arm/grasp, direction: to_bus}
///   # Folders of .msg and .srv files, in addition to ROS_PACKAGE_PATH
///   definitions: [src/my_msgs]
///
/// For a few topics, the command line suffices:
///
///   ropewalk ros1 --topic /scan=to_bus --topic /cmd_vel=to_ros
///
/// The bridge listens at ROS_HOSTNAME or ROS_IP; if neither is set, only on
/// loopback.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    /// The configuration (YAML).
    #[arg(value_name = "CONFIG")]
    config: Option<PathBuf>,
    /// A topic, or a pattern such as /camera/*, with =to_bus, =to_ros or =both (default; may be repeated).
    #[arg(long = "topic", value_name = "NAME[=DIRECTION]", value_parser = rule)]
    topics: Vec<(String, Direction)>,
    /// A service, with =to_bus or =to_ros (may be repeated).
    #[arg(long = "service", value_name = "NAME=DIRECTION", value_parser = rule)]
    services: Vec<(String, Direction)>,
    /// URI of the ROS master, such as http://robot:11311, instead of ROS_MASTER_URI.
    #[arg(long, value_name = "URI")]
    master: Option<String>,
    /// Name of the bridge's ROS node; a second bridge needs another name.
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Address at which ROS nodes reach the bridge; 0.0.0.0 for all addresses of this host.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<IpAddr>,
    /// Print the state as a line of JSON at an interval.
    #[arg(long)]
    json: bool,
    /// Seconds between two lines of --json.
    #[arg(long, default_value_t = 1.0, value_parser = super::link::interval)]
    every: f64,
    /// Only check the configuration.
    #[arg(long)]
    check: bool,
}

/// A name and a direction, in the form of the command line.
pub(super) fn rule(text: &str) -> Result<(String, Direction), String> {
    let (name, direction) = text.split_once('=').unwrap_or((text, "both"));
    let direction = match direction {
        "to_bus" => Direction::ToBus,
        "to_ros" => Direction::ToRos,
        "both" => Direction::Both,
        other => {
            return Err(format!(
                "'{other}' is not a direction: write to_bus, to_ros or both"
            ));
        }
    };
    Ok((name.to_owned(), direction))
}

/// Runs the bridge.
pub(crate) fn run(options: &Options) -> Outcome {
    let config = config(options)?;
    if options.check {
        crate::screen::tell!("good");
        return Ok(());
    }
    let signals = Signals::watch().or_job("watching signals")?;
    let bridge = Bridge::open(config, BusConfig::from_env().or_input()?).or_input()?;
    let handle = bridge.handle();
    let thread = std::thread::Builder::new().name("ros1".into());
    let bridge = thread.spawn(move || bridge.run()).or_job("starting a thread")?;
    let start = Instant::now();
    let mut next = Duration::from_secs_f64(options.every);
    while !signals.stopped() && !bridge.is_finished() {
        std::thread::sleep(Duration::from_millis(50));
        if options.json && start.elapsed() >= next {
            next += Duration::from_secs_f64(options.every);
            let line = serde_json::to_string(&handle.status()).or_job("writing JSON")?;
            if writeln!(crate::screen::stdout(), "{line}").is_err() {
                break;
            }
        }
    }
    handle.stop();
    let ended = bridge.join().unwrap_or_else(|_| panic!("the bridge panicked"));
    ended.map_err(|e: BridgeError| Failure::job(format_args!("the bridge: {e}")))
}

fn config(options: &Options) -> Result<Config, Failure> {
    if options.config.is_none() && options.topics.is_empty() && options.services.is_empty() {
        return Err(Failure::input(
            "nothing to bridge: give --topic NAME, --service NAME=to_bus or a configuration",
        ));
    }
    let mut config = match &options.config {
        Some(file) => Config::load(file).or_input()?,
        None => Config::default(),
    };
    for (name, direction) in &options.topics {
        config = config.with_topic(TopicRule::new(name, *direction));
    }
    for (name, direction) in &options.services {
        config = config.with_service(ServiceRule::new(name, *direction));
    }
    config.master = options.master.clone().or(config.master);
    config.node = options.node.clone().or(config.node);
    config.listen = options.listen.or(config.listen);
    config.check().or_input()?;
    Ok(config)
}
