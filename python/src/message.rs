//! Messages and loans, and their data parts as memory for numpy.

use crate::fault::raise;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Memory that numpy reads or writes in place.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Part {
    address: usize,
    len: usize,
    /// The initial element type for numpy: its type character and size.
    element: (u8, usize),
    writable: bool,
    /// Keeps the memory mapped and prevents its reuse.
    _owner: Owner,
}

/// Owned only for the effect of dropping it.
#[allow(dead_code)]
enum Owner {
    Message(Arc<Content>),
    Loan(bus::Kept),
}

/// numpy's `PyArrayInterface`, which its array adopts; addresses are C pointers.
#[repr(C)]
struct ArrayStruct {
    two: i32,
    dimensions: i32,
    letter: u8,
    element_size: i32,
    flags: i32,
    shape: usize,
    strides: usize,
    data: usize,
    description: usize,
    /// Memory that `shape` and `strides` point to.
    _room: Box<[isize; 2]>,
}

/// In both C and Fortran order, aligned, in this machine's byte order.
const PLAIN: i32 = 0x1 | 0x2 | 0x100 | 0x200;
const WRITEABLE: i32 = 0x400;

impl Part {
    /// Data part `i` of a taken message, read-only; it keeps the message alive.
    pub(crate) fn of_message(content: &Arc<Content>, i: usize) -> Part {
        let part = content.bus().part(i);
        Part {
            address: part.as_ptr() as usize,
            len: part.len(),
            element: BYTES,
            writable: false,
            _owner: Owner::Message(content.clone()),
        }
    }

    /// Data part `i` of a loan, writable. It stays valid after publishing, when nobody may write to it any
    /// more.
    pub(crate) fn of_loan(loan: &Loan, i: usize) -> PyResult<Part> {
        let guard = loan.lock();
        let loan = guard.as_ref().ok_or_else(used)?;
        let start = loan.part_ptr(i);
        let start = start.ok_or_else(|| raise("ContentError", format!("no data part {i}")))?;
        Ok(Part {
            address: start as usize,
            len: loan.part_len(i),
            element: BYTES,
            writable: true,
            _owner: Owner::Loan(loan.keep()),
        })
    }

    /// Converts to a numpy array of numbers, or otherwise of `dtype`, whose base keeps the part alive.
    pub(crate) fn array<'py>(
        mut self,
        py: Python<'py>,
        numbers: Option<(u8, usize)>,
        dtype: &Py<PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.element = numbers.unwrap_or(BYTES);
        let part = Bound::new(py, self)?;
        let array = crate::codec::asarray(py)?.call1((part,))?;
        if numbers.is_some() {
            return Ok(array);
        }
        array.call_method1("view", (dtype,))
    }
}

const BYTES: (u8, usize) = (b'u', 1);

#[pymethods]
impl Part {
    /// numpy's array interface in C. The array keeps this object alive.
    // numpy expects a capsule without a name, and nothing else creates one.
    #[allow(deprecated)]
    #[getter]
    fn __array_struct__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let (letter, size) = self.element;
        let room = Box::new([(self.len / size) as isize, size as isize]);
        let array = ArrayStruct {
            two: 2,
            dimensions: 1,
            letter,
            element_size: size as i32,
            flags: if self.writable { PLAIN | WRITEABLE } else { PLAIN },
            shape: &raw const room[0] as usize,
            strides: &raw const room[1] as usize,
            data: self.address,
            description: 0,
            _room: room,
        };
        PyCapsule::new(py, array, None)
    }

    fn __len__(&self) -> usize {
        self.len
    }
}

/// Something that was taken: a topic's message or a service's reply.
pub(crate) enum Content {
    Topic(ropewalk::Message),
    Reply(ropewalk::Reply),
}

/// A message or reply that was taken.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Message(pub(crate) Arc<Content>);

impl Content {
    pub(crate) fn bus(&self) -> &bus::Message {
        match self {
            Content::Topic(m) => m.bus(),
            Content::Reply(r) => r.bus().message(),
        }
    }

    /// The control part, in the subscriber's type.
    pub(crate) fn control(&self) -> &[u8] {
        match self {
            Content::Topic(m) => m.control(),
            Content::Reply(r) => r.bus().message().control(),
        }
    }
}

#[pymethods]
impl Message {
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

    /// Returns the loan with its control part written, for publishing.
    pub(crate) fn finish(&self, control: &[u8]) -> PyResult<bus::Loan> {
        let mut guard = self.lock();
        let loan = guard.as_mut().ok_or_else(used)?;
        let Some(to) = loan.control_mut().get_mut(..control.len()) else {
            let text = "the message has grown since its block was allocated: set texts first";
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

fn used() -> PyErr {
    raise(
        "ContentError",
        "the block was published already: allocate another",
    )
}
