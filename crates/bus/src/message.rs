//! A message that was taken.

use crate::losses::Losses;
use stats::Time;
use std::marker::PhantomData;

/// A message that was taken. Its data parts are read where the publisher wrote them; dropping it lets the
/// publisher reuse the block. It stays valid without its subscriber, its bus, and its publisher.
#[derive(Debug)]
pub struct Message {}

impl Message {
    /// When it came into being: nanoseconds of the `CLOCK_REALTIME` of the host of origin.
    pub fn stamp(&self) -> Time {
        todo!()
    }

    /// The publisher's count, from 1 up.
    pub fn sequence(&self) -> u64 {
        todo!()
    }

    /// Where it came from first (see [`Stamp::origin`](crate::Stamp::origin)).
    pub fn origin(&self) -> u64 {
        todo!()
    }

    /// The identity of the publisher on this host.
    pub fn publisher(&self) -> u64 {
        todo!()
    }

    /// When it was queued: nanoseconds of this host's `CLOCK_MONOTONIC`.
    pub fn queued_at(&self) -> Time {
        todo!()
    }

    /// What this publisher dropped for this subscriber since the message taken before.
    pub fn lost(&self) -> Losses {
        todo!()
    }

    /// The control part: a private copy that nobody else can change.
    pub fn control(&self) -> &[u8] {
        todo!()
    }

    /// How many data parts there are.
    pub fn part_count(&self) -> usize {
        todo!()
    }

    /// The length of data part `i`; 0 if there is none.
    pub fn part_len(&self, i: usize) -> usize {
        let _ = i;
        todo!()
    }

    /// Data part `i`; empty if there is none.
    pub fn part(&self, i: usize) -> PartView<'_> {
        let _ = i;
        todo!()
    }
}

/// A data part, in the publisher's memory.
///
/// It always lies inside the mapped segment. A publisher that keeps to the protocol never writes a published
/// block; a hostile one (of the same user) may change the bytes at any time, but cannot lead a reader out of
/// bounds. Parsers of untrusted content use [`PartView::copy_to`].
#[derive(Clone, Copy, Debug)]
pub struct PartView<'a> {
    _message: PhantomData<&'a Message>,
}

impl<'a> PartView<'a> {
    /// Its length in bytes.
    pub fn len(&self) -> usize {
        todo!()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its address, aligned to 64 bytes.
    pub fn as_ptr(&self) -> *const u8 {
        todo!()
    }

    /// Copies from `offset` on into `to`, as much as there is; gives how many bytes were copied. Correct even
    /// while the publisher writes.
    pub fn copy_to(&self, offset: usize, to: &mut [u8]) -> usize {
        let _ = (offset, to);
        todo!()
    }

    /// The bytes in place. Trusts that the publisher does not write what it has published.
    pub fn bytes(&self) -> &'a [u8] {
        todo!()
    }
}
