//! Empty arrays of a message whose room lies in a block. Data that a node writes there is published without a copy.

use super::borrow::Words;
use super::memory::Access;
use super::plan::{Array, Step};
use crate::abi::introspection::Sequence;
use crate::typesupport::{Message, Type};
use schema::MAX_PARTS;
use std::ffi::c_void;
use std::mem::MaybeUninit;

/// An array of a type that can be placed: its step, and its size in bytes in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Long {
    pub(crate) step: usize,
    pub(crate) bytes: usize,
}

/// The arrays of a message that become data parts, if all of them can be placed, and the length of its control part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) long: Vec<Long>,
    pub(crate) control: usize,
}

/// An array whose room lies in a block.
#[derive(Debug)]
pub(crate) struct Placed {
    step: usize,
    words: *mut Words,
    start: *mut u8,
}

// SAFETY: it is kept with the message that it points into, which may move between threads.
unsafe impl Send for Placed {}

impl Type {
    /// Returns what the next message needs room for, if it resembles this one.
    ///
    /// # Safety
    /// As [`Type::sizes`].
    pub(crate) unsafe fn shape(&self, message: Message) -> Option<Shape> {
        // SAFETY: upheld by the caller.
        let sizes = unsafe { self.sizes(message) }.ok()?;
        let mut long = Vec::new();
        for (step, array) in self.placeable() {
            // SAFETY: likewise.
            let count = unsafe { array.count(message.cast()) }.ok()?;
            let bytes = count * array.stride;
            if count > 0 && bytes >= self.schema().threshold() && long.len() < MAX_PARTS {
                long.push(Long { step, bytes });
            }
        }
        // The others are inside arrays of messages, or lie differently in memory.
        let bytes: Vec<usize> = long.iter().map(|l| l.bytes).collect();
        let control = sizes.control;
        (!long.is_empty() && bytes == sizes.parts()).then_some(Shape { long, control })
    }

    /// Arrays of the message itself whose elements lie in memory as in a data part, without padding in which a node
    /// could leave data.
    fn placeable(&self) -> impl Iterator<Item = (usize, &Array)> {
        let steps = self.plan().steps.iter().enumerate();
        steps.filter_map(|(i, step)| match step {
            Step::Bulk { array, element } if !matches!(array.access, Access::Bits { .. }) => {
                (element.natural_in_memory() && !element.padded()).then_some((i, array))
            }
            _ => None,
        })
    }

    /// Gives an empty array room at `start`. Returns `None`, and leaves the array as it was, if that is not possible.
    ///
    /// # Safety
    /// `message` is an initialized message of this type that is not shared. `start` points to `long.bytes` bytes that
    /// are aligned for any element and not shared. Until [`Placed::take_back`], calls that pass them to `free` are
    /// intercepted.
    pub(crate) unsafe fn place(&self, message: *mut c_void, long: Long, start: *mut u8) -> Option<Placed> {
        let Some(Step::Bulk { array, .. }) = self.plan().steps.get(long.step) else {
            return None;
        };
        let capacity = long.bytes / array.stride;
        // SAFETY: upheld by the caller: the member lies at its offset and has the size that its kind requires.
        unsafe {
            let member = message.cast::<u8>().add(array.offset);
            let words = member.cast::<Words>();
            if member.cast::<[usize; 3]>().read() != [0; 3] {
                // The array has default values.
                return None;
            }
            match array.access {
                Access::C { .. } => member.cast::<Sequence<u8>>().write(Sequence {
                    data: start,
                    size: 0,
                    capacity,
                }),
                Access::Cxx { size, .. } => {
                    let end = start.add(capacity * array.stride);
                    words.write(MaybeUninit::new([start, end, end]));
                    let is_vector = size(member.cast()) == capacity;
                    words.write(MaybeUninit::new([start, start, end]));
                    if !is_vector || size(member.cast()) != 0 {
                        words.write(MaybeUninit::zeroed());
                        return None;
                    }
                }
                Access::Bits { .. } => return None,
            }
            Some(Placed {
                step: long.step,
                words,
                start,
            })
        }
    }
}

impl Placed {
    /// Index of the array's step.
    pub(crate) fn step(&self) -> usize {
        self.step
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// Whether the array's elements still lie where they were placed.
    ///
    /// # Safety
    /// The message lives and is not shared; likewise for [`take_back`](Self::take_back).
    pub(crate) unsafe fn is_in_place(&self) -> bool {
        // SAFETY: upheld by the caller. The first word of a sequence and of a vector is the address of its elements.
        unsafe { std::ptr::eq(self.words.cast::<*mut u8>().read(), self.start) }
    }

    /// Makes the array empty and without room, unless it has other room by then.
    ///
    /// # Safety
    /// As [`is_in_place`](Self::is_in_place).
    pub(crate) unsafe fn take_back(&self) {
        // SAFETY: upheld by the caller; zeroes are an empty sequence, or an empty vector of libstdc++.
        unsafe {
            if self.is_in_place() {
                self.words.write(MaybeUninit::zeroed());
            }
        }
    }
}
