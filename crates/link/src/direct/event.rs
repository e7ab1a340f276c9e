//! What a program's own link delivers to the program.

use crate::engine::calls::{Failed, Failure, Ticket};
use crate::engine::received::Received;
use bus::CallError;
use proto::Geometry;
use std::sync::Arc;
use std::time::Duration;

/// A received message: a control part and data parts.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    bytes: &'a [u8],
    geometry: Geometry,
    /// Length of the header in front of the control part.
    head: usize,
}

impl<'a> Content<'a> {
    pub(super) fn of(received: &'a Received, head: usize) -> Self {
        Content {
            bytes: &received.bytes,
            geometry: received.geometry,
            head,
        }
    }

    /// The control part.
    pub fn control(&self) -> &'a [u8] {
        &self.bytes[self.head..self.geometry.control_len() as usize]
    }

    /// Number of data parts.
    pub fn part_count(&self) -> usize {
        self.geometry.part_lens().len()
    }

    /// Data part `i`; empty if there is none.
    pub fn part(&self, i: usize) -> &'a [u8] {
        let lens = self.geometry.part_lens();
        let before: u32 = lens.iter().take(i).sum();
        let from = (self.geometry.control_len() + before) as usize;
        let len = lens.get(i).map_or(0, |n| *n as usize);
        &self.bytes[from..from + len]
    }
}

/// Called exactly once with the outcome of a call.
pub type Answered = Box<dyn FnOnce(Result<Content<'_>, CallError>) + Send>;

/// An event to deliver without holding the engine.
pub(super) enum Event {
    /// The service, and the name of the host that calls it.
    Request(String, Arc<str>, Received, Ticket),
    Message(String, Received),
    Offered(String, bool),
    Answered(Answered, Result<Received, CallError>),
}

/// A caller in this program.
pub(super) struct Caller {
    pub(super) service: String,
    pub(super) timeout: Duration,
    pub(super) done: Answered,
}

impl Caller {
    pub(super) fn answered(self, with: Result<Received, Failed>) -> Event {
        let Caller {
            service,
            timeout,
            done,
        } = self;
        let error = |Failed { failure, text, open }| match (failure, open) {
            (_, Some(outstanding)) => CallError::TooMany { service, outstanding },
            (Failure::TimedOut, _) => CallError::Timeout {
                service,
                waited: timeout,
            },
            (Failure::ServerDied, _) => CallError::ServerDied { service },
            (Failure::Unserved, _) => CallError::NoServer {
                service,
                refusal: String::new(),
            },
            (other, _) => other.rejection(text),
        };
        Event::Answered(done, with.map_err(error))
    }
}
