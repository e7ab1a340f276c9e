//! Messages that this library creates for nodes that borrow them.

use super::cxx;
use super::plan::{Life, Plan};
use std::ffi::c_void;
use std::ptr::NonNull;

/// An initialized message.
#[derive(Debug)]
pub(crate) struct Instance {
    memory: NonNull<c_void>,
    life: Life,
}

// SAFETY: only its `Instance` owns the message, and messages may move between threads.
unsafe impl Send for Instance {}

impl Plan {
    /// Whether messages can be created.
    pub(crate) fn can_make(&self) -> bool {
        self.life.is_some()
    }

    /// Creates a message with its default values. Returns `None` if memory is exhausted or [`can_make`](Self::can_make)
    /// is false.
    ///
    /// # Safety
    /// The library that the type support came from is loaded, and stays loaded while the message lives.
    pub(crate) unsafe fn make(&self) -> Option<Instance> {
        let life = self.life?;
        // SAFETY: plain allocation, aligned for C's largest type, which no message exceeds.
        let memory = NonNull::new(unsafe { libc::calloc(1, self.size.max(1)) })?;
        // SAFETY: there is room for a message of the tables' type, which the function belongs to.
        if !unsafe { cxx::init(life.init, memory.as_ptr()) } {
            // SAFETY: allocated above, and not initialized.
            unsafe { libc::free(memory.as_ptr()) };
            return None;
        }
        Some(Instance { memory, life })
    }
}

impl Instance {
    pub(crate) fn as_ptr(&self) -> *mut c_void {
        self.memory.as_ptr()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: made by `make`, and no longer in use.
        unsafe {
            (self.life.fini)(self.memory.as_ptr());
            libc::free(self.memory.as_ptr());
        }
    }
}
