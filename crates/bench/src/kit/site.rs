//! One lab and the programs in it.

use super::error::Error;
use super::programs;
use crate::kit::error::RunError;
use crate::kit::group::{Group, how};
use crate::kit::line::shorten;
use crate::kit::processes::keep_last_lines;
use clock::Busy;
use lab::{Held, Lab, Labs, Status};
use std::collections::VecDeque;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a server may take until it listens: a watchdog, because a roscore on a busy machine, or with an
/// unresolvable host name, takes half a minute.
const STARTUP: Duration = Duration::from_secs(120);

/// More than the largest lab takes to come up.
const UP: Duration = Duration::from_secs(70);
/// How long a program may take to print its result when it is done.
const REST: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(20);
/// Maximum bytes kept of a program's output.
const MOST: u64 = 8 << 20;

/// What every run needs: this program, a folder for files, and whether the user stopped it.
pub(crate) struct Ground<'a> {
    pub(crate) executable: PathBuf,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) stopped: &'a dyn Fn() -> bool,
}

impl<'a> Ground<'a> {
    /// Creates a temporary folder, which is removed at the end; its name begins with `prefix`.
    ///
    /// # Errors
    /// [`Error`] if the folder cannot be created, or this program's file cannot be found.
    pub(crate) fn new(prefix: &str, stopped: &'a dyn Fn() -> bool) -> Result<Ground<'a>, Error> {
        let folder = tempfile::Builder::new().prefix(prefix).tempdir();
        Ok(Ground {
            executable: crate::kit::program::ropewalk()?,
            folder: folder.map_err(|source| Error::File {
                path: std::env::temp_dir(),
                source,
            })?,
            stopped,
        })
    }

    /// Returns a program of `peers/` and its version as one of its systems; builds it if it is missing. Blocks while it
    /// builds.
    ///
    /// # Errors
    /// [`Error::Nothing`] with how to fix it, [`Error::Stopped`].
    pub(crate) fn peer(
        &self,
        target: &str,
        system: &str,
        folder: Option<&Path>,
    ) -> Result<(PathBuf, String), Error> {
        let folder = programs::folder(folder).ok_or_else(|| {
            Error::Nothing(
                "there is no folder `peers` with a Makefile here or further up: start in the repository, or give the \
                 folder with --peers"
                    .into(),
            )
        })?;
        let program = folder.join("bin").join(target);
        if let Some(why) = programs::build(target, &program, &folder, self.stopped)? {
            return Err(Error::Nothing(why));
        }
        let version = self.version(&program, system).map_err(|e| match e {
            RunError::Stopped => Error::Stopped,
            RunError::Failed(why) => Error::Nothing(why),
        })?;
        Ok((program, version))
    }

    /// The same for a program that must exist: nothing is built.
    pub(crate) fn built_peer(
        &self,
        target: &str,
        system: &str,
        folder: Option<&Path>,
    ) -> Result<(PathBuf, String), RunError> {
        let folder = programs::folder(folder).unwrap_or_else(|| "peers".into());
        let program = folder.join("bin").join(target);
        if !program.is_file() {
            let why = format!(
                "{} does not exist: build it there (make -C peers {target}), and give the folder with --peers",
                program.display()
            );
            return Err(why.into());
        }
        let version = self.version(&program, system)?;
        Ok((program, version))
    }

    fn version(&self, program: &Path, system: &str) -> Result<String, RunError> {
        let mut command = Command::new(program);
        command.args(["version", "--system", system]);
        let said = self.hear(&mut command, Duration::from_secs(20))?;
        let version: serde_json::Value = serde_json::from_str(&said).unwrap_or_default();
        Ok(version["version"].as_str().unwrap_or("unknown").to_owned())
    }

    /// Writes a scenario's file.
    fn scenario(&self, name: &str, yaml: &str) -> Result<PathBuf, RunError> {
        let path = self.folder.path().join(format!("{name}.yaml"));
        fs::write(&path, yaml).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(path)
    }

    /// Runs a program on this host until it ends successfully, and returns its output.
    pub(crate) fn hear(&self, command: &mut Command, patience: Duration) -> Result<String, RunError> {
        Job::start(command)?.hear(patience, self.stopped)
    }
}

/// A running lab. Dropping it ends it.
pub(crate) struct Site<'a> {
    pub(crate) lab: Lab,
    /// The lab also ends when this process is killed.
    _held: Held,
    /// Where a processor takes long to wake, a sleeping emulator is late (decision 105).
    busy: Option<Busy>,
    pub(crate) ground: &'a Ground<'a>,
    /// Hosts with a wire, and their addresses on it.
    pub(crate) wired: Vec<(String, String)>,
}

impl<'a> Site<'a> {
    /// Brings up a shipped scenario, or `yaml` under that name.
    pub(crate) fn up(ground: &'a Ground<'a>, scenario: &str, yaml: Option<&str>) -> Result<Self, RunError> {
        Site::up_by(Command::new(&ground.executable), ground, scenario, yaml)
    }

    /// The same for a lab without SCHED_FIFO: without the capability, no process can use it.
    pub(crate) fn up_without_fifo(ground: &'a Ground<'a>, scenario: &str) -> Result<Self, RunError> {
        let mut command = Command::new("prlimit");
        command.args(["--rtprio=0", "setpriv", "--bounding-set", "-sys_nice", "--"]);
        command.arg(&ground.executable);
        Site::up_by(command, ground, scenario, None)
    }

    fn up_by(
        mut command: Command,
        ground: &'a Ground<'a>,
        scenario: &str,
        yaml: Option<&str>,
    ) -> Result<Self, RunError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("bench-{}-{number}", std::process::id());
        command.args(["lab", "up", "--name", &name]);
        match yaml {
            Some(yaml) => command.arg(ground.scenario(scenario, yaml)?),
            None => command.arg(scenario),
        };
        let up = ground.hear(&mut command, UP);
        let lab = Labs::open().and_then(|labs| labs.find(Some(&name)));
        match (up, lab) {
            (Ok(_), Ok(lab)) => {
                let _held = lab.hold().map_err(|e| e.to_string())?;
                Ok(Site {
                    lab,
                    _held,
                    busy: Some(Busy::keep()),
                    ground,
                    wired: Vec::new(),
                })
            }
            (Ok(_), Err(e)) => Err(e.to_string().into()),
            (Err(e), lab) => {
                // It may have been stopped half-way.
                let _ = lab.and_then(|lab| lab.down());
                Err(e)
            }
        }
    }

    /// Lets the processors sleep, for measurements of their load.
    pub(crate) fn let_sleep(&mut self) {
        self.busy = None;
    }

    /// Returns the lab's numbers.
    pub(crate) fn status(&self) -> Result<Status, RunError> {
        self.lab.status().map_err(|e| e.to_string().into())
    }

    /// Returns the address of a host: on its wire, if it has one.
    pub(crate) fn address(&self, host: &str) -> Result<String, RunError> {
        if let Some((_, address)) = self.wired.iter().find(|(name, _)| name == host) {
            return Ok(address.clone());
        }
        let status = self.status()?;
        let host = status.hosts.iter().find(|h| h.name == host);
        host.map(|h| h.address.to_string())
            .ok_or_else(|| RunError::Failed("the lab does not have the requested host".into()))
    }

    /// Returns all hosts with their addresses.
    pub(crate) fn addresses(&self) -> Result<Vec<(String, String)>, RunError> {
        let hosts = self.status()?.hosts;
        hosts
            .into_iter()
            .map(|h| Ok((h.name.clone(), self.address(&h.name)?)))
            .collect()
    }

    /// Returns a command that runs on a host, at SCHED_FIFO if that is permitted and `fifo` is set. Never at SCHED_FIFO
    /// on hosts with a wire: a process that keeps a processor busy would starve the others.
    pub(crate) fn command(&self, host: &str, fifo: bool, program: &[&str]) -> Command {
        let mut command = Command::new(&self.ground.executable);
        // Sandboxes have other runtime folders.
        command.env("ROPEWALK_LAB_DIR", labs_folder());
        command.args(["lab", "exec", "--name", self.lab.name()]);
        if fifo && !self.is_wired() && self.status().is_ok_and(|s| s.timing.trusted) {
            command.arg("--fifo");
        }
        command.args([host, "--"]).args(program);
        command
    }

    /// Runs a program on a host until it ends, and returns its output.
    pub(crate) fn hear(&self, host: &str, program: &[&str], patience: Duration) -> Result<String, RunError> {
        self.start(host, program)?.hear(patience, self.ground.stopped)
    }

    /// Starts a program on a host.
    pub(crate) fn start(&self, host: &str, program: &[&str]) -> Result<Job, RunError> {
        Job::start(&mut self.command(host, true, program))
    }

    /// Waits for a program to end, and returns its output.
    pub(crate) fn finish(&self, job: Job, patience: Duration) -> Result<String, RunError> {
        job.hear(patience, self.ground.stopped)
    }

    /// Waits until a process listens on a TCP port of a host.
    pub(crate) fn listens(&self, host: &str, port: u16) -> Result<(), RunError> {
        let script = format!(
            "until cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -q ':{port:04X} [0-9A-F]*:0000 0A'; do sleep 0.05; done"
        );
        let waited = self.hear(host, &["sh", "-c", &script], STARTUP);
        waited.map(|_| ())
    }

    /// Waits for `time`.
    pub(crate) fn pause(&self, time: Duration) -> Result<(), RunError> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            if (self.ground.stopped)() {
                return Err(RunError::Stopped);
            }
            std::thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }

    /// Returns whether the user stopped everything.
    pub(crate) fn stopped(&self) -> &'a dyn Fn() -> bool {
        self.ground.stopped
    }

    pub(crate) fn executable(&self) -> &Path {
        &self.ground.executable
    }
}

impl Drop for Site<'_> {
    fn drop(&mut self) {
        if let Err(e) = self.lab.down() {
            tracing::warn!("{e}");
        }
    }
}

/// Returns the folder of the labs, as [`Labs::open`] finds it.
pub(crate) fn labs_folder() -> PathBuf {
    let named = std::env::var_os("ROPEWALK_LAB_DIR").filter(|d| !d.is_empty());
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|d| !d.is_empty());
    match (named, runtime) {
        (Some(named), _) => named.into(),
        (None, Some(runtime)) => Path::new(&runtime).join("ropewalk-lab"),
        (None, None) => format!("/tmp/ropewalk-lab-{}", rustix::process::getuid().as_raw()).into(),
    }
}

/// A running program. Dropping it ends it, and its descendants.
pub(crate) struct Job {
    shown: String,
    group: Group,
    input: Option<ChildStdin>,
    output: JoinHandle<String>,
    complaints: Arc<Mutex<VecDeque<String>>>,
}

impl Job {
    pub(crate) fn start(command: &mut Command) -> Result<Job, RunError> {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let shown: Vec<_> = words.map(|w| w.to_string_lossy().into_owned()).collect();
        let shown = shown.join(" ");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut group = Group::start(command).map_err(|e| format!("cannot start {shown}: {e}"))?;
        let child = group.child();
        let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let complaints = Arc::new(Mutex::default());
        let keep = Arc::clone(&complaints);
        std::thread::spawn(move || errors.into_iter().for_each(|e| keep_last_lines(e, &keep)));
        let output = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = output.map(|o| o.take(MOST).read_to_end(&mut bytes));
            String::from_utf8_lossy(&bytes).into_owned()
        });
        Ok(Job {
            shown,
            group,
            input,
            output,
            complaints,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.group.pid().as_raw_nonzero().get().unsigned_abs()
    }

    /// Ends a program that ends with its input.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Ends a program by SIGTERM, and returns its output.
    pub(crate) fn end(self, patience: Duration, stopped: &dyn Fn() -> bool) -> Result<String, RunError> {
        self.group.terminate();
        self.hear(patience, stopped)
    }

    fn hear(mut self, patience: Duration, stopped: &dyn Fn() -> bool) -> Result<String, RunError> {
        let deadline = Instant::now() + patience;
        let status = loop {
            match self.group.wait(LOOK) {
                Ok(Some(status)) => break status,
                Ok(None) if stopped() => return Err(RunError::Stopped),
                Ok(None) if Instant::now() > deadline => {
                    return Err(format!("{} did not end within {patience:?}", self.shown).into());
                }
                Ok(None) => {}
                Err(e) => return Err(format!("waiting for {}: {e}", self.shown).into()),
            }
        };
        // Another process may hold its streams open.
        let rest = Instant::now() + REST;
        while !self.output.is_finished() && Instant::now() < rest {
            std::thread::sleep(Duration::from_millis(2));
        }
        if !self.output.is_finished() {
            return Err(format!("{} left its output open", self.shown).into());
        }
        let said = self.output.join().unwrap_or_default();
        if status.success() {
            return Ok(said);
        }
        let complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        let last = complaints.back().cloned();
        // ping and iperf3 print errors on standard output.
        let why = last.unwrap_or_else(|| {
            let error = said.lines().find(|l| l.contains("error"));
            shorten(error.or(said.lines().last()).unwrap_or_default().trim())
        });
        Err(format!("{} {}: {why}", self.shown, how(status)).into())
    }
}
