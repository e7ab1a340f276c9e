//! `ropewalk link`: the link daemon.

pub(crate) mod operate;

use super::web::Beside;
use crate::failure::{Failure, OrFail, Outcome};
use crate::signals::Signals;
use bus::{Bus, BusConfig};
use clap::Args;
use link::keys::{Bundle, KeysError};
use link::{CarrierError, Config, Daemon, Handle, LinkError};
use ropewalk::Node;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Carry topics and service calls to other hosts, by priority, over a radio
///
/// Runs until Ctrl-C. One daemon owns a radio; its topics, priorities and peers
/// are in the configuration:
///
///   host: robot
///   keys: keys/robot          # see `ropewalk keys --help`
///   radio: {bind: '0.0.0.0:7400', rate: 6Mbit/s}
///   peers:
///     - {name: base, address: '192.168.1.7:7400'}
///   topics:
///     - {name: /scan, priority: 100, direction: out, deadline: 100ms,
///        depth: 2}
///     - {name: /cmd_vel, priority: 120, direction: in}
///   services:
///     # The base may call it (there: role: call)
///     - {name: /arm/grasp, role: serve}
///   # Nodes of ROS 2 see each other; true also carries all their endpoints.
///   ros2: graph
///
/// While the link runs, `ropewalk link status` and `ropewalk top` show its
/// state, and `ropewalk link set /scan priority=120` changes a topic.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: Option<operate::What>,
    /// The configuration (YAML).
    #[arg(value_name = "FILE", required = true)]
    config: Option<PathBuf>,
    /// Print the state as a line of JSON at an interval, and at the end.
    #[arg(long)]
    json: bool,
    /// Seconds between two lines of --json.
    #[arg(long, default_value_t = 1.0, value_parser = interval)]
    every: f64,
    #[command(flatten)]
    web: Beside,
    /// Only check the configuration.
    #[arg(long)]
    check: bool,
}

pub(crate) fn interval(text: &str) -> Result<f64, String> {
    let good = text.parse().ok().filter(|s: &f64| (0.1..=3600.0).contains(s));
    good.ok_or_else(|| "give 0.1 to 3600 seconds".into())
}

/// Runs the daemon, or queries a running one.
pub(crate) fn run(options: &Options) -> Outcome {
    match (&options.what, &options.config) {
        (Some(what), _) => operate::run(what),
        (None, Some(file)) => daemon(options, file),
        (None, None) => Err(Failure::input("name a configuration file; see --help")),
    }
}

fn bad_keys(file: &Path, error: KeysError) -> Failure {
    let place = Config::place(file, "keys");
    Failure::input(format_args!(
        "{place}: `keys`: {error}; see `ropewalk keys --help`"
    ))
}

fn daemon(options: &Options, file: &Path) -> Outcome {
    let config = Config::load(file).or_input()?;
    if options.check {
        let keys = config.keys.as_ref().filter(|_| config.carrier().has_keys());
        if let Some(keys) = keys {
            Bundle::load(keys, &config.host).map_err(|e| bad_keys(file, e))?;
        }
        crate::screen::tell!("{}: good", file.display());
        return Ok(());
    }
    let signals = Signals::watch().or_job("watching signals")?;
    let bus = Bus::open(BusConfig::from_env().or_input()?).or_input()?;
    let up = up(&config);
    let at = |key: &str, e: &dyn std::fmt::Display| {
        Failure::input(format_args!("{}: {e}", Config::place(file, key)))
    };
    let daemon = Daemon::open(config, bus).map_err(|e| match e {
        LinkError::Carrier(CarrierError::Keys(e)) => bad_keys(file, e),
        LinkError::Carrier(e @ CarrierError::Bind { .. }) => at("radio.bind", &e),
        LinkError::Carrier(e @ CarrierError::Line { .. }) => at("radio.line", &e),
        LinkError::Carrier(e) => Failure::input(e),
        LinkError::Taken { .. } => at("radio", &e),
        e => Failure::job(format_args!("starting the link: {e}")),
    })?;
    tracing::info!("{up}");
    let _page = options.web.clone().start(|| Node::new("web").or_input())?;
    let handle = daemon.handle();
    let radio = std::thread::Builder::new()
        .name("radio".into())
        .spawn(move || daemon.run());
    let radio = radio.or_job("starting a thread")?;
    let mut next = Duration::from_secs_f64(options.every);
    let start = std::time::Instant::now();
    while !signals.stopped() && !radio.is_finished() {
        std::thread::sleep(Duration::from_millis(50));
        if options.json && start.elapsed() >= next {
            next += Duration::from_secs_f64(options.every);
            if !print(&handle)? {
                break;
            }
        }
    }
    handle.stop();
    radio
        .join()
        .unwrap_or_else(|_| panic!("the radio's thread panicked"))
        .or_job("the link")?;
    // The final counts, also of a link that ends before its first line.
    if options.json {
        print(&handle)?;
    }
    Ok(())
}

/// What the log says once the link runs.
fn up(config: &Config) -> String {
    let (host, carrier) = (&config.host, config.carrier().name());
    let radio = &config.radio;
    let at = radio.bind.map(|address| address.to_string());
    let at = at.or_else(|| radio.line.as_ref().map(|line| line.display().to_string()));
    let at = at.map(|at| format!(" at {at}")).unwrap_or_default();
    format!("link up: {host}, over {carrier}{at}")
}

/// Prints the state; false if the reader is gone.
fn print(handle: &Handle) -> Result<bool, Failure> {
    let line = serde_json::to_string(&handle.status()).or_job("writing JSON")?;
    Ok(writeln!(crate::screen::stdout(), "{line}").is_ok())
}
