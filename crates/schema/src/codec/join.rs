//! Joins a control part and data parts into ROS 1 or CDR bytes.

use super::split::check_len;
use super::write::{CdrSink, Count, Out, Slice, write_packed};
use super::{CDR_HEADER, Elements, Found, Sink, Text, packed};
use crate::plan::{Lift, Plan};
use crate::{CodecError, Schema};

/// A control part and its data parts, checked to be a message.
///
/// The control part must not change afterwards: a reader of shared memory copies it first. Data parts may change; then
/// only the resulting bytes change.
pub struct Join<'a> {
    plan: &'a Plan,
    pub(super) control: &'a [u8],
    parts: &'a [&'a [u8]],
    ros1_len: usize,
    pub(super) lifted: Vec<Found<'a>>,
}

impl Schema {
    /// Checks a control part and that the data parts match it. Copies nothing.
    ///
    /// # Errors
    /// When they are not a message of this type.
    pub fn join<'a>(&'a self, control: &'a [u8], parts: &'a [&'a [u8]]) -> Result<Join<'a>, CodecError> {
        let plan = &self.inner.plan;
        let mut sink = Lifted {
            added: 0,
            lifted: Vec::new(),
        };
        packed::read(&plan.packed, control, Some(parts), &mut sink).map_err(|f| f.into_error(plan))?;
        let ros1_len = control.len().checked_add(sink.added);
        let ros1_len = ros1_len.ok_or(CodecError::TooLong { len: u64::MAX })?;
        Ok(Join {
            plan,
            control,
            parts,
            ros1_len,
            lifted: sink.lifted,
        })
    }

    /// The message's ROS 1 bytes, identical to those from which it was split.
    ///
    /// # Errors
    /// When the parts are not a message of this type.
    pub fn join_ros1(&self, control: &[u8], parts: &[&[u8]]) -> Result<Vec<u8>, CodecError> {
        let join = self.join(control, parts)?;
        let mut out = vec![0; join.ros1_len()];
        join.write_ros1(&mut out)?;
        Ok(out)
    }

    /// The message as CDR: little-endian, with its encapsulation header.
    ///
    /// # Errors
    /// When the parts are not a message of this type.
    pub fn join_cdr(&self, control: &[u8], parts: &[&[u8]]) -> Result<Vec<u8>, CodecError> {
        let join = self.join(control, parts)?;
        let mut out = vec![0; join.cdr_len()?];
        join.write_cdr(&mut out)?;
        Ok(out)
    }
}

impl Join<'_> {
    /// Length of the ROS 1 bytes.
    pub fn ros1_len(&self) -> usize {
        self.ros1_len
    }

    /// Writes the ROS 1 bytes.
    ///
    /// # Errors
    /// When `buffer` is not [`ros1_len`](Self::ros1_len) bytes long.
    pub fn write_ros1(&self, buffer: &mut [u8]) -> Result<(), CodecError> {
        check_len(self.ros1_len, buffer)?;
        let mut out = Slice { buffer, at: 0 };
        let mut from = 0;
        for found in &self.lifted {
            out.put(self.control.get(from..found.at).unwrap_or(&[]));
            out.put(&found.count.to_le_bytes());
            out.fill(found.packed_len(), |to| write_packed(found, to));
            from = found.at + 4;
        }
        out.put(self.control.get(from..).unwrap_or(&[]));
        Ok(())
    }

    /// Length of the CDR bytes with their header. Walks the message.
    ///
    /// # Errors
    /// None for a message that was accepted.
    pub fn cdr_len(&self) -> Result<usize, CodecError> {
        let mut sink = CdrSink {
            out: Count::default(),
        };
        self.walk(&mut sink)?;
        Ok(sink.out.len().saturating_add(CDR_HEADER))
    }

    /// Writes the CDR bytes: encapsulation header `00 01 00 00`, then the message in little-endian.
    ///
    /// # Errors
    /// When `buffer` is not [`cdr_len`](Self::cdr_len) bytes long.
    pub fn write_cdr(&self, buffer: &mut [u8]) -> Result<(), CodecError> {
        let given = buffer.len();
        let Some((header, buffer)) = buffer.split_first_chunk_mut::<CDR_HEADER>() else {
            return Err(CodecError::Buffer {
                needed: self.cdr_len()?,
                given,
            });
        };
        *header = [0, 1, 0, 0];
        let mut sink = CdrSink {
            out: Slice { buffer, at: 0 },
        };
        self.walk(&mut sink)?;
        let needed = sink.out.at.saturating_add(CDR_HEADER);
        if needed == given {
            Ok(())
        } else {
            Err(CodecError::Buffer { needed, given })
        }
    }

    pub(super) fn walk<'s>(&'s self, sink: &mut impl Sink<'s>) -> Result<(), CodecError> {
        packed::read(&self.plan.cdr, self.control, Some(self.parts), sink)
            .map_err(|f| f.into_error(self.plan))
    }
}

impl std::fmt::Debug for Join<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Join")
            .field("control_len", &self.control.len())
            .field("parts", &self.parts.len())
            .field("ros1_len", &self.ros1_len)
            .finish()
    }
}

/// Collects the lifted arrays.
struct Lifted<'a> {
    added: usize,
    lifted: Vec<Found<'a>>,
}

impl<'a> Sink<'a> for Lifted<'a> {
    fn run(&mut self, _: u8, _: &'a [u8], _: bool) {}
    fn dummy(&mut self, _: u32) {}
    fn text(&mut self, _: Text<'a>) {}
    fn count(&mut self, _: u32) {}

    fn array(&mut self, lift: &'a Lift, count: u32, at: usize, elements: Elements<'a>) {
        if matches!(elements, Elements::Natural(_)) {
            let found = Found {
                lift,
                count,
                at,
                elements,
            };
            self.added += found.packed_len();
            self.lifted.push(found);
        }
    }
}
