//! Functions that this library needs from the process that loads it: rcutils' error state. It looks the symbols up at
//! run time, since it does not link to ROS: where rcl is loaded, rcutils is too.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

type SetErrorState = unsafe extern "C" fn(*const c_char, *const c_char, usize);

fn set_error_state() -> Option<SetErrorState> {
    static FOUND: OnceLock<Option<SetErrorState>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let symbol = find(c"librcutils.so", c"rcutils_set_error_state")?;
        // SAFETY: the symbol is rcutils' function of this name, whose signature has not changed since its first release
        // (rcutils/error_handling.h).
        Some(unsafe { std::mem::transmute::<*mut c_void, SetErrorState>(symbol) })
    })
}

/// The functions of `libropewalk_heap.so`, if it is preloaded (`heap.rs`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heap {
    claim: unsafe extern "C" fn(*mut c_void, usize) -> bool,
    release: unsafe extern "C" fn(*mut c_void) -> bool,
    is_claimed: unsafe extern "C" fn(*mut c_void) -> bool,
    adopt: Adopt,
}

/// Function that is called when adopted memory is freed.
pub(crate) type Freed = unsafe extern "C" fn(*mut c_void);
type Adopt = unsafe extern "C" fn(*mut c_void, usize, Freed, *mut c_void) -> bool;

impl Heap {
    /// Returns `None` if the library is not preloaded.
    pub(crate) fn find() -> Option<Heap> {
        static FOUND: OnceLock<Option<Heap>> = OnceLock::new();
        *FOUND.get_or_init(|| {
            let here = |name| find(c"libropewalk_heap.so", name);
            let claim = here(c"ropewalk_heap_claim")?;
            let release = here(c"ropewalk_heap_release")?;
            let is_claimed = here(c"ropewalk_heap_is_claimed")?;
            let adopt = here(c"ropewalk_heap_adopt")?;
            // SAFETY: the symbols are that library's functions with these names.
            unsafe {
                Some(Heap {
                    claim: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void, usize) -> bool>(
                        claim,
                    ),
                    release: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> bool>(
                        release,
                    ),
                    is_claimed: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> bool>(
                        is_claimed,
                    ),
                    adopt: std::mem::transmute::<*mut c_void, Adopt>(adopt),
                })
            }
        })
    }

    /// Makes `free` intercept memory. Returns false if it cannot.
    pub(crate) fn claim(self, start: *mut u8, len: usize) -> bool {
        // SAFETY: the functions take any address.
        unsafe { (self.claim)(start.cast(), len) }
    }

    /// As `claim`, for memory with an owner: the thread that frees it calls `freed` with `token`.
    ///
    /// # Safety
    /// `freed` may be called with `token` once, in any thread and at any time from now on.
    pub(crate) unsafe fn adopt(self, start: *mut u8, len: usize, freed: Freed, token: *mut c_void) -> bool {
        // SAFETY: upheld by the caller.
        unsafe { (self.adopt)(start.cast(), len, freed, token) }
    }

    /// Ends a claim.
    pub(crate) fn release(self, start: *mut u8) {
        // SAFETY: likewise.
        unsafe { (self.release)(start.cast()) };
    }

    /// Whether memory is still claimed, that is, not freed yet.
    pub(crate) fn is_claimed(self, start: *mut u8) -> bool {
        // SAFETY: likewise.
        unsafe { (self.is_claimed)(start.cast()) }
    }
}

/// Finds a symbol of a library that the process has already loaded, even in a scope of its own.
fn find(library: &CStr, name: &CStr) -> Option<*mut c_void> {
    symbol(library, name, libc::RTLD_NOLOAD)
}

/// Finds a symbol of one of ROS 2's libraries, and loads the library if necessary.
pub(crate) fn load(library: &CStr, name: &CStr) -> Option<*mut c_void> {
    symbol(library, name, 0)
}

fn symbol(library: &CStr, name: &CStr, how: c_int) -> Option<*mut c_void> {
    // SAFETY: both names end with a NUL byte. A library that is already loaded runs no constructor, and the others
    // belong to the installation that this process runs in. The handle is never closed, so the library stays where the
    // symbol points.
    let symbol = unsafe {
        let handle = libc::dlopen(library.as_ptr(), how | libc::RTLD_LAZY);
        let scope = if handle.is_null() {
            libc::RTLD_DEFAULT
        } else {
            handle
        };
        libc::dlsym(scope, name.as_ptr())
    };
    (!symbol.is_null()).then_some(symbol)
}

/// Sets rmw's error message, which callers read after a return code other than OK (`rmw_get_error_string`).
pub(crate) fn set_error(text: &str) {
    let Some(set) = set_error_state() else {
        return tracing::error!("{text}");
    };
    let Ok(text) = CString::new(text.replace('\0', " ")) else {
        return;
    };
    // SAFETY: both strings end with a NUL byte, and rcutils copies them into a state of this thread.
    unsafe { set(text.as_ptr(), c"rmw_ropewalk".as_ptr(), 0) }
}
