//! A message that was taken.

use crate::block::{CORRELATION, table_entry};
use crate::connection::Connection;
use crate::content::ContentBox;
use crate::losses::Losses;
use crate::sys::segment::OwnPages;
use crate::topic::{Offer, Ros};
use stats::Time;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;

/// A message that was taken. Its data parts are read where the publisher wrote them; dropping the message
/// lets the publisher reuse the block. It stays valid after its subscriber, its bus and its publisher are
/// gone.
///
/// A forked child can read it; dropping it there has no effect on the parent.
pub struct Message {
    connection: Arc<Connection>,
    content: ManuallyDrop<ContentBox>,
}

impl Message {
    #[inline(always)]
    pub(crate) fn new(connection: Arc<Connection>, content: ContentBox) -> Message {
        Message {
            connection,
            content: ManuallyDrop::new(content),
        }
    }

    /// When the message was created: nanoseconds of `CLOCK_REALTIME` on the host of origin.
    pub fn stamp(&self) -> Time {
        Time(self.content.header.label.stamp)
    }

    /// The publisher's sequence number, starting at 1.
    pub fn sequence(&self) -> u64 {
        self.content.header.label.sequence
    }

    /// Its original source (see [`Stamp::origin`](crate::Stamp::origin)).
    pub fn origin(&self) -> u64 {
        self.content.header.label.origin
    }

    /// The identity of the publisher on this host.
    pub fn publisher(&self) -> u64 {
        self.connection.publisher
    }

    /// What its publisher announces about itself: node, history, quality of service.
    pub fn offer(&self) -> &Offer {
        &self.connection.offer
    }

    /// The ROS version of its type. Differs from the subscriber's only if the subscriber converts
    /// ([`SubscriberOptions::with_conversion`](crate::SubscriberOptions::with_conversion)).
    pub fn ros(&self) -> Ros {
        self.connection.ros
    }

    /// User and process of its publisher, as the kernel reports them for the connection (`SO_PEERCRED`).
    /// Process 0 is one in a PID namespace that is not visible from here.
    pub fn sender(&self) -> (u32, u32) {
        let peer = self.connection.peer;
        (peer.uid, u32::try_from(peer.pid).unwrap_or(0))
    }

    /// When it was queued: nanoseconds of this host's `CLOCK_MONOTONIC`.
    pub fn queued_at(&self) -> Time {
        Time(self.content.taken.entry.time)
    }

    /// Whether it was published before this subscriber joined, and kept for late joiners
    /// ([`PublisherOptions::with_history`](crate::PublisherOptions::with_history)).
    pub fn is_history(&self) -> bool {
        self.content.taken.entry.history
    }

    /// What this publisher dropped for this subscriber since the previously taken message.
    pub fn lost(&self) -> Losses {
        self.content.lost
    }

    /// The control part: a private copy that nobody else can change.
    pub fn control(&self) -> &[u8] {
        self.content.control()
    }

    /// Number of data parts.
    pub fn part_count(&self) -> usize {
        self.content.header.parts
    }

    /// Length of data part `i`; 0 if there is no such part.
    pub fn part_len(&self, i: usize) -> usize {
        self.part(i).len()
    }

    /// Data part `i`; empty if there is no such part.
    pub fn part(&self, i: usize) -> PartView<'_> {
        // `table_is_inside` checked the part against the block, and `Connection::parse` checked the block
        // against the segment; `at` checks the sum again.
        let view = table_entry(self.content.table(), i).and_then(|part| {
            Some(PartView {
                start: self.content.at(part.offset, part.len)?,
                len: part.len as usize,
                message: PhantomData,
            })
        });
        view.unwrap_or(PartView {
            start: NonNull::dangling(),
            len: 0,
            message: PhantomData,
        })
    }

    /// Data part `i` in memory that this process may write to. A page that it writes becomes a private copy;
    /// all others remain the publisher's block. Nothing is copied in advance. For bindings that hand the
    /// memory to code that may change it; for reading, [`Message::part`] is enough.
    ///
    /// The bytes stay valid only while this message lives, since the publisher reuses the block afterwards.
    ///
    /// # Errors
    /// There is no such part, it is empty, or the system cannot map more memory.
    pub fn own_part(&self, i: usize) -> io::Result<OwnPart> {
        let part = table_entry(self.content.table(), i).ok_or(io::ErrorKind::InvalidInput)?;
        let pages = self.content.own_pages(part.offset, part.len)?;
        Ok(OwnPart {
            pages,
            len: part.len as usize,
        })
    }

    /// Offset of the block in its segment, in bytes. It is the same at both ends, since nothing is copied.
    pub fn block_offset(&self) -> u64 {
        self.content.taken.entry.offset
    }
}

impl Message {
    /// A private copy of the correlation header; `None` if it has none.
    pub(crate) fn correlation(&self) -> Option<[u8; CORRELATION]> {
        if self.content.header.correlation == 0 {
            return None;
        }
        // `Header::parse` checked it against the block, and `Connection::parse` checked the block against the
        // segment.
        let mut copy = [0; CORRELATION];
        self.content
            .copy(self.content.header.correlation, &mut copy)
            .then_some(copy)
    }

    /// Whether its publisher is gone.
    pub(crate) fn publisher_has_ended(&self) -> bool {
        self.connection.has_ended()
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        // SAFETY: it is taken once, here, and the message is not used afterwards.
        let content = unsafe { ManuallyDrop::take(&mut self.content) };
        self.connection.release(content);
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("publisher", &self.publisher())
            .field("sequence", &self.sequence())
            .field("stamp", &self.stamp())
            .field("control", &self.control().len())
            .field(
                "parts",
                &(0..self.part_count())
                    .map(|i| self.part_len(i))
                    .collect::<Vec<_>>(),
            )
            .finish_non_exhaustive()
    }
}

/// A data part in writable memory (see [`Message::own_part`]).
#[derive(Debug)]
pub struct OwnPart {
    pages: OwnPages,
    len: usize,
}

impl OwnPart {
    /// Its address, aligned to 64 bytes, valid as long as this value lives. A publisher that violates the
    /// protocol may change the bytes of pages that were not written to.
    pub fn as_ptr(&self) -> *mut u8 {
        self.pages.start().as_ptr()
    }

    /// Its length in bytes, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "an empty part is none")]
    pub fn len(&self) -> usize {
        self.len
    }
}

/// A data part, in the publisher's memory.
///
/// It always lies inside the mapped segment. A publisher that follows the protocol never writes to a
/// published block. A hostile one (of the same user) may change the bytes at any time, but cannot make a
/// reader go out of bounds. Parsers of untrusted content use [`PartView::copy_to`].
#[derive(Clone, Copy, Debug)]
pub struct PartView<'a> {
    start: NonNull<u8>,
    len: usize,
    message: PhantomData<&'a Message>,
}

// SAFETY: it only reads memory that its message keeps mapped, from whichever thread.
unsafe impl Send for PartView<'_> {}
// SAFETY: as for Send.
unsafe impl Sync for PartView<'_> {}

impl<'a> PartView<'a> {
    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its address, aligned to 64 bytes unless it is empty.
    pub fn as_ptr(&self) -> *const u8 {
        self.start.as_ptr()
    }

    /// Copies bytes from `offset` on into `to`, as many as there are, and returns their number. Safe even
    /// while the publisher writes.
    pub fn copy_to(&self, offset: usize, to: &mut [u8]) -> usize {
        let len = to.len().min(self.len.saturating_sub(offset));
        if len > 0 {
            // SAFETY: `offset + len` is at most the part's length, and the part lies inside a mapping that the
            // message keeps; `to` is private and at least `len` long. No reference is made to the shared memory,
            // so a publisher that writes meanwhile only makes the bytes a mixture.
            unsafe { std::ptr::copy_nonoverlapping(self.start.as_ptr().add(offset), to.as_mut_ptr(), len) };
        }
        len
    }

    /// The bytes in place. Relies on the publisher not to write to a published block.
    pub fn bytes(&self) -> &'a [u8] {
        // SAFETY: the part lies inside a mapping that the message keeps for 'a (an empty one may dangle), and is
        // initialized by the kernel or the publisher. This process cannot write it. That the publisher does not
        // either is the documented trust: it is the same user's process, and keeps to the protocol.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}
