//! Detects a fork without a system call.
//!
//! A page marked `MADV_WIPEONFORK` reads as zero in a forked child, no matter how it was forked. The page
//! holds a number that identifies the process in which a handle was created.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use std::io;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(std::ptr::null_mut());

/// Identifies the process in which a handle was created.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Birth(u64);

impl Birth {
    /// The mark of this process.
    pub(crate) fn here() -> io::Result<Birth> {
        let word = page()?;
        // In a fresh child the word is zero; of several threads that see this, one sets it.
        let _ = word.compare_exchange(0, super::unique_id(), Ordering::AcqRel, Ordering::Acquire);
        Ok(Birth(word.load(Ordering::Acquire)))
    }

    /// Whether this is a forked child of the process that created the mark.
    pub(crate) fn is_foreign(self) -> bool {
        let page = PAGE.load(Ordering::Acquire);
        // SAFETY: a non-null pointer is the page below, which is never unmapped.
        page.is_null() || unsafe { (*page).load(Ordering::Relaxed) } != self.0
    }
}

fn page() -> io::Result<&'static AtomicU64> {
    let mut page = PAGE.load(Ordering::Acquire);
    if page.is_null() {
        let len = rustix::param::page_size();
        // SAFETY: a private anonymous mapping at an address of the kernel's choice replaces nothing.
        let fresh = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }?;
        // SAFETY: the range is the mapping just made; wiping it in children is the purpose.
        unsafe { madvise(fresh, len, Advice::LinuxWipeOnFork) }?;
        let fresh = fresh.cast::<AtomicU64>();
        page = match PAGE.compare_exchange(std::ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => fresh,
            Err(other) => {
                // SAFETY: nobody else knows the mapping that lost the race.
                let _ = unsafe { rustix::mm::munmap(fresh.cast(), len) };
                other
            }
        };
    }
    // SAFETY: the page is mapped forever, aligned, initialized with zeros by the kernel, and only accessed
    // atomically.
    Ok(unsafe { &*page })
}
