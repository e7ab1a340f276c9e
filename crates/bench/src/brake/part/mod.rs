//! The parts of the robot on our own bus: what `ropewalk bench brake-part` runs, once in each process.
//!
//! They use nodes, publishers and subscribers as any program would. `peers/brake` plays the same parts on ROS 1; what
//! both are told and print `peers/brake/README.md` says.

mod camera;
mod watch;

use super::recognize::{Recognizer, Region};
use super::scene::{BYTES, Color, Scene};
use super::{Application, motion};
use crate::ipc::peer::{Gate, PeerError, say};
use clap::{Args, Subcommand};
use ropewalk::{Flavour, Registry, Schema, SubscriberOptions};
use serde_json::json;

/// What one process does.
#[derive(Subcommand, Clone, Debug)]
pub enum Role {
    /// Print name, version and modes.
    Version {
        /// Accepted for the contract's sake.
        #[arg(long, default_value = "ropewalk")]
        system: String,
    },
    /// Draw a test image, and print its hash and what each recognizer finds.
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
    /// Log when images come.
    Logger(Common),
    /// Look for a lamp; the red one's sends the command.
    Recognizer(Recognize),
}

/// What every role is told.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// Accepted for the contract's sake.
    #[arg(long, default_value = "ropewalk")]
    system: String,
    /// What the topics' names begin with, unique to this trial.
    #[arg(long)]
    topic: String,
    /// Images that may wait for one subscriber.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=64))]
    queue: u32,
}

/// What the camera is told.
#[derive(Args, Clone, Debug)]
pub struct Camera {
    #[command(flatten)]
    common: Common,
    /// Subscribers to wait for.
    #[arg(long)]
    watchers: usize,
    /// The region of interest, within which the light is to be seen.
    #[arg(long)]
    roi: Region,
    /// How the robot moves.
    #[arg(long, value_enum)]
    application: Application,
    /// Microseconds from the start until the line is crossed, or the light comes into view.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=60_000_000))]
    event_us: u64,
    /// Milliseconds from the start after which it ends without a command.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=120_000))]
    end_ms: u64,
}

/// What a recognizer is told.
#[derive(Args, Clone, Debug)]
pub struct Recognize {
    #[command(flatten)]
    common: Common,
    /// Its lamp.
    #[arg(long, value_enum)]
    color: Color,
    /// Where it looks.
    #[arg(long)]
    roi: Region,
}

/// Does what `role` says, to the end. Blocks until standard input says `stop` or ends.
///
/// # Errors
/// [`PeerError`]: what keeps it from working.
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
