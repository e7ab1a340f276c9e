//! The answering end of a service.

use super::correlation::{Correlation, Kind};
use super::{MAX_REJECTION, RespondError, ServiceType, pair, partner};
use crate::bus::Bus;
use crate::loan::{Loan, LoanError};
use crate::losses::Losses;
use crate::message::{Message, PartView};
use crate::publisher::{CreateError, Directed, Publisher, PublisherOptions, check_option};
use crate::subscriber::{Subscriber, SubscriberOptions, TakeError};
use crate::sys;
use crate::topic::Refusal;
use crate::waitset::{Interrupt, WaitSet};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// How long a reply may wait for the connection to a client whose request arrived before its handshake
/// completed.
const PATIENCE: Duration = Duration::from_secs(1);

/// Queueing and limits of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Number of requests that each client may queue. Further requests are refused, and the client learns of
    /// it. Default: 16, at most 4,096.
    pub depth: u32,
    /// Number of requests of each client that may be held (taken and not answered) at a time. Default: 16, at
    /// most 4,096.
    pub max_held: u32,
    /// Maximum number of clients at a time. Default: 256.
    pub max_clients: usize,
    /// Maximum bytes of shared memory for replies. Default: 256 MiB, reserved only as needed.
    pub memory_limit: u64,
    /// Maximum bytes of replies that one client may keep from reuse, queued and held together. Default: an
    /// eighth of `memory_limit`.
    pub client_quota: Option<u64>,
    /// Wake through this set instead of the server's own doorbell.
    pub wait_set: Option<WaitSet>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        ServerOptions {
            depth: 16,
            max_held: 16,
            max_clients: 256,
            memory_limit: 256 << 20,
            client_quota: None,
            wait_set: None,
        }
    }
}

impl ServerOptions {
    /// Sets how many requests each client may queue.
    #[must_use]
    pub fn with_depth(mut self, requests: u32) -> Self {
        self.depth = requests;
        self
    }

    /// Sets how many requests of each client may be held.
    #[must_use]
    pub fn with_max_held(mut self, requests: u32) -> Self {
        self.max_held = requests;
        self
    }

    /// Sets the maximum number of clients at a time.
    #[must_use]
    pub fn with_max_clients(mut self, clients: usize) -> Self {
        self.max_clients = clients;
        self
    }

    /// Sets the maximum bytes of shared memory.
    #[must_use]
    pub fn with_memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// Sets the maximum bytes of replies for one client.
    #[must_use]
    pub fn with_client_quota(mut self, bytes: u64) -> Self {
        self.client_quota = Some(bytes);
        self
    }

    /// Wakes through `set`.
    #[must_use]
    pub fn with_wait_set(mut self, set: &WaitSet) -> Self {
        self.wait_set = Some(set.clone());
        self
    }
}

/// The serving end of a service. All methods may be called from any thread, so several threads may serve.
///
/// When it is dropped or its process ends, its clients notice at once.
#[derive(Debug)]
pub struct Server {
    // Dropped first: no further requests arrive when the publisher of replies hangs up.
    requests: Subscriber,
    inner: Arc<Inner>,
    service: ServiceType,
}

/// State that the server and its requests share.
#[derive(Debug)]
struct Inner {
    replies: Publisher,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    taken: AtomicU64,
    answered: AtomicU64,
    rejected: AtomicU64,
    expired: AtomicU64,
    client_gone: AtomicU64,
    refused: AtomicU64,
    malformed: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Bus {
    /// Creates a server. Returns at once; clients connect in the background.
    pub fn server(&self, service: ServiceType, options: ServerOptions) -> Result<Server, CreateError> {
        let (publisher, subscriber) = pair();
        let max = options.memory_limit;
        let quota = options.client_quota.unwrap_or(max / 8);
        check_option("client_quota", quota, 1, max.max(1))?;
        let mut memory = PublisherOptions::default()
            .with_memory_limit(max)
            .with_subscriber_quota(quota);
        memory.max_subscribers = options.max_clients;
        let replies = Publisher::of_service(self, service.replies(), memory, publisher, None)?;
        let mut queue = SubscriberOptions::default()
            .with_depth(options.depth)
            .with_max_held(options.max_held)
            .with_conversion(true);
        queue.wait_set = options.wait_set;
        let requests = Subscriber::with(self, service.requests(), queue, subscriber)?;
        let counts = Counts::default();
        Ok(Server {
            requests,
            inner: Arc::new(Inner { replies, counts }),
            service,
        })
    }
}

impl Server {
    /// Takes a request if one is queued: the oldest of all clients, by time of queueing. Never blocks.
    /// Requests whose deadline has passed are dropped and counted, not returned. For the descriptor see
    /// [`Subscriber::take`].
    pub fn take(&self) -> Result<Option<Request>, TakeError> {
        while let Some(message) = self.requests.take()? {
            if let Some(request) = self.admit(message) {
                return Ok(Some(request));
            }
        }
        Ok(None)
    }

    /// Takes a request, waiting at most `timeout`, or until an [`Interrupt`] is used.
    pub fn take_timeout(&self, timeout: Duration) -> Result<Option<Request>, TakeError> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            let left = deadline.map_or(timeout, |d| d.saturating_duration_since(Instant::now()));
            let Some(message) = self.requests.take_timeout(left)? else {
                return Ok(None);
            };
            if let Some(request) = self.admit(message) {
                return Ok(Some(request));
            }
        }
    }

    /// Reserves a block for a reply. Like [`Publisher::loan`](crate::Publisher::loan), but if memory is short
    /// it fails and drops nothing.
    pub fn loan(&self, control_len: usize, part_lens: &[usize]) -> Result<Loan, LoanError> {
        self.inner.replies.loan_correlated(control_len, part_lens)
    }

    /// Bytes of shared memory reserved for replies, including memory that clients still map.
    pub fn reserved(&self) -> u64 {
        self.inner.replies.reserved()
    }

    /// Returns all memory that no reply uses, like [`Publisher::trim`](crate::Publisher::trim).
    pub fn trim(&self) {
        self.inner.replies.trim();
    }

    /// Answers a request. Blocks only if the client's handshake is not complete, at most for a second.
    pub fn respond(&self, mut request: Request, reply: Loan) -> Result<(), RespondError> {
        if !std::ptr::eq(request.inner.as_ptr(), Arc::as_ptr(&self.inner)) {
            return Err(RespondError::ForeignRequest);
        }
        request.answered = true;
        let sent = self.inner.send(&request, Kind::Reply, 0, reply);
        if sent.is_ok() {
            count(&self.inner.counts.answered);
        }
        sent
    }

    /// Answers a request with an error; at most [`MAX_REJECTION`](crate::MAX_REJECTION) bytes of `text` are
    /// sent. Blocks like [`Server::respond`].
    pub fn reject(&self, request: Request, text: &str) -> Result<(), RespondError> {
        self.reject_as(request, 0, text)
    }

    /// Like [`Server::reject`], for a server that forwards requests to another host: `code` is the number of its
    /// reason, which the client gets in [`CallError::Rejected`](crate::CallError::Rejected). 0 stands for an error
    /// of the server that the request was forwarded to.
    pub fn reject_as(&self, mut request: Request, code: u16, text: &str) -> Result<(), RespondError> {
        if !std::ptr::eq(request.inner.as_ptr(), Arc::as_ptr(&self.inner)) {
            return Err(RespondError::ForeignRequest);
        }
        request.answered = true;
        self.inner.reject(&request, code, text)
    }

    /// Whether the client of a request is connected in both directions or gone, so that answering does not
    /// block.
    pub fn can_answer(&self, request: &Request) -> bool {
        let replies = &self.inner.replies;
        request.message.publisher_has_ended()
            || replies.is_foreign()
            || replies.wait_for_subscriber(partner(request.header.client), Duration::ZERO)
    }

    /// Whether a request can be taken. If not, the descriptor becomes unreadable until one can.
    ///
    /// # Errors
    /// [`TakeError::Forked`].
    pub fn rearm(&self) -> Result<bool, TakeError> {
        self.requests.rearm()
    }

    /// Waits until a request can be taken, also while the limit of held requests is reached. Returns false if
    /// `timeout` passes first or an [`Interrupt`] is used. For loops, after [`TakeError::HoldLimit`].
    pub fn wait_takeable(&self, timeout: Duration) -> Result<bool, TakeError> {
        self.requests.wait_takeable(timeout)
    }

    /// Returns a handle that ends the wait of a thread that waits for requests.
    pub fn interrupt(&self) -> Interrupt {
        self.requests.interrupt()
    }

    /// Whether it wakes through `set`.
    pub fn is_in(&self, set: &WaitSet) -> bool {
        self.requests.is_in(set)
    }

    /// The service and its type.
    pub fn service(&self) -> &ServiceType {
        &self.service
    }

    /// Unique among all endpoints of the bus. [`Bus::topics`] lists it as a subscriber, since a server takes
    /// requests.
    pub fn id(&self) -> u64 {
        self.requests.id()
    }

    /// Number of connected clients.
    pub fn client_count(&self) -> usize {
        self.inner.replies.subscriber_count()
    }

    /// Blocks until at least `n` clients are connected. Returns false if `timeout` passes first.
    pub fn wait_for_clients(&self, n: usize, timeout: Duration) -> bool {
        self.inner.replies.wait_for_subscribers(n, timeout)
    }

    /// Counters of its requests.
    pub fn stats(&self) -> ServerStats {
        let counts = &self.inner.counts;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ServerStats {
            taken: read(&counts.taken),
            answered: read(&counts.answered),
            rejected: read(&counts.rejected),
            expired: read(&counts.expired),
            client_gone: read(&counts.client_gone),
            refused: read(&counts.refused),
            malformed: read(&counts.malformed),
        }
    }

    /// Like `Publisher::poison`, for a reply.
    #[cfg(feature = "test-hooks")]
    #[doc(hidden)]
    pub fn poison(&self, part: *const u8, len: usize, byte: u8) {
        self.inner.replies.poison(part, len, byte);
    }

    /// The last clients that were refused, and the reasons.
    pub fn refusals(&self) -> Vec<Refusal> {
        [self.requests.refusals(), self.inner.replies.refusals()].concat()
    }

    /// Returns the request if it may be executed. `None` if it is malformed or too late.
    fn admit(&self, message: Message) -> Option<Request> {
        let counts = &self.inner.counts;
        let header = message.correlation().and_then(|bytes| Correlation::parse(&bytes));
        let asks = |c: &Correlation| c.kind == Kind::Request && c.client == message.publisher();
        let Some(header) = header.filter(asks) else {
            count(&counts.malformed);
            let why = "a request without a valid correlation header";
            self.requests.distrust(message.publisher(), why);
            return None;
        };
        if header.deadline <= sys::monotonic_ns() {
            count(&counts.expired);
            return None;
        }
        count(&counts.taken);
        Some(Request {
            message,
            header,
            inner: Arc::downgrade(&self.inner),
            answered: false,
        })
    }
}

impl AsFd for Server {
    /// Readable when a request can be taken: for select, poll, epoll. Do not read from it.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.requests.as_fd()
    }
}

impl Inner {
    fn send(&self, request: &Request, kind: Kind, code: u16, loan: Loan) -> Result<(), RespondError> {
        let header = Correlation {
            kind,
            code,
            ..request.header
        };
        let left = header.deadline.saturating_sub(sys::monotonic_ns());
        if left == 0 {
            count(&self.counts.expired);
            return Err(RespondError::Expired);
        }
        let to = partner(header.client);
        // The client sends as soon as it is accepted by this end, possibly before it has accepted this end's
        // publisher.
        if !request.message.publisher_has_ended() && !self.replies.is_foreign() {
            self.replies
                .wait_for_subscriber(to, PATIENCE.min(Duration::from_nanos(left)));
        }
        match self.replies.publish_to(to, loan, &header.encode(), None)? {
            Directed::Queued => Ok(()),
            Directed::Absent => {
                count(&self.counts.client_gone);
                Err(RespondError::ClientGone)
            }
            Directed::Refused(reason) => {
                count(&self.counts.refused);
                Err(RespondError::Refused { reason })
            }
        }
    }

    fn reject(&self, request: &Request, code: u16, text: &str) -> Result<(), RespondError> {
        let mut end = text.len().min(MAX_REJECTION);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = &text[..end];
        let mut loan = self.replies.loan_correlated(text.len(), &[])?;
        loan.control_mut().copy_from_slice(text.as_bytes());
        self.send(request, Kind::Rejection, code, loan)?;
        count(&self.counts.rejected);
        Ok(())
    }
}

/// A taken request, read where the client wrote it. [`Server::respond`] or [`Server::reject`] answers it;
/// dropping it unanswered rejects it.
#[derive(Debug)]
pub struct Request {
    message: Message,
    header: Correlation,
    inner: Weak<Inner>,
    answered: bool,
}

impl Request {
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

    /// The client that sent it ([`Client::id`](crate::Client::id)).
    pub fn client(&self) -> u64 {
        self.header.client
    }

    /// The origin that the client sends it for ([`Client::send_for`](crate::Client::send_for)); `None` means
    /// itself. It is only the client's claim: if two clients claim the same origin, only the process behind
    /// each is certain ([`Message::sender`]).
    pub fn on_behalf_of(&self) -> Option<u64> {
        let origin = self.message.origin();
        (origin != self.header.client).then_some(origin)
    }

    /// The number of this request of its client, starting at 1.
    pub fn number(&self) -> u64 {
        self.header.number
    }

    /// How long the client still waits.
    pub fn time_left(&self) -> Duration {
        Duration::from_nanos(self.header.deadline.saturating_sub(sys::monotonic_ns()))
    }

    /// Requests of this client that were refused since the previously taken one.
    pub fn lost(&self) -> Losses {
        self.message.lost()
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        // The client already knows that a server is gone.
        if !self.answered
            && let Some(inner) = self.inner.upgrade()
            && !inner.replies.is_foreign()
        {
            let _ = inner.reject(self, 0, "the server dropped the request unanswered");
        }
    }
}

/// Counters of a server's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerStats {
    /// Requests taken.
    pub taken: u64,
    /// Requests answered, rejections not counted.
    pub answered: u64,
    /// Requests rejected, including those dropped unanswered.
    pub rejected: u64,
    /// Requests or replies that came after the client's deadline and were dropped.
    pub expired: u64,
    /// Replies whose client was gone.
    pub client_gone: u64,
    /// Replies for which the client had no room.
    pub refused: u64,
    /// Malformed requests; each disconnects its client.
    pub malformed: u64,
}
