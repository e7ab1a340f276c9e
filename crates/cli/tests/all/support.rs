//! Runs the command with its own bus, under a watchdog.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// Every command of these tests takes less than a tenth of this; a longer one hangs.
const WATCHDOG: Duration = Duration::from_secs(300);

/// A temporary folder with a bus in it.
pub(crate) struct Host {
    folder: tempfile::TempDir,
}

/// Output of a finished command.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Host {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("rw").tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("t")).expect("a folder");
        Host { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ropewalk"));
        command.args(args).current_dir(self.folder.path());
        command
            .env("ROPEWALK_RUNTIME_DIR", self.path("bus"))
            .env("TMPDIR", self.path("t"));
        command.env_remove("RUST_LOG").env_remove("ROPEWALK_DOMAIN");
        command
    }

    /// Runs the command to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Done {
        finish(self.command(args))
    }

    /// Starts a command that runs until it is stopped or done.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Running::spawn(self.command(args))
    }

    /// Every file below the temporary folder and the bus's folder.
    pub(crate) fn left_behind(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for folder in ["t", "bus"] {
            collect(&self.path(folder), &mut found);
        }
        found
    }
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            collect(&entry.path(), found);
        }
        found.push(entry.path());
    }
}

/// Runs a command to its end.
pub(crate) fn finish(mut command: Command) -> Done {
    command.stdin(Stdio::null());
    Running::spawn(command).wait()
}

/// A running command; dropping it ends the command.
pub(crate) struct Running(Option<Child>);

impl Running {
    /// Starts a command whose output is piped.
    pub(crate) fn spawn(mut command: Command) -> Running {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(Some(command.spawn().expect("starts")))
    }

    /// Interrupts it like Ctrl-C, once it handles that.
    pub(crate) fn interrupt(&self) {
        eventually("it handles an interrupt", || {
            catches(self.pid(), rustix::process::Signal::INT).then_some(())
        });
        self.signal(rustix::process::Signal::INT);
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.0.as_ref().expect("runs").id()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let child = self.0.as_ref().expect("runs");
        let pid = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(pid, signal).expect("signals");
    }

    /// Stops it; `Signal::CONT` resumes it.
    pub(crate) fn pause(&self) {
        pause(self.0.as_ref().expect("runs"));
    }

    /// Waits for its end, under the watchdog.
    pub(crate) fn wait(mut self) -> Done {
        let mut child = self.0.take().expect("runs");
        let mut pipes = (
            child.stdout.take().expect("piped"),
            child.stderr.take().expect("piped"),
        );
        let readers = (
            std::thread::spawn(move || text(&mut pipes.0)),
            std::thread::spawn(move || text(&mut pipes.1)),
        );
        let deadline = Instant::now() + WATCHDOG;
        let status = loop {
            match child.try_wait().expect("waits") {
                Some(status) => break status,
                None if Instant::now() > deadline => {
                    let _ = child.kill();
                    panic!("hangs: {:?}", child.wait());
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        Done {
            code: status.code().unwrap_or(-1),
            stdout: readers.0.join().expect("reads"),
            stderr: readers.1.join().expect("reads"),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Whether a process handles a signal, or has ended; see `proc_pid_status(5)`.
fn catches(pid: u32, signal: rustix::process::Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name));
    let Some(caught) = field("SigCgt:\t") else {
        return true;
    };
    let caught = u64::from_str_radix(caught, 16).expect("a mask of signals");
    caught & 1 << (signal.as_raw() - 1) != 0 || field("State:\tZ").is_some()
}

fn text(pipe: &mut impl Read) -> String {
    let mut text = String::new();
    pipe.read_to_string(&mut text).expect("UTF-8");
    text
}

/// An address of 127.0.0.0/8 that no other test or test process uses.
pub(crate) fn address() -> String {
    static TAKEN: AtomicU8 = AtomicU8::new(0);
    let host = TAKEN.fetch_add(1, Ordering::Relaxed) + 1;
    assert!(host < 255, "every test asks for a few");
    let pid = std::process::id();
    format!("127.{}.{}.{host}:7400", 241 + (pid >> 8) % 13, pid & 255)
}

/// Stops a child; all its threads are stopped when this returns.
pub(crate) fn pause(child: &Child) {
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
    let pid = Pid::from_child(child);
    kill_process(pid, Signal::STOP).expect("signals");
    let options = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    eventually("it stops", || waitid(WaitId::Pid(pid), options).expect("waits"));
}

/// Retries until the attempt returns a value, under the watchdog.
pub(crate) fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + WATCHDOG;
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
