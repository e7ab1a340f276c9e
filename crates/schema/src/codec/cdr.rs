//! Reads plain CDR (XCDR1) of either byte order.

use super::fault::{Fault, Kind, Walk};
use super::{CDR_HEADER, Elements, MAX_COUNT, Sink, Text};
use crate::CodecError;
use crate::layout::Fixed;
use crate::limits::MAX_EMPTY_ELEMENTS;
use crate::plan::{Plan, Step};

struct Reader<'a> {
    /// The message without its header; alignment counts from here.
    bytes: &'a [u8],
    at: usize,
    swap: bool,
    empties: u32,
    /// Number of wide strings and empty arrays of eight-byte words.
    overestimated: usize,
}

/// Most bytes after the last field: DDS pads a payload to a multiple of four, and rmw may pad what it serializes to a
/// multiple of eight.
const MAX_PADDING: usize = 7;
/// Additional bytes for each field whose size rmw_fastrtps overestimates, since its `rmw_serialize` returns as many
/// bytes as it estimated. It aligns an empty array of eight-byte words, and counts a zero at the end of a wide string,
/// which is 4 bytes each and up to 4 more for the alignment of the following field. A `JointState` with only positions
/// has 8 bytes too many.
const PADDING_OF_ESTIMATE: usize = 8;

/// Reads a complete message.
pub(crate) fn read<'a>(plan: &'a Plan, bytes: &'a [u8], sink: &mut impl Sink<'a>) -> Result<(), CodecError> {
    let (Some(header), Some(body)) = (bytes.first_chunk::<CDR_HEADER>(), bytes.get(CDR_HEADER..)) else {
        let (needed, left) = (CDR_HEADER as u64, bytes.len());
        return Err(CodecError::Truncated {
            field: "encapsulation header".into(),
            offset: 0,
            needed,
            left,
        });
    };
    let id = u16::from_be_bytes([header[0], header[1]]);
    let swap = match id {
        0 => true,
        1 => false,
        id => return Err(CodecError::Encapsulation { id }),
    };
    let mut reader = Reader {
        bytes: body,
        at: 0,
        swap,
        empties: 0,
        overestimated: 0,
    };
    reader.walk(&plan.cdr, sink).map_err(|f| f.into_error(plan))?;
    let extra = body.len() - reader.at;
    // Each of them has consumed the four bytes of its count, so this does not overflow.
    if extra > MAX_PADDING + PADDING_OF_ESTIMATE * reader.overestimated {
        return Err(CodecError::Trailing {
            offset: reader.at + CDR_HEADER,
            extra,
        });
    }
    Ok(())
}

impl<'a> Reader<'a> {
    fn walk(&mut self, steps: &'a [Step], sink: &mut impl Sink<'a>) -> Walk<()> {
        for step in steps {
            match step {
                Step::Run { word, count, fields } => {
                    if *count == 0 {
                        continue;
                    }
                    let path = fields.first().map_or(u32::MAX, |f| f.1);
                    let bytes = self.take(*word, u64::from(*word) * u64::from(*count), path)?;
                    sink.run(*word, bytes, self.swap);
                }
                Step::Dummy { count, path } => {
                    self.take(1, (*count).into(), *path)?;
                    sink.dummy(*count);
                }
                Step::Text { unit: 1, bound, path } => {
                    let n = self.word(*path)?;
                    let at = self.at - 4;
                    self.check(n.saturating_sub(1), *bound, at, *path)?;
                    let text = match self.take(1, n.into(), *path)?.split_last() {
                        // Some writers use length 0 for an empty string.
                        None => &[][..],
                        Some((0, text)) => text,
                        Some(_) => return Err(self.fault(Kind::Unterminated, at, *path)),
                    };
                    sink.text(Text::Narrow(text));
                }
                Step::Text { bound, path, .. } => {
                    let n = self.word(*path)?;
                    let (at, swap) = (self.at - 4, self.swap);
                    self.check(n, *bound, at, *path)?;
                    let bytes = self.take(4, u64::from(n) * 4, *path)?;
                    if let Some(unit) = wide_units(bytes, swap).find(|u| *u > 0xffff) {
                        return Err(self.fault(Kind::WideUnit(unit), at, *path));
                    }
                    self.overestimated += 1;
                    sink.text(Text::Wide4 { bytes, swap });
                }
                Step::Repeat { count, body } => {
                    for i in 0..*count {
                        self.walk(body, sink).map_err(|f| f.inside(i))?;
                    }
                }
                Step::List {
                    bound,
                    empty,
                    path,
                    body,
                } => {
                    let n = self.word(*path)?;
                    let at = self.at - 4;
                    self.check(n, *bound, at, *path)?;
                    if *empty {
                        self.empties = self.empties.saturating_add(n);
                        self.check(self.empties, MAX_EMPTY_ELEMENTS, at, *path)?;
                    }
                    sink.count(n);
                    for i in 0..n {
                        self.walk(body, sink).map_err(|f| f.inside(i))?;
                    }
                }
                Step::Lift(lift) => {
                    let count = self.word(lift.path)?;
                    let at = self.at - 4;
                    self.check(count, lift.bound, at, lift.path)?;
                    let elements = Elements::Cdr {
                        stream: self.bytes,
                        at: self.at,
                        swap: self.swap,
                    };
                    match lift.uniform {
                        // An array without elements is not aligned.
                        _ if count == 0 => self.overestimated += usize::from(lift.uniform == Some(8)),
                        Some(word) => {
                            let len = u64::from(count) * u64::from(lift.element.packed);
                            self.take(word, len, lift.path)?;
                        }
                        None => self.skip(&lift.element, count, lift.path)?,
                    }
                    sink.array(lift, count, at, elements);
                }
            }
        }
        Ok(())
    }

    /// Aligns to `word` (from the start of the message), then takes `len` bytes.
    fn take(&mut self, word: u8, len: u64, path: u32) -> Walk<&'a [u8]> {
        let start = align(self.at, word);
        let end = usize::try_from(len).ok().and_then(|len| start.checked_add(len));
        match end.and_then(|end| Some((end, self.bytes.get(start..end)?))) {
            Some((end, bytes)) => {
                self.at = end;
                Ok(bytes)
            }
            None => {
                let left = self.bytes.len().saturating_sub(start);
                Err(self.fault(Kind::Truncated { needed: len, left }, start, path))
            }
        }
    }

    fn word(&mut self, path: u32) -> Walk<u32> {
        let swap = self.swap;
        let bytes = self.take(4, 4, path)?;
        Ok(bytes.try_into().map_or(0, |b| {
            if swap {
                u32::from_be_bytes(b)
            } else {
                u32::from_le_bytes(b)
            }
        }))
    }

    /// Skips elements of mixed words. Each takes at least a byte, so that the input bounds the work.
    fn skip(&mut self, element: &Fixed, count: u32, path: u32) -> Walk<()> {
        for i in 0..count {
            for run in &element.runs {
                let (word, len) = cdr_run(run);
                self.take(word, len as u64, path).map_err(|f| f.inside(i))?;
            }
        }
        Ok(())
    }

    fn check(&self, n: u32, bound: u32, at: usize, path: u32) -> Walk<()> {
        let limit = bound.min(MAX_COUNT);
        if n > limit {
            return Err(self.fault(
                Kind::Count {
                    count: n.into(),
                    limit: limit.into(),
                },
                at,
                path,
            ));
        }
        Ok(())
    }

    fn fault(&self, kind: Kind, at: usize, path: u32) -> Box<Fault> {
        Fault::new(kind, at + CDR_HEADER, path)
    }
}

/// `at`, rounded up to a multiple of the word size.
pub(crate) fn align(at: usize, word: u8) -> usize {
    at.checked_next_multiple_of(usize::from(word.max(1)))
        .unwrap_or(usize::MAX)
}

/// Alignment and size of a run in CDR, where the content of an empty message is one byte.
pub(crate) fn cdr_run(run: &crate::layout::Run) -> (u8, usize) {
    match run.word {
        0 => (1, run.count as usize),
        word => (word, run.len()),
    }
}

/// The units of a CDR wide string.
pub(crate) fn wide_units(bytes: &[u8], swap: bool) -> impl Iterator<Item = u32> {
    bytes.chunks_exact(4).map(move |b| {
        let b = [b[0], b[1], b[2], b[3]];
        if swap {
            u32::from_be_bytes(b)
        } else {
            u32::from_le_bytes(b)
        }
    })
}
