//! Shared memory that has a name only between two system calls.
//!
//! A name is `/ropewalk-<payload|ring>.<12 hexadecimal digits>`: 30 bytes, one less than the 31 that every
//! system allows. It is removed before the object gets its size, so a process that is killed in between
//! leaves a file of zero bytes. [`ShmOpen::sweep`] removes such files. If another process removes a name too
//! early, its creator merely tries again. So age suffices to call a name stale, without checking whether a
//! process is alive.

use crate::sys::segment::{Kind, SharedMemory, refuse};
use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::shm;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// Where Linux shows the names. Other systems have no portable way to list them.
const NAMES: &str = "/dev/shm";
/// The longest time that an honest creator needs between its two system calls.
const STALE: Duration = Duration::from_secs(10);
/// How often a creator retries when its name was taken or removed.
const ATTEMPTS: usize = 8;

/// An object of `shm_open` whose name has been removed.
#[derive(Debug)]
pub(crate) struct ShmOpen {
    own: OwnedFd,
    /// Read-only descriptor; `None` for rings, which peers get writable.
    reader: Option<OwnedFd>,
}

impl ShmOpen {
    /// Creates an object under a fresh name, opens it as peers need it, and removes the name. Returns `None`
    /// if another process took or removed the name in between.
    fn attempt(kind: Kind) -> io::Result<Option<Self>> {
        let name = format!("/{}.{:012x}", kind.name(), crate::sys::unique_id() >> 16);
        // The mode permits only reading, so that nobody reopens it for writing by accident. The creator's own
        // descriptor does not depend on it.
        let flags = shm::OFlags::CREATE | shm::OFlags::EXCL | shm::OFlags::RDWR;
        let own = match shm::open(name.as_str(), flags, Mode::RUSR) {
            Err(Errno::EXIST | Errno::INTR) => return Ok(None),
            other => other?,
        };
        crate::hooks::step("shm-named");
        let reader = match kind {
            Kind::Payload => shm::open(name.as_str(), shm::OFlags::RDONLY, Mode::empty()).map(Some),
            Kind::Ring => Ok(None),
        };
        crate::hooks::step("shm-opened");
        let _ = shm::unlink(name.as_str());
        let reader = match reader {
            Err(Errno::NOENT | Errno::INTR) => return Ok(None),
            other => other?,
        };
        if let Some(reader) = &reader {
            // Another process may have put a different object under the name.
            let identity = |s: Stat| (s.st_dev, s.st_ino);
            if identity(rustix::fs::fstat(&own)?) != identity(rustix::fs::fstat(reader)?) {
                return Ok(None);
            }
        }
        Ok(Some(ShmOpen { own, reader }))
    }
}

impl SharedMemory for ShmOpen {
    fn create(kind: Kind, len: u64) -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            if let Some(memory) = Self::attempt(kind)? {
                rustix::fs::ftruncate(&memory.own, len)?;
                return Ok(memory);
            }
        }
        Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!("{ATTEMPTS} names of shared memory in a row were taken or removed by somebody else"),
        ))
    }

    fn own(&self) -> BorrowedFd<'_> {
        self.own.as_fd()
    }

    /// There are no seals. Peers get a descriptor that cannot write.
    fn protect(&self, _: Kind) -> io::Result<()> {
        Ok(())
    }

    fn for_peer(&self) -> BorrowedFd<'_> {
        self.reader.as_ref().unwrap_or(&self.own).as_fd()
    }

    fn into_peer(self) -> OwnedFd {
        self.reader.unwrap_or(self.own)
    }

    fn reserve(own: BorrowedFd<'_>, from: u64, len: u64) -> io::Result<()> {
        let convert =
            |n: u64| libc::off_t::try_from(n).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge));
        let (from, len) = (convert(from)?, convert(len)?);
        loop {
            // SAFETY: the descriptor is open, and the call touches no memory of this process.
            match unsafe { libc::posix_fallocate(own.as_raw_fd(), from, len) } {
                0 => return Ok(()),
                libc::EINTR => {}
                error => return Err(io::Error::from_raw_os_error(error)),
            }
        }
    }

    /// Only Linux can tell whether the object has no name any more and is on a tmpfs. Elsewhere only the size
    /// and the descriptor's open mode are checked.
    fn check(fd: BorrowedFd<'_>, kind: Kind, len: u64) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        check_linux(fd)?;
        let mode = rustix::fs::fcntl_getfl(fd)? & OFlags::RWMODE;
        let (needed, text) = match kind {
            Kind::Payload => (OFlags::RDONLY, "read-only"),
            Kind::Ring => (OFlags::RDWR, "for reading and writing"),
        };
        if mode != needed {
            return refuse(format!("the shared memory is not open {text}"));
        }
        let size = rustix::fs::fstat(fd)?.st_size;
        if u64::try_from(size) != Ok(len) {
            return refuse(format!("the shared memory has {size} bytes, expected {len}"));
        }
        Ok(())
    }

    fn sweep() {
        sweep(Path::new(NAMES));
    }
}

/// Every file of a tmpfs answers when asked for seals and no other does, so a descriptor of a file system
/// that never answers (FUSE) is not touched any further.
#[cfg(target_os = "linux")]
fn check_linux(fd: BorrowedFd<'_>) -> io::Result<()> {
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    if rustix::fs::fcntl_get_seals(fd).is_err() {
        return refuse("the descriptor is not shared memory");
    }
    let fs = rustix::fs::fstatfs(fd)?;
    #[allow(clippy::unnecessary_cast, reason = "the type differs between architectures")]
    if fs.f_type as i64 != TMPFS_MAGIC {
        return refuse(format!(
            "the shared memory's file system is {:#x}, not tmpfs",
            fs.f_type
        ));
    }
    if rustix::fs::fstat(fd)?.st_nlink != 0 {
        return refuse("the shared memory still has a name");
    }
    Ok(())
}

/// Removes this user's empty objects that are older than [`STALE`].
fn sweep(names: &Path) {
    let uid = rustix::process::geteuid().as_raw();
    for entry in std::fs::read_dir(names).into_iter().flatten().flatten() {
        let file = entry.file_name();
        let is_ours = file.to_str().is_some_and(|name| {
            [Kind::Payload, Kind::Ring].iter().any(|kind| {
                let digits = name.strip_prefix(kind.name()).and_then(|n| n.strip_prefix('.'));
                digits.is_some_and(|d| d.len() == 12 && d.bytes().all(|b| b.is_ascii_hexdigit()))
            })
        });
        if !is_ours {
            continue;
        }
        let stale = entry.metadata().is_ok_and(|meta| {
            let age = meta.modified().ok().and_then(|m| m.elapsed().ok());
            meta.is_file() && meta.uid() == uid && meta.len() == 0 && age.is_some_and(|a| a > STALE)
        });
        if stale {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::segment::page;

    #[test]
    fn an_object_has_no_name_and_its_readers_cannot_write() {
        let memory = ShmOpen::create(Kind::Payload, page()).unwrap();
        ShmOpen::check(memory.for_peer(), Kind::Payload, page()).unwrap();
        assert_eq!(rustix::fs::fstat(memory.own()).unwrap().st_nlink, 0);
        assert!(rustix::io::pwrite(memory.for_peer(), b"evil", 0).is_err());
        assert!(rustix::fs::ftruncate(memory.for_peer(), 0).is_err());
        let text = ShmOpen::check(memory.own(), Kind::Payload, page()).unwrap_err();
        assert!(text.to_string().contains("read-only"), "{text}");
        assert!(ShmOpen::check(memory.for_peer(), Kind::Ring, page()).is_err());
        assert!(ShmOpen::check(memory.for_peer(), Kind::Payload, 2 * page()).is_err());
    }

    #[test]
    fn memory_that_still_has_a_name_is_refused() {
        let name = format!("/ropewalk-test.{}", std::process::id());
        let flags = shm::OFlags::CREATE | shm::OFlags::EXCL | shm::OFlags::RDWR;
        let fd = shm::open(name.as_str(), flags, Mode::RUSR | Mode::WUSR).unwrap();
        shm::unlink(name.as_str()).unwrap();
        ShmOpen::check(fd.as_fd(), Kind::Ring, 0).unwrap();
        let fd = shm::open(name.as_str(), flags, Mode::RUSR | Mode::WUSR).unwrap();
        let result = ShmOpen::check(fd.as_fd(), Kind::Ring, 0);
        shm::unlink(name.as_str()).unwrap();
        assert!(result.unwrap_err().to_string().contains("name"));
    }

    #[test]
    fn only_our_old_and_empty_objects_are_swept() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str, bytes: &[u8], age: u64| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let then = std::time::SystemTime::now() - Duration::from_secs(age);
            std::fs::File::options()
                .write(true)
                .open(&path)
                .unwrap()
                .set_modified(then)
                .unwrap();
        };
        make("ropewalk-payload.0123456789ab", b"", 60);
        make("ropewalk-ring.0123456789ab", b"", 60);
        make("ropewalk-ring.000000000001", b"", 0);
        make("ropewalk-ring.000000000002", b"full", 60);
        make("ropewalk-ring.readme", b"", 60);
        make("sem.other", b"", 60);
        sweep(dir.path());
        let mut left: Vec<_> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(
            left,
            [
                "ropewalk-ring.000000000001",
                "ropewalk-ring.000000000002",
                "ropewalk-ring.readme",
                "sem.other"
            ]
        );
    }
}
