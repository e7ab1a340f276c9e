//! `libropewalk_heap.so`, for `LD_PRELOAD`: a `free` and a `realloc` that recognize memory outside the heap.
//!
//! If a node borrows a message from its publisher, the message's arrays have room in shared memory
//! (`rmw_borrow_loaned_message`). If a node takes a message, its large arrays lie in pages of the publisher's block
//! (`rmw_take`). A node that resizes or moves such an array, or ends its message, passes the array to `free` like heap
//! memory. This `free` ends the claim and calls the claimant's function. It passes all other memory to glibc's
//! functions.
//!
//! `librmw_ropewalk.so` looks for this library's functions in the process and places arrays in shared memory only if it
//! finds them.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Maximum number of claims at a time.
const PLACES: usize = 256;

/// Function that is called when claimed memory is freed.
type Freed = unsafe extern "C" fn(*mut c_void);

struct Claim {
    start: AtomicPtr<c_void>,
    len: AtomicUsize,
    /// A [`Freed`], or null, and the argument for it.
    freed: AtomicPtr<c_void>,
    token: AtomicPtr<c_void>,
}

static CLAIMS: [Claim; PLACES] = [const {
    Claim {
        start: AtomicPtr::new(std::ptr::null_mut()),
        len: AtomicUsize::new(0),
        freed: AtomicPtr::new(std::ptr::null_mut()),
        token: AtomicPtr::new(std::ptr::null_mut()),
    }
}; PLACES];
/// Lowest and highest address at which a claim has ever begun. They show for most freed memory that it is not claimed.
static LOWEST: AtomicUsize = AtomicUsize::new(usize::MAX);
static HIGHEST: AtomicUsize = AtomicUsize::new(0);
/// How many entries of `CLAIMS`, from the first, may be in use.
static USED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    /// glibc's `free`, whatever precedes it in symbol lookup.
    fn __libc_free(memory: *mut c_void);
    /// glibc's `realloc`.
    fn __libc_realloc(memory: *mut c_void, len: usize) -> *mut c_void;
}

/// Returns the claim that begins at `start`. Null is below all claims.
fn claim_at(start: *mut c_void) -> Option<&'static Claim> {
    let at = start.addr();
    if at < LOWEST.load(Ordering::Acquire) || at > HIGHEST.load(Ordering::Acquire) {
        return None;
    }
    let used = CLAIMS.get(..USED.load(Ordering::Acquire))?;
    used.iter()
        .find(|c| std::ptr::eq(c.start.load(Ordering::Acquire), start))
}

/// Ends a claim. Returns its function (null for none) and the argument for it, or `None` if another thread ended the
/// claim first.
fn end(claim: &Claim, start: *mut c_void) -> Option<(*mut c_void, *mut c_void)> {
    // Read these before the claim ends: after that, another claim may take the slot.
    let calls = (
        claim.freed.load(Ordering::Acquire),
        claim.token.load(Ordering::Acquire),
    );
    let ended =
        claim
            .start
            .compare_exchange(start, std::ptr::null_mut(), Ordering::AcqRel, Ordering::Relaxed);
    ended.is_ok().then_some(calls)
}

/// Ends a claim whose memory is freed, and calls its function. Returns false if another thread did so first.
fn free_claimed(claim: &Claim, start: *mut c_void) -> bool {
    let Some((freed, token)) = end(claim, start) else {
        return false;
    };
    if !freed.is_null() {
        // SAFETY: `ropewalk_heap_adopt` stored a function of this type.
        let freed = unsafe { std::mem::transmute::<*mut c_void, Freed>(freed) };
        // SAFETY: upheld by the caller of `ropewalk_heap_adopt`: the function is called once, with this token.
        unsafe { freed(token) };
    }
    true
}

fn claim(start: *mut c_void, len: usize, freed: *mut c_void, token: *mut c_void) -> bool {
    LOWEST.fetch_min(start.addr(), Ordering::AcqRel);
    HIGHEST.fetch_max(start.addr(), Ordering::AcqRel);
    for (i, claim) in CLAIMS.iter().enumerate() {
        let free = claim.start.compare_exchange(
            std::ptr::null_mut(),
            // Reserves the slot without a valid address, so that the other fields are set before the claim is visible.
            std::ptr::dangling_mut(),
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        if free.is_ok() {
            claim.len.store(len, Ordering::Release);
            claim.freed.store(freed, Ordering::Release);
            claim.token.store(token, Ordering::Release);
            USED.fetch_max(i + 1, Ordering::AcqRel);
            claim.start.store(start, Ordering::Release);
            return true;
        }
    }
    false
}

/// Claims `len` bytes at `start`: they are not heap memory. Returns false if there are too many claims.
#[unsafe(no_mangle)]
pub extern "C" fn ropewalk_heap_claim(start: *mut c_void, len: usize) -> bool {
    claim(start, len, std::ptr::null_mut(), std::ptr::null_mut())
}

/// As [`ropewalk_heap_claim`], for memory with an owner: the thread that frees it calls `freed` with `token`, once.
#[unsafe(no_mangle)]
pub extern "C" fn ropewalk_heap_adopt(
    start: *mut c_void,
    len: usize,
    freed: Freed,
    token: *mut c_void,
) -> bool {
    claim(start, len, freed as *mut c_void, token)
}

/// Ends a claim. Returns false if there is none at `start`, because it was freed.
#[unsafe(no_mangle)]
pub extern "C" fn ropewalk_heap_release(start: *mut c_void) -> bool {
    claim_at(start).is_some_and(|claim| end(claim, start).is_some())
}

/// Whether there is a claim at `start`.
#[unsafe(no_mangle)]
pub extern "C" fn ropewalk_heap_is_claimed(start: *mut c_void) -> bool {
    claim_at(start).is_some()
}

/// C's `free`.
///
/// # Safety
/// As in C, except that the memory may be claimed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(memory: *mut c_void) {
    if !claim_at(memory).is_some_and(|claim| free_claimed(claim, memory)) {
        // SAFETY: upheld by the caller.
        unsafe { __libc_free(memory) }
    }
}

/// C's `realloc`.
///
/// # Safety
/// As in C, except that the memory may be claimed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(memory: *mut c_void, len: usize) -> *mut c_void {
    let Some(claim) = claim_at(memory) else {
        // SAFETY: upheld by the caller.
        return unsafe { __libc_realloc(memory, len) };
    };
    let had = claim.len.load(Ordering::Acquire);
    // SAFETY: the new memory has that length, and the claimed memory has `had` bytes.
    unsafe {
        let new = libc::malloc(len.max(1));
        if !new.is_null() {
            new.cast::<u8>()
                .copy_from_nonoverlapping(memory.cast(), had.min(len));
            free_claimed(claim, memory);
        }
        new
    }
}
