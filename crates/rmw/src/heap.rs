//! `libropewalk_heap.so`, for `LD_PRELOAD`: `free` and `realloc` that know memory which is no heap's.
//!
//! An array of a message that a node borrows from its publisher has room in shared memory (`rmw_borrow_loaned_message`). A C++ vector that
//! grows beyond that room, is moved into, or moved from, gives it to `free`, as it would give heap memory; here that ends what
//! was claimed, and nothing else happens. All other memory goes to glibc's own functions.
//!
//! `librmw_ropewalk.so` looks for this library's functions in the process and places arrays in shared memory only where it finds them.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Most claims at a time.
const PLACES: usize = 256;

struct Claim {
    start: AtomicPtr<c_void>,
    len: AtomicUsize,
}

static CLAIMS: [Claim; PLACES] = [const {
    Claim {
        start: AtomicPtr::new(std::ptr::null_mut()),
        len: AtomicUsize::new(0),
    }
}; PLACES];
/// How many claims from the first on may be in use.
static USED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    /// glibc's `free`, whatever stands before it.
    fn __libc_free(memory: *mut c_void);
    /// glibc's `realloc`.
    fn __libc_realloc(memory: *mut c_void, len: usize) -> *mut c_void;
}

/// The claim that begins at `start`.
fn claim_at(start: *mut c_void) -> Option<&'static Claim> {
    let used = CLAIMS.get(..USED.load(Ordering::Acquire))?;
    used.iter()
        .find(|c| std::ptr::eq(c.start.load(Ordering::Acquire), start))
}

/// Ends a claim; false if another thread did so first.
fn end(claim: &Claim, start: *mut c_void) -> bool {
    let ended =
        claim
            .start
            .compare_exchange(start, std::ptr::null_mut(), Ordering::AcqRel, Ordering::Relaxed);
    ended.is_ok()
}

/// From now on `len` bytes at `start` are no heap's. False if there are too many claims.
#[unsafe(no_mangle)]
pub extern "C" fn ropewalk_heap_claim(start: *mut c_void, len: usize) -> bool {
    for (i, claim) in CLAIMS.iter().enumerate() {
        let free = claim.start.compare_exchange(
            std::ptr::null_mut(),
            // Nobody's, so that the length is there before the claim is.
            std::ptr::dangling_mut(),
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        if free.is_ok() {
            claim.len.store(len, Ordering::Release);
            USED.fetch_max(i + 1, Ordering::AcqRel);
            claim.start.store(start, Ordering::Release);
            return true;
        }
    }
    false
}

/// Ends a claim. False if there is none at `start`, since it was freed.
#[unsafe(no_mangle)]
pub extern "C" fn ropewalk_heap_release(start: *mut c_void) -> bool {
    !start.is_null() && claim_at(start).is_some_and(|claim| end(claim, start))
}

/// Whether there is a claim at `start`.
#[unsafe(no_mangle)]
pub extern "C" fn ropewalk_heap_is_claimed(start: *mut c_void) -> bool {
    !start.is_null() && claim_at(start).is_some()
}

/// C's `free`.
///
/// # Safety
/// As in C, but the memory may be claimed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(memory: *mut c_void) {
    if !ropewalk_heap_release(memory) {
        // SAFETY: of the caller.
        unsafe { __libc_free(memory) }
    }
}

/// C's `realloc`.
///
/// # Safety
/// As in C, but the memory may be claimed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(memory: *mut c_void, len: usize) -> *mut c_void {
    let claim = match memory.is_null() {
        true => None,
        false => claim_at(memory),
    };
    let Some(claim) = claim else {
        // SAFETY: of the caller.
        return unsafe { __libc_realloc(memory, len) };
    };
    let had = claim.len.load(Ordering::Acquire);
    // SAFETY: new memory of that length, and what was claimed has `had` bytes.
    unsafe {
        let new = libc::malloc(len.max(1));
        if !new.is_null() {
            new.cast::<u8>()
                .copy_from_nonoverlapping(memory.cast(), had.min(len));
            end(claim, memory);
        }
        new
    }
}
