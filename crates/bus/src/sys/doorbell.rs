//! Doorbells, which wake a sleeping subscriber.
//!
//! The subscriber's end is a pipe. [`Ringer`] defines how a publisher in another process writes to it without
//! ever blocking; the module `variant` of [`super`] is the built-in implementation.

use super::retry;
use super::variant::Bell as Variant;
use crate::ring::Bell;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Operations that the bus needs to ring a pipe of another process.
pub(crate) trait Ringer: Sized {
    /// Prepares a subscriber's pipe for publishers, including those of other users if `shared`.
    fn prepare(waker: &Waker, shared: bool) -> io::Result<()>;
    /// The descriptors that a publisher gets, the reading end first.
    fn for_peer(waker: &Waker) -> Vec<BorrowedFd<'_>>;
    /// Takes the descriptors that a peer sent. Refuses anything but an anonymous pipe.
    fn open(fds: &[OwnedFd]) -> io::Result<Self>;
    /// Rings. Does not block, raises no signal, and returns no error: a full pipe is readable, which is
    /// sufficient, and a dead reader is detected elsewhere.
    fn ring(&self);
}

/// The sleeper's end.
#[derive(Debug)]
pub(crate) struct Waker {
    read: OwnedFd,
    write: OwnedFd,
}

impl Waker {
    /// Creates a pipe that publishers may open, including those of other users if `shared`.
    pub(crate) fn new(shared: bool) -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let waker = Waker { read, write };
        Variant::prepare(&waker, shared)?;
        Ok(waker)
    }

    /// The descriptors that a publisher gets.
    pub(crate) fn for_peer(&self) -> Vec<BorrowedFd<'_>> {
        Variant::for_peer(self)
    }

    pub(super) fn read_end(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }

    /// For variants that pass the writing end.
    #[cfg_attr(not(feature = "posix"), allow(dead_code))]
    pub(super) fn write_end(&self) -> BorrowedFd<'_> {
        self.write.as_fd()
    }

    /// Waits until it is readable. Returns false if `deadline` passes first.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> io::Result<bool> {
        wait_readable(self.read.as_fd(), deadline)
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}

impl Bell for Waker {
    fn ring(&self) {
        // A full pipe is readable, which is sufficient.
        let _ = retry(|| rustix::io::write(&self.write, &[1]));
    }

    fn drain(&self) {
        let mut buffer = [0; 512];
        while matches!(retry(|| rustix::io::read(&self.read, &mut buffer)), Ok(n) if n == buffer.len()) {}
    }
}

/// Waits until `fd` is readable. Returns false if `deadline` passes first.
pub(crate) fn wait_readable(fd: BorrowedFd<'_>, deadline: Option<Instant>) -> io::Result<bool> {
    loop {
        // Setting a timer is expensive, on a virtual machine as much as a wake-up, so without a deadline
        // there is none. No timeout is longer than an hour, so none overflows.
        let timeout = deadline.map(|d| {
            let left = d.saturating_duration_since(Instant::now());
            let left = left.min(Duration::from_secs(3600));
            rustix::time::Timespec {
                tv_sec: left.as_secs() as _,
                tv_nsec: left.subsec_nanos() as _,
            }
        });
        match poll(
            &mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)],
            timeout.as_ref(),
        ) {
            Ok(0) if deadline.is_some_and(|d| Instant::now() >= d) => return Ok(false),
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(e) => return Err(e.into()),
        }
    }
}

/// The publisher's end.
#[derive(Debug)]
pub(crate) struct Doorbell(Variant);

impl Doorbell {
    /// Takes the descriptors that a peer sent.
    pub(crate) fn open(fds: &[OwnedFd]) -> io::Result<Self> {
        Variant::open(fds).map(Doorbell)
    }

    /// The kernel's identity of the pipe. Only for descriptors that [`Doorbell::open`] accepted.
    pub(crate) fn identity(fds: &[OwnedFd]) -> io::Result<u64> {
        let read = fds.first().ok_or(io::ErrorKind::InvalidInput)?;
        Ok(rustix::fs::fstat(read)?.st_ino)
    }

    /// Rings. Never blocks; a full pipe is readable, which is sufficient.
    pub(crate) fn ring(&self) {
        self.0.ring();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags};

    fn given(waker: &Waker) -> Vec<OwnedFd> {
        let clone = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().unwrap();
        waker.for_peer().into_iter().map(clone).collect()
    }

    #[test]
    fn a_full_pipe_that_its_reader_made_blocking_does_not_block_the_ringer() {
        let waker = Waker::new(false).unwrap();
        let given = given(&waker);
        let bell = Doorbell::open(&given).unwrap();
        while rustix::io::write(&waker.write, &[0; 4096]).is_ok() {}
        while rustix::io::write(&waker.write, &[0]).is_ok() {}
        for fd in [&waker.read, &waker.write] {
            rustix::fs::fcntl_setfl(fd, OFlags::empty()).unwrap();
        }
        bell.ring();
        assert!(waker.wait(Some(Instant::now())).unwrap());
    }

    #[test]
    fn a_ring_is_heard() {
        let waker = Waker::new(false).unwrap();
        let bell = Doorbell::open(&given(&waker)).unwrap();
        assert!(!waker.wait(Some(Instant::now())).unwrap());
        bell.ring();
        assert!(waker.wait(Some(Instant::now())).unwrap());
        waker.drain();
        assert!(!waker.wait(Some(Instant::now())).unwrap());
    }

    #[test]
    fn only_pipes_are_doorbells() {
        let good = Waker::new(false).unwrap();
        let refused = |fd: OwnedFd| {
            let mut fds = given(&good);
            fds[0] = fd;
            assert!(Doorbell::open(&fds).is_err());
        };
        refused(tempfile::tempfile().unwrap().into());
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        refused(socket.into());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        refused(rustix::fs::open(&path, OFlags::RDWR, Mode::empty()).unwrap());
        assert!(Doorbell::open(&[]).is_err());
    }

    #[test]
    fn ringing_the_dead_is_harmless() {
        let waker = Waker::new(false).unwrap();
        let bell = Doorbell::open(&given(&waker)).unwrap();
        drop(waker);
        // Rust programs ignore SIGPIPE; C++ programs that link the bus do not.
        // SAFETY: the signal's default action replaces no handler of this process.
        let before = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        bell.ring();
        // SAFETY: as it was.
        unsafe { libc::signal(libc::SIGPIPE, before) };
    }
}
