//! A child process with all its descendants, which never outlives its owner.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// How often a wait checks again.
const LOOK: Duration = Duration::from_millis(5);

/// A process group. Dropping it kills the remaining processes.
pub(crate) struct Group {
    child: Child,
    ended: Option<ExitStatus>,
}

impl Group {
    /// Starts `command` as the leader of a group of its own, so that Ctrl-C reaches only the orchestrator.
    pub(crate) fn start(command: &mut Command) -> io::Result<Group> {
        let child = command.process_group(0).spawn()?;
        Ok(Group { child, ended: None })
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Returns how the leader ended, if it has; then the rest of its group is killed.
    pub(crate) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            // Not reaped yet: the zombie keeps its process id from being reused.
            let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            if waitid(WaitId::Pid(self.pid()), look)?.is_some() {
                let _ = kill_process_group(self.pid(), Signal::KILL);
                self.ended = Some(self.child.wait()?);
            }
        }
        Ok(self.ended)
    }

    /// Waits until the leader has ended; `None` if `patience` passes first.
    pub(crate) fn wait(&mut self, patience: Duration) -> io::Result<Option<ExitStatus>> {
        let deadline = Instant::now() + patience;
        loop {
            match self.try_wait()? {
                None if Instant::now() < deadline => std::thread::sleep(LOOK),
                status => return Ok(status),
            }
        }
    }

    /// Sends SIGTERM to the leader; it may pass that on to its children.
    pub(crate) fn terminate(&self) {
        if self.ended.is_none() {
            let _ = kill_process(self.pid(), Signal::TERM);
        }
    }

    /// Kills the leader and all of its group.
    pub(crate) fn kill(&mut self) {
        if self.ended.is_none() {
            let _ = kill_process_group(self.pid(), Signal::KILL);
            self.ended = self.child.wait().ok();
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Describes how a process ended, for people.
pub(crate) fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with code {code}"),
        (_, Some(signal)) => format!("was killed by signal {signal}"),
        _ => "ended".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grandchildren_die_with_the_group() {
        let mut command = Command::new("sh");
        command
            .args(["-c", "sleep 1000 & echo $!; wait"])
            .stdout(std::process::Stdio::piped());
        let mut group = Group::start(&mut command).expect("starts");
        let mut line = String::new();
        let out = group.child().stdout.take().expect("piped");
        io::BufRead::read_line(&mut io::BufReader::new(out), &mut line).expect("reads");
        drop(group);
        let alive = || {
            // A zombie that is not reaped yet counts as ended.
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", line.trim()));
            stat.is_ok_and(|s| !s.contains(") Z "))
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        while alive() {
            assert!(Instant::now() < deadline, "the grandchild is still running");
            std::thread::sleep(LOOK);
        }
    }

    #[test]
    fn a_silent_group_is_waited_for_no_longer_than_the_timeout() {
        let mut group = Group::start(Command::new("sleep").arg("1000")).expect("starts");
        assert!(group.wait(Duration::from_millis(20)).expect("waits").is_none());
        group.kill();
        let status = group.wait(Duration::ZERO).expect("waits").expect("has ended");
        assert_eq!(how(status), "was killed by signal 9");
    }
}
