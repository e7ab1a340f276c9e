//! Messages, requests and replies that were taken.

use crate::pointer::{consume, copy_out, handle, output, places, set};
use crate::status::{Failure, Status, free, guard};
use std::time::Duration;

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

/// Bytes that are read in place.
#[repr(C)]
pub struct Bytes {
    /// Where they begin.
    pub data: *const u8,
    /// How many they are.
    pub len: usize,
}

impl Bytes {
    fn of(start: *const u8, len: usize) -> Self {
        Bytes { data: start, len }
    }
}

/// All that `ropewalk_message_control` and `ropewalk_message_part` tell, at once: `parts` has room for `capacity` data
/// parts (there are at most 32), and `count` gets how many there are. `ROPEWALK_STATUS_BUFFER_TOO_SMALL` if they are more.
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

/// Fetches what reads a message whenever `subscriber` was woken.
pub(crate) fn fetch_code(subscriber: &bus::Subscriber) {
    /// About as long as the straight path, in bytes.
    const LEN: usize = 768;
    subscriber.fetch_when_woken(ropewalk_message_content as *const u8, LEN);
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
        let part = unsafe { handle(message, "message") }?.bus().part(i);
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
    fn bus(&self) -> &bus::Message {
        match self {
            Message::Topic(m) => m.bus(),
            Message::Request(r) => r.bus().message(),
            Message::Reply(r) => r.bus().message(),
        }
    }

    /// The control part, of the subscriber's type.
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
