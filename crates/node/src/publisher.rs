//! The sending end of a topic.

use crate::Dynamic;
use crate::typed::{self, FieldError, Fields, Structure, TypedError};
use bus::{Loan, LoanError, Published, Stamp};
use schema::{CodecError, Schema, Split, Value};
use std::marker::PhantomData;
use std::time::Duration;

/// Sends messages of one type on one topic: of a generated structure `T` ([`typed`]), or, as plain `Publisher`, of
/// a type that a [`Schema`] describes.
#[derive(Debug)]
pub struct Publisher<T = Dynamic> {
    bus: bus::Publisher,
    schema: Schema,
    of: PhantomData<fn(T)>,
}

/// Why a message was not published.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The bytes are not a message of the publisher's type.
    #[error("the message is not a {type_name}: {source}")]
    Content {
        /// The publisher's type.
        type_name: String,
        /// What is wrong.
        source: CodecError,
    },
    /// The value does not fit the publisher's type.
    #[error("the message is not a {type_name}: {source}")]
    Value {
        /// The publisher's type.
        type_name: String,
        /// What is wrong.
        source: schema::ValueError,
    },
    /// The generated structure cannot be written.
    #[error("the message is not a {type_name}: {source}")]
    Fields {
        /// The publisher's type.
        type_name: String,
        /// What is wrong.
        source: FieldError,
    },
    /// The structure does not match the publisher's type.
    #[cfg(feature = "serde")]
    #[error("the message is not a {type_name}: {source}")]
    Structure {
        /// The publisher's type.
        type_name: String,
        /// What is wrong.
        source: crate::structure::StructureError,
    },
    /// No block could be reserved.
    #[error(transparent)]
    Loan(#[from] LoanError),
    /// The bus refuses the message.
    #[error(transparent)]
    Bus(#[from] bus::PublishError),
}

impl<T: Structure> Publisher<T> {
    /// Publishes a message whose bulk fields have their elements, which are copied. Blocks only while memory is
    /// short, under [`MemoryPolicy::Block`](crate::MemoryPolicy::Block).
    ///
    /// # Errors
    /// [`PublishError::Fields`] if a count is out of bounds or a bulk field states only its size;
    /// [`PublishError::Loan`] if memory is short.
    pub fn publish(&self, message: &T::View<'_>) -> Result<Published, PublishError> {
        let loan = loan_fields(&self.schema, message, |c, p| self.bus.loan(c, p))?;
        Ok(self.bus.publish(loan, Stamp::default())?)
    }

    /// Reserves a block for a message and writes everything except [`Bulk::Sized`](typed::Bulk::Sized) fields,
    /// which you fill in place. Blocks like [`Publisher::publish`].
    ///
    /// # Errors
    /// [`TypedError`]: a count is out of bounds, or memory is short.
    pub fn loan(&self, message: &T::View<'_>) -> Result<typed::Loan, TypedError> {
        typed::loan(message, |control, parts| self.bus.loan(control, parts))
    }

    /// Publishes a filled block. Never blocks.
    ///
    /// # Errors
    /// [`bus::PublishError`] if the loan belongs to another publisher.
    pub fn publish_loan(&self, loan: typed::Loan) -> Result<Published, bus::PublishError> {
        self.bus.publish(loan.into_inner(), Stamp::default())
    }
}

impl Publisher {
    /// Reserves a block with a control part and data parts of these lengths in bytes, to be filled in place.
    /// The [`MemoryPolicy`](crate::MemoryPolicy) says what happens when memory is short; only
    /// [`MemoryPolicy::Block`](crate::MemoryPolicy::Block) blocks.
    ///
    /// # Errors
    /// [`LoanError`] if memory is short.
    pub fn loan(&self, control_len: usize, part_lens: &[usize]) -> Result<Loan, LoanError> {
        self.bus.loan(control_len, part_lens)
    }

    /// Publishes a filled block. Its control part must have this publisher's type
    /// (`docs/wire/control-part.md`); subscribers report an error otherwise. Never blocks.
    ///
    /// # Errors
    /// [`bus::PublishError`] if the loan belongs to another publisher.
    pub fn publish(&self, loan: Loan) -> Result<Published, bus::PublishError> {
        self.bus.publish(loan, Stamp::default())
    }
}

impl<T> Publisher<T> {
    pub(crate) fn new(bus: bus::Publisher, schema: Schema) -> Self {
        Publisher {
            bus,
            schema,
            of: PhantomData,
        }
    }

    /// Publishes a message in ROS 1's serialization. Each data part is copied once, from `bytes` into shared
    /// memory. Blocks only while memory is short, under [`MemoryPolicy::Block`](crate::MemoryPolicy::Block).
    ///
    /// # Errors
    /// [`PublishError`]: the bytes are not a message of this type, or memory is short.
    pub fn publish_ros1(&self, bytes: &[u8]) -> Result<Published, PublishError> {
        let loan = loan_ros1(&self.schema, bytes, |c, p| self.bus.loan(c, p))?;
        Ok(self.bus.publish(loan, Stamp::default())?)
    }

    /// Like [`Publisher::publish_ros1`], for CDR bytes with their encapsulation header, as ROS 2 sends them.
    ///
    /// # Errors
    /// As for [`Publisher::publish_ros1`].
    pub fn publish_cdr(&self, bytes: &[u8]) -> Result<Published, PublishError> {
        self.publish_cdr_stamped(bytes, Stamp::default())
    }

    /// Like [`Publisher::publish_cdr`], with the time and origin of another source, for bridges.
    ///
    /// # Errors
    /// As for [`Publisher::publish_ros1`].
    pub fn publish_cdr_stamped(&self, bytes: &[u8], stamp: Stamp) -> Result<Published, PublishError> {
        let loan = loan_cdr(&self.schema, bytes, |c, p| self.bus.loan(c, p))?;
        Ok(self.bus.publish(loan, stamp)?)
    }

    /// Publishes a dynamic value. It is serialized first; for large messages fill a loan.
    ///
    /// # Errors
    /// As for [`Publisher::publish_ros1`].
    pub fn publish_value(&self, value: &Value) -> Result<Published, PublishError> {
        let loan = loan_value(&self.schema, value, |c, p| self.bus.loan(c, p))?;
        Ok(self.bus.publish(loan, Stamp::default())?)
    }

    /// Publishes a serde structure ([`structure`](crate::structure)). It is serialized first, like a dynamic
    /// value. Blocks like [`Publisher::publish_ros1`].
    ///
    /// # Errors
    /// As for [`Publisher::publish_ros1`]; [`PublishError::Structure`] if it does not match this type.
    #[cfg(feature = "serde")]
    pub fn publish_structure<S: serde::Serialize + ?Sized>(
        &self,
        structure: &S,
    ) -> Result<Published, PublishError> {
        let loan = loan_structure(&self.schema, structure, |c, p| self.bus.loan(c, p))?;
        Ok(self.bus.publish(loan, Stamp::default())?)
    }

    /// The topic's full name.
    pub fn topic(&self) -> &str {
        &self.bus.topic().topic
    }

    /// The type of its messages.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Blocks until at least `n` subscribers are connected. Returns false if `timeout` passes first.
    pub fn wait_for_subscribers(&self, n: usize, timeout: Duration) -> bool {
        self.bus.wait_for_subscribers(n, timeout)
    }

    /// Counters and current state.
    pub fn stats(&self) -> bus::PublisherStats {
        self.bus.stats()
    }

    /// Returns the bus's publisher, for features that this type does not wrap.
    pub fn bus(&self) -> &bus::Publisher {
        &self.bus
    }
}

/// Returns a loan with the message `fields`, whose bulk fields all have their elements.
pub(crate) fn loan_fields<'a, T: Fields<'a>>(
    schema: &Schema,
    fields: &T,
    loan: impl FnOnce(usize, &[usize]) -> Result<Loan, LoanError>,
) -> Result<Loan, PublishError> {
    match typed::whole(fields, loan) {
        Ok(loan) => Ok(loan.into_inner()),
        Err(TypedError::Loan(source)) => Err(source.into()),
        Err(TypedError::Field(source)) => Err(PublishError::Fields {
            type_name: schema.name().to_owned(),
            source,
        }),
    }
}

/// Returns a loan with the message that `bytes` encode in ROS 1's serialization.
pub(crate) fn loan_ros1(
    schema: &Schema,
    bytes: &[u8],
    loan: impl FnOnce(usize, &[usize]) -> Result<Loan, LoanError>,
) -> Result<Loan, PublishError> {
    let split = schema.split_ros1(bytes).map_err(|e| content(schema, e))?;
    fill(schema, &split, loan)
}

/// Returns a loan with the message that `bytes` encode in CDR.
pub(crate) fn loan_cdr(
    schema: &Schema,
    bytes: &[u8],
    loan: impl FnOnce(usize, &[usize]) -> Result<Loan, LoanError>,
) -> Result<Loan, PublishError> {
    let split = schema.split_cdr(bytes).map_err(|e| content(schema, e))?;
    fill(schema, &split, loan)
}

/// Returns a loan with the message `value`.
pub(crate) fn loan_value(
    schema: &Schema,
    value: &Value,
    loan: impl FnOnce(usize, &[usize]) -> Result<Loan, LoanError>,
) -> Result<Loan, PublishError> {
    let bytes = schema.encode_ros1(value).map_err(|source| {
        let type_name = schema.name().to_owned();
        PublishError::Value { type_name, source }
    })?;
    loan_ros1(schema, &bytes, loan)
}

/// Returns a loan with the message `structure`.
#[cfg(feature = "serde")]
pub(crate) fn loan_structure<T: serde::Serialize + ?Sized>(
    schema: &Schema,
    structure: &T,
    loan: impl FnOnce(usize, &[usize]) -> Result<Loan, LoanError>,
) -> Result<Loan, PublishError> {
    let bytes = crate::structure::to_ros1(schema, structure).map_err(|source| {
        let type_name = schema.name().to_owned();
        PublishError::Structure { type_name, source }
    })?;
    loan_ros1(schema, &bytes, loan)
}

fn fill(
    schema: &Schema,
    split: &Split<'_>,
    loan: impl FnOnce(usize, &[usize]) -> Result<Loan, LoanError>,
) -> Result<Loan, PublishError> {
    let sizes = split.sizes();
    let mut loan = loan(sizes.control_len, &sizes.part_lens)?;
    let written = split.write_control(loan.control_mut());
    written.map_err(|e| content(schema, e))?;
    for i in 0..split.part_count() {
        let written = split.write_part(i, loan.part_mut(i));
        written.map_err(|e| content(schema, e))?;
    }
    Ok(loan)
}

fn content(schema: &Schema, source: CodecError) -> PublishError {
    PublishError::Content {
        type_name: schema.name().to_owned(),
        source,
    }
}
