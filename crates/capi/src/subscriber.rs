//! Subscribing.

use crate::message::Message;
use crate::pointer::{consume, give_if, handle, output, set, text_out, timeout};
use crate::publisher::lines;
use crate::status::{Status, free, guard};
use crate::wait::{self, Interrupt};
use std::ffi::{c_char, c_void};
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};

/// The receiving end of a topic.
pub struct Subscriber(pub(crate) ropewalk::Subscriber);

/// Counters of received and lost messages of a subscriber.
#[repr(C)]
pub struct SubscriberStats {
    /// Messages taken.
    pub received: u64,
    /// Messages taken and not freed.
    pub held: u64,
    /// Messages lost, for any reason.
    pub lost: u64,
    /// Number of connected publishers.
    pub publishers: usize,
}

/// Takes the oldest waiting message; blocks until there is one, at most `timeout_ns`. `ROPEWALK_STATUS_EMPTY`
/// if there is none, or a wait was interrupted. Signals do not end the wait. A subscriber in a wait set waits
/// on the set's doorbell. If nobody has published the topic for 5 s, it writes a warning to standard error,
/// once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_subscriber_take(
    subscriber: *const Subscriber,
    timeout_ns: i64,
    out: *mut *mut Message,
) -> Status {
    guard(|| {
        output(out, "out")?;
        // SAFETY: the crate's contract.
        let subscriber = unsafe { handle(subscriber, "subscriber") }?;
        let taken = match timeout_ns {
            0 => subscriber.0.take()?,
            // A closed standard error is no reason to fail.
            ns => (subscriber.0).take_or_warn(timeout(ns), |text| {
                drop(writeln!(std::io::stderr(), "ropewalk: {text}"));
            })?,
        };
        // SAFETY: the crate's contract; `out` was checked.
        Ok(unsafe { give_if(taken.map(Message::Topic), out) })
    })
}

/// Names code that will read the messages: `len` bytes from `start`, at most 4,096, in at most three such
/// ranges. After some milliseconds of sleep none of this code is in the processor's caches; so when
/// `ropewalk_subscriber_take` wakes, the processor prefetches it while the message is being taken. This is a
/// hint: any address is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_subscriber_fetch_when_woken(
    subscriber: *const Subscriber,
    start: *const c_void,
    len: usize,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let subscriber = unsafe { handle(subscriber, "subscriber") }?;
        subscriber.0.bus().fetch_when_woken(start.cast(), len);
        Ok(Status::Ok)
    })
}

/// Waits until a message can be taken, also while the limit of held messages is reached;
/// `ROPEWALK_STATUS_EMPTY` after `timeout_ns` or an interrupt. For loops, after `ROPEWALK_STATUS_HOLD_LIMIT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_subscriber_wait_takeable(
    subscriber: *const Subscriber,
    timeout_ns: i64,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let subscriber = unsafe { handle(subscriber, "subscriber") }?;
        let ready = subscriber.0.bus().wait_takeable(timeout(timeout_ns))?;
        Ok(Status::of(ready))
    })
}

/// Returns the descriptor that is readable while a message can be taken, for select, poll or epoll. It
/// belongs to the subscriber: do not read or close it. For a subscriber in a wait set it is the set's
/// (`ropewalk_wait_set_rearm`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_subscriber_fd(subscriber: *const Subscriber, fd: *mut i32) -> Status {
    guard(|| {
        output(fd, "fd")?;
        // SAFETY: the crate's contract; `fd` was checked.
        unsafe { set(fd, handle(subscriber, "subscriber")?.0.as_fd().as_raw_fd()) };
        Ok(Status::Ok)
    })
}

/// Returns an object that ends a wait of the subscriber. NULL if `subscriber` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_subscriber_interrupt(subscriber: *const Subscriber) -> *mut Interrupt {
    // SAFETY: the crate's contract.
    wait::interrupt(unsafe { subscriber.as_ref() }.map(|s| s.0.interrupt()))
}

/// Blocks until at least `n` publishers are connected; `ROPEWALK_STATUS_EMPTY` after `timeout_ns`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_subscriber_wait_for_publishers(
    subscriber: *const Subscriber,
    n: usize,
    timeout_ns: i64,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let subscriber = unsafe { handle(subscriber, "subscriber") }?;
        let there = subscriber.0.wait_for_publishers(n, timeout(timeout_ns));
        Ok(Status::of(there))
    })
}

/// Returns the counters of received and lost messages.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_subscriber_get_stats(
    subscriber: *const Subscriber,
    stats: *mut SubscriberStats,
) -> Status {
    guard(|| {
        output(stats, "stats")?;
        // SAFETY: the crate's contract.
        let s = unsafe { handle(subscriber, "subscriber") }?.0.stats();
        let out = SubscriberStats {
            received: s.received,
            held: s.held as u64,
            lost: s.drops.total(),
            publishers: s.publishers.len(),
        };
        // SAFETY: the crate's contract; `stats` was checked.
        unsafe { set(stats, out) };
        Ok(Status::Ok)
    })
}

/// Writes why recent publishers were refused, one per line, newest last. `len` (may be NULL) always gets the
/// length with the zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_subscriber_refusals(
    subscriber: *const Subscriber,
    buffer: *mut c_char,
    capacity: usize,
    len: *mut usize,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let refusals = unsafe { handle(subscriber, "subscriber") }?.0.bus().refusals();
        // SAFETY: the crate's contract.
        unsafe { text_out(&lines(refusals), buffer, capacity, len) }
    })
}

/// Frees a subscriber. Messages that were taken stay valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_subscriber_free(subscriber: *mut Subscriber) {
    // SAFETY: the crate's contract.
    free(|| drop(unsafe { consume(subscriber, "subscriber") }));
}
