//! Reads messages.

use super::plan::{Bulk, Op, Word};
use super::tools::{Tools, tools};
use super::{Codec, LIFTED, MAX_COUNT, MAX_EMPTY};
use crate::fault::raise;
use crate::message::{Content, Part};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use std::sync::Arc;

/// Source of data parts.
pub(super) enum Parts<'a, 'py> {
    /// A taken message, whose parts become views that keep it alive.
    Taken(&'a Arc<Content>),
    /// Objects that numpy can view.
    Given(Vec<Bound<'py, PyAny>>),
}

/// A control part that is being read.
pub(super) struct Reader<'a, 'py> {
    py: Python<'py>,
    tools: &'py Tools,
    control: &'a [u8],
    at: usize,
    parts: Parts<'a, 'py>,
    part_count: usize,
    next: usize,
    empties: u32,
    /// The field that is being read, for errors.
    field: &'a str,
}

impl<'a, 'py> Reader<'a, 'py> {
    pub(super) fn new(py: Python<'py>, control: &'a [u8], parts: Parts<'a, 'py>) -> PyResult<Self> {
        let part_count = match &parts {
            Parts::Taken(content) => content.bus().part_count(),
            Parts::Given(parts) => parts.len(),
        };
        Ok(Reader {
            py,
            tools: tools(py)?,
            control,
            at: 0,
            parts,
            part_count,
            next: 0,
            empties: 0,
            field: "message",
        })
    }

    pub(super) fn finish(&self) -> PyResult<()> {
        let rest = self.control.len() - self.at;
        if rest > 0 {
            return Err(raise(
                "ContentError",
                format!("{rest} bytes follow the last field"),
            ));
        }
        if self.next != self.part_count {
            let text = format!(
                "{} data parts, but its fields have {}",
                self.part_count, self.next
            );
            return Err(raise("ContentError", text));
        }
        Ok(())
    }

    pub(super) fn message(&mut self, codec: &'a Codec) -> PyResult<Bound<'py, PyAny>> {
        let message = codec.empty(self.py)?;
        for field in &codec.fields {
            self.field = &field.text;
            let value = self.value(&field.op)?;
            message.setattr(field.name.bind(self.py), value)?;
        }
        Ok(message)
    }

    fn value(&mut self, op: &'a Op) -> PyResult<Bound<'py, PyAny>> {
        match op {
            Op::Word(word) => self.number(*word),
            Op::Pair(word, class) => {
                let pair = (self.number(*word)?, self.number(*word)?);
                self.tools.new_tuple.bind(self.py).call1((class, pair))
            }
            Op::Text { wide, bound } => self.text(*wide, *bound),
            Op::Message(codec) => self.message(codec.get()),
            Op::Bulk(bulk) => self.bulk(bulk),
            Op::Fixed {
                dtype, size, count, ..
            } => {
                let bytes = self.take(*count as usize, *size)?;
                self.copied(bytes, dtype)
            }
            Op::List {
                element,
                count,
                bound,
                ..
            } => {
                let n = self.length(*count, *bound)?;
                let list = PyList::empty(self.py);
                // Each element takes bytes, so the allocation is proportional to the received bytes.
                for _ in 0..n {
                    list.append(self.value(element)?)?;
                }
                Ok(list.into_any())
            }
            Op::Empties {
                codec, count, bound, ..
            } => {
                let n = self.length(*count, *bound)?;
                if count.is_none() {
                    self.empties = self.empties.saturating_add(n);
                }
                if self.empties > MAX_EMPTY {
                    return Err(self.fault(format!("more than {MAX_EMPTY} elements without content")));
                }
                let class = codec.get().class.bind(self.py);
                let elements: Vec<_> = (0..n).map(|_| class.call0()).collect::<PyResult<_>>()?;
                Ok(PyList::new(self.py, elements)?.into_any())
            }
        }
    }

    fn number(&mut self, word: Word) -> PyResult<Bound<'py, PyAny>> {
        let bytes = self.take(1, word.size())?;
        // Little-endian on every machine.
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(wide);
        let py = self.py;
        Ok(match word {
            Word::Bool => (bits != 0).into_pyobject(py)?.to_owned().into_any(),
            Word::I8 => (bits as i8).into_pyobject(py)?.into_any(),
            Word::I16 => (bits as i16).into_pyobject(py)?.into_any(),
            Word::I32 => (bits as i32).into_pyobject(py)?.into_any(),
            Word::I64 => (bits as i64).into_pyobject(py)?.into_any(),
            Word::U8 | Word::U16 | Word::U32 | Word::U64 => bits.into_pyobject(py)?.into_any(),
            Word::F32 => f64::from(f32::from_bits(bits as u32))
                .into_pyobject(py)?
                .into_any(),
            Word::F64 => f64::from_bits(bits).into_pyobject(py)?.into_any(),
        })
    }

    /// Bytes that are not valid UTF-8 or UTF-16 become surrogates, and are written back unchanged.
    fn text(&mut self, wide: bool, bound: Option<u32>) -> PyResult<Bound<'py, PyAny>> {
        let n = self.length(None, bound)? as usize;
        let bytes = self.take(n, if wide { 2 } else { 1 })?;
        if !wide && let Ok(text) = std::str::from_utf8(bytes) {
            return Ok(PyString::new(self.py, text).into_any());
        }
        let how = if wide {
            ("utf-16-le", "surrogatepass")
        } else {
            ("utf-8", "surrogateescape")
        };
        let text = PyBytes::new(self.py, bytes).call_method1("decode", how);
        text.map_err(|e| self.fault(e.value(self.py)))
    }

    fn bulk(&mut self, bulk: &'a Bulk) -> PyResult<Bound<'py, PyAny>> {
        let word = self.word()?;
        let n = word & MAX_COUNT;
        self.check(n, bulk.bound)?;
        if word & LIFTED != 0 {
            return self.part(bulk, n as usize);
        }
        if n == 0 {
            return self.tools.zeros.bind(self.py).call1((0, &bulk.dtype));
        }
        let bytes = self.take(n as usize, bulk.packed_size)?;
        self.copied(bytes, &bulk.packed)
    }

    fn part(&mut self, bulk: &Bulk, n: usize) -> PyResult<Bound<'py, PyAny>> {
        let i = self.next;
        self.next += 1;
        if i >= self.part_count {
            return Err(self.fault("its data part is missing"));
        }
        let bytes = match &self.parts {
            Parts::Taken(content) => content.bus().part(i).len(),
            Parts::Given(parts) => {
                let part = self.tools.asarray.bind(self.py).call1((&parts[i],))?;
                part.getattr("nbytes")?.extract()?
            }
        };
        if n.checked_mul(bulk.size) != Some(bytes) {
            return Err(self.fault(format!("{n} elements in a data part of {bytes} bytes")));
        }
        match &self.parts {
            Parts::Taken(content) => {
                let numbers = bulk.word.map(|word| (word.letter(), word.size()));
                Part::of_message(content, i).array(self.py, numbers, &bulk.dtype)
            }
            Parts::Given(parts) => {
                let part = self.tools.asarray.bind(self.py).call1((&parts[i],))?;
                part.call_method1("view", (&bulk.dtype,))
            }
        }
    }

    /// Creates a read-only array with its own memory.
    fn copied(&self, bytes: &[u8], dtype: &Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let bytes = PyBytes::new(self.py, bytes);
        if bytes.as_bytes().is_empty() {
            return self.tools.zeros.bind(self.py).call1((0, dtype));
        }
        self.tools.frombuffer.bind(self.py).call1((bytes, dtype))
    }

    fn length(&mut self, fixed: Option<u32>, bound: Option<u32>) -> PyResult<u32> {
        if let Some(n) = fixed {
            return Ok(n);
        }
        let n = self.word()?;
        self.check(n, bound)?;
        Ok(n)
    }

    fn check(&self, n: u32, bound: Option<u32>) -> PyResult<()> {
        let most = bound.unwrap_or(MAX_COUNT).min(MAX_COUNT);
        if n <= most {
            return Ok(());
        }
        Err(self.fault(format!("{n} elements, at most {most}")))
    }

    fn word(&mut self) -> PyResult<u32> {
        let bytes = self.take(1, 4)?;
        Ok(bytes.first_chunk().map_or(0, |b| u32::from_le_bytes(*b)))
    }

    fn take(&mut self, n: usize, size: usize) -> PyResult<&'a [u8]> {
        let control = self.control;
        let end = n.checked_mul(size).and_then(|len| self.at.checked_add(len));
        let Some(taken) = end.and_then(|end| control.get(self.at..end)) else {
            return Err(self.fault(format!("the message ends at byte {}", control.len())));
        };
        self.at += taken.len();
        Ok(taken)
    }

    #[cold]
    fn fault(&self, what: impl std::fmt::Display) -> PyErr {
        raise("ContentError", format!("{}: {what}", self.field))
    }
}
