//! An error that collects the indices of nested arrays on its way out.

use super::Plan;
use schema::CodecError;

/// Why a message cannot be written, or bytes cannot be read as a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum MessageError {
    /// More elements, bytes or units than the type or the limits allow.
    #[error("{field} has {count} elements, more than the limit of {limit}")]
    Count {
        /// Path of the field.
        field: String,
        /// Number of elements, bytes or units.
        count: u64,
        /// Maximum number.
        limit: u64,
    },
    /// A string or sequence in memory contradicts itself.
    #[error("{field} has size {size} and capacity {capacity} but {what}: was the message initialized?")]
    Memory {
        /// Path of the field.
        field: String,
        /// Size that the structure states.
        size: usize,
        /// Capacity that the structure states.
        capacity: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// Lengths differ from those measured.
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
        /// Position in the control part.
        offset: usize,
        /// Bytes that the field needs.
        needed: u64,
        /// Bytes that remain.
        left: usize,
    },
    /// Bytes remain after the last field.
    #[error("{extra} bytes are left over after the last field, at byte {offset}")]
    Trailing {
        /// Where the message ends.
        offset: usize,
        /// Number of bytes that follow.
        extra: usize,
    },
    /// The control part names a different number of data parts.
    #[error("the control part names {named} data parts, {given} were given")]
    PartCount {
        /// Parts that the control part names (at least).
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
        /// Actual length.
        given: usize,
    },
    /// A string or sequence cannot grow.
    #[error("{field}: no memory for {count} elements")]
    OutOfMemory {
        /// Path of the field.
        field: String,
        /// Number of elements.
        count: usize,
    },
    /// The message is a null pointer.
    #[error("the message is a null pointer")]
    Null,
    /// The CDR bytes are not a message, or CDR cannot express the message.
    #[error(transparent)]
    Codec(#[from] CodecError),
}

pub(super) type Walk<T> = Result<T, Box<Fault>>;

#[derive(Debug)]
pub(super) struct Fault {
    kind: Kind,
    path: u32,
    /// Indices of the surrounding arrays, innermost first.
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

/// Path of a fault that concerns no field.
pub(super) const WHOLE: u32 = u32::MAX;

impl Fault {
    pub(super) fn new(kind: Kind, path: u32) -> Box<Self> {
        Box::new(Self {
            kind,
            path,
            indices: Vec::new(),
        })
    }

    /// Records that the fault occurred in element `i` of an array.
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
