//! Reads ROS 1 bytes, and control parts, which differ only in that arrays may be lifted.

use super::fault::{Fault, Kind, Walk};
use super::{Elements, LIFTED, MAX_COUNT, Sink, Text};
use crate::limits::{MAX_EMPTY_ELEMENTS, MAX_PARTS};
use crate::plan::{Lift, Step};

pub(crate) struct Packed<'a> {
    bytes: &'a [u8],
    at: usize,
    empties: u32,
    /// The data parts, if this is a control part.
    parts: Option<&'a [&'a [u8]]>,
    next_part: usize,
}

/// Reads a complete message.
pub(crate) fn read<'a>(
    steps: &'a [Step],
    bytes: &'a [u8],
    parts: Option<&'a [&'a [u8]]>,
    sink: &mut impl Sink<'a>,
) -> Walk<()> {
    let given = parts.map_or(0, <[_]>::len);
    if given > MAX_PARTS {
        return Err(Fault::new(
            Kind::PartCount {
                named: MAX_PARTS,
                given,
            },
            0,
            u32::MAX,
        ));
    }
    let mut reader = Packed {
        bytes,
        at: 0,
        empties: 0,
        parts,
        next_part: 0,
    };
    reader.walk(steps, sink)?;
    if reader.at < bytes.len() {
        return Err(Fault::new(
            Kind::Trailing {
                extra: bytes.len() - reader.at,
            },
            reader.at,
            u32::MAX,
        ));
    }
    if reader.next_part != given {
        return Err(Fault::new(
            Kind::PartCount {
                named: reader.next_part,
                given,
            },
            reader.at,
            u32::MAX,
        ));
    }
    Ok(())
}

/// Number of bytes that `steps` take at the start of `bytes`.
pub(crate) fn length<'a>(steps: &'a [Step], bytes: &'a [u8]) -> Walk<usize> {
    let mut reader = Packed {
        bytes,
        at: 0,
        empties: 0,
        parts: None,
        next_part: 0,
    };
    reader.walk(steps, &mut Nothing)?;
    Ok(reader.at)
}

/// A sink that ignores everything.
struct Nothing;

impl<'a> Sink<'a> for Nothing {
    fn run(&mut self, _: u8, _: &'a [u8], _: bool) {}
    fn dummy(&mut self, _: u32) {}
    fn text(&mut self, _: Text<'a>) {}
    fn count(&mut self, _: u32) {}
    fn array(&mut self, _: &'a Lift, _: u32, _: usize, _: Elements<'a>) {}
}

impl<'a> Packed<'a> {
    fn walk(&mut self, steps: &'a [Step], sink: &mut impl Sink<'a>) -> Walk<()> {
        for step in steps {
            match step {
                Step::Run { word, count, fields } => {
                    let len = u64::from(*word) * u64::from(*count);
                    match self.take(len) {
                        Some(bytes) => sink.run(*word, bytes, false),
                        None => return Err(self.truncated_run(len, fields)),
                    }
                }
                Step::Dummy { count, .. } => sink.dummy(*count),
                Step::Text { unit, bound, path } => {
                    let n = self.count(*bound, *path)?;
                    let bytes = self.elements(n, (*unit).into(), *path)?;
                    sink.text(if *unit == 1 {
                        Text::Narrow(bytes)
                    } else {
                        Text::Wide2(bytes)
                    });
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
                    let n = self.count(*bound, *path)?;
                    if *empty {
                        self.empties = self.empties.saturating_add(n);
                        if self.empties > MAX_EMPTY_ELEMENTS {
                            let (count, limit) = (self.empties.into(), MAX_EMPTY_ELEMENTS.into());
                            return Err(Fault::new(Kind::Count { count, limit }, self.at - 4, *path));
                        }
                    }
                    sink.count(n);
                    for i in 0..n {
                        self.walk(body, sink).map_err(|f| f.inside(i))?;
                    }
                }
                Step::Lift(lift) => {
                    let at = self.at;
                    let word = self.word(lift.path)?;
                    let n = word & MAX_COUNT;
                    let elements = match self.parts {
                        Some(parts) if word & LIFTED != 0 => {
                            self.check_count(n, lift.bound, lift.path)?;
                            Elements::Natural(self.part(parts, super::natural_len(lift, n), lift.path)?)
                        }
                        _ => {
                            self.check_count(word, lift.bound, lift.path)?;
                            Elements::Packed(self.elements(n, lift.element.packed, lift.path)?)
                        }
                    };
                    sink.array(lift, n, at, elements);
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let end = self.at.checked_add(usize::try_from(len).ok()?)?;
        let bytes = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    fn word(&mut self, path: u32) -> Walk<u32> {
        match self.take(4).and_then(|b| b.try_into().ok()) {
            Some(b) => Ok(u32::from_le_bytes(b)),
            None => Err(Fault::new(
                Kind::Truncated {
                    needed: 4,
                    left: self.left(),
                },
                self.at,
                path,
            )),
        }
    }

    fn count(&mut self, bound: u32, path: u32) -> Walk<u32> {
        let n = self.word(path)?;
        self.check_count(n, bound, path)?;
        Ok(n)
    }

    /// Call right after the count was read.
    fn check_count(&self, n: u32, bound: u32, path: u32) -> Walk<()> {
        let limit = bound.min(MAX_COUNT);
        if n > limit {
            let kind = Kind::Count {
                count: n.into(),
                limit: limit.into(),
            };
            return Err(Fault::new(kind, self.at - 4, path));
        }
        Ok(())
    }

    fn elements(&mut self, n: u32, size: u32, path: u32) -> Walk<&'a [u8]> {
        let needed = u64::from(n) * u64::from(size);
        let left = self.left();
        self.take(needed)
            .ok_or_else(|| Fault::new(Kind::Truncated { needed, left }, self.at, path))
    }

    fn part(&mut self, parts: &'a [&'a [u8]], named: usize, path: u32) -> Walk<&'a [u8]> {
        let index = self.next_part;
        self.next_part += 1;
        let at = self.at - 4;
        let Some(part) = parts.get(index) else {
            return Err(Fault::new(
                Kind::PartCount {
                    named: index + 1,
                    given: parts.len(),
                },
                at,
                path,
            ));
        };
        if part.len() != named {
            let kind = Kind::PartLength {
                part: index,
                named: named as u64,
                given: part.len(),
            };
            return Err(Fault::new(kind, at, path));
        }
        Ok(part)
    }

    /// Finds the field of a run in which the bytes end.
    fn truncated_run(&self, len: u64, fields: &[(u32, u32)]) -> Box<Fault> {
        let left = self.left();
        let inside = fields.iter().rev().find(|(at, _)| *at as usize <= left);
        let (start, path) = inside.copied().unwrap_or((0, u32::MAX));
        let needed = len - u64::from(start);
        let kind = Kind::Truncated {
            needed,
            left: left - (start as usize).min(left),
        };
        Fault::new(kind, self.at + start as usize, path)
    }
}
