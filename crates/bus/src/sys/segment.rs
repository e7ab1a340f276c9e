//! Shared memory: payload segments that only their maker can write, and rings that both ends write.
//!
//! A descriptor that was passed read-only can be reopened for writing through `/proc/self/fd`, so the promise
//! not to write is made by a seal: the maker maps its segment writable once, then seals `FUTURE_WRITE`. Sizes
//! are sealed too, so that no peer can make a mapping trap by shrinking the file.

use super::retry;
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use std::ffi::c_void;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// The size of a page, of which every segment's length is a multiple.
pub(crate) fn page() -> u64 {
    rustix::param::page_size() as u64
}

fn payload_seals() -> SealFlags {
    SealFlags::GROW | SealFlags::SHRINK | SealFlags::FUTURE_WRITE | SealFlags::SEAL
}

fn ring_seals() -> SealFlags {
    SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL
}

/// Mapped shared memory.
struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is plain memory, not bound to a thread; whoever makes references into it answers for
// their aliasing.
unsafe impl Send for Mapping {}
// SAFETY: as for Send; sharing the handle gives only its address and length.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(fd: BorrowedFd<'_>, len: u64, prot: ProtFlags) -> io::Result<Self> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        // SAFETY: no address is asked for, so no existing mapping is replaced; the length is the file's, which
        // seals keep as it is.
        let start = unsafe { mmap(std::ptr::null_mut(), len, prot, MapFlags::SHARED, fd, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, len })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: start and len are those of a mapping that this value owns; whoever holds addresses into it
        // also holds this value (by Arc).
        let _ = unsafe { munmap(self.start.as_ptr().cast::<c_void>(), self.len) };
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:p}+{}", self.start, self.len)
    }
}

fn memfd(name: &str, len: u64) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 do not know NOEXEC_SEAL; some later ones are set up to demand it.
    let fd = match rustix::fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(rustix::io::Errno::INVAL) => rustix::fs::memfd_create(name, flags)?,
        other => other?,
    };
    rustix::fs::ftruncate(&fd, len)?;
    Ok(fd)
}

/// Whether `fd` is a memfd of `len` bytes with at least `seals`.
///
/// Asks for the seals first: only memfds answer, so a descriptor of a file system that never answers (FUSE) is
/// not touched any further.
fn check(fd: BorrowedFd<'_>, seals: SealFlags, len: u64) -> io::Result<()> {
    let refuse = |what: String| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    let Ok(has) = rustix::fs::fcntl_get_seals(fd) else {
        return refuse("the descriptor is no memfd".into());
    };
    if !has.contains(seals) {
        return refuse(format!(
            "the memfd has seals {:#x}, needed are {:#x}",
            has.bits(),
            seals.bits()
        ));
    }
    // A hugetlb memfd is sealed alike but can trap when its pool is empty.
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    let fs = rustix::fs::fstatfs(fd)?;
    #[allow(clippy::unnecessary_cast, reason = "the type differs between architectures")]
    if fs.f_type as i64 != TMPFS_MAGIC {
        return refuse(format!("the memfd's file system is {:#x}, not tmpfs", fs.f_type));
    }
    let size = rustix::fs::fstat(fd)?.st_size;
    if u64::try_from(size) != Ok(len) {
        return refuse(format!("the memfd has {size} bytes, announced were {len}"));
    }
    Ok(())
}

/// A payload segment of this process, mapped writable and sealed.
#[derive(Debug)]
pub(crate) struct OwnSegment {
    map: Mapping,
    fd: OwnedFd,
}

impl OwnSegment {
    /// Makes a segment of `len` bytes, a multiple of [`page`]. No page of it exists yet.
    pub(crate) fn new(len: u64) -> io::Result<Self> {
        let fd = memfd("ropewalk-payload", len)?;
        let map = Mapping::new(fd.as_fd(), len, ProtFlags::READ | ProtFlags::WRITE)?;
        rustix::fs::fcntl_add_seals(&fd, payload_seals())?;
        Ok(OwnSegment { map, fd })
    }

    pub(crate) fn len(&self) -> u64 {
        self.map.len as u64
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Makes the pages of a range exist, so that touching them cannot fail; and maps them, where the kernel can
    /// (5.14), so that touching them for the first time does not trap.
    pub(crate) fn reserve(&self, from: u64, to: u64) -> io::Result<()> {
        retry(|| rustix::fs::fallocate(&self.fd, FallocateFlags::empty(), from, to - from))?;
        let start = self.at(from, to - from).as_ptr().cast::<c_void>();
        // SAFETY: the range lies inside the mapping (`at` checks it), and mapping its pages changes no byte.
        let _ = unsafe { madvise(start, (to - from) as usize, Advice::LinuxPopulateWrite) };
        Ok(())
    }

    /// The address of `len` bytes at `offset`.
    ///
    /// # Panics
    /// If they are not inside the segment.
    pub(crate) fn at(&self, offset: u64, len: u64) -> NonNull<u8> {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len()));
        // SAFETY: the range was just checked to lie inside the mapping.
        unsafe { self.map.start.add(offset as usize) }
    }
}

/// A payload segment of another process, mapped read-only.
#[derive(Debug)]
pub(crate) struct PeerSegment {
    map: Mapping,
}

impl PeerSegment {
    /// Maps it, if its seals and its size are right, and closes the descriptor.
    pub(crate) fn new(fd: OwnedFd, len: u64) -> io::Result<Self> {
        check(fd.as_fd(), payload_seals(), len)?;
        if len == 0 || !len.is_multiple_of(page()) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("a segment of {len} bytes"),
            ));
        }
        Ok(PeerSegment {
            map: Mapping::new(fd.as_fd(), len, ProtFlags::READ)?,
        })
    }

    /// The address of `len` bytes at `offset`, if they are inside the segment.
    pub(crate) fn at(&self, offset: u64, len: u64) -> Option<NonNull<u8>> {
        offset
            .checked_add(len)
            .filter(|end| *end <= self.map.len as u64)?;
        // SAFETY: the range was just checked to lie inside the mapping.
        Some(unsafe { self.map.start.add(offset as usize) })
    }

    /// Copies from `offset` on; false, and nothing is copied, unless the range is inside the segment.
    ///
    /// The publisher may be writing at the same time. The bytes are then any mixture; no reference is made to
    /// the shared memory.
    pub(crate) fn copy(&self, offset: u64, to: &mut [u8]) -> bool {
        let Some(from) = self.at(offset, to.len() as u64) else {
            return false;
        };
        // SAFETY: the source is inside a live mapping and the destination is a private slice of that length, so
        // they do not overlap. The other process is outside of Rust's memory model; copying through raw
        // pointers, without a reference to the source, lets no assumption about its stability arise.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr(), to.len()) };
        true
    }

    /// Appends `len` bytes from `offset` on to `to`; false, and nothing is appended, unless they are inside.
    pub(crate) fn append(&self, offset: u64, len: usize, to: &mut Vec<u8>) -> bool {
        let Some(from) = self.at(offset, len as u64) else {
            return false;
        };
        to.reserve(len);
        // SAFETY: as in `copy`; `reserve` made room for `len` bytes behind the vector's length, and they are
        // initialized before the length says so.
        unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr().add(to.len()), len);
            to.set_len(to.len() + len);
        }
        true
    }
}

/// The memory of a ring, which both ends write.
#[derive(Debug)]
pub(crate) struct RingMemory {
    map: Mapping,
    words: usize,
}

impl RingMemory {
    /// The length of the file that holds `words` words.
    fn file_len(words: usize) -> u64 {
        (words as u64 * 8).next_multiple_of(page())
    }

    /// Makes a ring of zeros; the descriptor is for the other end.
    pub(crate) fn new(words: usize) -> io::Result<(Self, OwnedFd)> {
        let len = Self::file_len(words);
        let fd = memfd("ropewalk-ring", len)?;
        retry(|| rustix::fs::fallocate(&fd, FallocateFlags::empty(), 0, len))?;
        let map = Mapping::new(fd.as_fd(), len, ProtFlags::READ | ProtFlags::WRITE)?;
        rustix::fs::fcntl_add_seals(&fd, ring_seals())?;
        Ok((RingMemory { map, words }, fd))
    }

    /// Maps the other end's ring, if its seals and its size are right, and closes the descriptor.
    pub(crate) fn from_peer(fd: OwnedFd, words: usize) -> io::Result<Self> {
        let len = Self::file_len(words);
        check(fd.as_fd(), ring_seals(), len)?;
        // The peer may have left holes.
        retry(|| rustix::fs::fallocate(&fd, FallocateFlags::empty(), 0, len))?;
        Ok(RingMemory {
            map: Mapping::new(fd.as_fd(), len, ProtFlags::READ | ProtFlags::WRITE)?,
            words,
        })
    }

    /// Its words.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, at least `words * 8` bytes long, initialized (by the kernel, with
        // zeros at first), and lives as long as `self`. All of this process's accesses are atomic, and any bit
        // pattern is a valid u64.
        unsafe { std::slice::from_raw_parts(self.map.start.as_ptr().cast::<AtomicU64>(), self.words) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_payload_descriptor_shows_what_its_maker_writes() {
        let own = OwnSegment::new(page()).unwrap();
        own.reserve(0, page()).unwrap();
        let peer = PeerSegment::new(own.fd().try_clone_to_owned().unwrap(), page()).unwrap();
        // SAFETY: a byte inside the mapping, to which no reference exists.
        unsafe { own.at(5, 1).as_ptr().write(42) };
        let mut byte = [0];
        assert!(peer.copy(5, &mut byte));
        assert_eq!(byte, [42]);
        assert!(!peer.copy(page(), &mut byte), "outside");
        assert!(!peer.copy(u64::MAX, &mut byte), "overflow");
    }

    #[test]
    fn descriptors_without_seals_or_of_wrong_size_are_refused() {
        let plain = memfd("plain", page()).unwrap();
        let clone = |fd: &OwnedFd| fd.try_clone().unwrap();
        assert!(PeerSegment::new(clone(&plain), page()).is_err());
        assert!(RingMemory::from_peer(clone(&plain), 512).is_err());
        let own = OwnSegment::new(page()).unwrap();
        assert!(PeerSegment::new(own.fd().try_clone_to_owned().unwrap(), 2 * page()).is_err());
        let file = tempfile::tempfile().unwrap();
        file.set_len(page()).unwrap();
        assert!(PeerSegment::new(file.into(), page()).is_err());
        let (_, ring) = RingMemory::new(10).unwrap();
        assert!(
            PeerSegment::new(clone(&ring), page()).is_err(),
            "a ring can be written"
        );
        let both = RingMemory::from_peer(ring, 10).unwrap();
        assert_eq!(both.words()[9].load(Ordering::Relaxed), 0);
    }
}
