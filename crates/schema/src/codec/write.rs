//! Writers: sinks that produce a control part or CDR, into a buffer or only to determine the length.

use super::cdr::{align, cdr_run, wide_units};
use super::{Elements, Found, LIFTED, Sink, Text, natural_len};
use crate::layout::{Fixed, natural_to_packed, packed_to_natural};
use crate::limits::MAX_PARTS;
use crate::plan::Lift;

/// Destination of the bytes.
pub(super) trait Out {
    /// Appends `len` bytes, every one of which `f` writes.
    fn fill(&mut self, len: usize, f: impl FnOnce(&mut [u8]));
    /// Bytes so far.
    fn len(&self) -> usize;

    fn put(&mut self, bytes: &[u8]) {
        self.fill(bytes.len(), |to| to.copy_from_slice(bytes));
    }

    fn zeros(&mut self, len: usize) {
        self.fill(len, |to| to.fill(0));
    }
}

/// Only counts.
#[derive(Default)]
pub(super) struct Count(usize);

impl Out for Count {
    fn fill(&mut self, len: usize, _: impl FnOnce(&mut [u8])) {
        self.0 = self.0.saturating_add(len);
    }

    fn len(&self) -> usize {
        self.0
    }
}

/// Writes into a buffer of the length that a `Count` determined. Excess bytes are dropped.
pub(super) struct Slice<'b> {
    pub(super) buffer: &'b mut [u8],
    pub(super) at: usize,
}

impl Out for Slice<'_> {
    fn fill(&mut self, len: usize, f: impl FnOnce(&mut [u8])) {
        let end = self.at.saturating_add(len);
        if let Some(to) = self.buffer.get_mut(self.at..end) {
            f(to);
        }
        self.at = end;
    }

    fn len(&self) -> usize {
        self.at
    }
}

/// Copies words, reversing their bytes if `swap`.
pub(super) fn copy_words(word: u8, from: &[u8], to: &mut [u8], swap: bool) {
    to.copy_from_slice(from);
    if swap && word > 1 {
        to.chunks_exact_mut(word.into()).for_each(<[u8]>::reverse);
    }
}

/// Writes the control part, and collects the lifted arrays.
pub(super) struct ControlSink<'a, O> {
    pub(super) out: O,
    pub(super) threshold: usize,
    pub(super) lifted: Vec<Found<'a>>,
}

impl<'a, O: Out> Sink<'a> for ControlSink<'a, O> {
    fn run(&mut self, word: u8, bytes: &'a [u8], swap: bool) {
        self.out.fill(bytes.len(), |to| copy_words(word, bytes, to, swap));
    }

    fn dummy(&mut self, _: u32) {}

    fn text(&mut self, text: Text<'a>) {
        match text {
            Text::Narrow(bytes) => {
                self.count(bytes.len() as u32);
                self.out.put(bytes);
            }
            Text::Wide2(bytes) => {
                self.count(bytes.len() as u32 / 2);
                self.out.put(bytes);
            }
            Text::Wide4 { bytes, swap } => {
                self.count(bytes.len() as u32 / 4);
                self.out.fill(bytes.len() / 2, |to| {
                    for (to, unit) in to.chunks_exact_mut(2).zip(wide_units(bytes, swap)) {
                        to.copy_from_slice(&(unit as u16).to_le_bytes());
                    }
                });
            }
        }
    }

    fn count(&mut self, count: u32) {
        self.out.put(&count.to_le_bytes());
    }

    fn array(&mut self, lift: &'a Lift, count: u32, at: usize, elements: Elements<'a>) {
        let found = Found {
            lift,
            count,
            at,
            elements,
        };
        if lifts(lift, count, self.threshold, self.lifted.len()) {
            self.count(count | LIFTED);
            self.lifted.push(found);
        } else {
            self.count(count);
            self.out.fill(found.packed_len(), |to| write_packed(&found, to));
        }
    }
}

/// Whether an array becomes a data part.
pub(super) fn lifts(lift: &Lift, count: u32, threshold: usize, lifted: usize) -> bool {
    count > 0 && lifted < MAX_PARTS && natural_len(lift, count) >= threshold
}

/// Writes CDR, little-endian. `out` starts after the encapsulation header.
pub(super) struct CdrSink<O> {
    pub(super) out: O,
}

impl<O: Out> CdrSink<O> {
    pub(super) fn align(&mut self, word: u8) {
        let pad = align(self.out.len(), word) - self.out.len();
        if pad > 0 {
            self.out.zeros(pad);
        }
    }

    fn word(&mut self, n: u32) {
        self.align(4);
        self.out.put(&n.to_le_bytes());
    }
}

impl<'a, O: Out> Sink<'a> for CdrSink<O> {
    fn run(&mut self, word: u8, bytes: &'a [u8], swap: bool) {
        if !bytes.is_empty() {
            self.align(word);
            self.out.fill(bytes.len(), |to| copy_words(word, bytes, to, swap));
        }
    }

    fn dummy(&mut self, count: u32) {
        self.out.zeros(count as usize);
    }

    fn text(&mut self, text: Text<'a>) {
        match text {
            Text::Narrow(bytes) => {
                // Below 2^31, so that the terminating zero can be counted too.
                self.word(bytes.len() as u32 + 1);
                self.out.put(bytes);
                self.out.put(&[0]);
            }
            Text::Wide2(bytes) => {
                self.word(bytes.len() as u32 / 2);
                self.out.fill(bytes.len() * 2, |to| {
                    for (to, unit) in to.chunks_exact_mut(4).zip(bytes.chunks_exact(2)) {
                        to.copy_from_slice(&[unit[0], unit[1], 0, 0]);
                    }
                });
            }
            Text::Wide4 { bytes, swap } => {
                self.word(bytes.len() as u32 / 4);
                self.out.fill(bytes.len(), |to| copy_words(4, bytes, to, swap));
            }
        }
    }

    fn count(&mut self, count: u32) {
        self.word(count);
    }

    fn array(&mut self, lift: &'a Lift, count: u32, _: usize, elements: Elements<'a>) {
        self.word(count);
        let (bytes, size, natural) = match elements {
            Elements::Packed(bytes) => (bytes, lift.element.packed, false),
            Elements::Natural(bytes) => (bytes, lift.element.natural, true),
            // Joining reads only control parts.
            Elements::Cdr { .. } => return,
        };
        if let Some(word) = lift.uniform {
            if count > 0 {
                self.align(word);
                self.out.put(bytes);
            }
            return;
        }
        for element in bytes.chunks_exact(size as usize) {
            for run in &lift.element.runs {
                let (word, len) = cdr_run(run);
                self.align(word);
                if run.word == 0 {
                    self.out.zeros(len);
                    continue;
                }
                let at = if natural { run.natural } else { run.packed } as usize;
                self.out.put(element.get(at..at + len).unwrap_or(&[]));
            }
        }
    }
}

/// Writes the elements in ROS 1 layout.
pub(super) fn write_packed(found: &Found<'_>, to: &mut [u8]) {
    let element = &found.lift.element;
    match found.elements {
        Elements::Packed(bytes) => to.copy_from_slice(bytes),
        Elements::Natural(bytes) => natural_to_packed(element, bytes, to),
        Elements::Cdr { stream, at, swap } => from_cdr(found, stream, at, swap, to, false),
    }
}

/// Writes the elements in natural layout: the data part.
pub(super) fn write_natural(found: &Found<'_>, to: &mut [u8]) {
    let element = &found.lift.element;
    match found.elements {
        Elements::Packed(bytes) => packed_to_natural(element, bytes, to),
        Elements::Natural(bytes) => to.copy_from_slice(bytes),
        Elements::Cdr { stream, at, swap } => from_cdr(found, stream, at, swap, to, true),
    }
}

/// Copies elements from a CDR stream that was checked before, so that they are known to exist.
fn from_cdr(found: &Found<'_>, stream: &[u8], mut at: usize, swap: bool, to: &mut [u8], natural: bool) {
    let element: &Fixed = &found.lift.element;
    if let Some(word) = found.lift.uniform {
        at = align(at, word);
        if let Some(from) = stream.get(at..at + to.len()) {
            copy_words(word, from, to, swap);
        }
        return;
    }
    let size = if natural { element.natural } else { element.packed };
    for to in to.chunks_exact_mut(size as usize) {
        to.fill(0);
        for run in &element.runs {
            let (word, len) = cdr_run(run);
            at = align(at, word);
            let start = if natural { run.natural } else { run.packed } as usize;
            if run.word > 0
                && let (Some(to), Some(from)) = (to.get_mut(start..start + len), stream.get(at..at + len))
            {
                copy_words(word, from, to, swap);
            }
            at += len;
        }
    }
}
