//! The processes on an agent's machine.

use super::super::cgroup::Quota;
use super::super::peers::Play;
use super::super::raw::{self, Row};
use super::super::stage::ros_words;
use super::super::tools::Programs;
use super::super::watch::{Load, Parts, Watch};
use super::super::{links, system};
use super::inbox::Inbox;
use super::protocol::{self, Answer, NODE_LINE, NODE_LINES, Run};
use crate::kit::error::RunError;
use crate::kit::line::shorten;
use crate::kit::links::link_words;
use crate::kit::processes::{Processes, Says};
use crate::kit::roscore::Roscore;
use crate::kit::sandbox::Sandbox;
use crate::kit::site::Job;
use stats::Time;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long a link may take to end.
const END: Duration = Duration::from_secs(10);

/// What an agent has from its start.
pub(super) struct Launcher {
    pub(super) executable: PathBuf,
    pub(super) programs: Programs,
    pub(super) inbox: Inbox,
}

/// What stays between runs. In the order of its end.
pub(super) struct Stage {
    master: Option<Roscore>,
    quota: Option<Quota>,
    pub(super) sandbox: Sandbox,
    addresses: Vec<Ipv4Addr>,
    here: u32,
}

impl Stage {
    /// Sets the stage, and returns a port that a link may use.
    pub(super) fn set(addresses: Vec<Ipv4Addr>, here: u32, cpu_share: f64) -> Result<(Stage, u16), String> {
        let own = addresses
            .get(here as usize)
            .copied()
            .unwrap_or(Ipv4Addr::LOCALHOST);
        let port = UdpSocket::bind((own, 0))
            .and_then(|s| s.local_addr())
            .map_err(|e| {
                format!(
                    "{own} is none of its addresses ({e}): give HOST=ADDRESS with the address by which the others reach it"
                )
            })?;
        let stage = Stage {
            master: None,
            quota: (cpu_share < 1.0).then(|| Quota::new(cpu_share)).transpose()?,
            sandbox: Sandbox::new().map_err(|e| e.to_string())?,
            addresses,
            here,
        };
        Ok((stage, port.port()))
    }

    /// Starts a ROS master, if there is none, and returns its port.
    pub(super) fn master(&mut self, inbox: &Inbox) -> Result<u16, String> {
        let master = match self.master.take() {
            Some(master) => master,
            None => {
                let started = Roscore::start_at(self.address(), &self.sandbox, &|| inbox.over().is_some())?;
                started.ok_or("the session is over")?
            }
        };
        let port = master.port();
        self.master = Some(master);
        Ok(port)
    }

    fn address(&self) -> Ipv4Addr {
        let own = self.addresses.get(self.here as usize);
        own.copied().unwrap_or(Ipv4Addr::LOCALHOST)
    }

    /// Returns the command of a program within its share of the processors.
    fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new("env");
        command.args(ros_words(self.address())).args(words);
        match &self.quota {
            Some(quota) => quota.wrap(&command),
            None => command,
        }
    }
}

/// A run's processes on this machine. Dropping it ends them.
pub(super) struct RunNodes<'a> {
    run: &'a Run,
    stage: &'a Stage,
    folder: PathBuf,
    processes: Processes<'a, Raw>,
    /// For each process, the run's node, and how many of its lines were passed on.
    nodes: Vec<(u32, usize)>,
    daemon: Option<Job>,
    watch: Watch,
    /// The rows that were requested last, and their sender.
    rows: Option<(u32, Vec<Row>)>,
}

/// Lines of a node, for the coordinator to parse.
#[derive(Default)]
pub(super) struct Raw(Vec<String>);

impl Says for Raw {
    type Rule = ();
    type Line = String;

    fn longest((): ()) -> u64 {
        NODE_LINE as u64
    }

    fn parse(text: &str, (): ()) -> Result<String, String> {
        Ok(text.trim_end().to_owned())
    }

    fn hear(&mut self, _: Time, line: String) {
        // Further lines could not be valid.
        if self.0.len() < NODE_LINES {
            self.0.push(line);
        }
    }
}

impl<'a> RunNodes<'a> {
    /// Starts the link and the nodes of this machine. It listens until `news`.
    pub(super) fn start(
        launcher: &Launcher,
        stage: &'a Stage,
        run: &'a Run,
        news: &'a dyn Fn() -> bool,
    ) -> Result<RunNodes<'a>, RunError> {
        let machines = stage.addresses.len();
        if run.point.hosts as usize != machines || run.ports.len() != machines {
            return Err(RunError::Failed(
                "the run has other machines than the stage".into(),
            ));
        }
        let folder = stage.sandbox.path().join("run");
        cleared(&folder)?;
        let mut run_nodes = RunNodes {
            run,
            stage,
            folder: folder.clone(),
            processes: Processes::new((), &stage.sandbox, news),
            nodes: Vec::new(),
            daemon: None,
            watch: Watch::default(),
            rows: None,
        };
        if !run.keys.is_empty() {
            run_nodes.daemon = Some(run_nodes.link(launcher)?);
        }
        let program = launcher.programs.words(run.system);
        if program.first().is_none_or(String::is_empty) {
            return Err(format!("{} is not available", run.system.name()).into());
        }
        let play = run.play(program, &stage.addresses, &folder);
        for node in (0..2 * run.point.senders()).filter(|n| run.point.host_of(*n) == stage.here) {
            let mut command = run_nodes.node(&play, node);
            run_nodes.processes.start(play.name(node), &mut command)?;
            run_nodes.nodes.push((node, 0));
        }
        Ok(run_nodes)
    }

    fn node(&self, play: &Play<'_>, node: u32) -> Command {
        let node = play.node(node);
        let mut command = self.stage.command(&node.words);
        command.envs(node.environment);
        if let (Some(port), Some(first)) = (self.run.master, self.stage.addresses.first()) {
            command.env("ROS_MASTER_URI", format!("http://{first}:{port}"));
        }
        command
    }

    fn link(&self, launcher: &Launcher) -> Result<Job, RunError> {
        let (run, stage) = (self.run, self.stage);
        let keys = stage.sandbox.path().join("keys");
        cleared(&keys)?;
        for (name, text) in &run.keys {
            write_secret(&keys.join(name), text)?;
        }
        let addresses = stage.addresses.iter().zip(&run.ports);
        let addresses: Vec<_> = addresses.map(|(a, port)| SocketAddrV4::new(*a, *port)).collect();
        let text = links::configuration(&run.point, stage.here, &addresses, &keys.to_string_lossy());
        let file = keys.join("link.yaml");
        write_secret(&file, &text)?;
        let (program, file) = (launcher.executable.to_string_lossy(), file.to_string_lossy());
        let words = link_words(&program, &file).map(str::to_owned);
        let mut command = stage.command(&words);
        stage.sandbox.prepare(&mut command);
        Job::start(&mut command)
    }

    /// Processes the nodes' output until a node prints a line, or there is news.
    ///
    /// # Errors
    /// A node failed.
    pub(super) fn listen(&mut self) -> Result<(), String> {
        let nodes = &self.nodes;
        let heard = self.processes.listen(Time::MAX, |peers| {
            peers
                .iter()
                .zip(nodes)
                .any(|(p, (_, reported))| p.said.0.len() > *reported)
        });
        match heard {
            Ok(_) | Err(RunError::Stopped) => Ok(()),
            Err(RunError::Failed(why)) => Err(why),
        }
    }

    /// Returns the nodes' lines that were not returned yet.
    pub(super) fn lines(&mut self) -> Vec<(u32, String)> {
        let mut new = Vec::new();
        for (peer, (node, reported)) in self.processes.peers().iter().zip(&mut self.nodes) {
            let lines = peer.said.0.get(*reported..).unwrap_or_default();
            new.extend(lines.iter().map(|line| (*node, line.clone())));
            *reported = peer.said.0.len();
        }
        new
    }

    pub(super) fn go(&mut self) {
        self.look();
        let senders = self.run.point.senders();
        for (who, _) in self.nodes.iter().enumerate().filter(|(_, (n, _))| *n >= senders) {
            self.processes.tell(who, "go");
        }
    }

    pub(super) fn look(&mut self) {
        let parts = self.parts();
        self.watch.look(&parts, None);
    }

    pub(super) fn load(&mut self) -> Load {
        self.look();
        let mut load = self.watch.load(&self.parts());
        if let Some(busiest) = &mut load.busiest {
            busiest.thread = protocol::said(&busiest.thread);
        }
        load
    }

    pub(super) fn stop(&mut self) {
        (0..self.nodes.len()).for_each(|who| self.processes.dismiss(who));
    }

    pub(super) fn join(&mut self) -> Result<(), RunError> {
        self.processes.look();
        self.processes.join()
    }

    /// Returns rows of a sender on this machine, which must be written by now.
    pub(super) fn rows(&mut self, sender: u32, from: u64) -> Result<Answer, String> {
        let known = self.rows.as_ref().is_some_and(|(s, _)| *s == sender);
        if !known {
            let path = raw::file(&self.folder, sender);
            self.rows = Some((sender, raw::read(&path, self.run.point.rows())?));
        }
        let rows = self.rows.as_ref().map_or(&[][..], |(_, rows)| rows);
        Ok(Answer::rows(rows, from))
    }

    /// Ends all processes; returns the link's losses.
    pub(super) fn end(self, inbox: &Inbox) -> Result<BTreeMap<String, u64>, RunError> {
        let RunNodes {
            processes,
            daemon,
            stage,
            ..
        } = self;
        drop(processes);
        stage.sandbox.sweep();
        let Some(job) = daemon else {
            return Ok(BTreeMap::new());
        };
        let said = job.end(END, &|| inbox.over().is_some())?;
        let line = said.lines().last().unwrap_or_default();
        let status = serde_json::from_str(line)
            .map_err(|e| format!("the link printed no valid JSON state: {e}: {}", shorten(line)))?;
        Ok(links::drops(&BTreeMap::from([("here".to_owned(), status)])))
    }

    fn parts(&self) -> Parts {
        let senders = self.run.point.senders();
        let mut parts = Parts::from([("echo", Vec::new()), ("sender", Vec::new())]);
        for (peer, (node, _)) in self.processes.peers().iter().zip(&self.nodes) {
            let part = if *node < senders { "echo" } else { "sender" };
            parts.entry(part).or_default().push(peer.pid());
        }
        if let Some(daemon) = &self.daemon {
            parts.insert("link", vec![daemon.pid()]);
        }
        parts
    }
}

/// Returns the systems that can run here with their programs, and why the others cannot.
pub(super) fn find(
    ground: &crate::kit::site::Ground<'_>,
    peers: Option<&Path>,
) -> Result<(Programs, BTreeMap<String, String>), RunError> {
    let (mut programs, mut missing) = (Programs::default(), BTreeMap::new());
    for system in system::all() {
        let found = match system.target() {
            None => Ok((ground.executable.clone(), env!("CARGO_PKG_VERSION").to_owned())),
            Some(target) => ground.built_peer(target, system.name(), peers),
        };
        match found {
            Ok(program) => drop(programs.0.insert(system, program)),
            Err(RunError::Failed(why)) => drop(missing.insert(system.name().to_owned(), why)),
            Err(RunError::Stopped) => return Err(RunError::Stopped),
        }
    }
    Ok((programs, missing))
}

/// An empty folder.
fn cleared(folder: &Path) -> Result<(), RunError> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir(folder).map_err(|e| format!("{}: {e}", folder.display()).into())
}

/// Writes a file that only this user can read.
fn write_secret(path: &Path, text: &str) -> Result<(), RunError> {
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut f| f.write_all(text.as_bytes()));
    written.map_err(|e| format!("{}: {e}", path.display()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn keys_are_written_for_this_user_alone_and_nowhere_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("host.key");
        write_secret(&path, "secret").expect("writes");
        let mode = fs::metadata(&path).expect("is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(
            write_secret(&path, "again").is_err(),
            "an existing file is not overwritten"
        );
    }

    #[test]
    fn a_stage_needs_an_address_of_this_machine() {
        let (stage, port) = Stage::set(vec![Ipv4Addr::LOCALHOST], 0, 1.0).expect("is one");
        assert!(port > 0 && stage.address() == Ipv4Addr::LOCALHOST);
        let folder = stage.sandbox.path().to_owned();
        drop(stage);
        assert!(!folder.exists());
        // No host has an address of TEST-NET-1.
        let other = Stage::set(vec![Ipv4Addr::new(192, 0, 2, 1)], 0, 1.0);
        assert!(other.is_err_and(|e| e.contains("HOST=ADDRESS")));
    }

    #[test]
    fn a_talkative_node_is_not_kept_in_full() {
        let mut raw = Raw::default();
        (0..100).for_each(|_| raw.hear(Time::ZERO, "x".into()));
        assert_eq!(raw.0.len(), NODE_LINES);
    }
}
