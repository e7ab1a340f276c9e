//! Arrays of a message that lie in data parts for a while instead of in memory of their own.
//!
//! A C sequence is a pointer and two counts, and libstdc++'s `std::vector` three pointers: written over, they are the elements of a data
//! part as well as any. Who reads the message sees no difference; who resizes, moves from or ends it would give memory back that
//! is no heap's, so that such a message is for reading only and its arrays get their own words back before it is ended.

use super::layout::Element;
use super::memory::Access;
use super::plan::Array;
use crate::abi::introspection::Sequence;
use std::mem::MaybeUninit;

/// What an array consists of itself.
pub(super) type Words = MaybeUninit<[*mut u8; 3]>;

/// The arrays of one message that lie in data parts. When it is dropped they are as before.
#[derive(Debug, Default)]
pub(crate) struct Borrowed(Vec<(*mut Words, Words)>);

// SAFETY: it is kept with the message that it points into, which is bound to no thread.
unsafe impl Send for Borrowed {}

impl Borrowed {
    /// How many arrays there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Makes an array `count` elements at `data`; false, with the array as it was, where they do not lie in memory as in a data part.
    ///
    /// # Safety
    /// As [`point`], and the elements and the message live longer than this.
    pub(super) unsafe fn add(
        &mut self,
        array: &Array,
        element: &Element,
        base: *mut u8,
        data: *const u8,
        count: usize,
    ) -> bool {
        // SAFETY: the caller's promise.
        let pointed = unsafe { point(array, element, base, data.cast_mut(), count) };
        self.0.extend(pointed);
        pointed.is_some()
    }
}

/// Makes an array `count` elements at `data`, and gives where its words are and what they were; `None`, with the array as it was, where
/// elements do not lie in memory as in a data part.
///
/// # Safety
/// `base` is an initialized structure that the array belongs to, and `data` are `count` elements of a data part.
pub(super) unsafe fn point(
    array: &Array,
    element: &Element,
    base: *mut u8,
    data: *mut u8,
    count: usize,
) -> Option<(*mut Words, Words)> {
    // What others may still write to holds no `bool`, which has two values only.
    let alike = element.natural_in_memory() && !element.has_bools();
    if count == 0 || !alike || data.align_offset(element.align) != 0 {
        return None;
    }
    // SAFETY: the caller's promise: the member lies at its offset, and is as large as its kind demands. A vector is asked through
    // its own functions whether it is what was written, and gets its own words back if not.
    unsafe {
        let member = base.add(array.offset);
        let words = member.cast::<Words>();
        let own = words.read();
        match array.access {
            Access::C { .. } => member.cast::<Sequence<u8>>().write(Sequence {
                data,
                size: count,
                capacity: count,
            }),
            Access::Cxx { size, get_const, .. } => {
                let end = data.add(count * element.stride);
                words.write(MaybeUninit::new([data, end, end]));
                let is_so = size(member.cast()) == count
                    && std::ptr::eq(get_const(member.cast(), 0).cast(), data.cast_const());
                if !is_so {
                    words.write(own);
                    return None;
                }
            }
            Access::Bits { .. } => return None,
        }
        Some((words, own))
    }
}

/// Makes an array that has no memory of its own `count` elements in memory that `adopt` gives and the array owns from now on. False, with the
/// array as it was, where that cannot be.
///
/// # Safety
/// As [`point`], and `adopt` gives memory with the same elements, which may be freed as the heap's is.
pub(super) unsafe fn adopt(
    array: &Array,
    element: &Element,
    base: *mut u8,
    (data, count): (*const u8, usize),
    adopt: impl FnOnce() -> Option<*mut u8>,
) -> bool {
    // SAFETY: the caller's promise; zeroes are a sequence, and a vector of libstdc++, without memory.
    unsafe {
        if base.add(array.offset).cast::<[usize; 3]>().read() != [0; 3] {
            return false;
        }
        let Some((words, own)) = point(array, element, base, data.cast_mut(), count) else {
            return false;
        };
        let owned = adopt().and_then(|own| point(array, element, base, own, count));
        if owned.is_none() {
            words.write(own);
        }
        owned.is_some()
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        for (words, own) in self.0.drain(..).rev() {
            // SAFETY: `add` read them there, and the message lives (its promise).
            unsafe { words.write(own) };
        }
    }
}
