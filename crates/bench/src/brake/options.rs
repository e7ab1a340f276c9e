//! The options.

use super::{Application, Region};
use crate::kit::systems::System;
use clap::Args;
use std::path::PathBuf;

/// The systems that have the applications.
pub(crate) const SYSTEMS: [(System, &str); 3] = [
    (System::Ropewalk, "Ropewalk"),
    (System::Tcpros, "ROS 1 over TCP"),
    (System::Nodelay, "ROS 1 over TCP with TCP_NODELAY"),
];

/// Measure how far a simulated robot moves before its camera's images stop it: the TZC paper's applications.
///
/// A camera process publishes 1920x1080 images at 30 Hz to a logger and three recognizers, each a process of its own.
/// The recognizer of the red light sends the command to stop, and the benchmark measures the distance until the robot
/// stops. Ropewalk is compared with ROS 1, whose programs are in the folder `peers` and are built when first needed.
/// Systems alternate; everything runs on this machine.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Measure only these systems (default: ropewalk, tcpros). A missing one is then an error.
    #[arg(
        long,
        alias = "system",
        value_parser = System::parser(&SYSTEMS),
        value_delimiter = ',',
        value_name = "A,B"
    )]
    pub systems: Vec<System>,
    /// Measure only these applications.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "A,B")]
    pub applications: Vec<Application>,
    /// Run three trials instead of ten.
    #[arg(long)]
    pub quick: bool,
    /// Number of trials of each application and system.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: Option<u32>,
    /// Region of interest in the image's centre: a larger one keeps the processors busier, and the light longer in
    /// view.
    #[arg(long, value_name = "WxH", default_value_t)]
    pub roi: Region,
    /// Number of additional recognizers, to keep the processors busy.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=32))]
    pub load: u32,
    /// Queue depth of one subscriber in images, and in ROS also of each of the publisher's connections.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub queue: u32,
    /// `--json`.
    #[command(flatten)]
    pub json: terminal::json::Json,
    /// Draw distances and angles into this file (SVG).
    #[arg(long, value_name = "FILE")]
    pub figure: Option<PathBuf>,
    /// Folder of the peers (default: `peers` here or further up).
    #[arg(long, value_name = "FOLDER")]
    pub peers: Option<PathBuf>,
}

impl Options {
    pub(super) fn trials(&self) -> u32 {
        self.runs.unwrap_or(if self.quick { 3 } else { 10 })
    }

    pub(super) fn wanted_systems(&self) -> Vec<System> {
        let mut wanted = Vec::new();
        let default = [System::Ropewalk, System::Tcpros];
        let named = if self.systems.is_empty() {
            &default[..]
        } else {
            &self.systems
        };
        for system in named {
            if !wanted.contains(system) {
                wanted.push(*system);
            }
        }
        wanted
    }

    pub(super) fn wanted_applications(&self) -> Vec<Application> {
        let all = [Application::Straight, Application::Turn];
        let wanted = |a: &Application| self.applications.is_empty() || self.applications.contains(a);
        all.into_iter().filter(wanted).collect()
    }
}

impl Default for Options {
    /// The options of the command line's defaults.
    fn default() -> Self {
        Options {
            systems: Vec::new(),
            applications: Vec::new(),
            quick: false,
            runs: None,
            roi: Region::default(),
            load: 0,
            queue: 1,
            json: Default::default(),
            figure: None,
            peers: None,
        }
    }
}
