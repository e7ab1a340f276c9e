//! Splits ROS 1 or CDR bytes into a control part and data parts.

use super::write::{ControlSink, Count, Slice, lifts, write_natural};
use super::{Elements, Found, LIFTED, Sink, Text, cdr, packed};
use crate::plan::{Lift, Plan};
use crate::{CodecError, Schema};

/// A checked message with known sizes, whose parts can be written in any order, each directly to its destination.
/// Borrows the message's bytes.
pub struct Split<'a> {
    plan: &'a Plan,
    source: &'a [u8],
    form: Form,
    threshold: usize,
    control_len: usize,
    lifted: Vec<Found<'a>>,
}

enum Form {
    Ros1,
    Cdr,
}

/// Lengths in bytes of a control part and its data parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartSizes {
    /// Length of the control part.
    pub control_len: usize,
    /// Lengths of the data parts, in order.
    pub part_lens: Vec<usize>,
}

/// A control part and data parts in their own memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// The control part.
    pub control: Vec<u8>,
    /// The data parts, in order.
    pub parts: Vec<Vec<u8>>,
}

impl Parts {
    /// The data parts as slices, as [`Schema::join`] takes them.
    pub fn slices(&self) -> Vec<&[u8]> {
        self.parts.iter().map(Vec::as_slice).collect()
    }
}

impl Schema {
    /// Checks a ROS 1 message and determines how it splits. Copies nothing.
    ///
    /// # Errors
    /// When the bytes are not a message of this type.
    pub fn split_ros1<'a>(&'a self, bytes: &'a [u8]) -> Result<Split<'a>, CodecError> {
        let plan = &self.inner.plan;
        let mut sink = Lifter {
            threshold: self.threshold,
            removed: 0,
            lifted: Vec::new(),
        };
        packed::read(&plan.packed, bytes, None, &mut sink).map_err(|f| f.into_error(plan))?;
        Ok(Split {
            plan,
            source: bytes,
            form: Form::Ros1,
            threshold: self.threshold,
            control_len: bytes.len() - sink.removed,
            lifted: sink.lifted,
        })
    }

    /// Checks a CDR message (with its encapsulation header, of either byte order) and determines how it splits.
    ///
    /// # Errors
    /// When the bytes are not a message of this type, or not plain CDR.
    pub fn split_cdr<'a>(&'a self, bytes: &'a [u8]) -> Result<Split<'a>, CodecError> {
        let plan = &self.inner.plan;
        let mut sink = ControlSink {
            out: Count::default(),
            threshold: self.threshold,
            lifted: Vec::new(),
        };
        cdr::read(plan, bytes, &mut sink)?;
        Ok(Split {
            plan,
            source: bytes,
            form: Form::Cdr,
            threshold: self.threshold,
            control_len: super::write::Out::len(&sink.out),
            lifted: sink.lifted,
        })
    }

    /// The sizes of [`split_ros1`](Self::split_ros1).
    ///
    /// # Errors
    /// When the bytes are not a message of this type.
    pub fn measure_ros1(&self, bytes: &[u8]) -> Result<PartSizes, CodecError> {
        Ok(self.split_ros1(bytes)?.sizes())
    }
}

impl Split<'_> {
    /// Length of the control part in bytes.
    pub fn control_len(&self) -> usize {
        self.control_len
    }

    /// Number of data parts, at most [`MAX_PARTS`](crate::MAX_PARTS).
    pub fn part_count(&self) -> usize {
        self.lifted.len()
    }

    /// Length of data part `i` in bytes; zero if there is none.
    pub fn part_len(&self, i: usize) -> usize {
        self.lifted.get(i).map_or(0, Found::natural_len)
    }

    /// All lengths.
    pub fn sizes(&self) -> PartSizes {
        let part_lens = self.lifted.iter().map(Found::natural_len).collect();
        PartSizes {
            control_len: self.control_len,
            part_lens,
        }
    }

    /// Writes the control part.
    ///
    /// # Errors
    /// When `buffer` is not [`control_len`](Self::control_len) bytes long.
    pub fn write_control(&self, buffer: &mut [u8]) -> Result<(), CodecError> {
        check_len(self.control_len, buffer)?;
        let mut out = Slice { buffer, at: 0 };
        match self.form {
            Form::Ros1 => {
                // The source with gaps: the bytes between two lifted arrays are one copy.
                let mut from = 0;
                for found in &self.lifted {
                    super::write::Out::put(&mut out, self.source.get(from..found.at).unwrap_or(&[]));
                    super::write::Out::put(&mut out, &(found.count | LIFTED).to_le_bytes());
                    from = found.at + 4 + found.packed_len();
                }
                super::write::Out::put(&mut out, self.source.get(from..).unwrap_or(&[]));
            }
            Form::Cdr => {
                let mut sink = ControlSink {
                    out,
                    threshold: self.threshold,
                    lifted: Vec::new(),
                };
                cdr::read(self.plan, self.source, &mut sink)?;
            }
        }
        Ok(())
    }

    /// Writes data part `i`: its elements in natural C layout, padding zeroed. The buffer should be aligned to
    /// eight bytes for a reader that views it; writing needs no alignment.
    ///
    /// # Errors
    /// When there is no part `i`, or `buffer` is not [`part_len`](Self::part_len) bytes long.
    pub fn write_part(&self, i: usize, buffer: &mut [u8]) -> Result<(), CodecError> {
        let count = self.lifted.len();
        let found = self.lifted.get(i).ok_or(CodecError::PartCount {
            named: count,
            given: i + 1,
        })?;
        check_len(found.natural_len(), buffer)?;
        write_natural(found, buffer);
        Ok(())
    }

    /// Writes all parts into newly allocated memory.
    pub fn to_parts(&self) -> Parts {
        let mut control = vec![0; self.control_len];
        // The buffers have the correct lengths, so neither can fail.
        let _ = self.write_control(&mut control);
        let mut parts = Vec::with_capacity(self.lifted.len());
        for found in &self.lifted {
            let mut part = vec![0; found.natural_len()];
            write_natural(found, &mut part);
            parts.push(part);
        }
        Parts { control, parts }
    }
}

impl std::fmt::Debug for Split<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.sizes().fmt(f)
    }
}

pub(super) fn check_len(needed: usize, buffer: &[u8]) -> Result<(), CodecError> {
    if buffer.len() == needed {
        Ok(())
    } else {
        Err(CodecError::Buffer {
            needed,
            given: buffer.len(),
        })
    }
}

/// Collects the arrays to lift and ignores everything else.
struct Lifter<'a> {
    threshold: usize,
    removed: usize,
    lifted: Vec<Found<'a>>,
}

impl<'a> Sink<'a> for Lifter<'a> {
    fn run(&mut self, _: u8, _: &'a [u8], _: bool) {}
    fn dummy(&mut self, _: u32) {}
    fn text(&mut self, _: Text<'a>) {}
    fn count(&mut self, _: u32) {}

    fn array(&mut self, lift: &'a Lift, count: u32, at: usize, elements: Elements<'a>) {
        if lifts(lift, count, self.threshold, self.lifted.len()) {
            let found = Found {
                lift,
                count,
                at,
                elements,
            };
            self.removed += found.packed_len();
            self.lifted.push(found);
        }
    }
}
