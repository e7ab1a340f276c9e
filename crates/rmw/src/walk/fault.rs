//! An error while it travels out of nested arrays and gathers their indices.

use super::Plan;
use schema::CodecError;

/// A message cannot be written, or bytes are no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum MessageError {
    /// More elements, bytes or units than the type or the limits allow.
    #[error("{field} has {count} elements, more than the limit of {limit}")]
    Count {
        /// Path of the field.
        field: String,
        /// How many it has.
        count: u64,
        /// How many it may have.
        limit: u64,
    },
    /// A string or sequence in memory contradicts itself.
    #[error("{field} has size {size} and capacity {capacity} but {what}: was the message initialized?")]
    Memory {
        /// Path of the field.
        field: String,
        /// Its size as the structure says.
        size: usize,
        /// Its capacity as the structure says.
        capacity: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// Lengths differ from those that were measured.
    #[error("{field}: the message changed while it was published, or the buffers are not of its sizes")]
    Changed {
        /// Path of the field.
        field: String,
    },
    /// The bytes end inside a field.
    #[error("{field} at byte {offset}: needs {needed} bytes, {left} are left")]
    Truncated {
        /// Path of the field.
        field: String,
        /// Where in the control part.
        offset: usize,
        /// Bytes that it needs.
        needed: u64,
        /// Bytes that there are.
        left: usize,
    },
    /// Bytes remain after the last field.
    #[error("{extra} bytes are left over after the last field, at byte {offset}")]
    Trailing {
        /// Where the message ends.
        offset: usize,
        /// How many bytes follow.
        extra: usize,
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
    /// A string or sequence cannot grow.
    #[error("{field}: no memory for {count} elements")]
    OutOfMemory {
        /// Path of the field.
        field: String,
        /// How many.
        count: usize,
    },
    /// A null pointer instead of a message.
    #[error("the message is a null pointer")]
    Null,
    /// CDR bytes that are no message, or a message that CDR cannot say.
    #[error(transparent)]
    Codec(#[from] CodecError),
}

pub(super) type Walk<T> = Result<T, Box<Fault>>;

#[derive(Debug)]
pub(super) struct Fault {
    kind: Kind,
    path: u32,
    /// Indices of the arrays around it, innermost first.
    indices: Vec<usize>,
}

#[derive(Debug)]
pub(super) enum Kind {
    Count {
        count: u64,
        limit: u64,
    },
    Memory {
        size: usize,
        capacity: usize,
        what: &'static str,
    },
    Changed,
    Truncated {
        offset: usize,
        needed: u64,
        left: usize,
    },
    Trailing {
        offset: usize,
        extra: usize,
    },
    PartCount {
        named: usize,
        given: usize,
    },
    PartLength {
        part: usize,
        named: u64,
        given: usize,
    },
    OutOfMemory {
        count: usize,
    },
}

/// The path of a fault that is no field's.
pub(super) const WHOLE: u32 = u32::MAX;

impl Fault {
    pub(super) fn new(kind: Kind, path: u32) -> Box<Self> {
        Box::new(Self {
            kind,
            path,
            indices: Vec::new(),
        })
    }

    /// Notes that it happened in element `i` of an array.
    pub(super) fn inside(mut self: Box<Self>, i: usize) -> Box<Self> {
        self.indices.push(i);
        self
    }

    pub(super) fn into_error(self, plan: &Plan) -> MessageError {
        let path = plan
            .paths
            .get(self.path as usize)
            .map_or("message", String::as_str);
        let field = fill(path, self.indices.iter().rev());
        match self.kind {
            Kind::Count { count, limit } => MessageError::Count { field, count, limit },
            Kind::Memory { size, capacity, what } => MessageError::Memory {
                field,
                size,
                capacity,
                what,
            },
            Kind::Changed => MessageError::Changed { field },
            Kind::Truncated { offset, needed, left } => MessageError::Truncated {
                field,
                offset,
                needed,
                left,
            },
            Kind::Trailing { offset, extra } => MessageError::Trailing { offset, extra },
            Kind::PartCount { named, given } => MessageError::PartCount { named, given },
            Kind::PartLength { part, named, given } => MessageError::PartLength {
                field,
                part,
                named,
                given,
            },
            Kind::OutOfMemory { count } => MessageError::OutOfMemory { field, count },
        }
    }
}

/// Puts indices into the brackets of a path, from the left.
fn fill<'a>(path: &str, mut indices: impl Iterator<Item = &'a usize>) -> String {
    let mut parts = path.split("[]");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match indices.next() {
            Some(i) => out.push_str(&format!("[{i}]")),
            None => out.push_str("[]"),
        }
        out.push_str(part);
    }
    out
}
