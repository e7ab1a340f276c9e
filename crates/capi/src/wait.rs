//! Waiting: sets of subscribers and servers that wake one thread, and objects that end a wait.

use crate::pointer::{consume, handle, output, set, timeout};
use crate::status::{Status, free, guard};
use std::os::fd::{AsFd, AsRawFd};

/// One doorbell for many subscribers (`ropewalk_subscriber_options.wait_set`) and servers.
pub struct WaitSet(pub(crate) bus::WaitSet);

/// Ends a wait, from any thread.
pub struct Interrupt(pub(crate) bus::Interrupt);

/// Blocks until a message can be taken from one of the set's members; then take from each until it is empty.
/// `ROPEWALK_STATUS_EMPTY` after `timeout_ns` or an interrupt. Signals do not end the wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_wait_set_wait(set: *const WaitSet, timeout_ns: i64) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let set = unsafe { handle(set, "wait set") }?;
        let ready = set.0.wait(timeout(timeout_ns))?;
        Ok(Status::of(ready))
    })
}

/// For your own poll loop on `ropewalk_wait_set_fd`: returns `ROPEWALK_STATUS_OK` if something can be taken
/// now; otherwise silences the descriptor until the next message and returns `ROPEWALK_STATUS_EMPTY`. Call it
/// when every member is empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_wait_set_rearm(set: *const WaitSet) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let ready = unsafe { handle(set, "wait set") }?.0.rearm()?;
        Ok(Status::of(ready))
    })
}

/// Returns the descriptor that is readable when something can be taken, for select, poll or epoll. It belongs
/// to the set: do not read or close it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_wait_set_fd(wait_set: *const WaitSet, fd: *mut i32) -> Status {
    guard(|| {
        output(fd, "fd")?;
        // SAFETY: the crate's contract; `fd` was checked.
        unsafe { set(fd, handle(wait_set, "wait set")?.0.as_fd().as_raw_fd()) };
        Ok(Status::Ok)
    })
}

/// Returns an object that ends a wait on the set. NULL if `set` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_wait_set_interrupt(set: *const WaitSet) -> *mut Interrupt {
    // SAFETY: the crate's contract.
    interrupt(unsafe { set.as_ref() }.map(|set| set.0.interrupt()))
}

/// Frees a set. Its members stay valid, and can still be waited for one by one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_wait_set_free(set: *mut WaitSet) {
    // SAFETY: the crate's contract.
    free(|| drop(unsafe { consume(set, "wait set") }));
}

/// Ends one wait of the subscriber, server or set that it was created from: the wait in progress, otherwise
/// the next one that finds nothing. Several calls before that end only one wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_interrupt_wake(interrupt: *const Interrupt) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        unsafe { handle(interrupt, "interrupt") }?.0.wake();
        Ok(Status::Ok)
    })
}

/// Frees an interrupt.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_interrupt_free(interrupt: *mut Interrupt) {
    // SAFETY: the crate's contract.
    free(|| drop(unsafe { consume(interrupt, "interrupt") }));
}

pub(crate) fn interrupt(of: Option<bus::Interrupt>) -> *mut Interrupt {
    of.map_or(std::ptr::null_mut(), |of| Box::into_raw(Box::new(Interrupt(of))))
}
