//! Publishers and subscribers.

use crate::codec::{Codec, drop_block};
use crate::fault::{OrRaise, raise};
use crate::message::Content;
use crate::{Born, receive, wait};
use pyo3::prelude::*;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Mutex, PoisonError};

/// The sending end of a topic.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Publisher(pub(crate) ropewalk::Publisher, pub(crate) Born);

/// The receiving end of a topic.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Subscriber(pub(crate) ropewalk::Subscriber, pub(crate) Born);

#[pymethods]
impl Publisher {
    /// Reserves a block for a message. Under the policy `block` other threads run in the meantime, and
    /// exceptions of signal handlers end the wait.
    fn allocate(slf: &Bound<'_, Self>, codec: &Codec, message: &Bound<'_, PyAny>) -> PyResult<()> {
        codec.allocate(message, slf.as_any(), |c, p| slf.get().loan(slf.py(), c, p))
    }

    /// Publishes a message; returns the number of subscribers that it was queued to.
    fn publish(slf: &Bound<'_, Self>, codec: &Codec, message: &Bound<'_, PyAny>) -> PyResult<usize> {
        let this = slf.get();
        let loan = codec.finish(message, slf.as_any(), |c, p| this.loan(slf.py(), c, p))?;
        let done = this.0.publish(loan).or_raise()?;
        drop_block(message)?;
        Ok(done.queued_to)
    }

    /// Blocks until `n` subscribers are connected. Returns False if the time passes first.
    #[pyo3(signature = (n=1, timeout=None))]
    fn wait_for_subscribers(&self, py: Python<'_>, n: usize, timeout: Option<f64>) -> PyResult<bool> {
        self.1.check()?;
        let step = |patience| Ok(self.0.wait_for_subscribers(n, patience).then_some(()));
        Ok(wait(py, timeout, step)?.is_some())
    }

    #[getter]
    fn subscriber_count(&self) -> usize {
        self.0.bus().subscriber_count()
    }

    #[getter]
    fn topic(&self) -> &str {
        self.0.topic()
    }

    /// Bytes of shared memory that are in use.
    #[getter]
    fn memory_used(&self) -> u64 {
        self.0.stats().memory_used
    }

    /// Why recent subscribers were refused.
    #[getter]
    fn refusals(&self) -> Vec<String> {
        self.0.bus().refusals().into_iter().map(|r| r.reason).collect()
    }
}

impl Publisher {
    fn loan(&self, py: Python<'_>, control_len: usize, part_lens: &[usize]) -> PyResult<bus::Loan> {
        // An exception of a signal handler while waiting for memory.
        let raised = Mutex::new(None);
        let go_on = || match Python::attach(|py| py.check_signals()) {
            Ok(()) => true,
            Err(error) => {
                *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                false
            }
        };
        let bus = self.0.bus();
        let loan = py.detach(|| bus.loan_while(control_len, part_lens, &go_on));
        match raised.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => loan.or_raise(),
        }
    }
}

#[pymethods]
impl Subscriber {
    /// Takes the oldest waiting message; blocks until there is one, at most `timeout` seconds. If there is
    /// none, the descriptor becomes unreadable until the next one. If nobody has published the topic for 5 s,
    /// it logs a warning, once.
    #[pyo3(signature = (codec, timeout=None))]
    fn take<'py>(
        &self,
        py: Python<'py>,
        codec: &Codec,
        timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let take = |timeout| receive(py, self.0.as_fd(), timeout, || self.0.take().or_raise());
        let taken = match self.0.warns_after().map(|after| after.as_secs_f64()) {
            Some(after) if timeout.is_none_or(|timeout| after < timeout) => match take(Some(after))? {
                None => {
                    self.warn(py)?;
                    take(timeout.map(|timeout| timeout - after))?
                }
                taken => taken,
            },
            _ => take(timeout)?,
        };
        taken.map(|m| codec.taken(py, Content::Topic(m))).transpose()
    }

    /// Seconds until `take` would warn, for callers that poll the descriptor; logs the warning if it is due.
    fn until_warning(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        let after = self.0.warns_after();
        if after.is_some_and(|after| after.is_zero()) {
            self.warn(py)?;
            return Ok(None);
        }
        Ok(after.map(|after| after.as_secs_f64()))
    }

    /// Readable while a message can be taken.
    fn fileno(&self) -> PyResult<i32> {
        self.1.check()?;
        Ok(self.0.as_fd().as_raw_fd())
    }

    /// Blocks until `n` publishers are connected. Returns False if the time passes first.
    #[pyo3(signature = (n=1, timeout=None))]
    fn wait_for_publishers(&self, py: Python<'_>, n: usize, timeout: Option<f64>) -> PyResult<bool> {
        self.1.check()?;
        let step = |patience| Ok(self.0.wait_for_publishers(n, patience).then_some(()));
        Ok(wait(py, timeout, step)?.is_some())
    }

    #[getter]
    fn topic(&self) -> &str {
        self.0.topic()
    }

    /// Why recent publishers were refused.
    #[getter]
    fn refusals(&self) -> Vec<String> {
        self.0.bus().refusals().into_iter().map(|r| r.reason).collect()
    }

    /// (received, held, lost, publishers connected)
    fn stats(&self) -> (u64, usize, u64, usize) {
        let s = self.0.stats();
        (s.received, s.held, s.drops.total(), s.publishers.len())
    }
}

impl Subscriber {
    fn warn(&self, py: Python<'_>) -> PyResult<()> {
        if let Some(text) = py.detach(|| self.0.warning()) {
            let log = py.import("logging")?.call_method1("getLogger", ("ropewalk",))?;
            log.call_method1("warning", ("%s", text))?;
        }
        Ok(())
    }
}

/// Parses a memory policy.
pub(crate) fn policy(name: &str, drops: u32, timeout: f64) -> PyResult<ropewalk::MemoryPolicy> {
    Ok(match name {
        "best_effort" => ropewalk::MemoryPolicy::BestEffort,
        "worst_effort" => ropewalk::MemoryPolicy::WorstEffort,
        "medium" => ropewalk::MemoryPolicy::Medium(drops),
        "block" => ropewalk::MemoryPolicy::Block(crate::duration(Some(timeout))),
        other => {
            let text = format!("{other:?} is not a memory policy: best_effort, worst_effort, medium, block");
            return Err(raise("BadName", text));
        }
    })
}
