//! Callbacks into C.

use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The pointer that a caller passed with a function, and the function that frees it once nothing can call
/// that function any more.
pub(crate) struct User {
    pointer: *mut c_void,
    free: Option<unsafe extern "C" fn(*mut c_void)>,
}

// SAFETY: the header tells callers that their functions are called from any thread, with this pointer, which
// is opaque to Rust.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}

impl User {
    pub(crate) fn new(pointer: *mut c_void, free: Option<unsafe extern "C" fn(*mut c_void)>) -> Self {
        User { pointer, free }
    }

    pub(crate) fn pointer(&self) -> *mut c_void {
        self.pointer
    }
}

impl Drop for User {
    fn drop(&mut self) {
        if let Some(free) = self.free {
            // SAFETY: the crate's contract; the pointer is owned, so this is called once, and no callback
            // uses it any more.
            unsafe { free(self.pointer) };
        }
    }
}

thread_local! {
    /// The calls that this thread is inside of, by their address.
    static INSIDE: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// The running callbacks of one handle, so that freeing it can wait for them.
#[derive(Default)]
pub(crate) struct Calls {
    running: Mutex<usize>,
    ended: Condvar,
}

impl Calls {
    /// Runs a callback.
    pub(crate) fn run<T>(self: &Arc<Self>, callback: impl FnOnce() -> T) -> T {
        let _running = Running::new(self);
        callback()
    }

    /// Blocks until none is running, except those that this thread itself is inside of.
    pub(crate) fn wait(self: &Arc<Self>) {
        let address = Arc::as_ptr(self) as usize;
        let own = INSIDE
            .try_with(|calls| calls.borrow().iter().filter(|c| **c == address).count())
            .unwrap_or(0);
        let mut running = self.lock();
        while *running > own {
            running = self.ended.wait(running).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Running<'a>(&'a Arc<Calls>);

impl<'a> Running<'a> {
    fn new(calls: &'a Arc<Calls>) -> Self {
        *calls.lock() += 1;
        let _ = INSIDE.try_with(|inside| inside.borrow_mut().push(Arc::as_ptr(calls) as usize));
        Running(calls)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let _ = INSIDE.try_with(|inside| inside.borrow_mut().pop());
        *self.0.lock() -= 1;
        self.0.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn freeing_waits_for_other_callbacks_and_not_for_its_own() {
        let calls = Arc::new(Calls::default());
        calls.wait();
        calls.run(|| calls.run(|| calls.wait()));
        let (began, begins) = channel();
        let (end, ends) = channel::<()>();
        let other = std::thread::spawn({
            let calls = calls.clone();
            move || {
                calls.run(|| {
                    began.send(()).expect("heard");
                    ends.recv().expect("reported");
                })
            }
        });
        begins.recv().expect("begins");
        let waiter = std::thread::spawn({
            let calls = calls.clone();
            move || calls.wait()
        });
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!waiter.is_finished());
        end.send(()).expect("heard");
        waiter.join().expect("no panic");
        other.join().expect("no panic");
    }
}
