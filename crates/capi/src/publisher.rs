//! Publishing.

use crate::loan::{Loan, lend};
use crate::pointer::{array, consume, handle, output, set, text_out, timeout};
use crate::status::{Status, free, guard};
use std::ffi::c_char;

/// The sending end of a topic.
pub struct Publisher(pub(crate) ropewalk::Publisher);

/// The result of publishing a message.
#[repr(C)]
pub struct Published {
    /// The publisher's sequence number, starting at 1.
    pub sequence: u64,
    /// Number of subscribers that it was queued to.
    pub queued_to: usize,
}

/// Reserves a block with a control part of `control_len` bytes and `part_count` data parts (at most 32) of
/// the given lengths in bytes, to be filled in place. The memory policy says what happens when memory is
/// short; only `ROPEWALK_MEMORY_POLICY_BLOCK` blocks. Writing to the block cannot fail.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_publisher_loan(
    publisher: *const Publisher,
    control_len: usize,
    part_lens: *const usize,
    part_count: usize,
    out: *mut *mut Loan,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let publisher = unsafe { handle(publisher, "publisher") }?;
        // SAFETY: the crate's contract.
        unsafe {
            lend(control_len, part_lens, part_count, out, |c, p| {
                publisher.0.loan(c, p)
            })
        }
    })
}

/// Publishes a filled loan of this publisher, which is always consumed. Its control part must have the type
/// (docs/wire/control-part.md); subscribers report an error otherwise. Never blocks. `published` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_publisher_publish(
    publisher: *const Publisher,
    loan: *mut Loan,
    published: *mut Published,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let (loan, publisher) = unsafe { (consume(loan, "loan")?, handle(publisher, "publisher")?) };
        let done = publisher.0.publish(loan.0)?;
        // SAFETY: the crate's contract.
        unsafe { set(published, Published::of(&done)) };
        Ok(Status::Ok)
    })
}

/// Publishes a message in ROS 1's serialization. Each data part is copied once, into shared memory.
/// `published` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_publisher_publish_ros1(
    publisher: *const Publisher,
    bytes: *const u8,
    len: usize,
    published: *mut Published,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let (publisher, bytes) = unsafe { (handle(publisher, "publisher")?, array(bytes, len, "message")?) };
        let done = publisher.0.publish_ros1(bytes)?;
        // SAFETY: the crate's contract.
        unsafe { set(published, Published::of(&done)) };
        Ok(Status::Ok)
    })
}

/// Blocks until at least `n` subscribers are connected; `ROPEWALK_STATUS_EMPTY` after `timeout_ns`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_publisher_wait_for_subscribers(
    publisher: *const Publisher,
    n: usize,
    timeout_ns: i64,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let publisher = unsafe { handle(publisher, "publisher") }?;
        let there = publisher.0.wait_for_subscribers(n, timeout(timeout_ns));
        Ok(Status::of(there))
    })
}

/// Returns the number of connected subscribers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_publisher_subscriber_count(
    publisher: *const Publisher,
    count: *mut usize,
) -> Status {
    guard(|| {
        output(count, "count")?;
        // SAFETY: the crate's contract; `count` was checked.
        unsafe { set(count, handle(publisher, "publisher")?.0.bus().subscriber_count()) };
        Ok(Status::Ok)
    })
}

/// Writes why recent subscribers were refused, one per line, newest last. `len` (may be NULL) always gets the
/// length with the zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_publisher_refusals(
    publisher: *const Publisher,
    buffer: *mut c_char,
    capacity: usize,
    len: *mut usize,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let refusals = unsafe { handle(publisher, "publisher") }?.0.bus().refusals();
        // SAFETY: the crate's contract.
        unsafe { text_out(&lines(refusals), buffer, capacity, len) }
    })
}

/// Frees a publisher. Messages that subscribers hold stay readable; its loans can no longer be published.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_publisher_free(publisher: *mut Publisher) {
    // SAFETY: the crate's contract.
    free(|| drop(unsafe { consume(publisher, "publisher") }));
}

impl Published {
    fn of(done: &bus::Published) -> Self {
        Published {
            sequence: done.sequence,
            queued_to: done.queued_to,
        }
    }
}

/// Returns the reasons of refusals, one per line.
pub(crate) fn lines(refusals: Vec<bus::Refusal>) -> String {
    let reasons: Vec<_> = refusals.into_iter().map(|r| r.reason).collect();
    reasons.join("\n")
}
