//! A doorbell with both ends passed.
//!
//! The subscriber shares the open description and may make it blocking at any time. So the publisher checks
//! for room before each write; a pipe without room is readable, which is sufficient. The reading end is
//! passed too and stays open, so that ringing a doorbell whose owner died raises no SIGPIPE in the host
//! program.

use crate::sys::doorbell::{Ringer, Waker};
use crate::sys::retry;
use crate::sys::segment::refuse;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::OnceLock;

/// A peer's pipe, as it was passed.
#[derive(Debug)]
pub(crate) struct Passed {
    write: OwnedFd,
    _read: OwnedFd,
}

impl Ringer for Passed {
    fn prepare(_: &Waker, _: bool) -> io::Result<()> {
        Ok(())
    }

    fn for_peer(waker: &Waker) -> Vec<BorrowedFd<'_>> {
        vec![waker.read_end(), waker.write_end()]
    }

    fn open(fds: &[OwnedFd]) -> io::Result<Self> {
        let [read, write] = fds else {
            return refuse("the doorbell must be two descriptors");
        };
        let stats = [rustix::fs::fstat(read)?, rustix::fs::fstat(write)?];
        for stat in &stats {
            if FileType::from_raw_mode(stat.st_mode) != FileType::Fifo || u128::from(stat.st_dev) != pipes()?
            {
                return refuse("the doorbell is not an anonymous pipe");
            }
        }
        let mode = |fd: &OwnedFd| rustix::fs::fcntl_getfl(fd).map(|flags| flags & OFlags::RWMODE);
        if stats[0].st_ino != stats[1].st_ino
            || mode(read)? != OFlags::RDONLY
            || mode(write)? != OFlags::WRONLY
        {
            return refuse("the doorbell must be the reading and the writing end of one pipe");
        }
        rustix::fs::fcntl_setfl(write, rustix::fs::fcntl_getfl(write)? | OFlags::NONBLOCK)?;
        Ok(Passed {
            write: write.try_clone()?,
            _read: read.try_clone()?,
        })
    }

    fn ring(&self) {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let room = &mut [PollFd::from_borrowed_fd(
            std::os::fd::AsFd::as_fd(&self.write),
            PollFlags::OUT,
        )];
        if retry(|| poll(room, Some(&now))).is_ok_and(|n| n > 0) && room[0].revents() == PollFlags::OUT {
            let _ = retry(|| rustix::io::write(&self.write, &[1]));
        }
    }
}

/// The device of anonymous pipes. FIFOs in a file system have another one.
fn pipes() -> io::Result<u128> {
    static DEVICE: OnceLock<u128> = OnceLock::new();
    if let Some(device) = DEVICE.get() {
        return Ok(*device);
    }
    let (read, _write) = rustix::pipe::pipe()?;
    let device = u128::from(rustix::fs::fstat(&read)?.st_dev);
    Ok(*DEVICE.get_or_init(|| device))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_pipes_or_swapped_ends_are_refused() {
        let pipe = || rustix::pipe::pipe().unwrap();
        let ((a_read, a_write), (b_read, b_write)) = (pipe(), pipe());
        assert!(Passed::open(&[a_read.try_clone().unwrap(), b_write]).is_err());
        assert!(Passed::open(&[a_write.try_clone().unwrap(), a_read.try_clone().unwrap()]).is_err());
        assert!(Passed::open(&[a_read.try_clone().unwrap(), a_read.try_clone().unwrap()]).is_err());
        assert!(Passed::open(&[b_read]).is_err());
        Passed::open(&[a_read, a_write]).unwrap();
    }
}
