//! Other processes: their identity and their death.

use rustix::process::{Pid, PidfdFlags, pidfd_open, test_kill_process};
use std::os::fd::OwnedFd;

/// The process at the other end of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// 0 if it lives in another PID namespace.
    pub(crate) pid: i32,
    pub(crate) uid: u32,
}

/// Returns a descriptor that becomes readable when process `pid` ends. `None` for this process, for processes
/// that are not visible, and on kernels without pidfds: the socket's hang-up is then the only sign.
pub(crate) fn death_watch(pid: i32) -> Option<OwnedFd> {
    if pid <= 0 || pid.unsigned_abs() == std::process::id() {
        return None;
    }
    pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

/// Returns the name of the program that process `pid` runs, safe to print, since the user who started it
/// chose the name.
pub(crate) fn program(pid: i32) -> Option<String> {
    (pid > 0)
        .then(|| std::fs::read_link(format!("/proc/{pid}/exe")).ok())
        .flatten()
        .map(|path| stats::text::printable(&path.to_string_lossy()).into_owned())
}

/// Whether process `pid` of this PID namespace exists.
///
/// Asks the kernel and not `/proc`, which may belong to another namespace or hide other users' processes
/// (hidepid): a living process must not be mistaken for a dead one.
pub(crate) fn is_visible(pid: i32) -> bool {
    let pid = (pid > 0).then(|| Pid::from_raw(pid)).flatten();
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// Stops the process before this thread does anything else. A signal to the whole process may reach another
/// thread first.
#[cfg(feature = "test-hooks")]
pub(crate) fn stop_here() {
    // SAFETY: raising a signal touches no memory.
    unsafe { libc::raise(libc::SIGSTOP) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_processes_that_exist_are_visible() {
        assert!(is_visible(std::process::id() as i32));
        assert!(is_visible(1), "even if it is another user's");
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id() as i32;
        assert!(is_visible(pid));
        child.wait().unwrap();
        assert!(!is_visible(pid));
        assert!(!is_visible(0) && !is_visible(-1) && !is_visible(i32::MAX));
    }
}
