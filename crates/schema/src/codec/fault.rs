//! An error on its way out of nested arrays, which add their indices.

use crate::CodecError;
use crate::plan::Plan;

pub(crate) type Walk<T> = Result<T, Box<Fault>>;

#[derive(Debug)]
pub(crate) struct Fault {
    kind: Kind,
    at: usize,
    path: u32,
    /// Indices of the enclosing arrays, innermost first.
    indices: Vec<u32>,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Truncated { needed: u64, left: usize },
    Count { count: u64, limit: u64 },
    Unterminated,
    WideUnit(u32),
    PartCount { named: usize, given: usize },
    PartLength { part: usize, named: u64, given: usize },
    Trailing { extra: usize },
}

impl Fault {
    pub(crate) fn new(kind: Kind, at: usize, path: u32) -> Box<Self> {
        Box::new(Self {
            kind,
            at,
            path,
            indices: Vec::new(),
        })
    }

    /// Adds that the error occurred in element `i` of an array.
    pub(crate) fn inside(mut self: Box<Self>, i: u32) -> Box<Self> {
        self.indices.push(i);
        self
    }

    pub(crate) fn into_error(self, plan: &Plan) -> CodecError {
        let field = fill(plan.path(self.path), self.indices.iter().rev());
        let offset = self.at;
        match self.kind {
            Kind::Truncated { needed, left } => CodecError::Truncated {
                field,
                offset,
                needed,
                left,
            },
            Kind::Count { count, limit } => CodecError::Count {
                field,
                offset,
                count,
                limit,
            },
            Kind::Unterminated => CodecError::Unterminated { field, offset },
            Kind::WideUnit(unit) => CodecError::WideUnit { field, offset, unit },
            Kind::PartCount { named, given } => CodecError::PartCount { named, given },
            Kind::PartLength { part, named, given } => CodecError::PartLength {
                field,
                part,
                named,
                given,
            },
            Kind::Trailing { extra } => CodecError::Trailing { offset, extra },
        }
    }
}

/// Inserts indices into the brackets of a path, from the left.
fn fill<'a>(path: &str, mut indices: impl Iterator<Item = &'a u32>) -> String {
    let mut out = String::new();
    let mut parts = path.split("[]").peekable();
    while let Some(part) = parts.next() {
        out.push_str(part);
        if parts.peek().is_some() {
            match indices.next() {
                Some(i) => out.push_str(&format!("[{i}]")),
                None => out.push_str("[]"),
            }
        }
    }
    out
}
