//! Writes messages.

use super::plan::{Bulk, Field, Op, Word};
use super::tools::{Tools, tools};
use super::{Codec, LIFTED, MAX_COUNT, MAX_PARTS};
use crate::fault::raise;
use pyo3::exceptions::{PyAttributeError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyList, PyString};

/// A future data part.
pub(super) struct Lift<'py> {
    pub(super) dtype: Py<PyAny>,
    pub(super) count: usize,
    pub(super) len: usize,
    /// The array to copy into it; `None` if it has only a size.
    pub(super) source: Option<Bound<'py, PyAny>>,
    /// Whether `source` is the array that was put there when the block was allocated.
    pub(super) in_place: bool,
    /// The object that its view belongs to.
    pub(super) owner: Bound<'py, PyAny>,
    pub(super) field: Py<PyString>,
}

/// An array in a message's block.
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
    /// Arrays that need no check, since `allocate` put them where they are.
    views: &'v [View<'py>],
    /// Whether arrays may have only a size, to be filled before the message is sent.
    may_be_sizes: bool,
}

impl<'py, 'v> Writer<'py, 'v> {
    pub(super) fn new(threshold: usize, views: &'v [View<'py>]) -> Self {
        Writer {
            control: Vec::with_capacity(256),
            lifts: Vec::with_capacity(views.len()),
            threshold,
            views,
            may_be_sizes: false,
        }
    }

    /// Creates a writer that accepts sizes for arrays.
    pub(super) fn with_sizes(threshold: usize) -> Self {
        Writer {
            may_be_sizes: true,
            ..Self::new(threshold, &[])
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
            Op::Word(word) => self.number(tools, *word, value),
            Op::Pair(word, class) => {
                let pair = tools.pair.bind(py).call1((value, class))?;
                self.number(tools, *word, &pair.get_item(0)?)?;
                self.number(tools, *word, &pair.get_item(1)?)
            }
            Op::Text { wide, bound } => self.text(*wide, *bound, value),
            Op::Message(codec) => {
                let codec = codec.get();
                expect_class(codec, value)?;
                self.message(codec, value)
            }
            Op::Bulk(bulk) => self.bulk(tools, bulk, value, message, field),
            Op::Fixed { exact, .. } => self.bytes(&exact.bind(py).call1((value,))?),
            Op::List {
                element,
                count,
                bound,
                wanted,
            } => {
                let items = items(tools, value, wanted)?;
                self.length(items.len(), *count, *bound)?;
                for item in items {
                    self.value(tools, element, &item, message, field)?;
                }
                Ok(())
            }
            Op::Empties {
                codec,
                count,
                bound,
                wanted,
            } => {
                let items = items(tools, value, wanted)?;
                let codec = codec.get();
                if let Some(other) = items.iter().find(|item| !item.get_type().is(&codec.class)) {
                    let text = format!("given {} in a list, wanted a {}", kind(&other), codec.name);
                    return Err(PyTypeError::new_err(text));
                }
                self.length(items.len(), *count, *bound)
            }
        }
    }

    /// Refuses what [`Writer::value`] refuses, except within messages, whose own constructors check them.
    fn check(
        &mut self,
        tools: &Tools,
        op: &Op,
        value: &Bound<'py, PyAny>,
        field: &Py<PyString>,
    ) -> PyResult<()> {
        let py = value.py();
        match op {
            Op::Message(codec) => expect_class(codec.get(), value),
            Op::Bulk(_) if value.is_instance(tools.sized.bind(py))? => Ok(()),
            Op::Bulk(Bulk { exact, .. }) | Op::Fixed { exact, .. } => {
                exact.bind(py).call1((value,)).map(drop)
            }
            Op::List {
                element,
                count,
                bound,
                wanted,
            } => {
                let items = items(tools, value, wanted)?;
                self.length(items.len(), *count, *bound)?;
                items
                    .iter()
                    .try_for_each(|item| self.check(tools, element, &item, field))
            }
            Op::Word(_) | Op::Pair(..) | Op::Text { .. } | Op::Empties { .. } => {
                self.value(tools, op, value, value, field)
            }
        }
    }

    fn number(&mut self, tools: &Tools, word: Word, value: &Bound<'py, PyAny>) -> PyResult<()> {
        if self.plain_number(word, value) {
            return Ok(());
        }
        let format = word.format();
        let exact = tools.scalar.bind(value.py()).call1((value, format))?;
        if self.plain_number(word, &exact) {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "given {}, wanted a number",
            kind(value)
        )))
    }

    /// Writes a Python number, if the word can hold it.
    fn plain_number(&mut self, word: Word, value: &Bound<'py, PyAny>) -> bool {
        let to = &mut self.control;
        if let (Word::Bool, Ok(value)) = (word, value.cast_exact::<PyBool>()) {
            to.push(u8::from(value.is_true()));
            return true;
        }
        let is_int = value.is_exact_instance_of::<PyInt>();
        let is_real = is_int || value.is_exact_instance_of::<PyFloat>();
        match word {
            Word::F32 if is_real => put(to, value.extract().ok().and_then(narrowed), f32::to_le_bytes),
            Word::F64 if is_real => put(to, value.extract().ok(), f64::to_le_bytes),
            Word::I8 if is_int => put(to, value.extract().ok(), i8::to_le_bytes),
            Word::U8 if is_int => put(to, value.extract().ok(), u8::to_le_bytes),
            Word::I16 if is_int => put(to, value.extract().ok(), i16::to_le_bytes),
            Word::U16 if is_int => put(to, value.extract().ok(), u16::to_le_bytes),
            Word::I32 if is_int => put(to, value.extract().ok(), i32::to_le_bytes),
            Word::U32 if is_int => put(to, value.extract().ok(), u32::to_le_bytes),
            Word::I64 if is_int => put(to, value.extract().ok(), i64::to_le_bytes),
            Word::U64 if is_int => put(to, value.extract().ok(), u64::to_le_bytes),
            _ => false,
        }
    }

    fn text(&mut self, wide: bool, bound: Option<u32>, value: &Bound<'py, PyAny>) -> PyResult<()> {
        if let Ok(bytes) = value.cast::<PyBytes>() {
            if wide && bytes.as_bytes().len() % 2 != 0 {
                let text = "given an odd number of bytes, wanted UTF-16 units of two bytes";
                return Err(PyValueError::new_err(text));
            }
            return self.units(bytes.as_bytes(), wide, bound);
        }
        let Ok(text) = value.cast::<PyString>() else {
            let text = format!("given {}, wanted text (str)", kind(value));
            return Err(PyTypeError::new_err(text));
        };
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
            if !self.may_be_sizes {
                return Err(unfilled());
            }
            (None, value.getattr("count")?.extract()?)
        } else {
            let array = bulk.exact.bind(py).call1((value,))?;
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
                // Too short for a data part, so it gets its own memory.
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
        Err(PyValueError::new_err(format!(
            "given {n} elements, wanted {count}"
        )))
    }

    fn count(&mut self, n: usize, bound: Option<u32>, flag: u32) -> PyResult<()> {
        let most = bound.unwrap_or(MAX_COUNT).min(MAX_COUNT);
        let fits = u32::try_from(n).ok().filter(|n| *n <= most);
        let Some(n) = fits else {
            let text = format!("given {n} elements, wanted at most {most}");
            return Err(PyValueError::new_err(text));
        };
        self.control.extend((n | flag).to_le_bytes());
        Ok(())
    }
}

/// Checks a value for a field of a message that is not written yet.
pub(super) fn check(codec: &Codec, field: &Field, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = value.py();
    let checked = Writer::new(usize::MAX, &[]).check(tools(py)?, &field.op, value, &field.name);
    checked.map_err(|e| explain(py, e, &codec.name, &field.text))
}

fn expect_class(codec: &Codec, value: &Bound<'_, PyAny>) -> PyResult<()> {
    if value.get_type().is(&codec.class) {
        return Ok(());
    }
    let text = format!("given {}, wanted a {}", kind(value), codec.name);
    Err(PyTypeError::new_err(text))
}

/// Appends a number, if there is one.
fn put<T, const N: usize>(to: &mut Vec<u8>, value: Option<T>, bytes: fn(T) -> [u8; N]) -> bool {
    value.map(|value| to.extend(bytes(value))).is_some()
}

/// Returns the nearest 32-bit number; `None` if it is too large.
fn narrowed(wide: f64) -> Option<f32> {
    let narrow = wide as f32;
    (narrow.is_finite() || !wide.is_finite()).then_some(narrow)
}

/// Returns the elements of a list as they are now: methods of its elements may change the list, without
/// effect here.
fn items<'py>(tools: &Tools, value: &Bound<'py, PyAny>, wanted: &str) -> PyResult<Bound<'py, PyList>> {
    Ok(tools
        .listed
        .bind(value.py())
        .call1((value, wanted))?
        .cast_into()?)
}

/// Returns the name of a value's class, for errors.
#[cold]
fn kind(value: &Bound<'_, PyAny>) -> String {
    value
        .get_type()
        .name()
        .map_or_else(|_| "?".to_owned(), |name| name.to_string())
}

#[cold]
pub(super) fn unfilled() -> PyErr {
    let text = "given a size, wanted an array: it was sized but not allocated: call allocate and fill it";
    PyValueError::new_err(text)
}

/// Converts Python's exceptions for wrong values to a `ContentError` that names the field.
#[cold]
fn explain(py: Python<'_>, error: PyErr, name: &str, field: &str) -> PyErr {
    let reported = error.get_type(py).name().is_ok_and(|name| name == "ContentError");
    let wrong = error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyOverflowError>(py)
        || error.is_instance_of::<PyAttributeError>(py);
    if reported || !wrong {
        return error;
    }
    let text = format!("{name}, {field}: {}", error.value(py));
    let explained = raise("ContentError", text);
    explained.set_cause(py, Some(error));
    explained
}
