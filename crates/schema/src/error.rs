//! What can go wrong: one enum per operation.

use std::path::PathBuf;

/// A definition's text, or the search for it, was not good.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// The text does not follow the grammar.
    #[error("{file}:{line}:{column}: {what}")]
    Syntax {
        /// File name, or the type's name when the text came from elsewhere.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What is wrong, and what was expected.
        what: String,
    },
    /// The name is not `package/Type` or `package/msg/Type`.
    #[error("`{name}` is not a type name: write package/Type or package/msg/Type")]
    BadName {
        /// The name as given.
        name: String,
    },
    /// No definition of that name was found.
    #[error("unknown type {name}{}: {hint}", .needed_by.as_ref().map(|n| format!(" (needed by {n})")).unwrap_or_default())]
    Unknown {
        /// The type that is missing.
        name: String,
        /// The type that has a field of it, if any.
        needed_by: Option<String>,
        /// Where it was looked for.
        hint: String,
    },
    /// A type contains itself.
    #[error("type {name} contains itself: {chain}")]
    Recursive {
        /// The type.
        name: String,
        /// The way back to it.
        chain: String,
    },
    /// A bound on text, nesting, fields or sizes was passed.
    #[error("{name}: {what} is {value}, more than the limit of {limit}")]
    TooLarge {
        /// The type.
        name: String,
        /// What is too large.
        what: &'static str,
        /// How large it is.
        value: u64,
        /// How large it may be.
        limit: u64,
    },
    /// A file exists but cannot be read.
    #[error("cannot read {}: {reason}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's words.
        reason: String,
    },
}

/// Bytes do not fit the schema.
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
        /// Bytes that it needs.
        needed: u64,
        /// Bytes that there are.
        left: usize,
    },
    /// A count or length is larger than the type or the limits allow.
    #[error("{field} at byte {offset}: count {count} is more than the limit of {limit}")]
    Count {
        /// Path of the field.
        field: String,
        /// Where the count stands.
        offset: usize,
        /// The count.
        count: u64,
        /// What is allowed.
        limit: u64,
    },
    /// A CDR string does not end with a zero byte.
    #[error("{field} at byte {offset}: the string does not end with a zero byte")]
    Unterminated {
        /// Path of the field.
        field: String,
        /// Where the string's length stands.
        offset: usize,
    },
    /// A unit of a CDR wide string is not a UTF-16 code unit.
    #[error("{field} at byte {offset}: {unit:#x} is not a UTF-16 code unit")]
    WideUnit {
        /// Path of the field.
        field: String,
        /// Where the string's length stands.
        offset: usize,
        /// The unit.
        unit: u32,
    },
    /// Bytes remain after the last field.
    #[error("{extra} bytes are left over after the last field, at byte {offset}")]
    Trailing {
        /// Where the message ends.
        offset: usize,
        /// How many bytes follow.
        extra: usize,
    },
    /// The CDR header names an encoding other than plain CDR.
    #[error("encapsulation {id:#06x} is not plain CDR (0x0000 or 0x0001)")]
    Encapsulation {
        /// The identifier in the header.
        id: u16,
    },
    /// The control part names another number of data parts than there are.
    #[error("the control part names {named} data parts, {given} were given")]
    PartCount {
        /// Parts that the control part names (at least).
        named: usize,
        /// Parts that were given.
        given: usize,
    },
    /// A data part has another length than the control part says.
    #[error("{field}: data part {part} has {given} bytes, the control part says {named}")]
    PartLength {
        /// Path of the array.
        field: String,
        /// Index of the part.
        part: usize,
        /// Length according to the control part.
        named: u64,
        /// Length of what was given.
        given: usize,
    },
    /// The caller's buffer has not the size that was announced.
    #[error("the buffer has {given} bytes, {needed} are needed")]
    Buffer {
        /// Length asked for.
        needed: usize,
        /// Length given.
        given: usize,
    },
    /// The message is longer than the encoding can say.
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
    #[error("{ty} has no field `{field}`; it has {known}")]
    NoField {
        /// The message type.
        ty: String,
        /// The field asked for.
        field: String,
        /// The fields that there are.
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
    /// Not all elements of an array were printed.
    #[error("{field}: the array is cut short: print it in full, as `topic echo --full` does")]
    Cut {
        /// Path of the field.
        field: String,
    },
    /// The text is not YAML or JSON.
    #[error("not YAML: {reason}")]
    Text {
        /// The parser's words, with line and column.
        reason: String,
    },
    /// The path is not of the form `a.b[3].c`.
    #[error("`{path}` is not a path: write a.b[3].c")]
    Path {
        /// The path as given.
        path: String,
    },
    /// The encoded message cannot be described by its encoding.
    #[error(transparent)]
    Codec(#[from] CodecError),
}
