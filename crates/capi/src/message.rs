//! Messages, requests and replies that were taken.

use crate::pointer::{consume, copy_out, handle, output, set};
use crate::status::{Failure, Status, free, guard};

/// A message, request or reply that was taken. Its publisher does not reuse the block before it is freed.
pub enum Message {
    /// Of a topic.
    #[doc(hidden)]
    Topic(ropewalk::Message),
    /// A client's.
    #[doc(hidden)]
    Request(ropewalk::Request),
    /// A server's.
    #[doc(hidden)]
    Reply(ropewalk::Reply),
}

/// What is known of a message beside its content.
#[repr(C)]
pub struct MessageInfo {
    /// When its source published it: nanoseconds since the Unix epoch, of the source host's clock.
    pub stamp_ns: u64,
    /// Its publisher's count, from 1 up.
    pub sequence: u64,
    /// Where it came from first.
    pub origin: u64,
    /// Messages that were lost between the one taken before and this one.
    pub lost: u64,
    /// How long the client of a request still waits, in nanoseconds; 0 for other messages.
    pub time_left_ns: u64,
    /// How many data parts there are.
    pub part_count: usize,
    /// Whether it was published before the subscriber joined, and kept for it.
    pub is_history: bool,
}

/// The control part: a private copy, valid until the message is freed.
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

/// Data part `i` where its publisher wrote it, read-only, aligned to 64 bytes, valid until the message is freed;
/// of length 0 if there is no such part. A publisher that breaks the protocol may change it meanwhile.
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
        let part = unsafe { handle(message, "message") }?.part(i);
        // SAFETY: the crate's contract.
        unsafe {
            set(data, part.as_ptr());
            set(len, part.len());
        }
        Ok(Status::Ok)
    })
}

/// What is known of a message beside its content.
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

/// Writes the message in ROS 1's serialization into `buffer`. `len` (may be NULL) gets its length in any case.
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

/// Frees a message: its publisher may reuse the block. Freeing a request tells its client that there is no answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_message_free(message: *mut Message) {
    // SAFETY: the crate's contract.
    free(|| drop(unsafe { consume(message, "message") }));
}

impl Message {
    fn control(&self) -> &[u8] {
        match self {
            Message::Topic(m) => m.control(),
            Message::Request(r) => r.bus().message().control(),
            Message::Reply(r) => r.bus().message().control(),
        }
    }

    fn part(&self, i: usize) -> bus::PartView<'_> {
        match self {
            Message::Topic(m) => m.part(i),
            Message::Request(r) => r.bus().message().part(i),
            Message::Reply(r) => r.bus().message().part(i),
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
        let of = |m: &bus::Message| MessageInfo {
            stamp_ns: m.stamp().as_nanos(),
            sequence: m.sequence(),
            origin: m.origin(),
            lost: m.lost().total(),
            time_left_ns: 0,
            part_count: m.part_count(),
            is_history: m.is_history(),
        };
        match self {
            Message::Topic(m) => of(m.bus()),
            Message::Request(r) => MessageInfo {
                time_left_ns: u64::try_from(r.time_left().as_nanos()).unwrap_or(u64::MAX),
                ..of(r.bus().message())
            },
            Message::Reply(r) => of(r.bus().message()),
        }
    }
}
