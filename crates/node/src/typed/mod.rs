//! Messages as generated structures. Their large arrays are in shared memory,
//! written once by the publisher and read in place.
//!
//! ```
//! use ropewalk::msgs::sensor_msgs::Image;
//! use ropewalk::typed::Bulk;
//! # use ropewalk::{BusConfig, Node};
//! # use std::time::Duration;
//! # let folder = tempfile::tempdir()?;
//! # let node = Node::with_config("example", BusConfig::new(folder.path()))?;
//!
//! let publisher = node.publisher::<Image>("/image")?;
//! let subscriber = node.subscriber::<Image>("/image")?;
//! # assert!(publisher.wait_for_subscribers(1, Duration::from_secs(60)));
//! let image = Image { width: 1920, height: 1080, data: Bulk::Sized(1920 * 1080), ..Image::default() };
//! let mut loan = publisher.loan(&image)?;
//! loan.slice_mut::<u8>("data")?.fill(7); // in shared memory
//! publisher.publish_loan(loan)?;
//!
//! let message = subscriber.take_timeout(Duration::from_secs(60))?.expect("a message");
//! let image = message.read()?;
//! assert_eq!((image.width, image.data[0]), (1920, 7)); // where the publisher wrote it
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Services likewise have a structure for the request and one for the response:
//!
//! ```
//! use ropewalk::msgs::std_srvs::{SetBool, SetBoolRequest, SetBoolResponse};
//! # use ropewalk::{BusConfig, Node};
//! # use std::time::Duration;
//! # let folder = tempfile::tempdir()?;
//! # let node = Node::with_config("example", BusConfig::new(folder.path()))?;
//!
//! let _callback = node.service::<SetBool>("/brake", |request| {
//!     let message = format!("brake: {}", request.data != 0);
//!     Ok(SetBoolResponse { success: 1, message })
//! })?;
//! let client = node.client::<SetBool>("/brake")?;
//! client.wait_for_server(Duration::from_secs(60))?;
//! let reply = client.call(&SetBoolRequest { data: 1 }, Duration::from_secs(60))?;
//! assert_eq!(reply.read()?.message, "brake: true");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`msgs`](crate::msgs) has the standard packages' types. [`schema()`], [`service()`], [`loan`] and [`read`] do the same for
//! publishers and subscribers of a [`Schema`], and for clients and servers of a [`Service`].

mod bulk;
mod element;
mod get;
mod loan;
mod put;

pub use bulk::Bulk;
pub use element::{Element, RosDuration, RosTime, Word};
#[doc(hidden)]
pub use element::{load_at, store_at};
pub use get::Get;
pub use loan::{Loan, NoBulk};
pub use put::Put;

use put::Lift;

use bus::LoanError;
use schema::{DefinitionError, Flavour, Registry, Schema, Service};

/// Constants that generated code provides for a message or service type.
pub trait Typed {
    /// `package/Type`.
    const NAME: &'static str;
    /// The MD5 sum of its definition, as 32 hexadecimal digits.
    const MD5: &'static str;
    /// The ROS version of the definition.
    const FLAVOUR: Flavour;
    /// The definition, with those of all types that it uses.
    const DEFINITION: &'static str;
}

/// The fields of a message, in order. Generated code implements it.
pub trait Fields<'a>: Sized {
    /// Writes the fields.
    ///
    /// # Errors
    /// [`FieldError`]: a count is out of bounds.
    fn put(&self, to: &mut Put) -> Result<(), FieldError>;

    /// Reads the fields; bulk fields become views.
    ///
    /// # Errors
    /// [`FieldError`]: the bytes are not such a message.
    fn get(from: &mut Get<'a>) -> Result<Self, FieldError>;
}

/// A message type whose structures are published and taken. Generated code implements it.
pub trait Structure: Typed + 'static {
    /// The structure whose bulk fields are views that live for `'a`.
    type View<'a>: Fields<'a>;
}

/// A service type whose requests and responses are structures. Generated code implements it.
pub trait ServiceType: Typed + 'static {
    /// The request's structure, whose bulk fields are views that live for `'a`.
    type Request<'a>: Fields<'a>;
    /// The response's structure, whose bulk fields are views that live for `'a`.
    type Response<'a>: Fields<'a>;
}

/// Why bytes are not a message, or a structure cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// The control part ends too soon.
    #[error("{field}: the control part ends at byte {len}")]
    Truncated {
        /// The field.
        field: &'static str,
        /// The control part's length.
        len: usize,
    },
    /// There are more elements than allowed.
    #[error("{field}: {count} elements, at most {most} are allowed")]
    Count {
        /// The field.
        field: &'static str,
        /// The number of elements.
        count: usize,
        /// The maximum.
        most: usize,
    },
    /// A text is not valid UTF-8.
    #[error("{field}: the text is not UTF-8")]
    Text {
        /// The field.
        field: &'static str,
    },
    /// A data part is missing, or its length does not match its count.
    #[error("{field}: its data part is missing or its length does not match its {count} elements")]
    Part {
        /// The field.
        field: &'static str,
        /// How many elements it should have.
        count: usize,
    },
    /// There is data after the last field.
    #[error("{bytes} bytes and {parts} data parts follow the last field")]
    Rest {
        /// Bytes of the control part.
        bytes: usize,
        /// Data parts.
        parts: usize,
    },
    /// The bulk field only states its size, and nobody fills it.
    #[error("{field}: only its size is given: give its elements, or fill it in a loan")]
    Unfilled {
        /// The field, prefixed with the enclosing messages' names.
        field: String,
    },
    /// The bulk field only states its size, and the maximum number of arrays is already in data parts.
    #[error("{field}: only its size is given, but 32 arrays are already in data parts: give its elements")]
    Unwritten {
        /// The field.
        field: &'static str,
    },
}

/// Why no block was reserved for a structure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TypedError {
    /// It cannot be written.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// Memory is short.
    #[error(transparent)]
    Loan(#[from] LoanError),
}

/// Returns the type of a generated structure.
///
/// # Errors
/// [`DefinitionError`], which does not occur with generated code.
pub fn schema<T: Typed>() -> Result<Schema, DefinitionError> {
    let mut registry = Registry::new(T::FLAVOUR);
    registry.add_embedded(T::NAME, T::DEFINITION)?;
    registry.schema(T::NAME)
}

/// Returns the type of a generated service.
///
/// # Errors
/// As for [`schema()`].
pub fn service<S: ServiceType>() -> Result<Service, DefinitionError> {
    let mut registry = Registry::new(S::FLAVOUR);
    registry.add_embedded_service(S::NAME, S::DEFINITION)?;
    registry.service(S::NAME)
}

/// Something taken from a topic ([`Message`](crate::Message)) or a service ([`Request`](crate::Request),
/// [`Reply`](crate::Reply)).
pub trait Contents {
    /// The control part, in the taker's type.
    fn control(&self) -> &[u8];
    /// The data parts, in place.
    fn parts(&self) -> Vec<&[u8]>;
}

/// Reads a taken message, request or reply.
///
/// # Errors
/// [`FieldError`]: its publisher wrote something that is not such a message.
pub fn read<'a, T: Fields<'a>>(taken: &'a impl Contents) -> Result<T, FieldError> {
    from_parts(taken.control(), taken.parts())
}

/// Reads a control part and data parts.
///
/// # Errors
/// As for [`read`].
pub fn from_parts<'a, T: Fields<'a>>(control: &'a [u8], parts: Vec<&'a [u8]>) -> Result<T, FieldError> {
    let mut from = Get::new(control, parts);
    let message = T::get(&mut from)?;
    from.finish()?;
    Ok(message)
}

/// Reserves a block for a message with `reserve` (the `loan` of a publisher, client or server), writes
/// everything except [`Bulk::Sized`] fields, and copies bulk fields that have elements.
///
/// # Errors
/// [`TypedError`]
pub fn loan<'a, T: Fields<'a>>(
    message: &T,
    reserve: impl FnOnce(usize, &[usize]) -> Result<bus::Loan, LoanError>,
) -> Result<Loan, TypedError> {
    fill(lay_out(message)?, reserve)
}

/// Like [`loan`], for a message whose bulk fields all have their elements.
pub(crate) fn whole<'a, T: Fields<'a>>(
    message: &T,
    reserve: impl FnOnce(usize, &[usize]) -> Result<bus::Loan, LoanError>,
) -> Result<Loan, TypedError> {
    let laid_out = lay_out(message)?;
    match laid_out.1.iter().find(|lift| lift.bytes.is_none()) {
        Some(lift) => Err(FieldError::Unfilled {
            field: lift.field.clone(),
        })?,
        None => fill(laid_out, reserve),
    }
}

/// The control part, and the fields that become data parts.
fn lay_out<'a, T: Fields<'a>>(message: &T) -> Result<(Vec<u8>, Vec<Lift>), FieldError> {
    let mut put = Put::default();
    message.put(&mut put)?;
    Ok(put.finish())
}

fn fill(
    (control, lifts): (Vec<u8>, Vec<Lift>),
    reserve: impl FnOnce(usize, &[usize]) -> Result<bus::Loan, LoanError>,
) -> Result<Loan, TypedError> {
    let lens: Vec<usize> = lifts.iter().map(|lift| lift.len).collect();
    let mut loan = reserve(control.len(), &lens)?;
    loan.control_mut().copy_from_slice(&control);
    for (i, lift) in lifts.iter().enumerate() {
        if let Some(bytes) = &lift.bytes {
            loan.part_mut(i).copy_from_slice(bytes);
        }
    }
    Ok(Loan::new(
        loan,
        lifts.into_iter().map(|lift| lift.field).collect(),
    ))
}
