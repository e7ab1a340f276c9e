//! Writes a message in memory into control part and data parts. It first measures the message, so that a block of
//! exactly that size is loaned, then writes it.

use super::fault::{Fault, Kind, MessageError, WHOLE, Walk};
use super::layout::Element;
use super::memory::Access;
use super::plan::{Array, Step};
use crate::typesupport::{Message, Type};
use schema::{LIFTED, MAX_EMPTY_ELEMENTS, MAX_PARTS};
use std::ffi::c_void;

/// Lengths in bytes of a message's control part and data parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Length of the control part.
    pub(crate) control: usize,
    parts: [usize; MAX_PARTS],
    count: usize,
}

impl Sizes {
    /// Lengths of the data parts, in order.
    pub(crate) fn parts(&self) -> &[usize] {
        self.parts.get(..self.count).unwrap_or(&[])
    }
}

impl Type {
    /// Walks a message without copying and returns what [`write`](Self::write) needs. A string or sequence that exceeds
    /// its bound is an error that names it.
    ///
    /// # Safety
    /// `message` is null or points to an initialized message of this type that nothing changes meanwhile.
    pub(crate) unsafe fn sizes(&self, message: Message) -> Result<Sizes, MessageError> {
        let out = Sizes {
            control: 0,
            parts: [0; MAX_PARTS],
            count: 0,
        };
        // SAFETY: upheld by the caller.
        unsafe { self.walk(message, out) }
    }

    /// Writes a message to memory of its [`sizes`](Self::sizes). Each bulk array is one copy if its elements lie in
    /// memory as in a data part. Padding becomes zero.
    ///
    /// # Safety
    /// As [`sizes`](Self::sizes).
    pub(crate) unsafe fn write<'a>(
        &self,
        message: Message,
        control: &mut [u8],
        parts: impl IntoIterator<Item = &'a mut [u8]>,
    ) -> Result<(), MessageError> {
        let out = Slices {
            control,
            at: 0,
            parts: parts.into_iter(),
        };
        // SAFETY: upheld by the caller.
        let mut out = unsafe { self.walk(message, out) }?;
        if out.at < out.control.len() || out.parts.next().is_some() {
            return Err(Fault::new(Kind::Changed, WHOLE).into_error(self.plan()));
        }
        Ok(())
    }

    /// # Safety
    /// As [`sizes`](Self::sizes).
    unsafe fn walk<O: Out>(&self, message: Message, out: O) -> Result<O, MessageError> {
        if message.is_null() {
            return Err(MessageError::Null);
        }
        let mut writer = Writer {
            out,
            threshold: self.schema().threshold(),
            lifted: 0,
            empties: 0,
        };
        // SAFETY: upheld by the caller.
        let walked = unsafe { writer.walk(&self.plan().steps, message.cast()) };
        walked.map_err(|fault| fault.into_error(self.plan()))?;
        Ok(writer.out)
    }
}

/// Destination of a message.
trait Out {
    /// # Safety
    /// There are `len` bytes at `from`.
    unsafe fn bytes(&mut self, from: *const u8, len: usize, path: u32) -> Walk<()>;

    fn word(&mut self, word: u32, path: u32) -> Walk<()>;

    /// Writes the elements of an array, after its count word or as a data part.
    ///
    /// # Safety
    /// The elements exist.
    unsafe fn elements(&mut self, elements: Elements<'_>, lifted: bool, path: u32) -> Walk<()>;
}

/// The elements of an array of fixed-size elements.
struct Elements<'a> {
    element: &'a Element,
    count: usize,
    from: Source,
}

enum Source {
    Memory(*const u8),
    /// A `std::vector<bool>`.
    Bits(unsafe extern "C" fn(*const c_void, usize, *mut c_void), *const u8),
}

struct Writer<O> {
    out: O,
    threshold: usize,
    lifted: usize,
    empties: usize,
}

impl<O: Out> Writer<O> {
    /// # Safety
    /// `base` is a structure that the steps belong to.
    unsafe fn walk(&mut self, steps: &[Step], base: *const u8) -> Walk<()> {
        for step in steps {
            // SAFETY: upheld by the caller: what a step names lies in the structure.
            unsafe {
                match step {
                    Step::Copy {
                        offset, len, fields, ..
                    } => {
                        let path = fields.first().map_or(WHOLE, |f| f.1);
                        self.out.bytes(base.add(*offset), *len, path)?;
                    }
                    Step::Text(text) => {
                        let (data, count) = text.get(base)?;
                        // Counts are below 2^31 (`get`, `count`).
                        self.out.word(count as u32, text.path)?;
                        self.out.bytes(data, count * text.unit, text.path)?;
                    }
                    Step::Repeat {
                        offset,
                        count,
                        stride,
                        body,
                    } => self.each(body, base.add(*offset), *count, *stride)?,
                    Step::List { array, min, body } => {
                        let count = array.count(base)?;
                        if *min == 0 {
                            self.empties = self.empties.saturating_add(count);
                            if self.empties > MAX_EMPTY_ELEMENTS as usize {
                                let (count, limit) = (self.empties as u64, MAX_EMPTY_ELEMENTS.into());
                                return Err(Fault::new(Kind::Count { count, limit }, array.path));
                            }
                        }
                        self.out.word(count as u32, array.path)?;
                        if count > 0 {
                            self.each(body, array.data(base), count, array.stride)?;
                        }
                    }
                    Step::Bulk { array, element } => self.bulk(array, element, base)?,
                }
            }
        }
        Ok(())
    }

    /// # Safety
    /// There are `count` elements of `stride` bytes at `first`.
    unsafe fn each(&mut self, body: &[Step], first: *const u8, count: usize, stride: usize) -> Walk<()> {
        for i in 0..count {
            // SAFETY: upheld by the caller.
            unsafe { self.walk(body, first.add(i * stride)) }.map_err(|f| f.inside(i))?;
        }
        Ok(())
    }

    /// # Safety
    /// As [`walk`](Self::walk).
    unsafe fn bulk(&mut self, array: &Array, element: &Element, base: *const u8) -> Walk<()> {
        // SAFETY: upheld by the caller.
        let count = unsafe { array.count(base) }?;
        let long = count.saturating_mul(element.natural) >= self.threshold;
        let lifted = count > 0 && long && self.lifted < MAX_PARTS;
        let flag = if lifted { LIFTED } else { 0 };
        self.out.word(count as u32 | flag, array.path)?;
        if count == 0 {
            return Ok(());
        }
        self.lifted += usize::from(lifted);
        // SAFETY: upheld by the caller; there is at least one element.
        let from = unsafe {
            match array.access {
                Access::Bits { fetch, .. } => Source::Bits(fetch, base.add(array.offset)),
                _ => Source::Memory(array.data(base)),
            }
        };
        let elements = Elements { element, count, from };
        // SAFETY: as above.
        unsafe { self.out.elements(elements, lifted, array.path) }
    }
}

impl Out for Sizes {
    unsafe fn bytes(&mut self, _: *const u8, len: usize, _: u32) -> Walk<()> {
        self.control = self.control.saturating_add(len);
        Ok(())
    }

    fn word(&mut self, _: u32, _: u32) -> Walk<()> {
        self.control = self.control.saturating_add(4);
        Ok(())
    }

    unsafe fn elements(&mut self, elements: Elements<'_>, lifted: bool, _: u32) -> Walk<()> {
        let Elements { element, count, .. } = elements;
        match self.parts.get_mut(self.count) {
            Some(part) if lifted => {
                *part = count.saturating_mul(element.natural);
                self.count += 1;
            }
            _ => self.control = self.control.saturating_add(count.saturating_mul(element.packed)),
        }
        Ok(())
    }
}

/// A loaned block.
struct Slices<'a, I> {
    control: &'a mut [u8],
    at: usize,
    parts: I,
}

impl<I> Slices<'_, I> {
    fn take(&mut self, len: usize, path: u32) -> Walk<&mut [u8]> {
        let start = self.at;
        let room = start
            .checked_add(len)
            .and_then(|end| self.control.get_mut(start..end));
        match room {
            Some(room) => {
                self.at += len;
                Ok(room)
            }
            None => Err(Fault::new(Kind::Changed, path)),
        }
    }
}

impl<'p, I: Iterator<Item = &'p mut [u8]>> Out for Slices<'_, I> {
    unsafe fn bytes(&mut self, from: *const u8, len: usize, path: u32) -> Walk<()> {
        let room = self.take(len, path)?;
        if len > 0 {
            // SAFETY: upheld by the caller; the room is not shared.
            unsafe { room.as_mut_ptr().copy_from_nonoverlapping(from, len) };
        }
        Ok(())
    }

    fn word(&mut self, word: u32, path: u32) -> Walk<()> {
        self.take(4, path)?.copy_from_slice(&word.to_le_bytes());
        Ok(())
    }

    unsafe fn elements(&mut self, elements: Elements<'_>, lifted: bool, path: u32) -> Walk<()> {
        let Elements { element, count, .. } = elements;
        if !lifted {
            let room = self.take(count.saturating_mul(element.packed), path)?;
            // SAFETY: upheld by the caller.
            unsafe { copy_out(&elements, room, false) };
            return Ok(());
        }
        match self.parts.next() {
            Some(room) if room.len() == count.saturating_mul(element.natural) => {
                // SAFETY: upheld by the caller.
                unsafe { copy_out(&elements, room, true) };
                Ok(())
            }
            _ => Err(Fault::new(Kind::Changed, path)),
        }
    }
}

/// Copies elements to a data part (`natural`) or a control part, where they have exactly `room`.
///
/// # Safety
/// The elements exist.
unsafe fn copy_out(elements: &Elements<'_>, room: &mut [u8], natural: bool) {
    let Elements { element, count, from } = elements;
    let from = match *from {
        Source::Memory(from) => from,
        Source::Bits(fetch, vector) => {
            for (i, byte) in room.iter_mut().enumerate() {
                // SAFETY: upheld by the caller; a `bool` is one byte, 0 or 1.
                unsafe { fetch(vector.cast(), i, std::ptr::from_mut(byte).cast()) };
            }
            return;
        }
    };
    let size = if natural { element.natural } else { element.packed };
    let alike = match natural {
        // A copy would include padding, whose content belongs to the node.
        true => element.natural_in_memory() && !element.padded(),
        false => element.packed_in_memory(),
    };
    // The elements may be in the room already (`place`).
    if alike && std::ptr::eq(from, room.as_ptr()) {
        return;
    }
    if alike {
        // SAFETY: upheld by the caller: `count` elements, which have the room's length.
        unsafe { room.as_mut_ptr().copy_from_nonoverlapping(from, room.len()) };
        return;
    }
    for (i, room) in room.chunks_exact_mut(size).take(*count).enumerate() {
        if natural && element.padded() {
            room.fill(0);
        }
        for run in &element.runs {
            let at = if natural { run.natural } else { run.packed };
            if let Some(room) = room.get_mut(at..at + run.len) {
                // SAFETY: upheld by the caller: the run lies in element `i`.
                unsafe {
                    let from = from.add(i * element.stride + run.memory);
                    room.as_mut_ptr().copy_from_nonoverlapping(from, run.len);
                }
            }
        }
    }
}
