//! Starts a lab: from the caller's process to process 1 of a new PID namespace.
//!
//! The caller creates and locks the lab's folder and starts `launch`, which enters new namespaces and starts `emulate`
//! there. The emulator is process 1 of its PID namespace, so the kernel ends everything inside the lab when it dies,
//! however it dies. Only processes and descriptors hold the namespaces, so they and their devices go,
//! too (decision 055).

use super::folder::{self, Folder};
use super::host::{Doing, Failed};
use super::{Lab, emulator};
use crate::sys;
use crate::{LabError, Scenario};
use clock::{PollFd, PollFlags};
use rustix::thread::{CapabilitySet, UnshareFlags};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// Longer than the largest lab takes on a slow machine; after this, something hangs.
const START_LIMIT: Duration = Duration::from_secs(60);

/// The executable of this process, and its hidden command that runs [`part`].
#[derive(Clone, Debug)]
pub struct Program {
    /// The executable.
    pub executable: PathBuf,
    /// The hidden command, which precedes the arguments of [`part`].
    pub command: &'static str,
}

pub(crate) fn start(
    folder: &Folder,
    name: &str,
    scenario: &Scenario,
    program: &Program,
) -> Result<Lab, LabError> {
    let lock = folder.create(name)?;
    let path = folder.of(name);
    let started = bring_up(&path, lock, scenario, program);
    started.map_err(|problem| {
        let _ = std::fs::remove_dir_all(&path);
        LabError::Start(format!("the lab did not come up: {problem}"))
    })?;
    Ok(Lab::new(name, path))
}

fn bring_up(path: &Path, lock: OwnedFd, scenario: &Scenario, program: &Program) -> Result<(), Failed> {
    std::fs::write(path.join(folder::SCENARIO), scenario.text()).doing("writing the scenario")?;
    let log = File::create(path.join(folder::LOG)).doing("making the log")?;
    let mut launcher = Command::new(&program.executable)
        .args([program.command, "launch", &scenario.absolute_place()])
        .arg(path)
        .arg(scenario.congestion_control())
        .stdin(Stdio::from(lock))
        .stdout(Stdio::piped())
        .stderr(Stdio::from(log))
        .spawn()
        .doing("starting the emulator")?;
    let said = read_all(launcher.stdout.take().expect("is piped"));
    let _ = launcher.wait();
    match said?.trim_end() {
        READY => Ok(()),
        "" => {
            let log = std::fs::read_to_string(path.join(folder::LOG)).unwrap_or_default();
            let last = log.lines().rev().find(|l| !l.trim().is_empty());
            Err(Failed(format!(
                "the emulator died: {}",
                last.unwrap_or("it left no message")
            )))
        }
        problem => Err(Failed(problem.to_owned())),
    }
}

/// The emulator's message when everything is ready; anything else is an error.
const READY: &str = "ready";

/// Reads a pipe until its end, at most some pages and for at most [`START_LIMIT`].
fn read_all(mut pipe: impl Read + std::os::fd::AsFd) -> Result<String, Failed> {
    let until = clock::monotonic() + START_LIMIT;
    let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
    while text.len() < 65_536 {
        let mut fds = [PollFd::new(&pipe, PollFlags::IN)];
        if !clock::wait(&mut fds, Some(until), Duration::ZERO).doing("waiting for the emulator")? {
            return Err(Failed(format!(
                "it is not ready after {} s",
                START_LIMIT.as_secs()
            )));
        }
        match pipe.read(&mut buffer).doing("waiting for the emulator")? {
            0 => break,
            n => text.extend_from_slice(&buffer[..n]),
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Runs one of the lab's own processes; only [`crate::Labs::start`] needs it. `arguments` follow the hidden command.
pub fn part(program: &Program, arguments: &[String]) -> ExitCode {
    let done = match arguments {
        [stage, scenario, path, tcp] if stage == "launch" => launch(program, scenario, Path::new(path), tcp),
        [stage, scenario, path, tcp, user] if stage == "emulate" => {
            emulator::run(scenario, Path::new(path), tcp, user == "user-namespace", || {
                writeln!(std::io::stdout(), "{READY}")
            })
        }
        _ => Err(Failed("this is a part of `ropewalk lab up`".into())),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            let _ = writeln!(std::io::stdout(), "{problem}");
            ExitCode::FAILURE
        }
    }
}

fn launch(program: &Program, scenario: &str, path: &Path, tcp: &str) -> Result<(), Failed> {
    let user = !may_administer();
    let mut flags = UnshareFlags::NEWPID | UnshareFlags::NEWNS | UnshareFlags::NEWNET;
    let (uid, gid) = (
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    if user {
        flags |= UnshareFlags::NEWUSER;
    }
    sys::unshare(flags).map_err(|e| {
        Failed(if user {
            format!(
                "this user may not make namespaces ({e}): run as root, or allow it with `sysctl -w \
                 kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000` (on Ubuntu also \
                 kernel.apparmor_restrict_unprivileged_userns=0)"
            )
        } else {
            format!("root may not make namespaces here ({e}): start the container with --privileged")
        })
    })?;
    if user {
        // The kernel requires setgroups to be given up before an unprivileged gid_map.
        for (file, text) in [
            ("setgroups", "deny".to_owned()),
            ("uid_map", format!("0 {uid} 1")),
            ("gid_map", format!("0 {gid} 1")),
        ] {
            std::fs::write(Path::new("/proc/self").join(file), text)
                .doing(format_args!("writing /proc/self/{file}"))?;
        }
    }
    let user = if user { "user-namespace" } else { "root" };
    Command::new(&program.executable)
        .args([program.command, "emulate", scenario])
        .arg(path)
        .args([tcp, user])
        .spawn()
        .doing("starting the emulator in its namespaces")?;
    Ok(())
}

/// Whether this process may create namespaces without a user namespace.
fn may_administer() -> bool {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    rustix::thread::capabilities(None).is_ok_and(|c| c.effective.contains(needed))
}

/// Checks whether `/dev/net/tun` can be opened; the error says how to fix it.
pub(crate) fn check_tun() -> Result<(), LabError> {
    let opened = std::fs::OpenOptions::new().read(true).write(true).open(sys::TUN);
    let fix = match opened.map_err(|e| (e.kind(), e)) {
        Ok(_) => return Ok(()),
        Err((std::io::ErrorKind::PermissionDenied, _)) => {
            "permission denied: run as root, or `sudo chmod 666 /dev/net/tun` (Debian's udev does that)"
                .into()
        }
        Err((std::io::ErrorKind::NotFound, _)) => {
            "it is missing: `sudo modprobe tun`; in a container start it with --device /dev/net/tun".into()
        }
        Err((_, e)) => format!("{e}: `sudo modprobe tun`"),
    };
    Err(LabError::Start(format!("cannot open {}: {fix}", sys::TUN)))
}
