//! Taken messages, requests and replies.

use crate::pointer::{consume, copy_out, handle, output, places, set};
use crate::status::{Failure, Status, free, guard};
use std::time::Duration;

/// A taken message, request or reply. Its publisher does not reuse the block before it is freed.
pub enum Message {
    /// A topic's message.
    #[doc(hidden)]
    Topic(ropewalk::Message),
    /// A client's request.
    #[doc(hidden)]
    Request(ropewalk::Request),
    /// A server's reply.
    #[doc(hidden)]
    Reply(ropewalk::Reply),
}

/// Metadata of a message.
#[repr(C)]
pub struct MessageInfo {
    /// When its source published it: nanoseconds since the Unix epoch, by the source host's clock.
    pub stamp_ns: u64,
    /// Its publisher's sequence number, starting at 1.
    pub sequence: u64,
    /// Its original source.
    pub origin: u64,
    /// Messages lost between the previously taken one and this one.
    pub lost: u64,
    /// How long the client of a request still waits, in nanoseconds; 0 for other messages.
    pub time_left_ns: u64,
    /// Number of data parts.
    pub part_count: usize,
    /// Whether it was published before the subscriber joined, and kept for late joiners.
    pub is_history: bool,
}

/// Bytes to read in place.
#[repr(C)]
pub struct Bytes {
    /// Address of the first byte.
    pub data: *const u8,
    /// Number of bytes.
    pub len: usize,
}

impl Bytes {
    fn of(start: *const u8, len: usize) -> Self {
        Bytes { data: start, len }
    }
}

/// Returns everything that `ropewalk_message_control` and `ropewalk_message_part` return, at once. `parts`
/// has room for `capacity` data parts (there are at most 32), and `count` gets their number.
/// `ROPEWALK_STATUS_BUFFER_TOO_SMALL` if there are more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_message_content(
    message: *const Message,
    control: *mut Bytes,
    parts: *mut Bytes,
    capacity: usize,
    count: *mut usize,
) -> Status {
    guard(|| {
        output(control, "control")?;
        // SAFETY: the crate's contract.
        let message = unsafe { handle(message, "message") }?.bus();
        let part = |i| {
            let part = message.part(i);
            Bytes::of(part.as_ptr(), part.len())
        };
        // SAFETY: the crate's contract; `control` was checked.
        unsafe {
            set(
                control,
                Bytes::of(message.control().as_ptr(), message.control().len()),
            );
            places(parts, capacity, count, message.part_count(), part)
        }
    })
}

/// Prefetches the code that reads a message whenever `subscriber` wakes.
pub(crate) fn fetch_code(subscriber: &bus::Subscriber) {
    /// Approximate length of the straight path, in bytes.
    const LEN: usize = 768;
    subscriber.fetch_when_woken(ropewalk_message_content as *const u8, LEN);
}

/// Returns the control part: a private copy, valid until the message is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_message_control(
    message: *const Message,
    data: *mut *const u8,
    len: *mut usize,
) -> Status {
    guard(|| {
        output(data, "data")?;
        // SAFETY: the crate's contract.
        let control = unsafe { handle(message, "message") }?.control();
        // SAFETY: the crate's contract.
        unsafe {
            set(data, control.as_ptr());
            set(len, control.len());
        }
        Ok(Status::Ok)
    })
}

/// Returns data part `i` where its publisher wrote it: read-only, aligned to 64 bytes, valid until the
/// message is freed; of length 0 if there is no such part. A publisher that violates the protocol may change
/// it in the meantime.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_message_part(
    message: *const Message,
    i: usize,
    data: *mut *const u8,
    len: *mut usize,
) -> Status {
    guard(|| {
        output(data, "data")?;
        // SAFETY: the crate's contract.
        let part = unsafe { handle(message, "message") }?.bus().part(i);
        // SAFETY: the crate's contract.
        unsafe {
            set(data, part.as_ptr());
            set(len, part.len());
        }
        Ok(Status::Ok)
    })
}

/// Returns the metadata of a message.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_message_get_info(
    message: *const Message,
    info: *mut MessageInfo,
) -> Status {
    guard(|| {
        output(info, "info")?;
        // SAFETY: the crate's contract; `info` was checked.
        unsafe { set(info, handle(message, "message")?.info()) };
        Ok(Status::Ok)
    })
}

/// Writes the message in ROS 1's serialization to `buffer`. `len` (may be NULL) always gets its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_message_ros1(
    message: *const Message,
    buffer: *mut u8,
    capacity: usize,
    len: *mut usize,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        let bytes = unsafe { handle(message, "message") }?.ros1()?;
        // SAFETY: the crate's contract.
        unsafe { copy_out(&bytes, buffer, capacity, len) }
    })
}

/// Frees a message: its publisher may reuse the block. Freeing an unanswered request rejects it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_message_free(message: *mut Message) {
    // SAFETY: the crate's contract.
    free(|| drop(unsafe { consume(message, "message") }));
}

impl Message {
    fn bus(&self) -> &bus::Message {
        match self {
            Message::Topic(m) => m.bus(),
            Message::Request(r) => r.bus().message(),
            Message::Reply(r) => r.bus().message(),
        }
    }

    /// The control part, in the subscriber's type.
    fn control(&self) -> &[u8] {
        match self {
            Message::Topic(m) => m.control(),
            Message::Request(_) | Message::Reply(_) => self.bus().control(),
        }
    }

    fn ros1(&self) -> Result<Vec<u8>, Failure> {
        Ok(match self {
            Message::Topic(m) => m.ros1()?,
            Message::Request(r) => r.ros1()?,
            Message::Reply(r) => r.ros1()?,
        })
    }

    fn info(&self) -> MessageInfo {
        let m = self.bus();
        let time_left = match self {
            Message::Request(r) => r.time_left(),
            Message::Topic(_) | Message::Reply(_) => Duration::ZERO,
        };
        MessageInfo {
            stamp_ns: m.stamp().as_nanos(),
            sequence: m.sequence(),
            origin: m.origin(),
            lost: m.lost().total(),
            time_left_ns: u64::try_from(time_left.as_nanos()).unwrap_or(u64::MAX),
            part_count: m.part_count(),
            is_history: m.is_history(),
        }
    }
}
