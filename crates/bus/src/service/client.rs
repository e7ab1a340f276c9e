//! The calling end of a service.

use super::calls::Calls;
use super::{CallError, ServiceType, pair};
use crate::bus::Bus;
use crate::loan::{Loan, LoanError};
use crate::message::{Message, PartView};
use crate::publisher::{CreateError, Publisher, PublisherOptions, check_option};
use crate::ring::Geometry;
use crate::subscriber::{Subscriber, SubscriberOptions};
use crate::topic::Refusal;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Limits of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientOptions {
    /// Maximum number of unanswered requests at a time, including cancelled ones. Default: 64, at most 2,048.
    pub max_outstanding: u32,
    /// Additional replies of each server that may be held. Default: 16, at most 2,048.
    pub max_held: u32,
    /// Maximum bytes of shared memory for requests. Default: 64 MiB, reserved only as needed.
    pub memory_limit: u64,
}

impl Default for ClientOptions {
    fn default() -> Self {
        ClientOptions {
            max_outstanding: 64,
            max_held: 16,
            memory_limit: 64 << 20,
        }
    }
}

impl ClientOptions {
    /// Sets how many requests may be unanswered.
    #[must_use]
    pub fn with_max_outstanding(mut self, requests: u32) -> Self {
        self.max_outstanding = requests;
        self
    }

    /// Sets how many replies may be held.
    #[must_use]
    pub fn with_max_held(mut self, replies: u32) -> Self {
        self.max_held = replies;
        self
    }

    /// Sets the maximum bytes of shared memory.
    #[must_use]
    pub fn with_memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = bytes;
        self
    }
}

/// The calling end of a service. All methods may be called from any thread, many calls at a time.
///
/// Each request goes to one server: the first that the client connected to. The client switches to another
/// only when that server is gone. It never repeats a request, so no request is executed twice.
#[derive(Debug)]
pub struct Client {
    calls: Arc<Calls>,
    service: ServiceType,
}

impl Bus {
    /// Creates a client. Returns at once; servers connect in the background ([`Client::wait_for_server`]).
    pub fn client(&self, service: ServiceType, options: ClientOptions) -> Result<Client, CreateError> {
        let max = u64::from(Geometry::MAX / 2);
        check_option("max_outstanding", u64::from(options.max_outstanding), 1, max)?;
        check_option("max_held", u64::from(options.max_held), 1, max)?;
        let (publisher, subscriber) = pair();
        let queue = SubscriberOptions::default()
            // Replies to cancelled requests may be queued in addition to those for new ones.
            .with_depth(options.max_outstanding * 2)
            .with_max_held(options.max_outstanding + options.max_held)
            .with_announcements()
            .with_conversion(true);
        let replies = Subscriber::with(self, service.replies(), queue, subscriber)?;
        let memory = PublisherOptions::default()
            .with_memory_limit(options.memory_limit)
            .with_subscriber_quota(options.memory_limit);
        let observer = Some(replies.waiter().clone());
        let requests = Publisher::of_service(self, service.requests(), memory, publisher, observer)?;
        let name = service.service.clone();
        let calls = Calls::new(name, requests, replies, options.max_outstanding as usize);
        Ok(Client {
            calls: Arc::new(calls),
            service,
        })
    }
}

impl Client {
    /// Reserves a block for a request. Like [`Publisher::loan`](crate::Publisher::loan), but if memory is
    /// short it fails and drops nothing.
    pub fn loan(&self, control_len: usize, part_lens: &[usize]) -> Result<Loan, LoanError> {
        self.calls.requests.loan_correlated(control_len, part_lens)
    }

    /// Bytes of shared memory reserved for requests, including memory that servers still map.
    pub fn reserved(&self) -> u64 {
        self.calls.requests.reserved()
    }

    /// Returns all memory that no request uses, like [`Publisher::trim`](crate::Publisher::trim).
    pub fn trim(&self) {
        self.calls.requests.trim();
    }

    /// Sends a request and blocks until it is answered, `timeout` passes, or the server is gone.
    pub fn call(&self, request: Loan, timeout: Duration) -> Result<Reply, CallError> {
        self.send(request, timeout)?.wait()
    }

    /// Sends a request whose reply is awaited later, at most `timeout` from now. Never blocks. Fails at once
    /// if there is no server or if the server's queue has no room.
    pub fn send(&self, request: Loan, timeout: Duration) -> Result<Pending, CallError> {
        self.send_from(request, timeout, None)
    }

    /// Like [`Client::send`], on behalf of `origin`, which the server can read from
    /// [`Request::on_behalf_of`](crate::Request::on_behalf_of). For clients that forward requests of others.
    pub fn send_for(&self, origin: u64, request: Loan, timeout: Duration) -> Result<Pending, CallError> {
        self.send_from(request, timeout, Some(origin))
    }

    fn send_from(&self, request: Loan, timeout: Duration, origin: Option<u64>) -> Result<Pending, CallError> {
        let deadline = Instant::now().checked_add(timeout);
        let number = self.calls.send(request, timeout, origin)?;
        Ok(Pending {
            calls: self.calls.clone(),
            number,
            timeout,
            deadline,
            over: false,
        })
    }

    /// Blocks until a server is connected. Returns false if `timeout` passes first.
    pub fn wait_for_server(&self, timeout: Duration) -> Result<bool, CallError> {
        self.calls.wait_for_server(Instant::now().checked_add(timeout))
    }

    /// Whether a server is connected.
    pub fn has_server(&self) -> bool {
        self.calls.has_server()
    }

    /// If no [`Pending::poll`] would return a result, silences the descriptor until the next event and
    /// returns false. A server that connects or disconnects is also an event. Never blocks.
    ///
    /// For one thread that waits for many requests, or for servers while there are none: poll all, call this,
    /// and poll again if it returns true; then sleep on the descriptor until the earliest deadline.
    pub fn rearm(&self) -> Result<bool, CallError> {
        self.calls.rearm()
    }

    /// The service and its type.
    pub fn service(&self) -> &ServiceType {
        &self.service
    }

    /// Unique among all endpoints of the bus; servers see it as [`Request::client`](crate::Request::client).
    pub fn id(&self) -> u64 {
        self.calls.requests.id()
    }

    /// Counters of its requests.
    pub fn stats(&self) -> ClientStats {
        self.calls.stats()
    }

    /// Like `Publisher::poison`, for a request.
    #[cfg(feature = "test-hooks")]
    #[doc(hidden)]
    pub fn poison(&self, part: *const u8, len: usize, byte: u8) {
        self.calls.requests.poison(part, len, byte);
    }

    /// The last servers that were refused, and the reasons.
    pub fn refusals(&self) -> Vec<Refusal> {
        [self.calls.requests.refusals(), self.calls.replies.refusals()].concat()
    }
}

impl AsFd for Client {
    /// Readable when a [`Pending::poll`] may find a result, until a poll finds none: for select, poll, epoll.
    /// Do not read from it. Do not combine it with blocking calls on other threads, which consume the events
    /// that it reports.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.calls.replies.as_fd()
    }
}

/// A request that was sent. Dropping it cancels the wait; the server may still execute the request.
#[derive(Debug)]
#[must_use = "dropping it cancels the wait for the reply"]
pub struct Pending {
    calls: Arc<Calls>,
    number: u64,
    timeout: Duration,
    deadline: Option<Instant>,
    over: bool,
}

impl Pending {
    /// Blocks until the request is answered, its deadline passes, or the server is gone.
    pub fn wait(mut self) -> Result<Reply, CallError> {
        self.over = true;
        let outcome = self.calls.wait(self.number, self.deadline, self.timeout);
        outcome.map(|message| Reply { message })
    }

    /// Returns the reply, or why there is none, once it is known. Returns it only once. Never blocks.
    pub fn poll(&mut self) -> Option<Result<Reply, CallError>> {
        if self.over {
            return None;
        }
        let outcome = match self.calls.poll(self.number, self.timeout) {
            Ok(outcome) => outcome?,
            Err(e) => {
                self.calls.cancel(self.number);
                Err(e)
            }
        };
        self.over = true;
        Some(outcome.map(|message| Reply { message }))
    }

    /// The deadline of the wait; `None` means no deadline.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The number of this request of its client, starting at 1.
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.over {
            self.calls.cancel(self.number);
        }
    }
}

/// A server's reply, read where the server wrote it. Dropping it lets the server reuse the block.
#[derive(Debug)]
pub struct Reply {
    message: Message,
}

impl Reply {
    /// The control part: a private copy.
    pub fn control(&self) -> &[u8] {
        self.message.control()
    }

    /// Number of data parts.
    pub fn part_count(&self) -> usize {
        self.message.part_count()
    }

    /// Data part `i`, in place; empty if there is no such part.
    pub fn part(&self, i: usize) -> PartView<'_> {
        self.message.part(i)
    }

    /// The message that contains it.
    pub fn message(&self) -> &Message {
        &self.message
    }
}

/// Counters of a client's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientStats {
    /// Requests queued to a server.
    pub sent: u64,
    /// Requests answered, rejections included.
    pub answered: u64,
    /// Requests, or replies to them, for which a queue had no room.
    pub refused: u64,
    /// Requests that were not answered in time.
    pub timed_out: u64,
    /// Requests whose server was gone.
    pub server_died: u64,
    /// Replies that arrived after the wait had ended.
    pub late: u64,
    /// Malformed replies; each disconnects its server.
    pub malformed: u64,
    /// Currently unanswered requests, including cancelled ones.
    pub outstanding: usize,
}
