//! Messages as Python objects: `docs/wire/control-part.md`, for classes that `ropewalk/_codec.py` creates.
//!
//! A [`Codec`] is a class of messages with the operations for each field, in order. Reading creates an object
//! of the class and sets its fields; writing reads them. Arrays of elements of fixed size are numpy arrays,
//! and those in data parts are views (decision 203).

mod block;
mod plan;
mod read;
mod tools;
mod write;

use crate::fault::raise;
use crate::message::{Content, Message};
pub(crate) use block::drop_block;
use plan::Field;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};
use read::{Parts, Reader};
use std::sync::Arc;
pub(crate) use tools::asarray;
use tools::tools;
use write::Writer;

/// Flags a count whose elements are in a data part.
const LIFTED: u32 = 1 << 31;
const MAX_COUNT: u32 = LIFTED - 1;
const MAX_PARTS: usize = 32;
/// Shorter arrays stay in the control part, since a data part of their own costs more than copying.
const THRESHOLD: usize = 256;
/// Maximum number of elements without content, since no length bounds them.
const MAX_EMPTY: u32 = 4096;

/// Reads and writes the messages of one class.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Codec {
    /// Name of the type, for errors.
    name: String,
    class: Py<PyType>,
    fields: Vec<Field>,
}

#[pymethods]
impl Codec {
    /// `fields` are attributes in order, each with an operation (see [`plan::Op`]).
    #[new]
    fn new(name: String, class: Py<PyType>, fields: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Self> {
        let fields = fields.iter().map(|(name, op)| Field::new(name, op));
        Ok(Codec {
            name,
            class,
            fields: fields.collect::<PyResult<_>>()?,
        })
    }

    /// Decodes a control part and data parts; the data parts are objects that numpy can view.
    fn decode<'py>(
        &self,
        py: Python<'py>,
        control: &[u8],
        parts: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.read(py, control, Parts::Given(parts))
    }

    /// Checks a value for the field at a position, so that a constructor refuses what could not be published.
    fn check(&self, position: usize, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let field = self.fields.get(position);
        field.map_or(Ok(()), |field| write::check(self, field, value))
    }

    /// Encodes a message as control part and data parts.
    fn encode<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        threshold: usize,
    ) -> PyResult<(Bound<'py, PyBytes>, Vec<Bound<'py, PyAny>>)> {
        let writer = self.written(message, Writer::new(threshold, &[]))?;
        let sources = writer.lifts.into_iter().filter_map(|lift| lift.source);
        Ok((PyBytes::new(message.py(), &writer.control), sources.collect()))
    }
}

impl Codec {
    /// Creates an object for a taken message, which knows its stamp and sequence.
    pub(crate) fn taken<'py>(&self, py: Python<'py>, content: Content) -> PyResult<Bound<'py, PyAny>> {
        let content = Arc::new(content);
        let message = self.read(py, content.control(), Parts::Taken(&content))?;
        let native = Bound::new(py, Message(content.clone()))?;
        message.setattr(intern!(py, "_native"), native)?;
        Ok(message)
    }

    /// Like `decode`, with copies that the message owns.
    pub(crate) fn of_copies<'py>(
        &self,
        py: Python<'py>,
        control: &[u8],
        parts: &[Vec<u8>],
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = |part: &Vec<u8>| {
            let bytes = PyBytes::new(py, part);
            tools(py)?.frombuffer.bind(py).call1((bytes, intern!(py, "u1")))
        };
        let parts = parts.iter().map(array).collect::<PyResult<_>>()?;
        self.read(py, control, Parts::Given(parts))
    }

    fn read<'py>(
        &self,
        py: Python<'py>,
        control: &[u8],
        parts: Parts<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut reader = Reader::new(py, control, parts)?;
        let message = reader.message(self)?;
        reader.finish()?;
        Ok(message)
    }

    fn written<'py, 'v>(
        &self,
        message: &Bound<'py, PyAny>,
        mut writer: Writer<'py, 'v>,
    ) -> PyResult<Writer<'py, 'v>> {
        self.expect(message)?;
        writer.message(self, message)?;
        Ok(writer)
    }

    fn expect(&self, message: &Bound<'_, PyAny>) -> PyResult<()> {
        if message.get_type().is(&self.class) {
            return Ok(());
        }
        let other = message.get_type().name()?;
        let text = format!("expected a {}, not {other}: create one with message()", self.name);
        Err(raise("ContentError", text))
    }

    /// Creates an object of the class without its fields.
    fn empty<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let message = tools(py)?.new_object.bind(py).call1((&self.class,))?;
        message.setattr(intern!(py, "_loan"), py.None())?;
        message.setattr(intern!(py, "_native"), py.None())?;
        Ok(message)
    }
}
