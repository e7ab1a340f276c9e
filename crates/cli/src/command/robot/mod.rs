//! `ropewalk robot`: robots to command.

mod camera;
mod commands;
mod describe;
mod model;
mod publish;
mod run;
mod sim;
mod telemetry;
mod tell;

use super::transport::RobotEnds;
use crate::failure::{OrFail, Outcome};
use clap::{Args, Subcommand};
use remote::transport::zmq::KeyPair;
use std::path::PathBuf;

/// Simulate robots, and create keys for them.
#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Sim(Sim),
    /// Create a key pair for ZeroMQ: FILE (keep it secret) and FILE.pub (share it).
    Key {
        file: PathBuf,
    },
}

/// Simulate a rover with an arm in a room with pillars.
///
/// The rover takes all commands and publishes all telemetry of Robot Remote Control. It drives on two wheels (at most
/// 1.5 m/s and 2 rad/s, with bounded accelerations), moves in real time, rejects commands it cannot execute, and says
/// why, and stops when it loses its controller. Its room is 12 m by 8 m, with the origin, where it starts, in the
/// middle.
///
/// It connects to this host's bus (ROPEWALK_RUNTIME_DIR, ROPEWALK_DOMAIN), and through links to other hosts
/// (docs/guide/remote-link.md). It can also, or instead, listen at a ZeroMQ address.
#[derive(Args)]
#[command(after_help = "Example, in two terminals:\n  \
    ropewalk robot sim --name rover\n  \
    ropewalk control rover\n\
    and over ZeroMQ:\n  \
    ropewalk robot sim --zmq tcp://127.0.0.1:7010\n  \
    ropewalk control tcp://127.0.0.1:7010\n\n\
    Simple actions: headlights (0 or 1), gripper (0 shut to 1 open),\n  \
    home (the arm goes to 0), horn (asks for permission first).\n\
    Complex actions: patrol (poses, again and again), twists (each for 1 s).\n\
    Joints: arm_pan, arm_shoulder, arm_elbow, gripper.")]
struct Sim {
    /// The robot's name on the bus: letters, digits and `_`, with `/` between words.
    #[arg(long, default_value = "rover")]
    name: String,
    #[command(flatten)]
    ends: RobotEnds,
    /// Rate of the pose and the joint states; laser scans are limited to 10 Hz, images to 2 Hz.
    #[arg(long, value_name = "HZ", default_value_t = 20.0, value_parser = rate)]
    rate: f64,
    /// Seed of the sensors' noise.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// End after this many seconds (default: at Ctrl-C).
    #[arg(long = "for", value_name = "SECONDS", value_parser = crate::numbers::duration)]
    duration: Option<f64>,
    /// How long a twist lasts before the rover stops; 0: until the next command.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5, value_parser = hold)]
    twist_hold: f64,
    /// Let a controller take the right to move from its holder; otherwise the holder has to release it.
    #[arg(long)]
    allow_take_over: bool,
    /// Require controllers to ask for the right to move; otherwise a free right goes to the first that moves.
    #[arg(long)]
    require_request: bool,
    /// Print events as JSON, one object per line.
    #[arg(long)]
    json: bool,
}

fn rate(text: &str) -> Result<f64, String> {
    let good = text.parse().ok().filter(|hz: &f64| (0.1..=1000.0).contains(hz));
    good.ok_or_else(|| "give 0.1 to 1000 Hz".into())
}

fn hold(text: &str) -> Result<f64, String> {
    let good = text.parse().ok().filter(|s: &f64| (0.0..=3600.0).contains(s));
    good.ok_or_else(|| "give 0 to 3600 seconds".into())
}

/// Runs the subcommand.
pub(crate) fn run(options: &Options) -> Outcome {
    match &options.what {
        What::Sim(sim) => run::run(sim),
        What::Key { file } => KeyPair::generate().or_job("making a key")?.write(file).or_input(),
    }
}
