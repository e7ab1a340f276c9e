//! Messages and loans, and their data parts as memory for numpy.

use crate::fault::raise;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Memory that numpy reads, or writes, in place.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Part {
    address: usize,
    len: usize,
    writable: bool,
    /// What keeps the memory mapped and from reuse.
    _owner: Owner,
}

/// Owned for what dropping it does.
#[allow(dead_code)]
enum Owner {
    Message(Arc<Content>),
    Loan(bus::Kept),
}

#[pymethods]
impl Part {
    /// numpy's array interface, version 3: bytes at an address. The array keeps this object.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("version", 3)?;
        dict.set_item("shape", (self.len,))?;
        dict.set_item("typestr", "|u1")?;
        dict.set_item("data", (self.address, !self.writable))?;
        Ok(dict)
    }

    fn __len__(&self) -> usize {
        self.len
    }
}

/// What was taken: of a topic, or a service's reply.
pub(crate) enum Content {
    Topic(ropewalk::Message),
    Reply(ropewalk::Reply),
}

/// A message or reply that was taken.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Message(pub(crate) Arc<Content>);

impl Content {
    fn bus(&self) -> &bus::Message {
        match self {
            Content::Topic(m) => m.bus(),
            Content::Reply(r) => r.bus().message(),
        }
    }
}

#[pymethods]
impl Message {
    #[getter]
    fn control<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.bus().control())
    }

    #[getter]
    fn part_count(&self) -> usize {
        self.0.bus().part_count()
    }

    /// Data part `i` in place, read-only; it keeps the message.
    fn part(&self, i: usize) -> Part {
        let part = self.0.bus().part(i);
        Part {
            address: part.as_ptr() as usize,
            len: part.len(),
            writable: false,
            _owner: Owner::Message(self.0.clone()),
        }
    }

    /// (stamp in nanoseconds since 1970, sequence, origin, messages lost before, whether it is history)
    fn info(&self) -> (u64, u64, u64, u64, bool) {
        let m = self.0.bus();
        (
            m.stamp().as_nanos(),
            m.sequence(),
            m.origin(),
            m.lost().total(),
            m.is_history(),
        )
    }
}

/// A block that is being written.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Loan(Mutex<Option<bus::Loan>>);

impl Loan {
    pub(crate) fn new(loan: bus::Loan) -> Self {
        Loan(Mutex::new(Some(loan)))
    }

    /// The loan with its control part written, for publishing.
    pub(crate) fn finish(&self, control: &[u8]) -> PyResult<bus::Loan> {
        let mut guard = self.lock();
        let loan = guard.as_mut().ok_or_else(used)?;
        let Some(to) = loan.control_mut().get_mut(..control.len()) else {
            let text = "the message has grown since its block was allocated: set texts before";
            return Err(raise("ContentError", text));
        };
        to.copy_from_slice(control);
        loan.shrink_control(control.len());
        guard.take().ok_or_else(used)
    }

    fn lock(&self) -> MutexGuard<'_, Option<bus::Loan>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Loan {
    /// Data part `i`, to be written. It stays valid after publishing, when nobody must write it any more.
    fn part(&self, i: usize) -> PyResult<Part> {
        let guard = self.lock();
        let loan = guard.as_ref().ok_or_else(used)?;
        let start = loan.part_ptr(i);
        let start = start.ok_or_else(|| raise("ContentError", format!("there is no data part {i}")))?;
        Ok(Part {
            address: start as usize,
            len: loan.part_len(i),
            writable: true,
            _owner: Owner::Loan(loan.keep()),
        })
    }
}

fn used() -> PyErr {
    raise(
        "ContentError",
        "the block was published already: allocate another",
    )
}
