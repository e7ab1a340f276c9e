//! `ropewalk ros2`: the bridge to nodes of ROS 2 that stay on DDS or on rmw_zenoh.

use super::ros1::rule;
use crate::failure::{Failure, OrFail, Outcome};
use crate::signals::Signals;
use bus::BusConfig;
use clap::{Args, ValueEnum};
use ros2::{
    ActionRule, Bridge, BridgeError, Config, Direction, Middleware, Range, ServiceRule, Status, TopicRule,
};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long to wait before trying again to reach a router.
const AGAIN: Duration = Duration::from_secs(1);

/// Bridge ROS 2 nodes on DDS or Zenoh and this host's bus
///
/// Carries topics, services and actions both ways, for nodes that keep their
/// middleware (Fast DDS, Cyclone DDS). Nodes that can change it need no bridge:
/// RMW_IMPLEMENTATION=rmw_ropewalk. Runs until Ctrl-C; no ROS needs to be
/// installed here. The configuration lists what crosses:
///
///   domain: 0            # default: ROS_DOMAIN_ID, else 0
///   range: localhost     # or subnet; default: ROS_AUTOMATIC_DISCOVERY_RANGE,
///                        # else localhost
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
///   actions:
///     - {name: /navigate_to_pose, direction: to_bus}
///   # Folders of .msg, .srv and .action files, in addition to
///   # AMENT_PREFIX_PATH
///   definitions: [src/my_msgs]
///
/// For a few topics, the command line suffices:
///
///   ropewalk ros2 --topic /scan=to_bus --topic /cmd_vel=to_ros
///
/// Use --wire zenoh for nodes of rmw_zenoh, with a ropewalk built with
/// `--features zenoh`. Name routers other than this host's in the configuration
/// (docs/guide/ros2-zenoh.md):
///
///   zenoh: {connect: [tcp/10.0.0.2:7447], config: zenoh.json5}
///
/// Together with `ropewalk ros1`, nodes of ROS 1 and of ROS 2 meet on the bus;
/// messages are converted.
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
    /// An action, with =to_bus or =to_ros (may be repeated).
    #[arg(long = "action", value_name = "NAME=DIRECTION", value_parser = rule)]
    actions: Vec<(String, Direction)>,
    /// Protocol of the nodes, instead of the configuration's `wire`.
    #[arg(long, value_name = "WIRE")]
    wire: Option<Spoken>,
    /// Domain, instead of ROS_DOMAIN_ID.
    #[arg(long, value_name = "NUMBER")]
    domain: Option<u32>,
    /// Range in which nodes are discovered, instead of ROS_AUTOMATIC_DISCOVERY_RANGE.
    #[arg(long, value_name = "RANGE")]
    range: Option<Reach>,
    /// Name of the bridge's ROS node.
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Also carry topics and services of other Ropewalk bridges, like `from_bridges` in the configuration.
    #[arg(long)]
    from_bridges: bool,
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

#[derive(Clone, Copy, ValueEnum)]
enum Spoken {
    /// DDS: Fast DDS, Cyclone DDS.
    Dds,
    /// Zenoh, as rmw_zenoh uses it.
    Zenoh,
}

#[derive(Clone, Copy, ValueEnum)]
enum Reach {
    /// Only hosts of ROS_STATIC_PEERS or `static_peers`.
    Off,
    /// Only this host.
    Localhost,
    /// The networks of this host's interfaces.
    Subnet,
}

/// Runs the bridge.
pub(crate) fn run(options: &Options) -> Outcome {
    let config = config(options)?;
    if options.check {
        crate::screen::tell!("good");
        return Ok(());
    }
    let signals = Signals::watch().or_job("watching signals")?;
    let Some(bridge) = open(&config, options, &signals)? else {
        return Ok(());
    };
    let handle = bridge.handle();
    let thread = std::thread::Builder::new().name("ros2".into());
    let bridge = thread.spawn(move || bridge.run()).or_job("starting a thread")?;
    let start = Instant::now();
    let mut next = Duration::from_secs_f64(options.every);
    while !signals.stopped() && !bridge.is_finished() {
        std::thread::sleep(Duration::from_millis(50));
        if options.json && start.elapsed() >= next {
            next += Duration::from_secs_f64(options.every);
            if !print(&handle.status())? {
                break;
            }
        }
    }
    handle.stop();
    let ended = bridge.join().unwrap_or_else(|_| panic!("the bridge panicked"));
    ended.map_err(|e: BridgeError| Failure::job(format_args!("the bridge: {e}")))
}

/// Opens the bridge, once the router that it depends on answers. `None` if the user stops it before.
fn open(config: &Config, options: &Options, signals: &Signals) -> Result<Option<Bridge>, Failure> {
    let mut reported = String::new();
    loop {
        let error = match Bridge::open(config.clone(), BusConfig::from_env().or_input()?) {
            Ok(bridge) => return Ok(Some(bridge)),
            Err(error) if error.is_temporary() => error.to_string(),
            Err(error) => return Err(error).or_input(),
        };
        if reported != error {
            tracing::warn!("{error}; trying again");
        }
        if options.json {
            let mut status = Status::default();
            status.problems.insert("the domain".into(), error.clone());
            if !print(&status)? {
                return Ok(None);
            }
        }
        reported = error;
        let next = Instant::now() + AGAIN;
        while Instant::now() < next {
            if signals.stopped() {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Prints a line of JSON. `false` if nobody reads it any more.
fn print(status: &Status) -> Result<bool, Failure> {
    let line = serde_json::to_string(status).or_job("writing JSON")?;
    Ok(writeln!(crate::screen::stdout(), "{line}").is_ok())
}

fn config(options: &Options) -> Result<Config, Failure> {
    let named = !(options.topics.is_empty() && options.services.is_empty() && options.actions.is_empty());
    if options.config.is_none() && !named {
        return Err(Failure::input(
            "nothing to bridge: give --topic NAME, --service NAME=to_bus, --action NAME=to_bus or a configuration",
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
    for (name, direction) in &options.actions {
        config = config.with_action(ActionRule::new(name, *direction));
    }
    match options.wire {
        Some(Spoken::Dds) => config.wire = Middleware::Dds,
        Some(Spoken::Zenoh) => config.wire = Middleware::Zenoh,
        None => {}
    }
    config.domain = options.domain.or(config.domain);
    config.range = options.range.map(Reach::range).or(config.range);
    config.from_bridges |= options.from_bridges;
    config.node = options.node.clone().or(config.node);
    config.check().or_input()?;
    Ok(config)
}

impl Reach {
    fn range(self) -> Range {
        match self {
            Reach::Off => Range::Off,
            Reach::Localhost => Range::Localhost,
            Reach::Subnet => Range::Subnet,
        }
    }
}
