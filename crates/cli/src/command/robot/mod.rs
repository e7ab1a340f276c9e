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

/// Robots to command with `ropewalk control`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Sim(Sim),
    /// Makes a key for robots and controllers over ZeroMQ: FILE, to be kept secret, and FILE.pub, to be told.
    Key {
        file: PathBuf,
    },
}

/// Simulates a rover with an arm in a room with pillars: it takes all commands and tells all telemetry of Robot Remote Control.
///
/// It drives on two wheels (at most 1.5 m/s and 2 rad/s, with bounded accelerations), integrates its motion in real time, refuses what
/// it cannot do and says why, and stops when it hears nothing of its controller any more. Its room is 12 m by 8 m,
/// with the origin, where it starts, in the middle.
///
/// It is on this host's bus (ROPEWALK_RUNTIME_DIR, ROPEWALK_DOMAIN), and on other hosts where links carry it (docs/guide/remote-link.md); or at an
/// address of ZeroMQ; or both.
#[derive(Args)]
#[command(after_help = "Example, in two terminals:\n  \
    ropewalk robot sim --name rover\n  \
    ropewalk control rover\n\
    and over ZeroMQ:\n  \
    ropewalk robot sim --zmq tcp://127.0.0.1:7010\n  \
    ropewalk control tcp://127.0.0.1:7010\n\n\
    Simple actions: headlights (0 or 1), gripper (0 shut to 1 open), home (the arm goes to 0),\n  horn (asks for a permission first).\n\
    Complex actions: patrol (poses, again and again), twists (each for 1 s).\n\
    Joints: arm_pan, arm_shoulder, arm_elbow, gripper.")]
struct Sim {
    /// What it is called on the bus: letters, digits and `_`, with `/` between words.
    #[arg(long, default_value = "rover")]
    name: String,
    #[command(flatten)]
    ends: RobotEnds,
    /// How often it tells where it is and what its joints do; a laser scan comes at most 10 times a second, a picture twice.
    #[arg(long, value_name = "HZ", default_value_t = 20.0, value_parser = rate)]
    rate: f64,
    /// Decides the noise of its sensors.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// End after so many seconds; otherwise with Ctrl-C.
    #[arg(long = "for", value_name = "SECONDS", value_parser = crate::numbers::duration)]
    duration: Option<f64>,
    /// For how long a twist holds, after which it stops; 0: until something else is commanded.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5, value_parser = hold)]
    twist_hold: f64,
    /// Take over hands the right to move to whoever wants it; otherwise its holder has to release it.
    #[arg(long)]
    allow_take_over: bool,
    /// The right to move has to be asked for; otherwise a free one goes to who moves first.
    #[arg(long)]
    require_request: bool,
    /// Print what happens as JSON, an object a line.
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

/// Runs one of the commands.
pub(crate) fn run(options: &Options) -> Outcome {
    match &options.what {
        What::Sim(sim) => run::run(sim),
        What::Key { file } => KeyPair::generate().or_job("making a key")?.write(file).or_input(),
    }
}
