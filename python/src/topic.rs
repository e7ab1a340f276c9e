//! Publishers and subscribers.

use crate::fault::{OrRaise, raise};
use crate::message::{Content, Loan, Message};
use crate::wait;
use pyo3::prelude::*;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

/// The sending end of a topic.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Publisher(pub(crate) ropewalk::Publisher);

/// The receiving end of a topic.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Subscriber(pub(crate) ropewalk::Subscriber);

#[pymethods]
impl Publisher {
    /// Reserves a block; under the policy `block` other threads run meanwhile.
    fn loan(&self, py: Python<'_>, control_len: usize, part_lens: Vec<usize>) -> PyResult<Loan> {
        py.detach(|| self.0.loan(control_len, &part_lens))
            .or_raise()
            .map(Loan::new)
    }

    /// Publishes a loan with this control part; gives (sequence, subscribers whose queue has it).
    fn publish(&self, loan: &Loan, control: &[u8]) -> PyResult<(u64, usize)> {
        let done = self.0.publish(loan.finish(control)?).or_raise()?;
        Ok((done.sequence, done.queued_to))
    }

    /// Blocks until `n` subscribers are connected; False if the time passed first.
    #[pyo3(signature = (n=1, timeout=None))]
    fn wait_for_subscribers(&self, py: Python<'_>, n: usize, timeout: Option<f64>) -> PyResult<bool> {
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

    /// Why the last subscribers did not connect.
    #[getter]
    fn refusals(&self) -> Vec<String> {
        self.0.bus().refusals().into_iter().map(|r| r.reason).collect()
    }
}

#[pymethods]
impl Subscriber {
    /// Takes a message if one is queued. Finding none, the descriptor waits for the next.
    fn take(&self) -> PyResult<Option<Message>> {
        let taken = self.0.take().or_raise()?;
        Ok(taken.map(|m| Message(Arc::new(Content::Topic(m)))))
    }

    /// Readable while a message can be taken.
    fn fileno(&self) -> i32 {
        self.0.as_fd().as_raw_fd()
    }

    /// Blocks until `n` publishers are connected; False if the time passed first.
    #[pyo3(signature = (n=1, timeout=None))]
    fn wait_for_publishers(&self, py: Python<'_>, n: usize, timeout: Option<f64>) -> PyResult<bool> {
        let step = |patience| Ok(self.0.wait_for_publishers(n, patience).then_some(()));
        Ok(wait(py, timeout, step)?.is_some())
    }

    #[getter]
    fn topic(&self) -> &str {
        self.0.topic()
    }

    /// Why the last publishers did not connect.
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

/// The policy that is written so.
pub(crate) fn policy(name: &str, drops: u32, timeout: f64) -> PyResult<ropewalk::MemoryPolicy> {
    Ok(match name {
        "best_effort" => ropewalk::MemoryPolicy::BestEffort,
        "worst_effort" => ropewalk::MemoryPolicy::WorstEffort,
        "medium" => ropewalk::MemoryPolicy::Medium(drops),
        "block" => ropewalk::MemoryPolicy::Block(crate::duration(Some(timeout))),
        other => {
            let text = format!("{other:?} is no memory policy: best_effort, worst_effort, medium, block");
            return Err(raise("BadName", text));
        }
    })
}
