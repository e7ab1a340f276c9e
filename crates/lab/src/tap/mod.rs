//! Labs of TAP devices in network namespaces: any program runs inside.

mod air;
mod control;
mod emulator;
mod enter;
mod folder;
pub(crate) mod frame;
mod host;
mod launch;
mod pcap;
pub(crate) mod plan;
pub(crate) mod request;
mod status;

pub use launch::{Program, part};
pub use status::{
    CategoryStatus, HostStatus, InterfaceStatus, LatenessBucket, MediumStatus, StationStatus, Status, Timing,
    Verdict,
};

use crate::scenario::Settings;
use crate::{LabError, Scenario};
use clock::{PollFd, PollFlags};
use folder::Folder;
use request::{MAX_REPLY, Reply, Request, read_line, to_line};
use rustix::process::{Pid, PidfdFlags, Signal};
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// How long a running lab may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a lab may take to end by itself before it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// The labs of this user on this machine.
#[derive(Clone, Debug)]
pub struct Labs {
    folder: Folder,
}

/// A running lab.
#[derive(Clone, Debug)]
pub struct Lab {
    name: String,
    path: PathBuf,
}

/// Keeps a lab alive; see [`Lab::hold`].
#[derive(Debug)]
pub struct Held {
    _stream: UnixStream,
}

impl Labs {
    /// The labs in `ROPEWALK_LAB_DIR`, otherwise `$XDG_RUNTIME_DIR/ropewalk-lab`, otherwise `/tmp/ropewalk-lab-<uid>`.
    ///
    /// # Errors
    /// [`LabError::Folder`] if that folder cannot be used.
    pub fn open() -> Result<Labs, LabError> {
        let folder = Folder::from_env()?;
        Ok(Labs { folder })
    }

    /// Starts a lab and blocks until all of it is up. It keeps running after this process has ended; see [`Lab::down`].
    ///
    /// `program` must run [`part`] with the arguments that follow its hidden command.
    ///
    /// # Errors
    /// [`LabError`]: a name that is taken, or missing permissions; it says how to fix them.
    pub fn start(&self, name: &str, scenario: &Scenario, program: &Program) -> Result<Lab, LabError> {
        launch::check_tun()?;
        launch::start(&self.folder, name, scenario, program)
    }

    /// Names of the running labs, sorted. Removes leftovers of killed labs.
    ///
    /// # Errors
    /// [`LabError::Folder`].
    pub fn running(&self) -> Result<Vec<String>, LabError> {
        self.folder.running()
    }

    /// The lab of this name; without a name, the only one.
    ///
    /// # Errors
    /// [`LabError`] if it is not running, or if there is not exactly one.
    pub fn find(&self, name: Option<&str>) -> Result<Lab, LabError> {
        let running = self.running()?;
        let name = match (name, &running[..]) {
            (Some(name), all) if all.iter().any(|r| r == name) => name,
            (Some(name), all) => {
                let running = if all.is_empty() {
                    "none".to_owned()
                } else {
                    all.join(", ")
                };
                return Err(LabError::Unknown {
                    name: name.to_owned(),
                    running,
                });
            }
            (None, [one]) => one,
            (None, []) => {
                return Err(LabError::Which(
                    "no lab runs: start one, for example with `ropewalk lab up wifi-1hop`".into(),
                ));
            }
            (None, all) => {
                return Err(LabError::Which(format!(
                    "{} labs run ({}): choose one with --name",
                    all.len(),
                    all.join(", ")
                )));
            }
        };
        Ok(Lab::new(name, self.folder.of(name)))
    }
}

impl Lab {
    fn new(name: &str, path: PathBuf) -> Lab {
        Lab {
            name: name.to_owned(),
            path,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is still running.
    pub fn is_running(&self) -> bool {
        self.connect().is_ok()
    }

    /// Its counters.
    ///
    /// # Errors
    /// [`LabError::Silent`] if it does not answer within ten seconds.
    pub fn status(&self) -> Result<Status, LabError> {
        self.ask(&Request::Status {}).map(|(status, _)| status)
    }

    /// Changes a link (`robot-base` in both directions, `robot>base` in one), a medium or a host, from now on.
    ///
    /// # Errors
    /// [`LabError::Refused`], with what is wrong and how to fix it.
    pub fn set(&self, target: &str, set: Settings) -> Result<(), LabError> {
        let request = Request::Set {
            target: target.to_owned(),
            set,
        };
        self.ask::<()>(&request).map(|_| ())
    }

    /// A pcap file of the frames that pass between a host's kernel and the emulator from now on, as a stream that ends
    /// with the lab or after `count` frames.
    ///
    /// # Errors
    /// [`LabError::Refused`] if there is no such host.
    pub fn pcap(&self, host: &str, count: Option<u64>) -> Result<impl Read + use<>, LabError> {
        let host = host.to_owned();
        let (_, stream) = self.ask::<()>(&Request::Pcap { host, count })?;
        let unlimited = stream.set_read_timeout(None);
        unlimited.map_err(|e| self.silent(e)).map(|()| stream)
    }

    /// Ends the lab when the returned value is dropped, and when this process ends, however it ends.
    ///
    /// # Errors
    /// [`LabError::Silent`].
    pub fn hold(&self) -> Result<Held, LabError> {
        let (_, stream) = self.ask::<()>(&Request::Hold {})?;
        Ok(Held { _stream: stream })
    }

    /// Marks the lab as owned by the session (`setsid`) that this process is in.
    ///
    /// # Errors
    /// [`LabError::Silent`] if the mark cannot be written.
    pub fn claim(&self) -> Result<(), LabError> {
        std::fs::write(self.path.join(folder::OWNER), folder::session()).map_err(|e| self.silent(e))
    }

    /// Whether it was [claimed](Lab::claim) in this session. Labs started by other programs, and labs that are held,
    /// are not.
    pub fn is_own(&self) -> bool {
        let owner = std::fs::read_to_string(self.path.join(folder::OWNER));
        owner.is_ok_and(|owner| owner == folder::session())
    }

    /// Ends the lab: its programs get SIGTERM, and SIGKILL two seconds later. Blocks until all processes are gone. A
    /// lab that does not answer is killed.
    ///
    /// # Errors
    /// [`LabError::Silent`] if even killing it takes more than ten seconds.
    pub fn down(&self) -> Result<(), LabError> {
        if let Ok(stream) = self.connect() {
            let process = emulator_of(&stream).map_err(|e| self.silent(e))?;
            let asked = self.converse::<()>(stream, &Request::Down {});
            if asked.is_err() || !ended(&process, GRACE) {
                let _ = rustix::process::pidfd_send_signal(&process, Signal::KILL);
                if !ended(&process, GRACE) {
                    return Err(self.silent("it cannot be killed"));
                }
            }
        }
        match std::fs::remove_dir_all(&self.path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(self.silent(e)),
            _ => Ok(()),
        }
    }

    fn connect(&self) -> io::Result<UnixStream> {
        UnixStream::connect(self.path.join(folder::SOCKET))
    }

    fn ask<T: DeserializeOwned>(&self, request: &Request) -> Result<(T, UnixStream), LabError> {
        let stream = self.connect().map_err(|e| self.silent(e))?;
        self.converse(stream, request)
    }

    fn converse<T: DeserializeOwned>(
        &self,
        mut stream: UnixStream,
        request: &Request,
    ) -> Result<(T, UnixStream), LabError> {
        let mut line = || {
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            stream.write_all(&to_line(request))?;
            read_line(&mut stream, MAX_REPLY)
        };
        let line = line().map_err(|e| self.silent(e))?;
        self.understand(&line).map(|reply| (reply, stream))
    }

    fn understand<T: DeserializeOwned>(&self, line: &[u8]) -> Result<T, LabError> {
        match serde_json::from_slice(line).map_err(|e| self.silent(e))? {
            Reply::Ok(value) => Ok(value),
            Reply::Error(why) => Err(LabError::Refused(why)),
        }
    }

    fn silent(&self, problem: impl std::fmt::Display) -> LabError {
        LabError::Silent {
            name: self.name.clone(),
            problem: problem.to_string(),
        }
    }
}

/// The process at the other end of a control socket, as the kernel reports it.
fn emulator_of(stream: &UnixStream) -> io::Result<OwnedFd> {
    let pid: Pid = rustix::net::sockopt::socket_peercred(stream)?.pid;
    Ok(rustix::process::pidfd_open(pid, PidfdFlags::empty())?)
}

/// Waits until a process has ended, and with it everything in its PID namespace.
fn ended(process: &OwnedFd, within: Duration) -> bool {
    let mut fds = [PollFd::new(process, PollFlags::IN)];
    let until = clock::monotonic() + within;
    clock::wait(&mut fds, Some(until), Duration::ZERO).unwrap_or(false)
}
