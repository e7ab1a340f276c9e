//! Nodes of roscpp that send and receive flows.

use crate::flows::play::{self, Leg, Part, Played, flow_arguments};
use crate::kit::error::{Error, RunError};
use crate::kit::sandbox::Sandbox;
use crate::kit::site::{Ground, Job, Site};
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How roscpp carries the two flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// TCPROS with its defaults.
    Tcpros,
    /// TCPROS with TCP_NODELAY.
    Nodelay,
    /// UDPROS.
    Udpros,
    /// The laser by UDPROS, the image by TCPROS with TCP_NODELAY: the paper's UDP/NOD.
    Mixed,
}

impl Transport {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Transport::Tcpros => "tcpros",
            Transport::Nodelay => "nodelay",
            Transport::Udpros => "udpros",
            Transport::Mixed => "mixed",
        }
    }
}

/// What paces the publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Source {
    /// An absolute schedule on a thread for each flow.
    Periodic,
    /// `ros::Timer`s.
    Roscpp,
}

impl Source {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Source::Periodic => "periodic",
            Source::Roscpp => "roscpp",
        }
    }
}

const MASTER: u16 = 11311;

/// Queue depth of one subscriber, at either end.
pub(crate) const QUEUE: u64 = 10;

/// The program that sends and receives, and its version.
pub(crate) struct Peer {
    pub(crate) program: PathBuf,
    pub(crate) version: String,
    sandbox: Sandbox,
}

impl Peer {
    /// Finds it, and builds it if it is missing.
    pub(crate) fn prepare(folder: Option<&Path>, ground: &Ground<'_>) -> Result<Peer, Error> {
        Peer::called("flow", folder, ground)
    }

    /// The same for another program of ROS 1.
    pub(crate) fn called(target: &str, folder: Option<&Path>, ground: &Ground<'_>) -> Result<Peer, Error> {
        let (program, version) = ground.peer(target, Transport::Tcpros.name(), folder)?;
        Ok(Peer {
            program,
            version,
            sandbox: Sandbox::new()?,
        })
    }

    /// Sends flows by roscpp, with roscore on the first leg's first host.
    pub(crate) fn play(
        &self,
        what: &str,
        transport: Transport,
        source: Source,
        site: &Site<'_>,
        legs: &[Leg],
    ) -> Result<Played, RunError> {
        let (master, _roscore) = self.roscore(site, &legs[0].from)?;
        let command = |part: Part, host: &str, legs: &[&Leg]| {
            self.part(site, (host, &master), (part, transport, source), legs)
        };
        play::play(what, site, &self.sandbox, legs, &command)
    }

    /// Returns the command of the program for some legs on a host, with the master at this address.
    pub(crate) fn part(
        &self,
        site: &Site<'_>,
        (host, master): (&str, &str),
        (part, transport, source): (Part, Transport, Source),
        legs: &[&Leg],
    ) -> Command {
        let mut words = vec!["--source".to_owned(), source.name().to_owned()];
        words.extend(flow_arguments(legs));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.command(site, host, master, (part.name(), transport), &words)
    }

    /// Returns the command of the program on a host, with a subcommand, a transport and further arguments.
    pub(crate) fn command(
        &self,
        site: &Site<'_>,
        host: &str,
        master: &str,
        (what, transport): (&str, Transport),
        words: &[&str],
    ) -> Command {
        let (program, queue) = (self.program.to_string_lossy(), QUEUE.to_string());
        let system = ["--system", transport.name(), "--queue", &queue];
        let all = [&[&*program, what], &system[..], words].concat();
        let mut command = site.command(host, true, &all);
        command.env("ROS_MASTER_URI", master);
        command
    }

    /// Starts roscore on a host; returns its address, for the environment.
    pub(crate) fn roscore(&self, site: &Site<'_>, host: &str) -> Result<(String, Job), RunError> {
        let port = MASTER.to_string();
        let mut roscore = site.command(host, false, &["roscore", "-p", &port]);
        self.sandbox.prepare(&mut roscore);
        let roscore = Job::start(&mut roscore)?;
        site.listens(host, MASTER)?;
        Ok((format!("http://{}:{MASTER}", site.address(host)?), roscore))
    }
}
