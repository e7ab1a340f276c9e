//! A doorbell that the publisher reopens.
//!
//! It is a pipe, not an eventfd: all holders of an eventfd share one open description, so a hostile reader
//! could make it blocking and fill it, and the publisher's write would hang. A pipe can be reopened, and the
//! new description belongs to the publisher alone.

use crate::sys::doorbell::{Ringer, Waker};
use crate::sys::retry;
use crate::sys::segment::refuse;
use rustix::fs::{Mode, OFlags};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// A peer's pipe, reopened.
#[derive(Debug)]
pub(crate) struct Reopened {
    pipe: OwnedFd,
}

impl Ringer for Reopened {
    fn prepare(waker: &Waker, shared: bool) -> io::Result<()> {
        if shared {
            rustix::fs::fchmod(waker.read_end(), Mode::from_raw_mode(0o666))?;
        }
        Ok(())
    }

    fn for_peer(waker: &Waker) -> Vec<BorrowedFd<'_>> {
        vec![waker.read_end()]
    }

    /// Opens for reading too, so that ringing a doorbell whose owner died raises no SIGPIPE in the host
    /// program.
    fn open(fds: &[OwnedFd]) -> io::Result<Self> {
        let [fd] = fds else {
            return refuse("the doorbell must be one descriptor");
        };
        // Check the link text of an anonymous pipe. A FIFO in a file system shows its path instead, and
        // opening it could hang if that file system hangs. Asking a pipe for its size fails for everything
        // else.
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let link = rustix::fs::readlink(&path, Vec::new())?;
        if rustix::pipe::fcntl_getpipe_size(fd).is_err() || !link.as_bytes().starts_with(b"pipe:[") {
            return refuse("the doorbell is not an anonymous pipe");
        }
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(Reopened {
            pipe: rustix::fs::open(&path, flags, Mode::empty())?,
        })
    }

    fn ring(&self) {
        let _ = retry(|| rustix::io::write(&self.pipe, &[1]));
    }
}
