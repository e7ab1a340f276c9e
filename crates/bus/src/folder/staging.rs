//! A private place to bind a socket before it becomes visible.

use super::{DIRECTORY, files, is_old, kind, made};
use rustix::fs::{AtFlags, FileType, Gid, Mode};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Prefix of the name of a private folder for binding.
const PREFIX: &str = ".bind-";

/// A place to bind a socket before others can see it. It is the runtime folder itself if nobody else may
/// write there, otherwise a subfolder that only this user may enter. Only this process puts files into it, so
/// their names can safely be used to set mode and group.
///
/// The umask does not work for that: it belongs to the whole process, and other threads create files too. The
/// socket's own descriptor does not work either: before binding, its mode is subject to the umask; afterwards
/// it refers to another inode.
#[derive(Debug)]
pub(super) struct StagingDir<'a> {
    /// The runtime folder.
    inside: BorrowedFd<'a>,
    /// The private folder in it: its name and descriptor.
    own: Option<(String, OwnedFd)>,
    group: Option<u32>,
    /// The socket's name here, until [`StagingDir::show`].
    file: String,
}

impl<'a> StagingDir<'a> {
    /// Creates a place to bind the socket `file`. With a group, that is a private folder.
    pub(super) fn new(inside: BorrowedFd<'a>, group: Option<u32>, file: String) -> io::Result<Self> {
        let own = group.map(|_| make(inside)).transpose()?;
        Ok(StagingDir {
            inside,
            own,
            group,
            file,
        })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.own.as_ref().map_or(self.inside, |(_, fd)| fd.as_fd())
    }

    pub(super) fn file(&self) -> &str {
        &self.file
    }

    /// Makes the socket accessible to those who may connect, and gives it its name in the runtime folder.
    pub(super) fn show(mut self, name: &str) -> io::Result<()> {
        let mode = if self.group.is_some() { 0o660 } else { 0o600 };
        if let Some(gid) = self.group {
            let gid = Some(Gid::from_raw(gid));
            rustix::fs::chownat(self.fd(), &self.file, None, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        rustix::fs::chmodat(self.fd(), &self.file, Mode::from_raw_mode(mode), AtFlags::empty())?;
        rustix::fs::renameat(self.fd(), &self.file, self.inside, name)?;
        self.file.clear();
        Ok(())
    }
}

impl Drop for StagingDir<'_> {
    fn drop(&mut self) {
        if !self.file.is_empty() {
            let _ = rustix::fs::unlinkat(self.fd(), &self.file, AtFlags::empty());
        }
        if let Some((name, _)) = &self.own {
            let _ = rustix::fs::unlinkat(self.inside, name, AtFlags::REMOVEDIR);
        }
    }
}

/// Creates a folder that only this user may enter.
fn make(inside: BorrowedFd<'_>) -> io::Result<(String, OwnedFd)> {
    let name = format!("{PREFIX}{:016x}", crate::sys::unique_id());
    rustix::fs::mkdirat(inside, &name, Mode::RWXU)?;
    let fd = rustix::fs::openat(inside, &name, DIRECTORY, Mode::empty())?;
    let meta = rustix::fs::fstat(&fd)?;
    // In a folder without the sticky bit, another member may have replaced it.
    if meta.st_uid != rustix::process::geteuid().as_raw() || meta.st_mode & 0o077 != 0 {
        return Err(io::Error::other(
            "another member of the group replaced a folder of this process: run chmod 3770 on the runtime folder",
        ));
    }
    Ok((name, fd))
}

/// Removes the private folders left behind by killed processes of this user.
pub(super) fn sweep(inside: BorrowedFd<'_>) {
    let uid = rustix::process::geteuid().as_raw();
    let found: Vec<String> = files(inside)
        .into_iter()
        .flatten()
        .filter(|f| f.starts_with(PREFIX))
        .collect();
    for staging in found.iter().filter(|s| is_old(made(inside, s))) {
        let Ok(fd) = rustix::fs::openat(inside, staging, DIRECTORY, Mode::empty()) else {
            continue;
        };
        let is_ours =
            rustix::fs::fstat(&fd).is_ok_and(|m| m.st_uid == uid && kind(&m) == FileType::Directory);
        if is_ours {
            for file in files(fd.as_fd()).into_iter().flatten() {
                let _ = rustix::fs::unlinkat(&fd, file, AtFlags::empty());
            }
            let _ = rustix::fs::unlinkat(inside, staging, AtFlags::REMOVEDIR);
        }
    }
}
