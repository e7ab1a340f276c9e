//! Sealed shared memory.
//!
//! A descriptor that was passed read-only can be reopened for writing through `/proc/self/fd`, so a seal
//! enforces that peers cannot write: the creator maps its segment writable once, then seals `FUTURE_WRITE`.
//! Sizes are sealed too, so that no peer can make a mapping trap by shrinking the file.

use crate::sys::retry;
use crate::sys::segment::{Kind, SharedMemory, refuse};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A memfd.
#[derive(Debug)]
pub(crate) struct Memfd(OwnedFd);

fn seals(kind: Kind) -> SealFlags {
    let size = SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    match kind {
        Kind::Payload => size | SealFlags::FUTURE_WRITE,
        Kind::Ring => size,
    }
}

impl SharedMemory for Memfd {
    fn create(kind: Kind, len: u64) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        // Kernels before 6.3 do not know NOEXEC_SEAL; some later ones are configured to require it.
        let fd = match rustix::fs::memfd_create(kind.name(), flags | MemfdFlags::NOEXEC_SEAL) {
            Err(rustix::io::Errno::INVAL) => rustix::fs::memfd_create(kind.name(), flags)?,
            other => other?,
        };
        rustix::fs::ftruncate(&fd, len)?;
        Ok(Memfd(fd))
    }

    fn own(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn protect(&self, kind: Kind) -> io::Result<()> {
        Ok(rustix::fs::fcntl_add_seals(&self.0, seals(kind))?)
    }

    fn for_peer(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn into_peer(self) -> OwnedFd {
        self.0
    }

    fn reserve(own: BorrowedFd<'_>, from: u64, len: u64) -> io::Result<()> {
        retry(|| rustix::fs::fallocate(own, FallocateFlags::empty(), from, len))
    }

    /// Asks for the seals first. Only memfds answer, so a descriptor of a file system that never answers
    /// (FUSE) is not touched any further.
    fn check(fd: BorrowedFd<'_>, kind: Kind, len: u64) -> io::Result<()> {
        let Ok(has) = rustix::fs::fcntl_get_seals(fd) else {
            return refuse("the descriptor is not a memfd");
        };
        let needed = seals(kind);
        if !has.contains(needed) {
            return refuse(format!(
                "the memfd has seals {:#x}, expected {:#x}",
                has.bits(),
                needed.bits()
            ));
        }
        // A hugetlb memfd has the same seals but can trap when its pool is empty.
        const TMPFS_MAGIC: i64 = 0x0102_1994;
        let fs = rustix::fs::fstatfs(fd)?;
        #[allow(clippy::unnecessary_cast, reason = "the type differs between architectures")]
        if fs.f_type as i64 != TMPFS_MAGIC {
            return refuse(format!("the memfd's file system is {:#x}, not tmpfs", fs.f_type));
        }
        let size = rustix::fs::fstat(fd)?.st_size;
        if u64::try_from(size) != Ok(len) {
            return refuse(format!("the memfd has {size} bytes, expected {len}"));
        }
        Ok(())
    }

    /// A memfd never has a name.
    fn sweep() {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::segment::page;

    #[test]
    fn memfds_without_seals_are_refused() {
        let plain = Memfd::create(Kind::Payload, page()).unwrap();
        for kind in [Kind::Payload, Kind::Ring] {
            assert!(Memfd::check(plain.for_peer(), kind, page()).is_err());
        }
        plain.protect(Kind::Ring).unwrap();
        assert!(Memfd::check(plain.for_peer(), Kind::Payload, page()).is_err());
        Memfd::check(plain.for_peer(), Kind::Ring, page()).unwrap();
        assert!(plain.protect(Kind::Payload).is_err(), "sealed for good");
    }
}
