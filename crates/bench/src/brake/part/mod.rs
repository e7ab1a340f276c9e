//! The parts of the robot on Ropewalk's bus: the program `ropewalk bench brake-part`, one for each process.
//!
//! They use nodes, publishers and subscribers as any program does. `peers/brake` has the same parts on ROS 1;
//! `peers/brake/README.md` describes the arguments and output of both.

mod camera;
mod watch;

use super::recognize::{Recognizer, Region};
use super::scene::{BYTES, Color, Scene};
use super::{Application, motion};
use crate::kit::part::{Gate, PeerError, say};
use clap::{Args, Subcommand};
use ropewalk::{Flavour, Registry, Schema, SubscriberOptions};
use serde_json::json;

/// The role of one process.
#[derive(Subcommand, Clone, Debug)]
pub enum Role {
    /// Print name, version and modes.
    Version {
        /// Accepted for the contract's sake.
        #[arg(long, default_value = "ropewalk")]
        system: String,
    },
    /// Draw a test image, and print its hash and each recognizer's result.
    Check {
        /// Accepted for the contract's sake.
        #[arg(long, default_value = "ropewalk")]
        system: String,
        /// The region of interest.
        #[arg(long)]
        roi: Region,
    },
    /// Move, draw, publish, and stop at the command.
    Camera(Camera),
    /// Log the arrival of images.
    Logger(Common),
    /// Look for a lamp; the recognizer of red sends the command.
    Recognizer(Recognize),
}

/// Options of every role.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// Accepted for the contract's sake.
    #[arg(long, default_value = "ropewalk")]
    system: String,
    /// Prefix of the topics' names, unique to this trial.
    #[arg(long)]
    topic: String,
    /// Queue depth of one subscriber in images.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=64))]
    queue: u32,
}

/// Options of the camera.
#[derive(Args, Clone, Debug)]
pub struct Camera {
    #[command(flatten)]
    common: Common,
    /// Number of subscribers to wait for.
    #[arg(long)]
    watchers: usize,
    /// The region of interest, within which the light is visible.
    #[arg(long)]
    roi: Region,
    /// Motion of the robot.
    #[arg(long, value_enum)]
    application: Application,
    /// Microseconds from the start until the line is crossed, or the light comes into view.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=60_000_000))]
    event_us: u64,
    /// Milliseconds from the start until the end if there is no command.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=120_000))]
    end_ms: u64,
}

/// Options of a recognizer.
#[derive(Args, Clone, Debug)]
pub struct Recognize {
    #[command(flatten)]
    common: Common,
    /// The lamp to look for.
    #[arg(long, value_enum)]
    color: Color,
    /// Region of interest.
    #[arg(long)]
    roi: Region,
}

/// Runs `role` to the end. Blocks until standard input sends `stop` or ends.
///
/// # Errors
/// [`PeerError`]: the reason why it cannot work.
pub fn run(role: &Role) -> Result<(), PeerError> {
    match role {
        Role::Version { .. } => say(&json!({
            "system": "ropewalk", "version": env!("CARGO_PKG_VERSION"), "modes": ["block"],
        })),
        Role::Check { roi, .. } => check(*roi),
        Role::Camera(options) => camera::run(options),
        Role::Logger(options) => watch::log(options),
        Role::Recognizer(options) => watch::recognize(options),
    }
}

/// The test image: the light a little off the centre, red.
fn check(region: Region) -> Result<(), PeerError> {
    let mut image = vec![0; BYTES];
    Scene::new().draw(&mut image, 77, Some(963), Color::Red);
    // FNV-1a.
    let hash = image.iter().fold(0xcbf2_9ce4_8422_2325, |h: u64, b| {
        (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3)
    });
    let mut found = serde_json::Map::new();
    for color in Color::ALL {
        if let Some(m) = Recognizer::new(color, region).find(&image) {
            found.insert(color.name().into(), json!([m.sum, m.x, m.y]));
        }
    }
    let columns: Vec<Option<i32>> = (-35..35).map(|d| motion::column(f64::from(d))).collect();
    let entry = (motion::entry_degrees(region.width) * 1e6).round();
    say(&json!({"hash": format!("{hash:016x}"), "found": found, "columns": columns, "entry": entry}))
}

fn schema(name: &str) -> Result<Schema, PeerError> {
    let schema = Registry::new(Flavour::Ros1).schema(name);
    schema.map_err(|e| PeerError::Type(format!("{name}: {e}")))
}

fn image_topic(common: &Common) -> String {
    format!("{}/image", common.topic)
}

fn command_topic(common: &Common) -> String {
    format!("{}/cmd_vel", common.topic)
}

fn newest(common: &Common) -> SubscriberOptions {
    SubscriberOptions::default().with_depth(common.queue)
}
