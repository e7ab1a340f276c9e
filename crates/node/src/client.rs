//! The calling end of a service.

use crate::message::slices;
#[cfg(feature = "serde")]
use crate::publisher::loan_structure;
use crate::publisher::{loan_cdr, loan_fields, loan_ros1, loan_value};
use crate::typed::{self, Contents, FieldError, ServiceType, TypedError};
use crate::{Dynamic, PublishError};
use bus::{Loan, LoanError};
use schema::{CodecError, Schema, Service, Value};
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Calls one service: of a generated type `S` ([`typed`]), or, as plain `Client`, of a type that a [`Service`]
/// describes. All methods may be called from any thread, many calls at a time. Each request goes to one server,
/// and never twice.
#[derive(Debug)]
pub struct Client<S = Dynamic> {
    bus: bus::Client,
    schema: Service,
    of: PhantomData<fn(S)>,
}

/// Why a call has no reply.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The request does not have the service's type, or memory is short.
    #[error(transparent)]
    Request(#[from] PublishError),
    /// There is no server, no reply in time, or no room, or the server died or rejected the request: see
    /// [`bus::CallError`].
    #[error(transparent)]
    Call(#[from] bus::CallError),
    /// The server's reply does not have the service's type.
    #[error("the reply is not a {type_name}: {source}")]
    Reply {
        /// The type of the response.
        type_name: String,
        /// What is wrong.
        source: CodecError,
    },
}

impl<S: ServiceType> Client<S> {
    /// Calls with a request whose bulk fields have their elements, which are copied, and blocks until the reply
    /// arrives, at most `timeout`.
    ///
    /// # Errors
    /// [`CallError`]; [`PublishError::Fields`] in it if a count is out of bounds or a bulk field states only its
    /// size.
    pub fn call(&self, request: &S::Request<'_>, timeout: Duration) -> Result<Reply<S>, CallError> {
        self.send(request, timeout)?.wait()
    }

    /// Sends a request whose reply is awaited later, at most `timeout` from now. Never blocks.
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn send(&self, request: &S::Request<'_>, timeout: Duration) -> Result<Pending<S>, CallError> {
        let loan = loan_fields(self.schema.request(), request, |c, p| self.bus.loan(c, p))?;
        self.send_block(loan, timeout)
    }

    /// Reserves a block for a request and writes everything except [`Bulk::Sized`](typed::Bulk::Sized) fields,
    /// which you fill in place.
    ///
    /// # Errors
    /// [`TypedError`]: a count is out of bounds, or memory is short.
    pub fn loan(&self, request: &S::Request<'_>) -> Result<typed::Loan, TypedError> {
        typed::loan(request, |control, parts| self.bus.loan(control, parts))
    }

    /// Sends a filled block. Never blocks.
    ///
    /// # Errors
    /// [`CallError`]
    pub fn send_loan(&self, request: typed::Loan, timeout: Duration) -> Result<Pending<S>, CallError> {
        self.send_block(request.into_inner(), timeout)
    }
}

impl Client {
    /// Reserves a block for a request, to be filled in place and passed to [`Client::send`].
    ///
    /// # Errors
    /// [`LoanError`] if memory is short.
    pub fn loan(&self, control_len: usize, part_lens: &[usize]) -> Result<Loan, LoanError> {
        self.bus.loan(control_len, part_lens)
    }

    /// Sends a filled block. Its control part must have the request's type. Never blocks.
    ///
    /// # Errors
    /// [`CallError`]
    pub fn send(&self, request: Loan, timeout: Duration) -> Result<Pending, CallError> {
        self.send_block(request, timeout)
    }
}

impl<S> Client<S> {
    pub(crate) fn new(bus: bus::Client, schema: Service) -> Self {
        Client {
            bus,
            schema,
            of: PhantomData,
        }
    }

    /// Calls with a dynamic value and blocks until the reply arrives, at most `timeout`.
    ///
    /// # Errors
    /// [`CallError`]
    pub fn call_value(&self, request: &Value, timeout: Duration) -> Result<Value, CallError> {
        self.send_value(request, timeout)?.wait()?.value()
    }

    /// Like [`Client::call_value`], with ROS 1 bytes. Each data part is copied once, into shared memory,
    /// where the server reads it.
    ///
    /// # Errors
    /// [`CallError`]
    pub fn call_ros1(&self, request: &[u8], timeout: Duration) -> Result<Reply<S>, CallError> {
        self.send_ros1(request, timeout)?.wait()
    }

    /// Sends a request whose reply is awaited later, at most `timeout` from now. Never blocks.
    ///
    /// # Errors
    /// [`CallError`]
    pub fn send_value(&self, request: &Value, timeout: Duration) -> Result<Pending<S>, CallError> {
        let loan = loan_value(self.schema.request(), request, |c, p| self.bus.loan(c, p))?;
        self.send_block(loan, timeout)
    }

    /// Like [`Client::send_value`], with ROS 1 bytes.
    ///
    /// # Errors
    /// [`CallError`]
    pub fn send_ros1(&self, request: &[u8], timeout: Duration) -> Result<Pending<S>, CallError> {
        let loan = loan_ros1(self.schema.request(), request, |c, p| self.bus.loan(c, p))?;
        self.send_block(loan, timeout)
    }

    /// Like [`Client::send_value`], with CDR bytes and their encapsulation header.
    ///
    /// # Errors
    /// [`CallError`]
    pub fn send_cdr(&self, request: &[u8], timeout: Duration) -> Result<Pending<S>, CallError> {
        let loan = loan_cdr(self.schema.request(), request, |c, p| self.bus.loan(c, p))?;
        self.send_block(loan, timeout)
    }

    /// Like [`Client::call_value`], with a serde structure ([`structure`](crate::structure)).
    ///
    /// # Errors
    /// [`CallError`]
    #[cfg(feature = "serde")]
    pub fn call_structure<T: serde::Serialize + ?Sized>(
        &self,
        request: &T,
        timeout: Duration,
    ) -> Result<Reply<S>, CallError> {
        self.send_structure(request, timeout)?.wait()
    }

    /// Like [`Client::send_value`], with a serde structure. Never blocks.
    ///
    /// # Errors
    /// [`CallError`]
    #[cfg(feature = "serde")]
    pub fn send_structure<T: serde::Serialize + ?Sized>(
        &self,
        request: &T,
        timeout: Duration,
    ) -> Result<Pending<S>, CallError> {
        let loan = loan_structure(self.schema.request(), request, |c, p| self.bus.loan(c, p))?;
        self.send_block(loan, timeout)
    }

    fn send_block(&self, request: Loan, timeout: Duration) -> Result<Pending<S>, CallError> {
        Ok(Pending {
            bus: self.bus.send(request, timeout)?,
            schema: self.schema.response().clone(),
            of: PhantomData,
        })
    }

    /// Blocks until a server is connected. Returns false if `timeout` passes first.
    ///
    /// # Errors
    /// [`bus::CallError`] if waiting is impossible.
    pub fn wait_for_server(&self, timeout: Duration) -> Result<bool, bus::CallError> {
        self.bus.wait_for_server(timeout)
    }

    /// The service's full name.
    pub fn service(&self) -> &str {
        &self.bus.service().service
    }

    /// The type of the service.
    pub fn schema(&self) -> &Service {
        &self.schema
    }

    /// Returns the bus's client, for features that this type does not wrap.
    pub fn bus(&self) -> &bus::Client {
        &self.bus
    }
}

impl<S> AsFd for Client<S> {
    /// Readable when a [`Pending::poll`] may find a result: see [`bus::Client`].
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bus.as_fd()
    }
}

/// A request that was sent. Dropping it cancels the wait for the reply.
#[derive(Debug)]
#[must_use = "dropping it cancels the wait for the answer"]
pub struct Pending<S = Dynamic> {
    bus: bus::Pending,
    schema: Schema,
    of: PhantomData<fn() -> S>,
}

impl<S> Pending<S> {
    /// Blocks until the reply arrives, the time is over, or the server is gone.
    ///
    /// # Errors
    /// [`CallError`]
    pub fn wait(self) -> Result<Reply<S>, CallError> {
        Ok(Reply {
            bus: self.bus.wait()?,
            schema: self.schema,
            of: PhantomData,
        })
    }

    /// The deadline of the wait; `None` means no deadline.
    pub fn deadline(&self) -> Option<std::time::Instant> {
        self.bus.deadline()
    }

    /// Returns the reply, or why there is none, once it is known. Returns it only once. Never blocks.
    pub fn poll(&mut self) -> Option<Result<Reply<S>, CallError>> {
        let schema = self.schema.clone();
        Some(match self.bus.poll()? {
            Ok(bus) => Ok(Reply {
                bus,
                schema,
                of: PhantomData,
            }),
            Err(e) => Err(e.into()),
        })
    }
}

/// A server's reply, read where the server wrote it. Dropping it returns the block.
#[derive(Debug)]
pub struct Reply<S = Dynamic> {
    bus: bus::Reply,
    schema: Schema,
    of: PhantomData<fn() -> S>,
}

impl<S: ServiceType> Reply<S> {
    /// Reads all fields; bulk fields are views of the block.
    ///
    /// # Errors
    /// [`FieldError`]: the server wrote something that is not such a response.
    pub fn read(&self) -> Result<S::Response<'_>, FieldError> {
        typed::read(self)
    }
}

impl<S> Reply<S> {
    /// The reply as a dynamic value.
    ///
    /// # Errors
    /// [`CallError::Reply`] if the server wrote something that does not have its type.
    pub fn value(&self) -> Result<Value, CallError> {
        let message = self.bus.message();
        let value = self.schema.decode(message.control(), &slices(message));
        value.map_err(|e| self.wrong(e))
    }

    /// The reply in ROS 1's serialization.
    ///
    /// # Errors
    /// As for [`Reply::value`].
    pub fn ros1(&self) -> Result<Vec<u8>, CallError> {
        let message = self.bus.message();
        let bytes = self.schema.join_ros1(message.control(), &slices(message));
        bytes.map_err(|e| self.wrong(e))
    }

    /// The reply in CDR, little-endian, with its encapsulation header.
    ///
    /// # Errors
    /// As for [`Reply::value`].
    pub fn cdr(&self) -> Result<Vec<u8>, CallError> {
        let message = self.bus.message();
        let bytes = self.schema.join_cdr(message.control(), &slices(message));
        bytes.map_err(|e| self.wrong(e))
    }

    /// The reply as a serde structure ([`structure`](crate::structure)).
    ///
    /// # Errors
    /// [`StructureError`](crate::structure::StructureError) if the structure does not match the response's
    /// type, or the server wrote something that does not.
    #[cfg(feature = "serde")]
    pub fn structure<T: serde::de::DeserializeOwned>(&self) -> Result<T, crate::structure::StructureError> {
        let message = self.bus.message();
        crate::structure::from_parts(&self.schema, message.control(), &slices(message))
    }

    /// Returns the bus's reply: its control part, and its data parts in place.
    pub fn bus(&self) -> &bus::Reply {
        &self.bus
    }

    fn wrong(&self, source: CodecError) -> CallError {
        CallError::Reply {
            type_name: self.schema.name().to_owned(),
            source,
        }
    }
}

impl<S> Contents for Reply<S> {
    fn control(&self) -> &[u8] {
        self.bus.message().control()
    }

    fn parts(&self) -> Vec<&[u8]> {
        slices(self.bus.message())
    }
}
