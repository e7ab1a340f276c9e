//! Services.

use crate::fault::{OrRaise, raise};
use crate::message::{Content, Loan, Message};
use crate::{duration, wait};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex, PoisonError};

/// The calling end of a service.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Client(pub(crate) ropewalk::Client);

/// A request that was sent.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Pending(Mutex<Option<ropewalk::Pending>>);

/// The answering end of a service.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Server(pub(crate) ropewalk::Server);

/// A request that was taken. Its arrays are copies: it is consumed by the answer, while views may stay.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Request(Mutex<Option<ropewalk::Request>>);

#[pymethods]
impl Client {
    fn loan(&self, control_len: usize, part_lens: Vec<usize>) -> PyResult<Loan> {
        self.0.loan(control_len, &part_lens).or_raise().map(Loan::new)
    }

    /// Sends a loan with this control part; the answer is awaited at most `timeout` seconds from now.
    #[pyo3(signature = (loan, control, timeout=None))]
    fn send(&self, loan: &Loan, control: &[u8], timeout: Option<f64>) -> PyResult<Pending> {
        let pending = self.0.send(loan.finish(control)?, duration(timeout)).or_raise()?;
        Ok(Pending(Mutex::new(Some(pending))))
    }

    /// Blocks until a server is connected; False if the time passed first.
    #[pyo3(signature = (timeout=None))]
    fn wait_for_server(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let step = |patience| Ok(self.0.wait_for_server(patience).or_raise()?.then_some(()));
        Ok(wait(py, timeout, step)?.is_some())
    }

    /// Readable when a `Pending.poll` may find something, until one finds nothing.
    fn fileno(&self) -> i32 {
        self.0.as_fd().as_raw_fd()
    }
}

#[pymethods]
impl Pending {
    /// The answer if it is there; raises why there is none. Gives an answer once.
    fn poll(&self) -> PyResult<Option<Message>> {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(pending) = guard.as_mut() else {
            return Err(raise(
                "ContentError",
                "this call has ended: its answer was given already",
            ));
        };
        let Some(outcome) = pending.poll() else {
            return Ok(None);
        };
        *guard = None;
        Ok(Some(Message(Arc::new(Content::Reply(outcome.or_raise()?)))))
    }
}

#[pymethods]
impl Server {
    /// Takes a request if one is queued. Finding none, the descriptor waits for the next.
    fn take(&self) -> PyResult<Option<Request>> {
        let taken = self.0.take().or_raise()?;
        Ok(taken.map(|r| Request(Mutex::new(Some(r)))))
    }

    fn loan(&self, control_len: usize, part_lens: Vec<usize>) -> PyResult<Loan> {
        self.0.loan(control_len, &part_lens).or_raise().map(Loan::new)
    }

    fn respond(&self, py: Python<'_>, request: &Request, loan: &Loan, control: &[u8]) -> PyResult<()> {
        let loan = loan.finish(control)?;
        let request = request.consume()?;
        py.detach(|| self.0.respond(request, loan)).or_raise()
    }

    fn reject(&self, py: Python<'_>, request: &Request, text: &str) -> PyResult<()> {
        let request = request.consume()?;
        py.detach(|| self.0.reject(request, text)).or_raise()
    }

    /// Readable while a request can be taken.
    fn fileno(&self) -> i32 {
        self.0.as_fd().as_raw_fd()
    }
}

impl Request {
    fn consume(&self) -> PyResult<ropewalk::Request> {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(answered)
    }

    fn look<T>(&self, f: impl FnOnce(&bus::Message) -> T) -> PyResult<T> {
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        guard.as_ref().map(|r| f(r.bus().message())).ok_or_else(answered)
    }
}

#[pymethods]
impl Request {
    #[getter]
    fn control<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.look(|m| PyBytes::new(py, m.control()))
    }

    #[getter]
    fn part_count(&self) -> PyResult<usize> {
        self.look(bus::Message::part_count)
    }

    /// A copy of data part `i`.
    fn part<'py>(&self, py: Python<'py>, i: usize) -> PyResult<Bound<'py, PyBytes>> {
        self.look(|m| PyBytes::new(py, m.part(i).bytes()))
    }
}

fn answered() -> PyErr {
    raise("ContentError", "the request was answered already")
}
