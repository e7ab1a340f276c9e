//! Runs a program on a host of a lab.

use super::host::{Doing, Failed};
use super::request::{Entrance, MAX_REPLY, Namespace, Request, read_line, to_line};
use super::{Lab, PATIENCE};
use crate::{LabError, sys};
use clock::{PollFd, PollFlags, Scheduling};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use rustix::process::{Pid, Signal};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use signal_hook::consts as signals;
use std::ffi::OsString;
use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::time::Duration;

/// Below the emulator, above all processes that are not measured.
const FIFO_PRIORITY: u8 = 30;

impl Lab {
    /// Runs a program on a host, with this process's standard streams, working directory and environment, and the
    /// host's `ROS_IP`, `ROS_HOSTNAME` and `ROPEWALK_RUNTIME_DIR`. Blocks until it ends and returns its exit code,
    /// which is 128 plus the signal's number if a signal ended it. Signals to this process are forwarded to it; it dies
    /// with this process.
    ///
    /// The calling process enters the host's namespaces and stays there: it should be about to end, and must have only
    /// one thread.
    ///
    /// # Errors
    /// [`LabError`]: no such host, no such program, or no permission for real-time scheduling.
    pub fn run(&self, host: &str, program: &[OsString], fifo: bool) -> Result<u8, LabError> {
        let enter = |e: Failed| LabError::Enter(e.to_string());
        let (entrance, namespaces) = self.entrance(host)?;
        if fifo && clock::realtime_thread(FIFO_PRIORITY) == Scheduling::Other {
            return Err(LabError::Enter(
                "SCHED_FIFO is not permitted: run as root, or allow it with `ulimit -r 99` (limits.conf: rtprio)"
                    .into(),
            ));
        }
        let folder = std::env::current_dir();
        let relayed = Relay::install().map_err(enter)?;
        for (kind, namespace) in entrance.namespaces.iter().zip(&namespaces) {
            move_into_link_name_space(namespace.as_fd(), Some(kind.link_type()))
                .doing(format_args!("entering the {kind:?} namespace of {host}"))
                .map_err(enter)?;
        }
        let (name, arguments) = program
            .split_first()
            .ok_or_else(|| LabError::Enter("no program: give one after `--`".into()))?;
        let mut command = Command::new(name);
        command.args(arguments).envs(&entrance.environment);
        if let Ok(folder) = folder {
            command.current_dir(folder);
        }
        sys::die_with_parent(&mut command);
        let child = command
            .spawn()
            .doing(format_args!("cannot run {}", name.display()))
            .map_err(enter)?;
        relayed
            .until_end(child)
            .doing("waiting for the program")
            .map_err(enter)
    }

    /// The data needed to enter a host, and the descriptors of its namespaces.
    fn entrance(&self, host: &str) -> Result<(Entrance, Vec<OwnedFd>), LabError> {
        let stream = self.connect().map_err(|e| self.silent(e))?;
        let (line, fds) = receive(stream, host).map_err(|e| self.silent(e))?;
        let entrance: Entrance = self.understand(&line)?;
        if entrance.namespaces.len() != fds.len() {
            return Err(self.silent("it sent too few descriptors"));
        }
        Ok((entrance, fds))
    }
}

/// Requests access to a host; the descriptors come with the first bytes of the answer.
fn receive(mut stream: UnixStream, host: &str) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&to_line(&Request::Enter { host: host.into() }))?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut first = [0];
    let got = rustix::net::recvmsg(
        &stream,
        &mut [IoSliceMut::new(&mut first)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    if got.bytes == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it hung up"));
    }
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(all) = message {
            fds.extend(all);
        }
    }
    let line = read_line(&mut first.chain(stream), MAX_REPLY)?;
    Ok((line, fds))
}

impl Namespace {
    fn link_type(self) -> LinkNameSpaceType {
        match self {
            Namespace::User => LinkNameSpaceType::User,
            Namespace::Pid => LinkNameSpaceType::ProcessID,
            Namespace::Ipc => LinkNameSpaceType::InterProcessCommunication,
            Namespace::Uts => LinkNameSpaceType::HostNameAndNISDomainName,
            Namespace::Net => LinkNameSpaceType::Network,
            Namespace::Mount => LinkNameSpaceType::Mount,
        }
    }
}

/// Forwards signals to the program. It uses no threads: a process with threads cannot enter namespaces.
struct Relay {
    pipes: Vec<(Signal, UnixStream)>,
}

impl Relay {
    fn install() -> Result<Relay, Failed> {
        let mut pipes = Vec::new();
        for (number, signal) in [
            (signals::SIGTERM, Signal::TERM),
            (signals::SIGHUP, Signal::HUP),
            (signals::SIGINT, Signal::INT),
            (signals::SIGQUIT, Signal::QUIT),
            (signals::SIGUSR1, Signal::USR1),
            (signals::SIGUSR2, Signal::USR2),
        ] {
            let (read, write) = UnixStream::pair().doing("making a socket pair")?;
            read.set_nonblocking(true).doing("making a socket pair")?;
            signal_hook::low_level::pipe::register(number, write).doing("watching signals")?;
            pipes.push((signal, read));
        }
        Ok(Relay { pipes })
    }

    fn until_end(&self, mut child: Child) -> io::Result<u8> {
        let pid = Pid::from_child(&child);
        let process = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?;
        loop {
            let mut fds = vec![PollFd::new(&process, PollFlags::IN)];
            fds.extend(self.pipes.iter().map(|(_, p)| PollFd::new(p, PollFlags::IN)));
            clock::wait(&mut fds, None, Duration::ZERO)?;
            let ready: Vec<bool> = fds.iter().map(|f| !f.revents().is_empty()).collect();
            for ((signal, pipe), _) in self.pipes.iter().zip(&ready[1..]).filter(|(_, ready)| **ready) {
                let _ = (&mut &*pipe).read(&mut [0; 16]);
                // The terminal has already sent it to the program.
                let by_terminal = [Signal::INT, Signal::QUIT].contains(signal) && in_foreground();
                if !by_terminal {
                    let _ = rustix::process::pidfd_send_signal(&process, *signal);
                }
            }
            if ready[0] {
                let status = child.wait()?;
                let code = status.code().or(status.signal().map(|s| 128 + s));
                return Ok(code.and_then(|c| u8::try_from(c).ok()).unwrap_or(u8::MAX));
            }
        }
    }
}

/// Whether this process and its program are in the terminal's foreground.
fn in_foreground() -> bool {
    let group = rustix::termios::tcgetpgrp(std::io::stdin().as_fd());
    group.is_ok_and(|g| g == rustix::process::getpgrp())
}
