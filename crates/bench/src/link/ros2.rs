//! Nodes of rclpy (`peers/rclpy/flow.py`): over Fast DDS from host to host, or at the ends of Ropewalk's links over
//! `rmw_ropewalk` or over Fast DDS with a bridge.

use crate::flows::play::{Leg, Part, flow_arguments};
use crate::kit::error::Error;
use crate::kit::site::{Ground, Site};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What carries the nodes' messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carried {
    Ropewalk,
    /// From host to host.
    Fastdds,
    /// Within a host.
    FastddsLocal,
}

impl Carried {
    /// Returns its name in the program's options.
    fn name(self) -> &'static str {
        match self {
            Carried::Ropewalk => "rclpy-ropewalk",
            Carried::Fastdds => "rclpy-fastdds-lan",
            Carried::FastddsLocal => "rclpy-fastdds-local",
        }
    }
}

/// The program that sends and receives.
pub(super) struct Rclpy {
    program: PathBuf,
    pub(super) version: String,
}

impl Rclpy {
    /// Finds it, and builds it if it is missing.
    pub(super) fn prepare(folder: Option<&Path>, ground: &Ground<'_>) -> Result<Rclpy, Error> {
        let (program, version) = ground.peer("rclpy-flow", Carried::Fastdds.name(), folder)?;
        Ok(Rclpy { program, version })
    }

    /// Returns the command of the node for a part on a host.
    pub(super) fn part(
        &self,
        site: &Site<'_>,
        (part, host): (Part, &str),
        carried: Carried,
        legs: &[&Leg],
    ) -> Command {
        let flows = flow_arguments(legs);
        let words: Vec<_> = flows.iter().map(String::as_str).collect();
        self.command(site, (part.name(), host, true), carried, &words)
    }

    /// The installation of ROS 2, with the definitions of its packages.
    pub(super) fn prefix(&self) -> PathBuf {
        self.program.with_file_name(".rclpy")
    }

    /// A node that serves or calls, by the words of the program. Never at SCHED_FIFO, where it would delay what is measured.
    pub(super) fn calls(
        &self,
        site: &Site<'_>,
        (command, host): (&str, &str),
        carried: Carried,
        more: &[&str],
    ) -> Command {
        self.command(site, (command, host, false), carried, more)
    }

    /// Creates `own` nodes, and reports when they know `all`.
    pub(super) fn know(&self, site: &Site<'_>, host: &str, carried: Carried, own: u32, all: u32) -> Command {
        let (own, all) = (own.to_string(), all.to_string());
        // Many nodes at SCHED_FIFO would keep the lab itself off its processor.
        let more = ["--own", &own, "--all", &all];
        self.command(site, ("know", host, false), carried, &more)
    }

    fn command(
        &self,
        site: &Site<'_>,
        (command, host, fifo): (&str, &str, bool),
        carried: Carried,
        more: &[&str],
    ) -> Command {
        let program = self.program.to_string_lossy();
        let words = [&[&*program, command, "--system", carried.name()], more].concat();
        let mut command = site.command(host, fifo, &words);
        // The lab carries no multicast, by which Fast DDS finds its peers.
        let others = site.addresses().unwrap_or_default();
        let others = others.into_iter().filter(|(name, _)| name != host);
        let others: Vec<String> = others.map(|(_, address)| address).collect();
        command.env("ROS_STATIC_PEERS", others.join(";"));
        command
    }
}
