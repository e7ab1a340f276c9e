//! The serving end of a service.

use crate::guard::{Guard, Panicked};
use crate::message::slices;
#[cfg(feature = "serde")]
use crate::publisher::loan_structure;
use crate::publisher::{loan_cdr, loan_fields, loan_ros1, loan_value};
use crate::typed::{self, Contents, FieldError, ServiceType, TypedError};
use crate::{Callback, CallbackOptions, Dynamic, PublishError};
use bus::{Loan, LoanError, TakeError};
use schema::{CodecError, Schema, Service, Value};
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Serves one service, by polling, waiting, a descriptor, a callback, or in an [`Executor`](crate::Executor): of a
/// generated type `S` ([`typed`]), or, as plain `Server`, of a type that a [`Service`] describes. All methods may
/// be called from any thread.
#[derive(Debug)]
pub struct Server<S = Dynamic> {
    bus: bus::Server,
    schema: Service,
    of: PhantomData<fn() -> S>,
}

/// The result of a handler for a request: a filled block, the reason why there is none, or the text of an error for the
/// client.
pub(crate) type Handled = Result<Result<Loan, PublishError>, String>;

/// Why a request was not answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RespondError {
    /// The reply does not have the service's type, or memory is short. The client receives an error.
    #[error("the answer was not sent: {0}")]
    Content(#[from] PublishError),
    /// The client is gone, no longer waits, or has no room.
    #[error(transparent)]
    Bus(#[from] bus::RespondError),
}

impl<S: ServiceType> Server<S> {
    /// Answers with a response whose bulk fields have their elements, which are copied. If it cannot be written,
    /// both the client and the caller get an error. Never blocks.
    ///
    /// # Errors
    /// [`RespondError`]; [`PublishError::Fields`] in it if a count is out of bounds or a bulk field states only
    /// its size.
    pub fn respond(&self, request: Request<S>, answer: &S::Response<'_>) -> Result<(), RespondError> {
        self.respond_block(request, self.filled(answer))
    }

    /// Reserves a block for a response and writes everything except [`Bulk::Sized`](typed::Bulk::Sized) fields,
    /// which you fill in place.
    ///
    /// # Errors
    /// [`TypedError`]: a count is out of bounds, or memory is short.
    pub fn loan(&self, answer: &S::Response<'_>) -> Result<typed::Loan, TypedError> {
        typed::loan(answer, |control, parts| self.bus.loan(control, parts))
    }

    /// Answers with a filled block. Never blocks.
    ///
    /// # Errors
    /// [`bus::RespondError`]
    pub fn respond_loan(&self, request: Request<S>, answer: typed::Loan) -> Result<(), bus::RespondError> {
        self.bus.respond(request.bus, answer.into_inner())
    }

    /// Answers every request with the result of `f`, on its own thread, until the [`Callback`] is dropped.
    /// The client receives an error of `f`. It also receives a panic of `f`, which is logged and counted; the
    /// next request follows. A request that cannot be read is answered with an error, without calling `f`.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn callback(
        self,
        f: impl FnMut(S::Request<'_>) -> Result<S::Response<'static>, String> + Send + 'static,
    ) -> std::io::Result<Callback> {
        self.callback_with(CallbackOptions::default(), f)
    }

    /// Like [`Server::callback`], with options.
    ///
    /// # Errors
    /// As for [`Server::callback`].
    pub fn callback_with(
        self,
        options: CallbackOptions,
        f: impl FnMut(S::Request<'_>) -> Result<S::Response<'static>, String> + Send + 'static,
    ) -> std::io::Result<Callback> {
        self.run(options, by_structure(f))
    }

    fn filled(&self, answer: &S::Response<'_>) -> Result<Loan, PublishError> {
        loan_fields(self.schema.response(), answer, |c, p| self.bus.loan(c, p))
    }
}

/// A handler that reads requests and writes responses as structures.
pub(crate) fn by_structure<S: ServiceType>(
    mut f: impl FnMut(S::Request<'_>) -> Result<S::Response<'static>, String>,
) -> impl FnMut(&Server<S>, &Request<S>) -> Handled {
    move |server, request| {
        let content = request.read();
        let content = content.map_err(|e| format!("the request is not a {}: {e}", request.schema.name()))?;
        Ok(server.filled(&f(content)?))
    }
}

impl Server {
    /// Reserves a block for a reply, to be filled in place and passed to [`Server::respond`].
    ///
    /// # Errors
    /// [`LoanError`] if memory is short.
    pub fn loan(&self, control_len: usize, part_lens: &[usize]) -> Result<Loan, LoanError> {
        self.bus.loan(control_len, part_lens)
    }

    /// Answers with a filled block. Its control part must have the response's type.
    ///
    /// # Errors
    /// [`bus::RespondError`]
    pub fn respond(&self, request: Request, answer: Loan) -> Result<(), bus::RespondError> {
        self.bus.respond(request.bus, answer)
    }

    /// Answers every request with the result of `f`, on its own thread, until the [`Callback`] is dropped.
    /// The client receives an error of `f`. It also receives a panic of `f`, which is logged and counted; the
    /// next request follows.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn callback(
        self,
        f: impl FnMut(&Request) -> Result<Value, String> + Send + 'static,
    ) -> std::io::Result<Callback> {
        self.callback_with(CallbackOptions::default(), f)
    }

    /// Like [`Server::callback`], with options.
    ///
    /// # Errors
    /// As for [`Server::callback`].
    pub fn callback_with(
        self,
        options: CallbackOptions,
        f: impl FnMut(&Request) -> Result<Value, String> + Send + 'static,
    ) -> std::io::Result<Callback> {
        self.run(options, by_value(f))
    }
}

/// A handler that answers with dynamic values.
pub(crate) fn by_value(
    mut f: impl FnMut(&Request) -> Result<Value, String>,
) -> impl FnMut(&Server, &Request) -> Handled {
    move |server, request| {
        let answer = f(request)?;
        Ok(loan_value(server.schema.response(), &answer, |c, p| {
            server.bus.loan(c, p)
        }))
    }
}

impl<S> Server<S> {
    pub(crate) fn new(bus: bus::Server, schema: Service) -> Self {
        Server {
            bus,
            schema,
            of: PhantomData,
        }
    }

    /// Takes the oldest waiting request, if there is one. Never blocks.
    ///
    /// # Errors
    /// [`TakeError`]: too many requests are held, or the process was forked.
    pub fn take(&self) -> Result<Option<Request<S>>, TakeError> {
        Ok(self.bus.take()?.map(|bus| self.request(bus)))
    }

    /// Takes the oldest waiting request; blocks until there is one, at most `timeout`.
    ///
    /// # Errors
    /// As [`Server::take`].
    pub fn take_timeout(&self, timeout: Duration) -> Result<Option<Request<S>>, TakeError> {
        Ok(self.bus.take_timeout(timeout)?.map(|bus| self.request(bus)))
    }

    fn request(&self, bus: bus::Request) -> Request<S> {
        Request {
            bus,
            schema: self.schema.request().clone(),
            of: PhantomData,
        }
    }

    /// Answers with a dynamic value. If it does not fit the type, both the client and the caller get an
    /// error.
    ///
    /// # Errors
    /// [`RespondError`]
    pub fn respond_value(&self, request: Request<S>, answer: &Value) -> Result<(), RespondError> {
        let loan = loan_value(self.schema.response(), answer, |c, p| self.bus.loan(c, p));
        self.respond_block(request, loan)
    }

    /// Like [`Server::respond_value`], with ROS 1 bytes.
    ///
    /// # Errors
    /// [`RespondError`]
    pub fn respond_ros1(&self, request: Request<S>, answer: &[u8]) -> Result<(), RespondError> {
        let loan = loan_ros1(self.schema.response(), answer, |c, p| self.bus.loan(c, p));
        self.respond_block(request, loan)
    }

    /// Like [`Server::respond_value`], with CDR bytes and their encapsulation header.
    ///
    /// # Errors
    /// [`RespondError`]
    pub fn respond_cdr(&self, request: Request<S>, answer: &[u8]) -> Result<(), RespondError> {
        let loan = loan_cdr(self.schema.response(), answer, |c, p| self.bus.loan(c, p));
        self.respond_block(request, loan)
    }

    /// Like [`Server::respond_value`], with a serde structure ([`structure`](crate::structure)).
    ///
    /// # Errors
    /// [`RespondError`]
    #[cfg(feature = "serde")]
    pub fn respond_structure<T: serde::Serialize + ?Sized>(
        &self,
        request: Request<S>,
        answer: &T,
    ) -> Result<(), RespondError> {
        let loan = loan_structure(self.schema.response(), answer, |c, p| self.bus.loan(c, p));
        self.respond_block(request, loan)
    }

    fn respond_block(
        &self,
        request: Request<S>,
        loan: Result<Loan, PublishError>,
    ) -> Result<(), RespondError> {
        match loan {
            Ok(loan) => Ok(self.bus.respond(request.bus, loan)?),
            Err(error) => {
                let text = format!("the server has no answer: {error}");
                let rejected = self.bus.reject(request.bus, &text);
                rejected.map_err(RespondError::from).and(Err(error.into()))
            }
        }
    }

    /// Answers with an error, whose text the client receives.
    ///
    /// # Errors
    /// [`bus::RespondError`]
    pub fn reject(&self, request: Request<S>, text: &str) -> Result<(), bus::RespondError> {
        self.bus.reject(request.bus, text)
    }

    /// Passes every request to `handle` on its own thread.
    fn run(
        self,
        options: CallbackOptions,
        mut handle: impl FnMut(&Self, &Request<S>) -> Handled + Send + 'static,
    ) -> std::io::Result<Callback>
    where
        S: 'static,
    {
        let (name, interrupt) = (self.service().to_owned(), self.bus.interrupt());
        Callback::start(name, interrupt, options, move |patience, guard| {
            let request = self.take_timeout(patience)?;
            Ok(request.map_or(Ok(()), |request| self.answer(request, guard, &mut handle)))
        })
    }

    /// Answers a request with the result of `handle`. Failures that do not reach the client are logged.
    pub(crate) fn answer(
        &self,
        request: Request<S>,
        guard: &mut Guard,
        handle: &mut impl FnMut(&Self, &Request<S>) -> Handled,
    ) -> Result<(), Panicked> {
        let (answered, result) = match guard.run(|| handle(self, &request)) {
            Ok(Ok(loan)) => (self.respond_block(request, loan), Ok(())),
            Ok(Err(text)) => (self.reject(request, &text).map_err(RespondError::from), Ok(())),
            Err(panicked) => {
                let text = format!("the handler of {} panicked: {panicked}", self.service());
                let answered = self.reject(request, &text).map_err(RespondError::from);
                (answered, Err(panicked))
            }
        };
        if let Err(error) = answered {
            tracing::warn!(%error, service = self.service(), "a request was not answered");
        }
        result
    }

    /// The service's full name.
    pub fn service(&self) -> &str {
        &self.bus.service().service
    }

    /// The type of the service.
    pub fn schema(&self) -> &Service {
        &self.schema
    }

    /// Returns the bus's server, for features that this type does not wrap.
    pub fn bus(&self) -> &bus::Server {
        &self.bus
    }
}

impl<S> AsFd for Server<S> {
    /// Readable while a request can be taken: for select, poll, epoll. Do not read from it.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bus.as_fd()
    }
}

/// A request, read where its client wrote it. Dropping it unanswered rejects it.
#[derive(Debug)]
pub struct Request<S = Dynamic> {
    bus: bus::Request,
    schema: Schema,
    of: PhantomData<fn() -> S>,
}

impl<S: ServiceType> Request<S> {
    /// Reads all fields; bulk fields are views of the block.
    ///
    /// # Errors
    /// [`FieldError`]: the client wrote something that is not such a request.
    pub fn read(&self) -> Result<S::Request<'_>, FieldError> {
        typed::read(self)
    }
}

impl<S> Request<S> {
    /// The request as a dynamic value.
    ///
    /// # Errors
    /// [`CodecError`] if the client wrote something that does not have its type.
    pub fn value(&self) -> Result<Value, CodecError> {
        let message = self.bus.message();
        self.schema.decode(message.control(), &slices(message))
    }

    /// The request in ROS 1's serialization.
    ///
    /// # Errors
    /// As for [`Request::value`].
    pub fn ros1(&self) -> Result<Vec<u8>, CodecError> {
        let message = self.bus.message();
        self.schema.join_ros1(message.control(), &slices(message))
    }

    /// The request in CDR, little-endian, with its encapsulation header.
    ///
    /// # Errors
    /// As for [`Request::value`].
    pub fn cdr(&self) -> Result<Vec<u8>, CodecError> {
        let message = self.bus.message();
        self.schema.join_cdr(message.control(), &slices(message))
    }

    /// The request as a serde structure ([`structure`](crate::structure)).
    ///
    /// # Errors
    /// [`StructureError`](crate::structure::StructureError) if the structure does not match the request's
    /// type, or the client wrote something that does not.
    #[cfg(feature = "serde")]
    pub fn structure<T: serde::de::DeserializeOwned>(&self) -> Result<T, crate::structure::StructureError> {
        let message = self.bus.message();
        crate::structure::from_parts(&self.schema, message.control(), &slices(message))
    }

    /// How long the client still waits.
    pub fn time_left(&self) -> Duration {
        self.bus.time_left()
    }

    /// Returns the bus's request: its client, its control part, and its data parts in place.
    pub fn bus(&self) -> &bus::Request {
        &self.bus
    }
}

impl<S> Contents for Request<S> {
    fn control(&self) -> &[u8] {
        self.bus.message().control()
    }

    fn parts(&self) -> Vec<&[u8]> {
        slices(self.bus.message())
    }
}
