//! Strings and sequences in a node's memory.

use super::cxx;
use super::fault::{Fault, Kind, Walk};
use super::plan::{Array, Text};
use crate::abi::introspection::Sequence;
use crate::typesupport::Language;
use std::ffi::c_void;

/// How a variable array is reached.
#[derive(Debug, Clone, Copy)]
pub(super) enum Access {
    /// A C sequence: data, size, capacity.
    C {
        resize: unsafe extern "C" fn(*mut c_void, usize) -> bool,
    },
    /// A C++ vector, whose elements lie one after another.
    Cxx {
        size: unsafe extern "C" fn(*const c_void) -> usize,
        get_const: unsafe extern "C" fn(*const c_void, usize) -> *const c_void,
        get: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
        resize: cxx::Resize,
        /// The type of its elements, if they are numbers and it is a plain `std::vector` of them.
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
    /// How many elements there are.
    ///
    /// # Safety
    /// `base` is an initialized structure that this array belongs to; so for all functions here.
    pub(super) unsafe fn count(&self, base: *const u8) -> Walk<usize> {
        // SAFETY: the caller's promise: the member lies at its offset.
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

    /// The first of at least one element. Null for bits.
    ///
    /// # Safety
    /// As [`count`](Self::count), which was not 0.
    pub(super) unsafe fn data(&self, base: *const u8) -> *const u8 {
        // SAFETY: the caller's promise.
        unsafe {
            let member = base.add(self.offset);
            match self.access {
                Access::C { .. } => (*member.cast::<Sequence<u8>>()).data,
                Access::Cxx { get_const, .. } => get_const(member.cast(), 0).cast(),
                Access::Bits { .. } => std::ptr::null(),
            }
        }
    }

    /// As [`data`](Self::data), to write to.
    ///
    /// # Safety
    /// As [`data`](Self::data).
    pub(super) unsafe fn data_mut(&self, base: *mut u8) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe {
            let member = base.add(self.offset);
            match self.access {
                Access::C { .. } => (*member.cast::<Sequence<u8>>()).data,
                Access::Cxx { get, .. } => get(member.cast(), 0).cast(),
                Access::Bits { .. } => std::ptr::null_mut(),
            }
        }
    }

    /// Makes a C sequence these `count` elements in one pass over the memory, where a resize fills it first; false, with the sequence as it
    /// was, if there is no memory.
    ///
    /// # Safety
    /// As [`resize`](Self::resize); it is a C sequence whose elements are these bytes in memory.
    pub(super) unsafe fn set_sequence(&self, base: *mut u8, bytes: &[u8], count: usize) -> bool {
        // SAFETY: the caller's promise: the memory is null or malloc's, as rcutils' default allocator has it.
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

    /// Makes it `count` elements long; what they hold is not said.
    ///
    /// # Safety
    /// As [`count`](Self::count), and nobody else reads the message.
    pub(super) unsafe fn resize(&self, base: *mut u8, count: usize) -> Walk<()> {
        // SAFETY: the caller's promise; the functions are the member's own. A sequence of that length stays as it is, since C's
        // function frees and allocates anew.
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
    /// Bytes of one string in memory.
    pub(super) fn size(language: Language, unit: usize) -> usize {
        match language {
            Language::C => size_of::<Sequence<u8>>(),
            Language::Cxx => cxx::string_size(unit),
        }
    }

    /// Content and number of units.
    ///
    /// # Safety
    /// `base` is an initialized structure that this string belongs to.
    pub(super) unsafe fn get(&self, base: *const u8) -> Walk<(*const u8, usize)> {
        // SAFETY: the caller's promise: the member lies at its offset.
        let (data, size) = unsafe {
            let member = base.add(self.offset);
            match self.language {
                Language::C => {
                    let string = member.cast::<Sequence<u8>>();
                    let (data, size, capacity) = ((*string).data, (*string).size, (*string).capacity);
                    if size > 0 && (data.is_null() || capacity <= size) {
                        let what = "no memory for that and a zero";
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

    /// Gives it new content of whole units.
    ///
    /// # Safety
    /// As [`get`](Self::get), and nobody else reads the message.
    pub(super) unsafe fn set(&self, base: *mut u8, content: &[u8]) -> Walk<()> {
        // SAFETY: the caller's promise.
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

/// As `rosidl_runtime_c__String__assignn` and `__U16String__assignn`: reallocates by rcutils' default allocator, which is libc's, and
/// ends with a zero that `size` does not count. False, with the string as it was, if there is no memory.
///
/// # Safety
/// `string` is an initialized one.
unsafe fn set_c(string: *mut Sequence<u8>, unit: usize, content: &[u8]) -> bool {
    let Some(bytes) = content.len().checked_add(unit) else {
        return false;
    };
    // SAFETY: the caller's promise: the memory is null or malloc's. What was allocated holds the content and a zero unit.
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
