//! Doorbells: what wakes a sleeping subscriber.
//!
//! A pipe, not an eventfd: an eventfd's open description is shared by all who hold it, so a hostile reader could
//! make it blocking and fill it, and the publisher's write would hang. A pipe can be opened anew, and the new
//! description is the publisher's own.

use super::retry;
use crate::ring::Bell;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// The sleeper's end.
#[derive(Debug)]
pub(crate) struct Waker {
    read: OwnedFd,
    write: OwnedFd,
}

impl Waker {
    /// A pipe that publishers may open; other users too, if `shared`.
    pub(crate) fn new(shared: bool) -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        if shared {
            rustix::fs::fchmod(&read, Mode::from_raw_mode(0o666))?;
        }
        Ok(Waker { read, write })
    }

    /// What a publisher gets, to open it anew.
    pub(crate) fn for_peer(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }

    /// Waits until it is readable; false if `deadline` passed first.
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
        // A full pipe is readable, which is all that is wanted.
        let _ = retry(|| rustix::io::write(&self.write, &[1]));
    }

    fn drain(&self) {
        let mut buffer = [0; 512];
        while matches!(retry(|| rustix::io::read(&self.read, &mut buffer)), Ok(n) if n == buffer.len()) {}
    }
}

/// Waits until `fd` is readable; false if `deadline` passed first.
pub(crate) fn wait_readable(fd: BorrowedFd<'_>, deadline: Option<Instant>) -> io::Result<bool> {
    loop {
        let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
        // No timeout is longer than an hour, so that none overflows.
        let left = left.unwrap_or(Duration::MAX).min(Duration::from_secs(3600));
        let timeout = rustix::time::Timespec {
            tv_sec: left.as_secs() as _,
            tv_nsec: left.subsec_nanos() as _,
        };
        match poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&timeout)) {
            Ok(0) if deadline.is_some_and(|d| Instant::now() >= d) => return Ok(false),
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(e) => return Err(e.into()),
        }
    }
}

/// The publisher's end.
#[derive(Debug)]
pub(crate) struct Doorbell {
    pipe: OwnedFd,
}

impl Doorbell {
    /// Opens a peer's pipe anew, without blocking and for writing.
    ///
    /// For reading too, so that ringing one whose owner died raises no SIGPIPE in the host program.
    pub(crate) fn open(fd: &OwnedFd) -> io::Result<Self> {
        let refuse = |what| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        // The link text of an anonymous pipe. A FIFO in a file system shows its path, and opening it could
        // hang where that file system does; asking a pipe for its size fails for everything else.
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let link = rustix::fs::readlink(&path, Vec::new())?;
        if rustix::pipe::fcntl_getpipe_size(fd).is_err() || !link.as_bytes().starts_with(b"pipe:[") {
            return refuse("the doorbell is no anonymous pipe");
        }
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(Doorbell {
            pipe: rustix::fs::open(&path, flags, Mode::empty())?,
        })
    }

    /// Which pipe it is, as the kernel numbers them.
    pub(crate) fn identity(fd: &OwnedFd) -> io::Result<u64> {
        Ok(rustix::fs::fstat(fd)?.st_ino)
    }

    /// Rings. Never blocks; a full pipe is readable, which is all that is wanted.
    pub(crate) fn ring(&self) {
        let _ = retry(|| rustix::io::write(&self.pipe, &[1]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pipe_that_its_reader_made_blocking_does_not_block_the_ringer() {
        let waker = Waker::new(false).unwrap();
        let given = waker.for_peer().try_clone_to_owned().unwrap();
        let bell = Doorbell::open(&given).unwrap();
        rustix::fs::fcntl_setfl(&waker.write, OFlags::NONBLOCK).unwrap();
        while rustix::io::write(&waker.write, &[0; 4096]).is_ok() {}
        rustix::fs::fcntl_setfl(&waker.write, OFlags::empty()).unwrap();
        rustix::fs::fcntl_setfl(&given, OFlags::empty()).unwrap();
        bell.ring();
        assert!(waker.wait(Some(Instant::now())).unwrap());
    }

    #[test]
    fn only_pipes_are_doorbells() {
        let file: OwnedFd = tempfile::tempfile().unwrap().into();
        assert!(Doorbell::open(&file).is_err());
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(Doorbell::open(&socket.into()).is_err());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        let fifo = rustix::fs::open(&path, OFlags::RDWR, Mode::empty()).unwrap();
        assert!(Doorbell::open(&fifo).is_err());
    }

    #[test]
    fn ringing_the_dead_is_harmless() {
        let waker = Waker::new(false).unwrap();
        let bell = Doorbell::open(&waker.for_peer().try_clone_to_owned().unwrap()).unwrap();
        drop(waker);
        bell.ring();
    }
}
