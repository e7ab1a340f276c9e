//! Errors, one enum per operation.

use crate::builtin;
use crate::definition::Flavour;
use crate::nearest::{did_you_mean, nearest};
use std::path::PathBuf;

/// A definition is invalid or was not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// The text does not follow the grammar.
    #[error("{file}:{line}:{column}: {what}")]
    Syntax {
        /// File name, or the type's name if the text is not from a file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What is wrong, and what is expected.
        what: String,
    },
    /// The name is not `package/Type` or `package/msg/Type`.
    #[error(
        "`{name}` is not a type name{}: write package/Type or package/msg/Type",
        of_that_name(name)
    )]
    BadName {
        /// The name as given.
        name: String,
    },
    /// No definition of that name exists.
    #[error("unknown type {name}{}{}: {hint}", did_you_mean(.near.as_deref()), needed(.needed_by.as_deref()))]
    Unknown {
        /// The missing type.
        name: String,
        /// The type that has a field of it, if any.
        needed_by: Option<Box<str>>,
        /// A known type with a similar name.
        near: Option<Box<str>>,
        /// Where it was searched.
        hint: Box<str>,
    },
    /// A type contains itself.
    #[error("type {name} contains itself: {chain}")]
    Recursive {
        /// The type.
        name: String,
        /// The way back to it.
        chain: String,
    },
    /// A limit on text, nesting, fields or sizes is exceeded.
    #[error("{name}: {what} is {value}, more than the limit of {limit}")]
    TooLarge {
        /// The type.
        name: String,
        /// Kind of the quantity.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The limit.
        limit: u64,
    },
    /// A file exists but cannot be read.
    #[error("cannot read {}: {reason}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        reason: String,
    },
}

/// Bytes do not match the schema.
///
/// `field` is a path such as `transforms[3].header.frame_id`; `offset` counts bytes from the start of the
/// stream that was being read (ROS 1 bytes, CDR bytes with their header, or control part).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The bytes end inside a field.
    #[error("{field} at byte {offset}: needs {needed} bytes, {left} are left")]
    Truncated {
        /// Path of the field.
        field: String,
        /// Where the field starts.
        offset: usize,
        /// Bytes needed.
        needed: u64,
        /// Bytes left.
        left: usize,
    },
    /// A count or length is larger than the type or the limits allow.
    #[error("{field} at byte {offset}: count {count} is more than the limit of {limit}")]
    Count {
        /// Path of the field.
        field: String,
        /// Position of the count.
        offset: usize,
        /// The count.
        count: u64,
        /// The limit.
        limit: u64,
    },
    /// A CDR string does not end with a zero byte.
    #[error("{field} at byte {offset}: the string does not end with a zero byte")]
    Unterminated {
        /// Path of the field.
        field: String,
        /// Position of the string's length.
        offset: usize,
    },
    /// A unit of a CDR wide string is not a UTF-16 code unit.
    #[error("{field} at byte {offset}: {unit:#x} is not a UTF-16 code unit")]
    WideUnit {
        /// Path of the field.
        field: String,
        /// Position of the string's length.
        offset: usize,
        /// The unit.
        unit: u32,
    },
    /// Bytes remain after the last field.
    #[error("{extra} bytes are left over after the last field, at byte {offset}")]
    Trailing {
        /// End of the message.
        offset: usize,
        /// Number of bytes that follow.
        extra: usize,
    },
    /// The CDR header names an encoding other than plain CDR.
    #[error("encapsulation {id:#06x} is not plain CDR (0x0000 or 0x0001)")]
    Encapsulation {
        /// The identifier in the header.
        id: u16,
    },
    /// The control part refers to a different number of data parts than were given.
    #[error("the control part names {named} data parts, {given} were given")]
    PartCount {
        /// Parts that the control part refers to (at least).
        named: usize,
        /// Parts that were given.
        given: usize,
    },
    /// A data part has a different length than the control part states.
    #[error("{field}: data part {part} has {given} bytes, the control part says {named}")]
    PartLength {
        /// Path of the array.
        field: String,
        /// Index of the part.
        part: usize,
        /// Length according to the control part.
        named: u64,
        /// Length of the part given.
        given: usize,
    },
    /// The caller's buffer has the wrong size.
    #[error("the buffer has {given} bytes, {needed} are needed")]
    Buffer {
        /// Length needed.
        needed: usize,
        /// Length given.
        given: usize,
    },
    /// The message is longer than the encoding allows.
    #[error("the message is too long for this encoding: {len} bytes")]
    TooLong {
        /// Its length.
        len: u64,
    },
}

/// A value does not fit its field, or a text does not describe a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// The type has no such field.
    #[error("{ty} has no field `{field}`{}; it has {known}", like_field(field, known))]
    NoField {
        /// The message type.
        ty: String,
        /// The field requested.
        field: String,
        /// The existing fields.
        known: String,
    },
    /// The value has the wrong kind.
    #[error("{field}: expected {expected}, found {found}")]
    Kind {
        /// Path of the field.
        field: String,
        /// The field's type.
        expected: String,
        /// What was given.
        found: String,
    },
    /// The number does not fit the field's type.
    #[error("{field}: {value} does not fit {ty}")]
    Range {
        /// Path of the field.
        field: String,
        /// The number as text.
        value: String,
        /// The field's type.
        ty: String,
    },
    /// An array or string has the wrong number of elements.
    #[error("{field}: {given} elements, but {ty} takes {allowed}")]
    Length {
        /// Path of the field.
        field: String,
        /// The field's type.
        ty: String,
        /// Elements given.
        given: u64,
        /// Elements allowed.
        allowed: String,
    },
    /// An array is truncated in the text.
    #[error("{field}: the array is cut short: print it in full, as `topic echo --full` does")]
    Cut {
        /// Path of the field.
        field: String,
    },
    /// The text is not YAML or JSON.
    #[error("not YAML: {reason}")]
    Text {
        /// Error of the parser, with line and column.
        reason: String,
    },
    /// The path is not of the form `a.b[3].c`.
    #[error("`{path}` is not a path: write a.b[3].c")]
    Path {
        /// The path as given.
        path: String,
    },
    /// The encoded message does not match its encoding.
    #[error(transparent)]
    Codec(#[from] CodecError),
}

fn needed(by: Option<&str>) -> String {
    by.map(|n| format!(" (needed by {n})")).unwrap_or_default()
}

/// Suggests a standard type for a name without its package.
fn of_that_name(name: &str) -> String {
    let mut known = builtin::names(Flavour::Ros1, false).chain(builtin::names(Flavour::Ros2, false));
    let found = known.find(|ty| ty.name().eq_ignore_ascii_case(name));
    did_you_mean(found.map(|ty| ty.to_string()).as_deref())
}

/// Suggests a field, unless there is only one anyway.
fn like_field(field: &str, known: &str) -> String {
    let near = known.contains(", ").then(|| nearest(field, known.split(", ")));
    did_you_mean(near.flatten())
}
