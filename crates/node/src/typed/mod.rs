//! Messages as structures, which `ropewalk gen rust` makes: their large arrays lie in shared memory, written once by the
//! publisher and read there.
//!
//! ```ignore
//! let image_type = typed::schema::<Image>()?;
//! let publisher = node.publisher("/image", &image_type)?;
//! let image = Image { width: 1920, height: 1080, data: Bulk::Sized(1920 * 1080), ..Image::default() };
//! let mut loan = typed::loan(&image, |control, parts| publisher.loan(control, parts))?;
//! camera.read_into(loan.slice_mut::<u8>("data")?);
//! publisher.publish(loan.into_inner())?;
//!
//! let message = subscriber.take_timeout(Duration::MAX)?.expect("it waits for ever");
//! let image: Image<'_> = typed::read(&message)?;
//! show(image.width, &image.data); // where the publisher wrote it
//! ```

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

use bus::LoanError;
use schema::{DefinitionError, Flavour, Registry, Schema, Service};

/// What generated code says of a type of messages or services.
pub trait Typed {
    /// `package/Type`.
    const NAME: &'static str;
    /// The sum of its definition, as 32 hexadecimal digits.
    const MD5: &'static str;
    /// The generation of ROS that the definition is of.
    const FLAVOUR: Flavour;
    /// The definition with those of all types in it.
    const DEFINITION: &'static str;
}

/// The fields of a message, in order. Implemented by generated code.
pub trait Fields<'a>: Sized {
    /// Writes them.
    ///
    /// # Errors
    /// [`FieldError`]: a count is out of bounds.
    fn put(&self, to: &mut Put) -> Result<(), FieldError>;

    /// Reads them; bulk fields become views.
    ///
    /// # Errors
    /// [`FieldError`]: the bytes are no such message.
    fn get(from: &mut Get<'a>) -> Result<Self, FieldError>;
}

/// Why bytes are no message, or a structure cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// The control part ends too soon.
    #[error("{field}: the control part ends at byte {len}")]
    Truncated {
        /// Where.
        field: &'static str,
        /// Its length.
        len: usize,
    },
    /// More elements than there may be.
    #[error("{field}: {count} elements, at most {most} are allowed")]
    Count {
        /// Where.
        field: &'static str,
        /// How many.
        count: usize,
        /// How many may be.
        most: usize,
    },
    /// A text is no UTF-8.
    #[error("{field}: the text is no UTF-8")]
    Text {
        /// Where.
        field: &'static str,
    },
    /// A data part is missing, or of another length than its count says.
    #[error("{field}: its data part is missing or of another length than its {count} elements")]
    Part {
        /// Where.
        field: &'static str,
        /// How many elements it should have.
        count: usize,
    },
    /// Something follows the last field.
    #[error("{bytes} bytes and {parts} data parts follow the last field")]
    Rest {
        /// Of the control part.
        bytes: usize,
        /// Data parts.
        parts: usize,
    },
    /// The bulk field was sized, and as many as may be lie in data parts already.
    #[error("{field}: it was only sized, but 32 arrays lie in data parts already: give its elements")]
    Unwritten {
        /// Where.
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

/// The type of a generated structure.
///
/// # Errors
/// [`DefinitionError`], which generated code does not have.
pub fn schema<T: Typed>() -> Result<Schema, DefinitionError> {
    let mut registry = Registry::new(T::FLAVOUR);
    registry.add_embedded(T::NAME, T::DEFINITION)?;
    registry.schema(T::NAME)
}

/// The type of a generated service.
///
/// # Errors
/// As [`schema()`].
pub fn service<T: Typed>() -> Result<Service, DefinitionError> {
    let mut registry = Registry::new(T::FLAVOUR);
    registry.add_embedded_service(T::NAME, T::DEFINITION)?;
    registry.service(T::NAME)
}

/// What was taken: of a topic ([`Message`](crate::Message)), or of a service ([`Request`](crate::Request), [`Reply`](crate::Reply)).
pub trait Contents {
    /// The control part, of the type of who took it.
    fn control(&self) -> &[u8];
    /// The data parts, in place.
    fn parts(&self) -> Vec<&[u8]>;
}

/// Reads what was taken, of a topic or a service.
///
/// # Errors
/// [`FieldError`]: its publisher wrote something that is no such message.
pub fn read<'a, T: Fields<'a>>(taken: &'a impl Contents) -> Result<T, FieldError> {
    from_parts(taken.control(), taken.parts())
}

/// Reads a control part and data parts.
///
/// # Errors
/// As [`read`].
pub fn from_parts<'a, T: Fields<'a>>(control: &'a [u8], parts: Vec<&'a [u8]>) -> Result<T, FieldError> {
    let mut from = Get::new(control, parts);
    let message = T::get(&mut from)?;
    from.finish()?;
    Ok(message)
}

/// Reserves a block for a message by `reserve` (a publisher's, client's or server's `loan`), writes all of it but what is
/// [`Bulk::Sized`], and copies bulk fields that have elements.
///
/// # Errors
/// [`TypedError`]
pub fn loan<'a, T: Fields<'a>>(
    message: &T,
    reserve: impl FnOnce(usize, &[usize]) -> Result<bus::Loan, LoanError>,
) -> Result<Loan, TypedError> {
    let mut put = Put::default();
    message.put(&mut put)?;
    let (control, lifts) = put.finish();
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
