//! What a user can ask for.

use super::{Application, Region};
use crate::ipc::System;
use clap::Args;
use std::path::PathBuf;

/// Brakes a simulated robot by what its camera sees, and measures how far it comes: the TZC paper's applications.
///
/// A camera process publishes 1920x1080 images at 30 Hz to a logger and three recognizers, each a process of its
/// own; the red light's recognizer sends the command to stop. Ours runs beside ROS 1, whose programs lie in the folder
/// `peers` and are built when first needed. Systems alternate; everything runs on this machine alone.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Only these of ropewalk, tcpros and nodelay (default: ropewalk, tcpros); then one that is missing is an error.
    #[arg(long, alias = "system", value_enum, value_delimiter = ',', value_name = "A,B")]
    pub systems: Vec<System>,
    /// Only these applications.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "A,B")]
    pub applications: Vec<Application>,
    /// Three trials instead of ten.
    #[arg(long)]
    pub quick: bool,
    /// Trials of each application and system.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: Option<u32>,
    /// The region of interest in the image's centre: larger keeps the processors busier, and the light longer in
    /// view.
    #[arg(long, value_name = "WxH", default_value_t)]
    pub roi: Region,
    /// So many more recognizers, to keep the processors busy.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=32))]
    pub load: u32,
    /// Images that may wait for one subscriber, and in ROS for each of the publisher's connections, too.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub queue: u32,
    /// Print the result as JSON instead of tables.
    #[arg(long)]
    pub json: bool,
    /// Draw distances and angles into this file (SVG).
    #[arg(long, value_name = "FILE")]
    pub figure: Option<PathBuf>,
    /// The folder of the peers (default: `peers` here or further up).
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
    /// Everything as on the command line without options.
    fn default() -> Self {
        Options {
            systems: Vec::new(),
            applications: Vec::new(),
            quick: false,
            runs: None,
            roi: Region::default(),
            load: 0,
            queue: 1,
            json: false,
            figure: None,
            peers: None,
        }
    }
}
