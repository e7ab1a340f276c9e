//! Memory that crosses the interface, from the allocator that its owner named.

use crate::abi::{Allocator, StringArray};
use crate::error::{Failure, Outcome};
use std::ffi::{CStr, c_char, c_void};

/// Maximum amount of freed memory that glibc's heap keeps. Messages above 32 MiB are mapped again each time regardless.
#[cfg(target_env = "gnu")]
const KEPT: libc::c_int = 64 << 20;

/// Lets glibc's heap keep memory for a few large messages. By default it returns the memory that rcl and nodes free for
/// each message to the kernel and requests it again for the next one: a page fault for every 4 KiB, which costs more
/// than all copies (decision 338). This changes nothing if the environment tunes glibc's heap (`GLIBC_TUNABLES`,
/// `MALLOC_TRIM_THRESHOLD_` and the like).
#[cfg(target_env = "gnu")]
pub(crate) fn keep_freed_memory() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let names = |text: &std::ffi::OsStr| text.to_string_lossy().contains("glibc.malloc");
        let is_tuned = std::env::var_os("GLIBC_TUNABLES").is_some_and(|t| names(&t))
            || std::env::vars_os().any(|(name, _)| name.to_string_lossy().starts_with("MALLOC_"));
        if !is_tuned {
            // SAFETY: mallopt takes its own locks; both values are within its limits.
            unsafe {
                libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT / 2);
                libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
            }
        }
    });
}

/// Other C libraries have no such setting.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn keep_freed_memory() {}

impl Allocator {
    /// Allocator for memory that is never freed.
    pub(crate) fn none() -> Self {
        Allocator {
            allocate: None,
            deallocate: None,
            reallocate: None,
            zero_allocate: None,
            state: std::ptr::null_mut(),
        }
    }

    /// `rcutils_allocator_is_valid`.
    pub(crate) fn check(&self) -> Outcome {
        let whole = self.allocate.is_some()
            && self.deallocate.is_some()
            && self.reallocate.is_some()
            && self.zero_allocate.is_some();
        whole
            .then_some(())
            .ok_or_else(|| Failure::argument("allocator argument is invalid"))
    }

    /// Allocates `count` zeroed elements.
    pub(crate) fn zeroed<T>(&self, count: usize) -> Outcome<*mut T> {
        self.check()?;
        let Some(allocate) = self.zero_allocate else {
            return Err(exhausted());
        };
        // SAFETY: the function is the allocator's, with its own state (rcutils/allocator.h); sizes are plain numbers.
        let made = unsafe { allocate(count.max(1), size_of::<T>().max(1), self.state) };
        (!made.is_null()).then_some(made.cast()).ok_or_else(exhausted)
    }

    /// Copies a text and adds a NUL byte.
    pub(crate) fn text(&self, text: &str) -> Outcome<*mut c_char> {
        let copy: *mut u8 = self.zeroed(text.len() + 1)?;
        // SAFETY: `copy` has room for the text and a NUL byte, which is already there, and is not shared.
        unsafe { copy.copy_from_nonoverlapping(text.as_ptr(), text.len()) };
        Ok(copy.cast())
    }

    /// Copies a C string; returns null for null.
    ///
    /// # Safety
    /// `text` is null or ends with a NUL byte.
    pub(crate) unsafe fn copy(&self, text: *const c_char) -> Outcome<*mut c_char> {
        if text.is_null() {
            return Ok(std::ptr::null_mut());
        }
        // SAFETY: upheld by the caller.
        let text = unsafe { CStr::from_ptr(text) };
        let len = text.count_bytes();
        let copy: *mut u8 = self.zeroed(len + 1)?;
        // SAFETY: as in `text`.
        unsafe { copy.copy_from_nonoverlapping(text.as_ptr().cast(), len) };
        Ok(copy.cast())
    }

    /// Frees memory.
    ///
    /// # Safety
    /// `memory` is null, or comes from this allocator and is no longer in use.
    pub(crate) unsafe fn free<T>(&self, memory: *mut T) {
        if let Some(deallocate) = self.deallocate.filter(|_| !memory.is_null()) {
            // SAFETY: upheld by the caller.
            unsafe { deallocate(memory.cast::<c_void>(), self.state) }
        }
    }
}

fn exhausted() -> Failure {
    Failure::memory("out of memory")
}

impl StringArray {
    /// Fills an empty array. On failure the array is empty again.
    pub(crate) fn fill(&mut self, allocator: &Allocator, texts: &[String]) -> Outcome {
        let data: *mut *mut c_char = allocator.zeroed(texts.len())?;
        for (i, text) in texts.iter().enumerate() {
            match allocator.text(text) {
                // SAFETY: `data` has one element per text.
                Ok(copy) => unsafe { data.add(i).write(copy) },
                Err(failure) => {
                    for j in 0..i {
                        // SAFETY: the first `i` texts were made above and are not shared.
                        unsafe { allocator.free(data.add(j).read()) };
                    }
                    // SAFETY: likewise.
                    unsafe { allocator.free(data) };
                    return Err(failure);
                }
            }
        }
        self.size = texts.len();
        self.data = data;
        self.allocator = *allocator;
        Ok(())
    }

    /// Frees what [`StringArray::fill`] made.
    pub(crate) fn clear(&mut self) {
        for i in 0..self.size {
            // SAFETY: `fill` made `size` texts and their array, and nothing else refers to them yet.
            unsafe { self.allocator.free(self.data.add(i).read()) };
        }
        // SAFETY: likewise.
        unsafe { self.allocator.free(self.data) };
        self.size = 0;
        self.data = std::ptr::null_mut();
    }
}
