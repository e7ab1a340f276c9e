//! Other processes: who they are, and their death.

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::OwnedFd;

/// Who is at the other end of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// 0 if it lives in another PID namespace.
    pub(crate) pid: i32,
    pub(crate) uid: u32,
}

/// A descriptor that becomes readable when process `pid` ends. `None` for this process, for those that cannot be
/// seen, and on kernels without it: the socket's hang-up is then the only sign.
pub(crate) fn death_watch(pid: i32) -> Option<OwnedFd> {
    if pid <= 0 || pid.unsigned_abs() == std::process::id() {
        return None;
    }
    pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

/// The name of the program that process `pid` runs.
pub(crate) fn program(pid: i32) -> Option<String> {
    (pid > 0)
        .then(|| std::fs::read_link(format!("/proc/{pid}/exe")).ok())
        .flatten()
        .map(|path| path.to_string_lossy().into_owned())
}

/// Whether process `pid` can be seen from here.
pub(crate) fn is_visible(pid: i32) -> bool {
    pid > 0 && std::path::Path::new(&format!("/proc/{pid}")).exists()
}

/// Stops the process before this thread does anything more; a signal to the process as a whole may reach another
/// thread first.
#[cfg(feature = "test-hooks")]
pub(crate) fn stop_here() {
    // SAFETY: raising a signal touches no memory.
    unsafe { libc::raise(libc::SIGSTOP) };
}
