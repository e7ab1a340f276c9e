//! Writing.

use super::plan::{Bulk, Op, Word};
use super::tools::{Tools, tools};
use super::{Codec, LIFTED, MAX_COUNT, MAX_PARTS};
use crate::fault::raise;
use pyo3::exceptions::{PyAttributeError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// A data part to be.
pub(super) struct Lift<'py> {
    pub(super) dtype: Py<PyAny>,
    pub(super) count: usize,
    pub(super) len: usize,
    /// What to copy into it; `None` if it has only a size.
    pub(super) source: Option<Bound<'py, PyAny>>,
    /// Whether `source` is the array that was put there when its block was allocated.
    pub(super) in_place: bool,
    /// Where its view belongs.
    pub(super) owner: Bound<'py, PyAny>,
    pub(super) field: Py<PyString>,
}

/// An array that lies in a message's block.
pub(super) struct View<'py> {
    pub(super) owner: Bound<'py, PyAny>,
    pub(super) field: Bound<'py, PyAny>,
    pub(super) array: Bound<'py, PyAny>,
    pub(super) dtype: Bound<'py, PyAny>,
    pub(super) count: usize,
}

/// A control part that is being written.
pub(super) struct Writer<'py, 'v> {
    pub(super) control: Vec<u8>,
    pub(super) lifts: Vec<Lift<'py>>,
    threshold: usize,
    /// Arrays that need no look, since they were put where they are by `allocate`.
    views: &'v [View<'py>],
}

impl<'py, 'v> Writer<'py, 'v> {
    pub(super) fn new(threshold: usize, views: &'v [View<'py>]) -> Self {
        Writer {
            control: Vec::with_capacity(256),
            lifts: Vec::with_capacity(views.len()),
            threshold,
            views,
        }
    }

    pub(super) fn message(&mut self, codec: &Codec, message: &Bound<'py, PyAny>) -> PyResult<()> {
        let py = message.py();
        let tools = tools(py)?;
        for field in &codec.fields {
            let written = message
                .getattr(field.name.bind(py))
                .and_then(|value| self.value(tools, &field.op, &value, message, &field.name));
            written.map_err(|e| explain(py, e, &codec.name, &field.text))?;
        }
        Ok(())
    }

    fn value(
        &mut self,
        tools: &Tools,
        op: &Op,
        value: &Bound<'py, PyAny>,
        message: &Bound<'py, PyAny>,
        field: &Py<PyString>,
    ) -> PyResult<()> {
        let py = value.py();
        match op {
            Op::Word(word) => self.number(*word, value),
            Op::Pair(word, _) => {
                let n = value.len()?;
                if n != 2 {
                    return Err(PyValueError::new_err(format!("{n} numbers instead of 2")));
                }
                self.number(*word, &value.get_item(0)?)?;
                self.number(*word, &value.get_item(1)?)
            }
            Op::Text { wide, bound } => self.text(*wide, *bound, value),
            Op::Message(codec) => {
                let codec = codec.get();
                if !value.get_type().is(&codec.class) {
                    let other = value.get_type().name()?;
                    return Err(PyTypeError::new_err(format!(
                        "expected a {}, not {other}",
                        codec.name
                    )));
                }
                self.message(codec, value)
            }
            Op::Bulk(bulk) => self.bulk(tools, bulk, value, message, field),
            Op::Fixed { dtype, count, .. } => {
                let array = tools.elements.bind(py).call1((value, dtype))?;
                self.expect(array.len()?, *count)?;
                self.bytes(&array)
            }
            Op::List {
                element,
                count,
                bound,
            } => {
                self.length(value.len()?, *count, *bound)?;
                for item in value.try_iter()? {
                    self.value(tools, element, &item?, message, field)?;
                }
                Ok(())
            }
            Op::Empties { count, bound, .. } => match count {
                Some(_) => Ok(()),
                None => self.count(value.len()?, *bound, 0),
            },
        }
    }

    fn number(&mut self, word: Word, value: &Bound<'py, PyAny>) -> PyResult<()> {
        let to = &mut self.control;
        match word {
            Word::Bool => to.push(u8::from(value.is_truthy()?)),
            Word::I8 => to.extend(value.extract::<i8>()?.to_le_bytes()),
            Word::U8 => to.extend(value.extract::<u8>()?.to_le_bytes()),
            Word::I16 => to.extend(value.extract::<i16>()?.to_le_bytes()),
            Word::U16 => to.extend(value.extract::<u16>()?.to_le_bytes()),
            Word::I32 => to.extend(value.extract::<i32>()?.to_le_bytes()),
            Word::U32 => to.extend(value.extract::<u32>()?.to_le_bytes()),
            Word::I64 => to.extend(value.extract::<i64>()?.to_le_bytes()),
            Word::U64 => to.extend(value.extract::<u64>()?.to_le_bytes()),
            Word::F32 => {
                let wide = value.extract::<f64>()?;
                let narrow = wide as f32;
                if narrow.is_infinite() && wide.is_finite() {
                    return Err(PyOverflowError::new_err(format!(
                        "{wide} is too large for a float32"
                    )));
                }
                to.extend(narrow.to_le_bytes());
            }
            Word::F64 => to.extend(value.extract::<f64>()?.to_le_bytes()),
        }
        Ok(())
    }

    fn text(&mut self, wide: bool, bound: Option<u32>, value: &Bound<'py, PyAny>) -> PyResult<()> {
        if let Ok(bytes) = value.cast::<PyBytes>() {
            return self.units(bytes.as_bytes(), wide, bound);
        }
        let text = value.cast::<PyString>()?;
        if !wide && let Ok(text) = text.to_cow() {
            return self.units(text.as_bytes(), wide, bound);
        }
        let how = if wide {
            ("utf-16-le", "surrogatepass")
        } else {
            ("utf-8", "surrogateescape")
        };
        let bytes = text.call_method1("encode", how)?;
        self.units(bytes.cast::<PyBytes>()?.as_bytes(), wide, bound)
    }

    fn units(&mut self, bytes: &[u8], wide: bool, bound: Option<u32>) -> PyResult<()> {
        self.count(bytes.len() / if wide { 2 } else { 1 }, bound, 0)?;
        self.control.extend_from_slice(bytes);
        Ok(())
    }

    fn bulk(
        &mut self,
        tools: &Tools,
        bulk: &Bulk,
        value: &Bound<'py, PyAny>,
        message: &Bound<'py, PyAny>,
        field: &Py<PyString>,
    ) -> PyResult<()> {
        let py = value.py();
        let view = self.views.get(self.lifts.len());
        let in_place = view.filter(|v| value.is(&v.array) && v.dtype.is(&bulk.dtype));
        let (array, n) = if let Some(view) = in_place {
            (Some(value.clone()), view.count)
        } else if value.is_instance(tools.sized.bind(py))? {
            (None, value.getattr("count")?.extract()?)
        } else {
            let array = tools.elements.bind(py).call1((value, &bulk.dtype))?;
            let n = array.len()?;
            (Some(array), n)
        };
        let len = n.saturating_mul(bulk.size);
        if n > 0 && len >= self.threshold && self.lifts.len() < MAX_PARTS {
            self.count(n, bulk.bound, LIFTED)?;
            self.lifts.push(Lift {
                dtype: bulk.dtype.clone_ref(py),
                count: n,
                len,
                source: array,
                in_place: in_place.is_some(),
                owner: message.clone(),
                field: field.clone_ref(py),
            });
            return Ok(());
        }
        self.count(n, bulk.bound, 0)?;
        let array = match array {
            Some(array) => array,
            None => {
                // Too short to be lifted: it gets memory of its own.
                let array = tools.zeros.bind(py).call1((n, &bulk.dtype))?;
                message.setattr(field.bind(py), &array)?;
                array
            }
        };
        if bulk.packed.is(&bulk.dtype) {
            self.bytes(&array)
        } else {
            self.bytes(&array.call_method1("astype", (&bulk.packed,))?)
        }
    }

    fn bytes(&mut self, array: &Bound<'py, PyAny>) -> PyResult<()> {
        let bytes = array.call_method0("tobytes")?;
        self.control
            .extend_from_slice(bytes.cast::<PyBytes>()?.as_bytes());
        Ok(())
    }

    fn length(&mut self, n: usize, fixed: Option<u32>, bound: Option<u32>) -> PyResult<()> {
        match fixed {
            Some(fixed) => self.expect(n, fixed),
            None => self.count(n, bound, 0),
        }
    }

    fn expect(&self, n: usize, count: u32) -> PyResult<()> {
        if n == count as usize {
            return Ok(());
        }
        Err(PyValueError::new_err(format!("{n} elements instead of {count}")))
    }

    fn count(&mut self, n: usize, bound: Option<u32>, flag: u32) -> PyResult<()> {
        let most = bound.unwrap_or(MAX_COUNT).min(MAX_COUNT);
        let fits = u32::try_from(n).ok().filter(|n| *n <= most);
        let Some(n) = fits else {
            return Err(PyValueError::new_err(format!("{n} elements, at most {most}")));
        };
        self.control.extend((n | flag).to_le_bytes());
        Ok(())
    }
}

/// What Python raises for wrong values, as a `ContentError` that names the field.
#[cold]
fn explain(py: Python<'_>, error: PyErr, name: &str, field: &str) -> PyErr {
    let told = error.get_type(py).name().is_ok_and(|name| name == "ContentError");
    let wrong = error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyOverflowError>(py)
        || error.is_instance_of::<PyAttributeError>(py);
    if told || !wrong {
        return error;
    }
    let text = format!("{name}, {field}: {}", error.value(py));
    let explained = raise("ContentError", text);
    explained.set_cause(py, Some(error));
    explained
}
