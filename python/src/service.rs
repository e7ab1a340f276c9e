//! Services.

use crate::codec::{Codec, drop_block};
use crate::fault::{OrRaise, raise};
use crate::message::Content;
use crate::{Born, duration, receive, wait};
use pyo3::prelude::*;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Mutex, PoisonError};

/// The calling end of a service.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Client(pub(crate) ropewalk::Client, pub(crate) Born);

/// A request that was sent.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Pending(Mutex<Option<ropewalk::Pending>>, Born);

/// The serving end of a service.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Server(pub(crate) ropewalk::Server, pub(crate) Born);

/// A request that was taken. Its arrays are copies, because answering consumes the request while views may
/// still exist.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Request(Mutex<Option<ropewalk::Request>>);

#[pymethods]
impl Client {
    /// Reserves a block for a request.
    fn allocate(slf: &Bound<'_, Self>, codec: &Codec, request: &Bound<'_, PyAny>) -> PyResult<()> {
        codec.allocate(request, slf.as_any(), |c, p| slf.get().0.loan(c, p).or_raise())
    }

    /// Sends a request, whose reply is awaited at most `timeout` seconds from now.
    #[pyo3(signature = (codec, request, timeout=None))]
    fn send(
        slf: &Bound<'_, Self>,
        codec: &Codec,
        request: &Bound<'_, PyAny>,
        timeout: Option<f64>,
    ) -> PyResult<Pending> {
        let this = &slf.get().0;
        let loan = codec.finish(request, slf.as_any(), |c, p| this.loan(c, p).or_raise())?;
        let pending = this.send(loan, duration(timeout)).or_raise()?;
        drop_block(request)?;
        Ok(Pending(Mutex::new(Some(pending)), Born::here()))
    }

    /// Blocks until a server is connected. Returns False if the time passes first.
    #[pyo3(signature = (timeout=None))]
    fn wait_for_server(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        self.1.check()?;
        let step = |patience| Ok(self.0.wait_for_server(patience).or_raise()?.then_some(()));
        Ok(wait(py, timeout, step)?.is_some())
    }

    /// Readable when a `Pending.poll` may find a result, until a poll finds none.
    fn fileno(&self) -> PyResult<i32> {
        self.1.check()?;
        Ok(self.0.as_fd().as_raw_fd())
    }
}

#[pymethods]
impl Pending {
    /// Returns the reply if it has arrived; raises an error if there will be none. Returns a reply only once.
    fn poll<'py>(&self, py: Python<'py>, codec: &Codec) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.1.check()?;
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(pending) = guard.as_mut() else {
            return Err(raise(
                "ContentError",
                "this call has ended: its reply has already been returned",
            ));
        };
        let Some(outcome) = pending.poll() else {
            return Ok(None);
        };
        *guard = None;
        // Creating the message may run other threads, which may poll here.
        drop(guard);
        codec.taken(py, Content::Reply(outcome.or_raise()?)).map(Some)
    }
}

#[pymethods]
impl Server {
    /// Takes the oldest waiting request; blocks until there is one, at most `timeout` seconds. If there is
    /// none, the descriptor becomes unreadable until the next one.
    #[pyo3(signature = (timeout=None))]
    fn take(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Request>> {
        let taken = receive(py, self.0.as_fd(), timeout, || self.0.take().or_raise())?;
        Ok(taken.map(|r| Request(Mutex::new(Some(r)))))
    }

    /// Reserves a block for a reply.
    fn allocate(slf: &Bound<'_, Self>, codec: &Codec, answer: &Bound<'_, PyAny>) -> PyResult<()> {
        codec.allocate(answer, slf.as_any(), |c, p| slf.get().0.loan(c, p).or_raise())
    }

    fn respond(
        slf: &Bound<'_, Self>,
        request: &Request,
        codec: &Codec,
        answer: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let this = &slf.get().0;
        let loan = codec.finish(answer, slf.as_any(), |c, p| this.loan(c, p).or_raise())?;
        let request = request.consume()?;
        slf.py().detach(|| this.respond(request, loan)).or_raise()?;
        drop_block(answer)
    }

    fn reject(&self, py: Python<'_>, request: &Request, text: &str) -> PyResult<()> {
        let request = request.consume()?;
        py.detach(|| self.0.reject(request, text)).or_raise()
    }

    /// Readable while a request can be taken.
    fn fileno(&self) -> PyResult<i32> {
        self.1.check()?;
        Ok(self.0.as_fd().as_raw_fd())
    }
}

impl Request {
    fn consume(&self) -> PyResult<ropewalk::Request> {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(answered)
    }

    /// Returns copies of the control part and data parts.
    fn content(&self) -> PyResult<(Vec<u8>, Vec<Vec<u8>>)> {
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let request = guard.as_ref().ok_or_else(answered)?;
        let message = request.bus().message();
        let parts = (0..message.part_count()).map(|i| message.part(i).bytes().to_vec());
        Ok((message.control().to_vec(), parts.collect()))
    }
}

#[pymethods]
impl Request {
    /// Converts it to a message.
    fn message<'py>(&self, py: Python<'py>, codec: &Codec) -> PyResult<Bound<'py, PyAny>> {
        let (control, parts) = self.content()?;
        codec.of_copies(py, &control, &parts)
    }
}

fn answered() -> PyErr {
    raise("ContentError", "the request has already been answered")
}
