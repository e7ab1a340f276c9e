//! The setup of a run: this host's loopback, or a lab.

use super::setup::{ROBOT, Setup};
use super::tools::Tools;
use crate::kit::error::RunError;
use crate::kit::links::link_words;
use crate::kit::site::Site;
use std::fs::DirBuilder;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// Port of the links in a lab.
const LINK: u16 = 7400;

/// Two hosts, or two buses of this one.
pub(super) struct Stage<'a> {
    pub(super) operator: &'static str,
    /// Files of both, removed at the end.
    folder: TempDir,
    site: Option<Site<'a>>,
    tools: &'a Tools<'a>,
}

impl<'a> Stage<'a> {
    pub(super) fn up(tools: &'a Tools<'a>, setup: &Setup) -> Result<Stage<'a>, RunError> {
        let site = match setup.scenario {
            Some(scenario) => Some(Site::up(&tools.ground, scenario, None)?),
            None => None,
        };
        // Short: paths of unix sockets are limited to 108 bytes.
        let folder = tempfile::Builder::new()
            .prefix("r")
            .tempdir_in(tools.ground.folder.path());
        let folder = folder.map_err(|e| format!("cannot create a folder for the run: {e}"))?;
        let stage = Stage {
            operator: setup.operator,
            folder,
            site,
            tools,
        };
        if stage.site.is_none() {
            for host in stage.hosts() {
                let bus = stage.file(host);
                let made = DirBuilder::new().mode(0o700).create(&bus);
                made.map_err(|e| format!("{}: {e}", bus.display()))?;
            }
        }
        Ok(stage)
    }

    /// Returns the controller's host and the robot's.
    pub(super) fn hosts(&self) -> [&'static str; 2] {
        [self.operator, ROBOT]
    }

    /// Returns the lab, if there is one.
    pub(super) fn site(&self) -> Option<&Site<'a>> {
        self.site.as_ref()
    }

    /// Returns a file of this run.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn address(&self, host: &str) -> Result<String, RunError> {
        match &self.site {
            Some(site) => site.address(host),
            None => Ok(Ipv4Addr::LOCALHOST.to_string()),
        }
    }

    /// Returns the folder of a host's bus, unless the host has its own default.
    pub(super) fn bus(&self, host: &str) -> Option<PathBuf> {
        self.site.is_none().then(|| self.file(host))
    }

    /// Returns a command on a host; in a lab at SCHED_FIFO if that is permitted and `fifo` is set.
    pub(super) fn command(&self, host: &str, fifo: bool, program: &[&str]) -> Command {
        if let Some(site) = &self.site {
            return site.command(host, fifo, program);
        }
        let mut command = Command::new(program[0]);
        command.args(&program[1..]);
        command
    }

    /// Returns the command of a process of `ropewalk bench remote` on a host.
    pub(super) fn part(&self, host: &str, words: &[String]) -> Command {
        let ours = self.tools.ground.executable.to_string_lossy();
        let words = words.iter().map(String::as_str);
        let all: Vec<&str> = [&*ours, "bench", "remote-part"]
            .into_iter()
            .chain(words)
            .collect();
        self.command(host, true, &all)
    }

    /// Returns the command of a host's link daemon, with a configuration.
    pub(super) fn daemon(&self, host: &str, configuration: &str) -> Command {
        let ours = self.tools.ground.executable.to_string_lossy();
        let mut command = self.command(host, false, &link_words(&ours, configuration));
        self.tools.sandbox.prepare(&mut command);
        if let Some(bus) = self.bus(host) {
            command.env("ROPEWALK_RUNTIME_DIR", bus);
        }
        command
    }

    /// Returns UDP ports of links: fixed ones in a lab, free ones on this host.
    pub(super) fn udp_ports(&self) -> Result<[u16; 2], RunError> {
        if self.site.is_some() {
            return Ok([LINK; 2]);
        }
        // Held until both are known, so that they differ.
        let bind = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
        let ports = || {
            let sockets = [bind()?, bind()?];
            Ok([sockets[0].local_addr()?.port(), sockets[1].local_addr()?.port()])
        };
        ports().map_err(|e: std::io::Error| format!("cannot find a free port: {e}").into())
    }

    /// Returns TCP ports: fixed ones in a lab, free ones on this host.
    pub(super) fn tcp_ports(&self) -> Result<[u16; 4], RunError> {
        if self.site.is_some() {
            return Ok([7001, 7002, 7003, 7004]);
        }
        let ports = || {
            let mut sockets = Vec::new();
            let mut ports = [0; 4];
            for port in &mut ports {
                let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
                *port = socket.local_addr()?.port();
                sockets.push(socket);
            }
            Ok(ports)
        };
        ports().map_err(|e: std::io::Error| format!("cannot find a free port: {e}").into())
    }
}
