//! Strings and sequences in a node's memory.

use super::cxx;
use super::fault::{Fault, Kind, Walk};
use super::plan::{Array, Text};
use crate::abi::introspection::Sequence;
use crate::typesupport::Language;
use std::ffi::c_void;

/// How to access a variable array.
#[derive(Debug, Clone, Copy)]
pub(super) enum Access {
    /// A C sequence: data, size, capacity.
    C {
        resize: unsafe extern "C" fn(*mut c_void, usize) -> bool,
    },
    /// A C++ vector with contiguous elements.
    Cxx {
        size: unsafe extern "C" fn(*const c_void) -> usize,
        get_const: unsafe extern "C" fn(*const c_void, usize) -> *const c_void,
        get: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
        resize: cxx::Resize,
        /// Type of its elements, if they are numbers in a plain `std::vector`.
        numbers: Option<u8>,
    },
    /// `std::vector<bool>`, whose elements are bits.
    Bits {
        size: unsafe extern "C" fn(*const c_void) -> usize,
        fetch: unsafe extern "C" fn(*const c_void, usize, *mut c_void),
        assign: unsafe extern "C" fn(*mut c_void, usize, *const c_void),
        resize: cxx::Resize,
    },
}

impl Array {
    /// Returns the number of elements.
    ///
    /// # Safety
    /// `base` is an initialized structure that this array belongs to; likewise for all functions here.
    pub(super) unsafe fn count(&self, base: *const u8) -> Walk<usize> {
        // SAFETY: upheld by the caller: the member lies at its offset.
        let count = unsafe {
            let member = base.add(self.offset);
            match self.access {
                Access::C { .. } => {
                    let sequence = member.cast::<Sequence<u8>>();
                    let (data, size, capacity) = ((*sequence).data, (*sequence).size, (*sequence).capacity);
                    if size > 0 && data.is_null() {
                        let what = "no memory";
                        return Err(Fault::new(Kind::Memory { size, capacity, what }, self.path));
                    }
                    size
                }
                Access::Cxx { size, .. } | Access::Bits { size, .. } => size(member.cast()),
            }
        };
        let limit = self.bound.min(schema::MAX_COUNT);
        if count > limit as usize {
            let (count, limit) = (count as u64, limit.into());
            return Err(Fault::new(Kind::Count { count, limit }, self.path));
        }
        Ok(count)
    }

    /// Returns a pointer to the first element, of which there must be at least one. Null for bits.
    ///
    /// # Safety
    /// As [`count`](Self::count), which returned more than 0.
    pub(super) unsafe fn data(&self, base: *const u8) -> *const u8 {
        // SAFETY: upheld by the caller.
        unsafe {
            let member = base.add(self.offset);
            match self.access {
                Access::C { .. } => (*member.cast::<Sequence<u8>>()).data,
                Access::Cxx { get_const, .. } => get_const(member.cast(), 0).cast(),
                Access::Bits { .. } => std::ptr::null(),
            }
        }
    }

    /// As [`data`](Self::data), for writing.
    ///
    /// # Safety
    /// As [`data`](Self::data).
    pub(super) unsafe fn data_mut(&self, base: *mut u8) -> *mut u8 {
        // SAFETY: upheld by the caller.
        unsafe {
            let member = base.add(self.offset);
            match self.access {
                Access::C { .. } => (*member.cast::<Sequence<u8>>()).data,
                Access::Cxx { get, .. } => get(member.cast(), 0).cast(),
                Access::Bits { .. } => std::ptr::null_mut(),
            }
        }
    }

    /// Sets a C sequence to these `count` elements in one pass over the memory, which a resize would fill first.
    /// Returns false, and leaves the sequence as it was, if memory is exhausted.
    ///
    /// # Safety
    /// As [`resize`](Self::resize); this is a C sequence whose elements have these bytes in memory.
    pub(super) unsafe fn set_sequence(&self, base: *mut u8, bytes: &[u8], count: usize) -> bool {
        // SAFETY: upheld by the caller: the memory is null or comes from malloc, which rcutils' default allocator uses.
        unsafe {
            let sequence = base.add(self.offset).cast::<Sequence<u8>>();
            if (*sequence).data.is_null() || (*sequence).capacity < count {
                let data = libc::malloc(bytes.len().max(1)).cast::<u8>();
                if data.is_null() {
                    return false;
                }
                libc::free((*sequence).data.cast());
                ((*sequence).data, (*sequence).capacity) = (data, count);
            }
            (*sequence)
                .data
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            (*sequence).size = count;
        }
        true
    }

    /// Resizes the array to `count` elements with unspecified content.
    ///
    /// # Safety
    /// As [`count`](Self::count), and nothing else reads the message.
    pub(super) unsafe fn resize(&self, base: *mut u8, count: usize) -> Walk<()> {
        // SAFETY: upheld by the caller; the functions belong to the member. A sequence that already has this length
        // stays as it is, since C's function frees and allocates again.
        let done = unsafe {
            if matches!(self.count(base), Ok(now) if now == count) {
                return Ok(());
            }
            let member = base.add(self.offset);
            match self.access {
                Access::C { resize } => resize(member.cast(), count) && self.count(base)? == count,
                Access::Cxx { resize, .. } | Access::Bits { resize, .. } => {
                    cxx::resize(resize, member, count) && self.count(base)? == count
                }
            }
        };
        if !done {
            return Err(Fault::new(Kind::OutOfMemory { count }, self.path));
        }
        Ok(())
    }
}

impl Text {
    /// Size of a string in memory, in bytes.
    pub(super) fn size(language: Language, unit: usize) -> usize {
        match language {
            Language::C => size_of::<Sequence<u8>>(),
            Language::Cxx => cxx::string_size(unit),
        }
    }

    /// Returns content and number of units.
    ///
    /// # Safety
    /// `base` is an initialized structure that this string belongs to.
    pub(super) unsafe fn get(&self, base: *const u8) -> Walk<(*const u8, usize)> {
        // SAFETY: upheld by the caller: the member lies at its offset.
        let (data, size) = unsafe {
            let member = base.add(self.offset);
            match self.language {
                Language::C => {
                    let string = member.cast::<Sequence<u8>>();
                    let (data, size, capacity) = ((*string).data, (*string).size, (*string).capacity);
                    if size > 0 && (data.is_null() || capacity <= size) {
                        let what = "no memory for that and a NUL";
                        return Err(Fault::new(Kind::Memory { size, capacity, what }, self.path));
                    }
                    (data.cast_const(), size)
                }
                Language::Cxx => cxx::string(member, self.unit),
            }
        };
        let limit = self.bound.min(schema::MAX_COUNT);
        if size > limit as usize {
            let (count, limit) = (size as u64, limit.into());
            return Err(Fault::new(Kind::Count { count, limit }, self.path));
        }
        Ok((data, size))
    }

    /// Sets the content, in whole units.
    ///
    /// # Safety
    /// As [`get`](Self::get), and nothing else reads the message.
    pub(super) unsafe fn set(&self, base: *mut u8, content: &[u8]) -> Walk<()> {
        // SAFETY: upheld by the caller.
        let done = unsafe {
            let member = base.add(self.offset);
            match self.language {
                Language::C => set_c(member.cast(), self.unit, content),
                Language::Cxx => cxx::set_string(member, self.unit, content),
            }
        };
        if !done {
            let count = content.len() / self.unit;
            return Err(Fault::new(Kind::OutOfMemory { count }, self.path));
        }
        Ok(())
    }
}

/// As `rosidl_runtime_c__String__assignn` and `__U16String__assignn`: reallocates with rcutils' default allocator,
/// which is libc's, and ends with a NUL unit that `size` does not count. Returns false, and leaves the string as it
/// was, if memory is exhausted.
///
/// # Safety
/// `string` is initialized.
unsafe fn set_c(string: *mut Sequence<u8>, unit: usize, content: &[u8]) -> bool {
    let Some(bytes) = content.len().checked_add(unit) else {
        return false;
    };
    // SAFETY: upheld by the caller: the memory is null or comes from malloc. The allocation holds the content and a NUL
    // unit.
    unsafe {
        let data = libc::realloc((*string).data.cast(), bytes).cast::<u8>();
        if data.is_null() {
            return false;
        }
        data.copy_from_nonoverlapping(content.as_ptr(), content.len());
        data.add(content.len()).write_bytes(0, unit);
        (*string).data = data;
        (*string).size = content.len() / unit;
        (*string).capacity = bytes / unit;
    }
    true
}
