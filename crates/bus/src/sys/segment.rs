//! Shared memory: payload segments that only their creator can write to, and rings that both ends write to.
//!
//! [`SharedMemory`] defines what the bus needs from the system; the module `variant` of [`super`] is the
//! built-in implementation. That module's documentation lists the guarantees that it cannot give.

use super::variant::Memory;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use std::ffi::c_void;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// The size of a page. Every segment's length is a multiple of it.
pub(crate) fn page() -> u64 {
    rustix::param::page_size() as u64
}

/// Writers of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Only its creator; peers get a read-only descriptor.
    Payload,
    /// Both ends.
    Ring,
}

impl Kind {
    /// Its name in `/proc/<pid>/maps`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Payload => "ropewalk-payload",
            Kind::Ring => "ropewalk-ring",
        }
    }
}

/// What the bus needs from a system's shared memory.
///
/// Its creator creates an object, maps it, protects it, and then passes it to peers, which check it before
/// they map it. It has no name that others could open, and disappears with its last descriptor and mapping.
pub(crate) trait SharedMemory: Sized + fmt::Debug {
    /// Creates an object of `len` zeros, which takes no memory yet.
    fn create(kind: Kind, len: u64) -> io::Result<Self>;
    /// Its creator's descriptor, to map and to [reserve](Self::reserve).
    fn own(&self) -> BorrowedFd<'_>;
    /// Forbids, as far as the system can, changing the size and, for payload, any further writable mapping.
    fn protect(&self, kind: Kind) -> io::Result<()>;
    /// The descriptor for peers.
    fn for_peer(&self) -> BorrowedFd<'_>;
    /// Returns the descriptor for peers and closes the creator's.
    fn into_peer(self) -> OwnedFd;
    /// Makes sure that the pages of a range exist, so that touching them cannot fail. An error if there is no
    /// memory.
    fn reserve(own: BorrowedFd<'_>, from: u64, len: u64) -> io::Result<()>;
    /// Checks, as far as the system can tell, that a peer's descriptor is what its kind promises and has
    /// `len` bytes. The error says what it is instead. Must not block on a descriptor that a hostile peer
    /// chose, as far as the system allows.
    fn check(fd: BorrowedFd<'_>, kind: Kind, len: u64) -> io::Result<()>;
    /// Removes objects that killed processes left half created.
    fn sweep();
}

/// Refuses a peer's descriptor.
pub(super) fn refuse<T>(what: impl Into<String>) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::InvalidInput, what.into()))
}

/// Mapped shared memory.
struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is plain memory, not bound to a thread; code that creates references into it is
// responsible for their aliasing.
unsafe impl Send for Mapping {}
// SAFETY: as for Send; sharing the handle gives only its address and length.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(fd: BorrowedFd<'_>, len: u64, prot: ProtFlags) -> io::Result<Self> {
        Self::of_range(fd, 0, len, prot, MapFlags::SHARED)
    }

    /// `from` is a multiple of [`page`].
    fn of_range(
        fd: BorrowedFd<'_>,
        from: u64,
        len: u64,
        prot: ProtFlags,
        flags: MapFlags,
    ) -> io::Result<Self> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        // SAFETY: no address is requested, so no existing mapping is replaced; the range is inside the
        // object, whose length is fixed: sealed, or by the trust in peers that the POSIX variant states.
        let start = unsafe { mmap(std::ptr::null_mut(), len, prot, flags, fd, from) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, len })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: start and len are those of a mapping that this value owns; every holder of addresses into
        // it also holds this value (by Arc).
        let _ = unsafe { munmap(self.start.as_ptr().cast::<c_void>(), self.len) };
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:p}+{}", self.start, self.len)
    }
}

/// Creates an object, maps it writable, and only then protects it.
fn make(kind: Kind, len: u64) -> io::Result<(Mapping, Memory)> {
    let memory = Memory::create(kind, len)?;
    if kind == Kind::Ring {
        Memory::reserve(memory.own(), 0, len)?;
    }
    let map = Mapping::new(memory.own(), len, ProtFlags::READ | ProtFlags::WRITE)?;
    memory.protect(kind)?;
    Ok((map, memory))
}

/// A payload segment of this process, mapped writable and protected.
#[derive(Debug)]
pub(crate) struct OwnSegment {
    map: Mapping,
    memory: Memory,
}

impl OwnSegment {
    /// Creates a segment of `len` bytes, a multiple of [`page`]. None of its pages exists yet.
    pub(crate) fn new(len: u64) -> io::Result<Self> {
        let (map, memory) = make(Kind::Payload, len)?;
        Ok(OwnSegment { map, memory })
    }

    pub(crate) fn len(&self) -> u64 {
        self.map.len as u64
    }

    /// The descriptor for peers.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.memory.for_peer()
    }

    /// Makes sure that the pages of a range exist, so that touching them cannot fail. Also maps them if the
    /// kernel can (5.14), so that the first access does not trap.
    pub(crate) fn reserve(&self, from: u64, to: u64) -> io::Result<()> {
        Memory::reserve(self.memory.own(), from, to - from)?;
        let start = self.at(from, to - from).as_ptr();
        // SAFETY: the range lies inside the mapping (`at` checks it), and mapping its pages changes no byte.
        let mapped = unsafe {
            madvise(
                start.cast::<c_void>(),
                (to - from) as usize,
                Advice::LinuxPopulateWrite,
            )
        };
        if mapped.is_err() {
            // To a reader, a page that is reserved and never touched looks like a hole.
            for at in (0..to - from).step_by(page() as usize) {
                // SAFETY: inside a live mapping, as was just checked; any byte is a valid u8.
                let _ = unsafe { start.add(at as usize).read_volatile() };
            }
        }
        Ok(())
    }

    /// Writes `bytes` at `offset`, to a block that has no other user yet.
    ///
    /// # Panics
    /// If they are not inside the segment.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) {
        let to = self.at(offset, bytes.len() as u64);
        // SAFETY: the range lies inside the mapping (`at` checks it), the source is a reference to other
        // memory, and the only references into the mapping are those of loans to their own blocks.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len()) };
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

/// Pages of another process's payload segment that are copied on write.
#[derive(Debug)]
pub(crate) struct OwnPages {
    start: NonNull<u8>,
    _map: Mapping,
}

// SAFETY: as for its mapping, in which `start` lies.
unsafe impl Send for OwnPages {}
// SAFETY: likewise.
unsafe impl Sync for OwnPages {}

impl OwnPages {
    /// The first requested byte.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

/// The descriptor of another process's payload segment, checked for protection and size.
#[derive(Debug)]
pub(crate) struct UnmappedSegment {
    fd: OwnedFd,
    len: u64,
}

impl UnmappedSegment {
    /// Checks a peer's descriptor.
    pub(crate) fn new(fd: OwnedFd, len: u64) -> io::Result<Self> {
        Memory::check(fd.as_fd(), Kind::Payload, len)?;
        if len == 0 || !len.is_multiple_of(page()) {
            return refuse(format!("a segment of {len} bytes"));
        }
        Ok(UnmappedSegment { fd, len })
    }

    /// Maps the segment. Returns the descriptor if this process cannot have more memory or mappings, which is
    /// not the peer's fault.
    pub(crate) fn map(self) -> Result<PeerSegment, Self> {
        match Mapping::new(self.fd.as_fd(), self.len, ProtFlags::READ) {
            Ok(map) => Ok(PeerSegment {
                map,
                fd: self.fd,
                whole: AtomicU64::new(0),
            }),
            Err(_) => Err(self),
        }
    }
}

/// A payload segment of another process, mapped read-only.
///
/// Segments are sparse. Reading a page that does not exist would create it, at the cost of the reader's
/// memory instead of the publisher's. So a reader first checks that the pages exist
/// ([`PeerSegment::exists`]). The answer stays true: the required seals forbid the publisher to free pages.
#[derive(Debug)]
pub(crate) struct PeerSegment {
    map: Mapping,
    fd: OwnedFd,
    /// All pages below this offset exist. Publishers reserve from the bottom up.
    whole: AtomicU64,
}

impl PeerSegment {
    /// Whether `len` bytes at `offset` are inside the segment, and the publisher has created all pages up to
    /// their end.
    #[inline]
    pub(crate) fn exists(&self, offset: u64, len: u64) -> bool {
        offset
            .checked_add(len)
            .is_some_and(|end| end <= self.whole.load(Ordering::Relaxed) || self.look(end))
    }

    #[cold]
    #[inline(never)]
    fn look(&self, end: u64) -> bool {
        if end > self.map.len as u64 {
            return false;
        }
        let whole = first_hole(
            self.fd.as_fd(),
            self.whole.load(Ordering::Relaxed),
            self.map.len as u64,
        );
        self.whole.fetch_max(whole, Ordering::Relaxed);
        end <= whole
    }

    /// The address of `len` bytes at `offset`, if they are inside the segment.
    pub(crate) fn at(&self, offset: u64, len: u64) -> Option<NonNull<u8>> {
        offset
            .checked_add(len)
            .filter(|end| *end <= self.map.len as u64)?;
        // SAFETY: the range was just checked to lie inside the mapping.
        Some(unsafe { self.map.start.add(offset as usize) })
    }

    /// Maps the pages of `len` bytes at `offset` once more, for reading and writing. What is written is
    /// private to this process.
    pub(crate) fn own_pages(&self, offset: u64, len: u64) -> io::Result<OwnPages> {
        if len == 0 || self.at(offset, len).is_none() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let from = offset - offset % page();
        let pages = (offset + len).next_multiple_of(page()) - from;
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        let map = Mapping::of_range(self.fd.as_fd(), from, pages, prot, MapFlags::PRIVATE)?;
        // Pages are mapped on access, sixteen at a time: mapping all at once takes as long as copying them.
        // SAFETY: `offset` lies in the first of the pages.
        let start = unsafe { map.start.add((offset - from) as usize) };
        Ok(OwnPages { start, _map: map })
    }

    /// Copies from `offset`. Returns false, and copies nothing, unless the range is inside the segment.
    ///
    /// The publisher may be writing at the same time; the bytes are then an arbitrary mixture. No reference
    /// to the shared memory is created.
    pub(crate) fn copy(&self, offset: u64, to: &mut [u8]) -> bool {
        let Some(from) = self.at(offset, to.len() as u64) else {
            return false;
        };
        // SAFETY: the source is inside a live mapping and the destination is a private slice of that length,
        // so they do not overlap. The other process is outside of Rust's memory model; copying through raw
        // pointers, without a reference to the source, makes no assumption about its stability.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr(), to.len()) };
        true
    }

    /// Prefetches the cache lines of up to `len` bytes at `offset`, all at once. Does nothing outside the
    /// segment.
    pub(crate) fn touch(&self, offset: u64, len: usize) {
        let Some(from) = self.at(offset, len as u64) else {
            return;
        };
        for line in (0..len).step_by(64) {
            // SAFETY: inside a live mapping, as was just checked; any byte is a valid u8.
            let _ = unsafe { from.as_ptr().add(line).read_volatile() };
        }
    }

    /// Appends `len` bytes from `offset` to `to`. Returns false, and appends nothing, unless they are inside.
    pub(crate) fn append(&self, offset: u64, len: usize, to: &mut Vec<u8>) -> bool {
        let Some(from) = self.at(offset, len as u64) else {
            return false;
        };
        to.reserve(len);
        // SAFETY: as in `copy`; `reserve` made room for `len` bytes after the vector's length, and they are
        // initialized before the length says so.
        unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr().add(to.len()), len);
            to.set_len(to.len() + len);
        }
        true
    }
}

/// Returns the offset of the first page at or after `from` that does not exist or was never touched; the file
/// has `len` bytes.
#[cfg(target_os = "linux")]
fn first_hole(fd: BorrowedFd<'_>, from: u64, len: u64) -> u64 {
    if from >= len {
        return len;
    }
    rustix::fs::seek(fd, rustix::fs::SeekFrom::Hole(from)).unwrap_or(from)
}

/// There is no portable way to find holes.
#[cfg(not(target_os = "linux"))]
fn first_hole(_: BorrowedFd<'_>, _: u64, len: u64) -> u64 {
    len
}

/// The memory of a ring, which both ends write to.
#[derive(Debug)]
pub(crate) struct RingMemory {
    map: Mapping,
    words: usize,
}

impl RingMemory {
    /// Length of the file that holds `words` words.
    pub(crate) fn file_len(words: usize) -> u64 {
        (words as u64 * 8).next_multiple_of(page())
    }

    /// Creates a ring of zeros. The descriptor is for the other end.
    pub(crate) fn new(words: usize) -> io::Result<(Self, OwnedFd)> {
        let len = Self::file_len(words);
        let (map, memory) = make(Kind::Ring, len)?;
        Ok((RingMemory { map, words }, memory.into_peer()))
    }

    /// Maps the other end's ring, if it is protected and has the right size, and closes the descriptor.
    pub(crate) fn from_peer(fd: OwnedFd, words: usize) -> io::Result<Self> {
        let len = Self::file_len(words);
        Memory::check(fd.as_fd(), Kind::Ring, len)?;
        // The peer may have left holes.
        Memory::reserve(fd.as_fd(), 0, len)?;
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

    fn mapped(fd: OwnedFd, len: u64) -> io::Result<PeerSegment> {
        let unmapped = UnmappedSegment::new(fd, len)?;
        unmapped.map().map_err(|_| io::ErrorKind::OutOfMemory.into())
    }

    #[test]
    fn a_payload_descriptor_shows_what_its_maker_writes() {
        let own = OwnSegment::new(page()).unwrap();
        own.reserve(0, page()).unwrap();
        let peer = mapped(own.fd().try_clone_to_owned().unwrap(), page()).unwrap();
        // SAFETY: a byte inside the mapping, to which no reference exists.
        unsafe { own.at(5, 1).as_ptr().write(42) };
        let mut byte = [0];
        assert!(peer.copy(5, &mut byte));
        assert_eq!(byte, [42]);
        assert!(!peer.copy(page(), &mut byte), "outside");
        assert!(!peer.copy(u64::MAX, &mut byte), "overflow");
    }

    #[test]
    fn only_pages_that_their_publisher_made_exist_for_a_reader() {
        let own = OwnSegment::new(64 * page()).unwrap();
        let peer = mapped(own.fd().try_clone_to_owned().unwrap(), 64 * page()).unwrap();
        assert!(!peer.exists(0, 1));
        own.reserve(0, 8 * page()).unwrap();
        assert!(peer.exists(0, 8 * page()) && peer.exists(page(), 64));
        assert!(!peer.exists(8 * page(), 1) && !peer.exists(0, 9 * page()));
        // Pages after a hole do not count.
        own.reserve(16 * page(), 32 * page()).unwrap();
        assert!(!peer.exists(16 * page(), 1));
        own.reserve(8 * page(), 16 * page()).unwrap();
        assert!(
            peer.exists(31 * page(), page()) && !peer.exists(64 * page(), 1) && !peer.exists(u64::MAX, 1)
        );
        // The check created no page.
        let blocks = rustix::fs::fstat(own.fd()).unwrap().st_blocks as u64;
        assert_eq!(blocks * 512, 32 * page());
        own.reserve(32 * page(), 64 * page()).unwrap();
        assert!(peer.exists(0, 64 * page()));
    }

    #[test]
    fn descriptors_of_the_wrong_kind_or_size_are_refused() {
        let clone = |fd: &OwnedFd| fd.try_clone().unwrap();
        let own = OwnSegment::new(page()).unwrap();
        assert!(mapped(own.fd().try_clone_to_owned().unwrap(), 2 * page()).is_err());
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(page()).unwrap();
        let read = std::fs::File::open(file.path()).unwrap();
        assert!(mapped(read.into(), page()).is_err());
        let (_, ring) = RingMemory::new(10).unwrap();
        assert!(mapped(clone(&ring), page()).is_err(), "a ring can be written");
        let payload = own.fd().try_clone_to_owned().unwrap();
        assert!(RingMemory::from_peer(payload, 512).is_err(), "payload cannot");
        let both = RingMemory::from_peer(ring, 10).unwrap();
        assert_eq!(both.words()[9].load(Ordering::Relaxed), 0);
    }
}
