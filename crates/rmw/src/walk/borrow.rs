//! Arrays of a message that temporarily lie in data parts instead of in memory of their own.
//!
//! A C sequence is a pointer and two counts, and libstdc++'s `std::vector` three pointers. Overwritten, they can refer
//! to the elements of a data part. A reader of the message sees no difference. Code that resizes the array, moves from
//! it or ends it would free memory outside the heap. So such a message is read-only, and its arrays get their own words
//! back before it ends.

use super::layout::Element;
use super::memory::Access;
use super::plan::Array;
use crate::abi::introspection::Sequence;
use std::mem::MaybeUninit;

/// The words that make up an array itself.
pub(super) type Words = MaybeUninit<[*mut u8; 3]>;

/// The arrays of one message that lie in data parts. Dropping this restores them.
#[derive(Debug, Default)]
pub(crate) struct Borrowed(Vec<(*mut Words, Words)>);

// SAFETY: it is kept with the message that it points into, which may move between threads.
unsafe impl Send for Borrowed {}

impl Borrowed {
    /// Number of arrays.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Points an array at `count` elements at `data`. Returns false, and leaves the array as it was, if elements lie in
    /// memory differently than in a data part.
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
        // SAFETY: upheld by the caller.
        let pointed = unsafe { point(array, element, base, data.cast_mut(), count) };
        self.0.extend(pointed);
        pointed.is_some()
    }
}

/// Points an array at `count` elements at `data`. Returns where its words are and what they were. Returns `None`, and
/// leaves the array as it was, if elements lie in memory differently than in a data part.
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
    // Memory that others may still write to must hold no `bool`, which has only two valid values.
    let alike = element.natural_in_memory() && !element.has_bools();
    if count == 0 || !alike || data.align_offset(element.align) != 0 {
        return None;
    }
    // SAFETY: upheld by the caller: the member lies at its offset and has the size that its kind requires. A vector's
    // own functions check that it is what was written; if not, it gets its own words back.
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

/// Points an array without memory at `count` elements in memory from `adopt`, which the array owns from then on.
/// Returns false, and leaves the array as it was, if that is not possible.
///
/// # Safety
/// As [`point`], and `adopt` returns memory with the same elements that may be freed like heap memory.
pub(super) unsafe fn adopt(
    array: &Array,
    element: &Element,
    base: *mut u8,
    (data, count): (*const u8, usize),
    adopt: impl FnOnce() -> Option<*mut u8>,
) -> bool {
    // SAFETY: upheld by the caller; zeroes are a sequence, or a vector of libstdc++, without memory.
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
            // SAFETY: `add` read the words there, and the caller of `add` guarantees that the message lives.
            unsafe { words.write(own) };
        }
    }
}
