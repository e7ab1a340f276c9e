//! Converts bytes between encodings, without generated types.
//!
//! Two readers ([`packed`] for ROS 1 bytes and control parts, [`cdr`]) follow the steps of a plan and pass each element
//! to a [`Sink`]; the sinks record arrays or write an encoding.

pub(crate) mod cdr;
pub(crate) mod fault;
mod join;
pub(crate) mod packed;
mod split;
mod stream;
mod write;

pub use join::Join;
pub use split::{PartSizes, Parts, Split};
pub use stream::Bulk;

use crate::plan::Lift;

/// Top bit of an array's count in a control part: the elements are the next data part.
pub const LIFTED: u32 = 1 << 31;
/// Largest accepted count or length, since the bit above it has another meaning.
pub const MAX_COUNT: u32 = LIFTED - 1;
/// Bytes of the encapsulation header in front of CDR.
pub(crate) const CDR_HEADER: usize = 4;

/// Receives the elements that a reader finds, in the order of the message.
pub(crate) trait Sink<'a> {
    /// Words of fixed number; `swap` when they are big-endian.
    fn run(&mut self, word: u8, bytes: &'a [u8], swap: bool);
    /// Content of empty messages: a byte each in CDR.
    fn dummy(&mut self, count: u32);
    /// A string or wide string.
    fn text(&mut self, text: Text<'a>);
    /// The count of an array whose elements follow one by one.
    fn count(&mut self, count: u32);
    /// A whole array of elements of fixed size; its count stands at byte `at` of the source.
    fn array(&mut self, lift: &'a Lift, count: u32, at: usize, elements: Elements<'a>);
}

/// Content of a string.
#[derive(Clone, Copy)]
pub(crate) enum Text<'a> {
    /// Bytes, without a zero at the end.
    Narrow(&'a [u8]),
    /// UTF-16 code units, little-endian, two bytes each (packed form).
    Wide2(&'a [u8]),
    /// UTF-16 code units, four bytes each (CDR as ROS 2's type supports write it).
    Wide4 { bytes: &'a [u8], swap: bool },
}

/// The elements of an array of fixed-size elements.
#[derive(Clone, Copy)]
pub(crate) enum Elements<'a> {
    /// ROS 1 layout.
    Packed(&'a [u8]),
    /// Natural layout: a data part.
    Natural(&'a [u8]),
    /// CDR; `stream` is the whole message without its header, the elements start at `at` before alignment.
    Cdr { stream: &'a [u8], at: usize, swap: bool },
}

/// A liftable array in a message.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    pub(crate) lift: &'a Lift,
    pub(crate) count: u32,
    pub(crate) at: usize,
    pub(crate) elements: Elements<'a>,
}

impl Found<'_> {
    /// Size as a data part.
    pub(crate) fn natural_len(&self) -> usize {
        natural_len(self.lift, self.count)
    }

    /// Size in ROS 1 form, without the count.
    pub(crate) fn packed_len(&self) -> usize {
        (u64::from(self.count) * u64::from(self.lift.element.packed)) as usize
    }
}

/// Size of a data part of `count` elements. Does not overflow: below 2^31 elements of at most 2^27 bytes.
pub(crate) fn natural_len(lift: &Lift, count: u32) -> usize {
    (u64::from(count) * u64::from(lift.element.natural)) as usize
}
