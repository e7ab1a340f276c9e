//! Reads control part and data parts into a message in memory. They come from another process, so every length is
//! checked before use, and memory is allocated in proportion to them.

use super::borrow::{self, Borrowed};
use super::fault::{Fault, Kind, MessageError, WHOLE, Walk};
use super::layout::Element;
use super::memory::Access;
use super::plan::{Array, Step};
use crate::typesupport::Type;
use schema::{LIFTED, MAX_COUNT, MAX_EMPTY_ELEMENTS};
use std::ffi::c_void;

impl Type {
    /// Reads a message into an initialized one. After an error, the message holds some content of both and is as valid
    /// as before.
    ///
    /// The control part must not change meanwhile: a reader of shared memory copies it first. If data parts change, the
    /// message holds some content of them.
    ///
    /// # Safety
    /// `message` is null or points to an initialized message of this type that is not shared meanwhile.
    pub(crate) unsafe fn read(
        &self,
        control: &[u8],
        parts: &[&[u8]],
        message: *mut c_void,
    ) -> Result<(), MessageError> {
        // SAFETY: upheld by the caller.
        unsafe { self.walk_in(control, parts, message, Arrays::Copied) }
    }

    /// As [`read`](Self::read), but leaves arrays in their data part if they lie in memory the same way. After an error
    /// nothing is borrowed.
    ///
    /// # Safety
    /// As [`read`](Self::read), and `parts` and the message outlive the result. Until it is dropped, nothing changes or
    /// ends the message.
    pub(crate) unsafe fn borrow(
        &self,
        control: &[u8],
        parts: &[&[u8]],
        message: *mut c_void,
    ) -> Result<Borrowed, MessageError> {
        let mut borrowed = Borrowed::default();
        // SAFETY: upheld by the caller.
        unsafe { self.walk_in(control, parts, message, Arrays::Borrowed(&mut borrowed))? };
        Ok(borrowed)
    }

    /// As [`read`](Self::read), but a large array without memory may get that of its data part. `adopt` returns memory
    /// with the content of the part with that number, for the message to own, or `None` to copy the part.
    ///
    /// # Safety
    /// As [`read`](Self::read), and the memory from `adopt` may be freed like heap memory.
    pub(crate) unsafe fn adopt(
        &self,
        control: &[u8],
        parts: &[&[u8]],
        message: *mut c_void,
        adopt: &mut dyn FnMut(usize) -> Option<*mut u8>,
    ) -> Result<(), MessageError> {
        // SAFETY: upheld by the caller.
        unsafe { self.walk_in(control, parts, message, Arrays::Owned(adopt)) }
    }

    /// Start of the code for reading, and approximate length of its common path in bytes.
    pub(crate) fn code() -> (*const u8, usize) {
        (Self::walk_in as *const u8, 2560)
    }

    /// # Safety
    /// As [`read`](Self::read), [`borrow`](Self::borrow) or [`adopt`](Self::adopt), depending on `arrays`.
    unsafe fn walk_in(
        &self,
        control: &[u8],
        parts: &[&[u8]],
        message: *mut c_void,
        arrays: Arrays<'_>,
    ) -> Result<(), MessageError> {
        if message.is_null() {
            return Err(MessageError::Null);
        }
        let mut reader = Reader {
            control,
            at: 0,
            parts,
            next_part: 0,
            empties: 0,
            arrays,
        };
        // SAFETY: upheld by the caller.
        let walked = unsafe { reader.walk(&self.plan().steps, message.cast()) };
        let ended = walked.and_then(|()| reader.end());
        ended.map_err(|fault| fault.into_error(self.plan()))
    }
}

/// Size in bytes from which mapping pages costs less than copying.
const ADOPTED: usize = 128 << 10;

struct Reader<'a, 'b> {
    control: &'a [u8],
    at: usize,
    parts: &'a [&'a [u8]],
    next_part: usize,
    empties: usize,
    arrays: Arrays<'b>,
}

/// How to read arrays that are data parts.
enum Arrays<'a> {
    Copied,
    /// They stay in their parts.
    Borrowed(&'a mut Borrowed),
    /// The message gets memory with the content of a part.
    Owned(&'a mut dyn FnMut(usize) -> Option<*mut u8>),
}

impl<'a> Reader<'a, '_> {
    /// # Safety
    /// `base` is an initialized structure that the steps belong to.
    unsafe fn walk(&mut self, steps: &[Step], base: *mut u8) -> Walk<()> {
        for step in steps {
            // SAFETY: upheld by the caller: what a step names lies in the structure.
            unsafe {
                match step {
                    Step::Copy {
                        offset,
                        len,
                        bools,
                        fields,
                    } => {
                        let Some(bytes) = self.take(*len) else {
                            return Err(self.truncated_copy(*len, fields));
                        };
                        let to = base.add(*offset);
                        to.copy_from_nonoverlapping(bytes.as_ptr(), *len);
                        if *bools {
                            normalize(to, *len);
                        }
                    }
                    Step::Text(text) => {
                        let count = self.count(text.bound, text.path)?;
                        let content = self.bytes(count, text.unit, text.path)?;
                        text.set(base, content)?;
                    }
                    Step::Repeat {
                        offset,
                        count,
                        stride,
                        body,
                    } => self.each(body, base.add(*offset), *count, *stride)?,
                    Step::List { array, min, body } => self.list(array, *min, body, base)?,
                    Step::Bulk { array, element } => self.bulk(array, element, base)?,
                }
            }
        }
        Ok(())
    }

    /// # Safety
    /// There are `count` initialized elements of `stride` bytes at `first`.
    unsafe fn each(&mut self, body: &[Step], first: *mut u8, count: usize, stride: usize) -> Walk<()> {
        for i in 0..count {
            // SAFETY: upheld by the caller.
            unsafe { self.walk(body, first.add(i * stride)) }.map_err(|f| f.inside(i))?;
        }
        Ok(())
    }

    /// # Safety
    /// As [`walk`](Self::walk).
    unsafe fn list(&mut self, array: &Array, min: usize, body: &[Step], base: *mut u8) -> Walk<()> {
        let count = self.count(array.bound, array.path)?;
        if min == 0 {
            self.empties = self.empties.saturating_add(count);
            if self.empties > MAX_EMPTY_ELEMENTS as usize {
                let (count, limit) = (self.empties as u64, MAX_EMPTY_ELEMENTS.into());
                return Err(Fault::new(Kind::Count { count, limit }, array.path));
            }
        } else if count > self.left() / min {
            return Err(self.truncated(count as u64 * min as u64, array.path));
        }
        // SAFETY: upheld by the caller; then the elements exist.
        unsafe {
            array.resize(base, count)?;
            if count > 0 {
                self.each(body, array.data_mut(base), count, array.stride)?;
            }
        }
        Ok(())
    }

    /// # Safety
    /// As [`walk`](Self::walk).
    unsafe fn bulk(&mut self, array: &Array, element: &Element, base: *mut u8) -> Walk<()> {
        let word = self.word(array.path)?;
        let (count, natural) = ((word & MAX_COUNT) as usize, word & LIFTED != 0);
        check_count(count, array.bound, array.path)?;
        let bytes = match natural {
            true => self.part(count as u64 * element.natural as u64, array.path)?,
            false => self.bytes(count, element.packed, array.path)?,
        };
        // SAFETY: upheld by the caller; `bytes` are `count` elements.
        unsafe {
            let is_there = match &mut self.arrays {
                Arrays::Borrowed(borrowed) if natural => {
                    borrowed.add(array, element, base, bytes.as_ptr(), count)
                }
                Arrays::Owned(adopt) if natural && bytes.len() >= ADOPTED => {
                    let (elements, part) = ((bytes.as_ptr(), count), self.next_part - 1);
                    borrow::adopt(array, element, base, elements, || adopt(part))
                }
                _ => false,
            };
            if is_there {
                return Ok(());
            }
            // One pass over the memory, which a resize would fill first.
            let is_filled = match array.access {
                Access::Cxx {
                    numbers: Some(id), ..
                } if bytes.as_ptr().align_offset(element.align) == 0 => {
                    let member = base.add(array.offset);
                    Some(super::cxx::assign(id, member, bytes.as_ptr(), count))
                }
                Access::C { .. } if count > 0 && element.in_memory(natural) && !element.has_bools() => {
                    Some(array.set_sequence(base, bytes, count))
                }
                _ => None,
            };
            match is_filled {
                Some(true) => return Ok(()),
                Some(false) => return Err(Fault::new(Kind::OutOfMemory { count }, array.path)),
                None => {}
            }
            array.resize(base, count)?;
            if count == 0 {
                return Ok(());
            }
            if let Access::Bits { assign, .. } = array.access {
                let member = base.add(array.offset);
                for (i, byte) in bytes.iter().enumerate() {
                    let bit = *byte != 0;
                    assign(member.cast(), i, std::ptr::from_ref(&bit).cast());
                }
                return Ok(());
            }
            copy_in(element, bytes, natural, array.data_mut(base));
        }
        Ok(())
    }

    fn end(&self) -> Walk<()> {
        if self.left() > 0 {
            let (offset, extra) = (self.at, self.left());
            return Err(Fault::new(Kind::Trailing { offset, extra }, WHOLE));
        }
        if self.next_part != self.parts.len() {
            let (named, given) = (self.next_part, self.parts.len());
            return Err(Fault::new(Kind::PartCount { named, given }, WHOLE));
        }
        Ok(())
    }

    fn left(&self) -> usize {
        self.control.len() - self.at
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(len)?;
        let bytes = self.control.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    fn word(&mut self, path: u32) -> Walk<u32> {
        match self.take(4).and_then(|b| b.try_into().ok()) {
            Some(b) => Ok(u32::from_le_bytes(b)),
            None => Err(self.truncated(4, path)),
        }
    }

    fn count(&mut self, bound: u32, path: u32) -> Walk<usize> {
        let count = self.word(path)? as usize;
        check_count(count, bound, path)?;
        Ok(count)
    }

    fn bytes(&mut self, count: usize, size: usize, path: u32) -> Walk<&'a [u8]> {
        let needed = count as u64 * size as u64;
        let taken = usize::try_from(needed).ok().and_then(|len| self.take(len));
        taken.ok_or_else(|| self.truncated(needed, path))
    }

    fn part(&mut self, named: u64, path: u32) -> Walk<&'a [u8]> {
        let part = self.next_part;
        let Some(bytes) = self.parts.get(part) else {
            let (named, given) = (part + 1, self.parts.len());
            return Err(Fault::new(Kind::PartCount { named, given }, path));
        };
        if bytes.len() as u64 != named {
            let given = bytes.len();
            return Err(Fault::new(Kind::PartLength { part, named, given }, path));
        }
        self.next_part += 1;
        Ok(bytes)
    }

    fn truncated(&self, needed: u64, path: u32) -> Box<Fault> {
        let (offset, left) = (self.at, self.left());
        Fault::new(Kind::Truncated { offset, needed, left }, path)
    }

    /// Returns the field in which the bytes end.
    fn truncated_copy(&self, len: usize, fields: &[(usize, u32)]) -> Box<Fault> {
        let left = self.left();
        let inside = fields.iter().rev().find(|(at, _)| *at <= left);
        let (start, path) = inside.copied().unwrap_or((0, WHOLE));
        Fault::new(
            Kind::Truncated {
                offset: self.at + start,
                needed: (len - start) as u64,
                left: left - start.min(left),
            },
            path,
        )
    }
}

fn check_count(count: usize, bound: u32, path: u32) -> Walk<()> {
    let limit = bound.min(MAX_COUNT);
    if count > limit as usize {
        let (count, limit) = (count as u64, limit.into());
        return Err(Fault::new(Kind::Count { count, limit }, path));
    }
    Ok(())
}

/// Copies whole elements from a data part (`natural`) or a control part.
///
/// # Safety
/// There is room for this many elements at `to`.
unsafe fn copy_in(element: &Element, bytes: &[u8], natural: bool, to: *mut u8) {
    let size = if natural { element.natural } else { element.packed };
    let alike = element.in_memory(natural);
    if alike {
        // SAFETY: upheld by the caller: elements have the same size there.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
    if alike && !element.has_bools() {
        return;
    }
    for (i, bytes) in bytes.chunks_exact(size).enumerate() {
        for run in &element.runs {
            // SAFETY: upheld by the caller: the run lies in element `i` on both sides.
            unsafe {
                let to = to.add(i * element.stride + run.memory);
                let at = if natural { run.natural } else { run.packed };
                if let Some(bytes) = bytes.get(at..at + run.len).filter(|_| !alike) {
                    to.copy_from_nonoverlapping(bytes.as_ptr(), run.len);
                }
                if run.bools {
                    normalize(to, run.len);
                }
            }
        }
    }
}

/// Normalizes bytes of `bool` to 0 or 1: other values are undefined behaviour in C, C++ and Rust. Call it on the copy,
/// since the original may change after a check.
///
/// # Safety
/// There are `len` bytes at `at`.
unsafe fn normalize(at: *mut u8, len: usize) {
    for i in 0..len {
        // SAFETY: upheld by the caller.
        unsafe {
            let byte = at.add(i);
            *byte = u8::from(*byte != 0);
        }
    }
}
