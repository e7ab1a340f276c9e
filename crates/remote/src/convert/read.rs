//! Reads control parts and data parts field by field (`docs/wire/control-part.md`), and the parts that ROS messages
//! have in common.

use super::ConvertError;
use crate::types::{Header, Orientation, Position, TimeStamp, Vector3};
use schema::Flavour;

/// Flag of a count word: the elements are the next data part.
pub(super) const LIFTED: u32 = 1 << 31;
const NANOS: u32 = 1_000_000_000;

pub(super) fn bad(field: &'static str, why: impl Into<String>) -> ConvertError {
    ConvertError::Field {
        field,
        why: why.into(),
    }
}

/// Converts a 64-bit number to 32 bits.
pub(super) fn narrow(field: &'static str, x: f64) -> Result<f32, ConvertError> {
    let narrow = x as f32;
    if x.is_finite() && !narrow.is_finite() {
        return Err(bad(field, format!("{x:e} does not fit into 32 bits")));
    }
    Ok(narrow)
}

/// Little-endian words of a fixed size.
pub(super) trait Word: Copy {
    const SIZE: usize;
    fn read(bytes: &[u8]) -> Option<Self>;
}

macro_rules! words {
    ($($ty:ty),+) => {$(
        impl Word for $ty {
            const SIZE: usize = size_of::<$ty>();
            fn read(bytes: &[u8]) -> Option<Self> {
                Some(Self::from_le_bytes(bytes.try_into().ok()?))
            }
        }
    )+};
}

words!(u8, u32, f32, f64);

/// Reads a message's parts from front to back.
pub struct Reader<'a> {
    rest: &'a [u8],
    parts: &'a [&'a [u8]],
    pub(super) flavour: Flavour,
}

impl<'a> Reader<'a> {
    pub(super) fn new(control: &'a [u8], parts: &'a [&'a [u8]], flavour: Flavour) -> Self {
        Self {
            rest: control,
            parts,
            flavour,
        }
    }

    fn take(&mut self, field: &'static str, len: usize) -> Result<&'a [u8], ConvertError> {
        let missing = || {
            bad(
                field,
                format!(
                    "needs {len} B, but the control part has only {} B left",
                    self.rest.len()
                ),
            )
        };
        let (taken, rest) = self.rest.split_at_checked(len).ok_or_else(missing)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn word<T: Word>(&mut self, field: &'static str) -> Result<T, ConvertError> {
        T::read(self.take(field, T::SIZE)?).ok_or_else(|| bad(field, "truncated"))
    }

    pub(super) fn text(&mut self, field: &'static str) -> Result<String, ConvertError> {
        let len: u32 = self.word(field)?;
        Ok(String::from_utf8_lossy(self.take(field, len as usize)?).into_owned())
    }

    /// Returns the number of elements that follow, each of at least `least` bytes.
    pub(super) fn count(&mut self, field: &'static str, least: usize) -> Result<usize, ConvertError> {
        let count = self.word::<u32>(field)? as usize;
        if count > self.rest.len() / least {
            let left = self.rest.len();
            return Err(bad(
                field,
                format!("{count} elements do not fit into the remaining {left} B"),
            ));
        }
        Ok(count)
    }

    pub(super) fn texts(&mut self, field: &'static str) -> Result<Vec<String>, ConvertError> {
        let count = self.count(field, 4)?;
        (0..count).map(|_| self.text(field)).collect()
    }

    /// Returns the bytes of an array, wherever they are.
    pub(super) fn bytes(&mut self, field: &'static str, element: usize) -> Result<&'a [u8], ConvertError> {
        let count: u32 = self.word(field)?;
        let len = (count & !LIFTED) as usize * element;
        if count & LIFTED == 0 {
            return self.take(field, len);
        }
        let (part, parts) = self
            .parts
            .split_first()
            .ok_or_else(|| bad(field, "its data part is missing"))?;
        if part.len() != len {
            let why = format!("needs {len} B, but its data part has {}", part.len());
            return Err(bad(field, why));
        }
        self.parts = parts;
        Ok(part)
    }

    pub(super) fn array<T: Word>(&mut self, field: &'static str) -> Result<Vec<T>, ConvertError> {
        let bytes = self.bytes(field, T::SIZE)?;
        Ok(bytes.chunks_exact(T::SIZE).filter_map(T::read).collect())
    }

    /// Checks that nothing is left.
    pub(super) fn end(&self) -> Result<(), ConvertError> {
        match (self.rest.len(), self.parts.len()) {
            (0, 0) => Ok(()),
            (bytes, parts) => Err(bad(
                "message",
                format!("{bytes} B and {parts} data parts follow the last field"),
            )),
        }
    }

    pub(super) fn stamp(&mut self) -> Result<TimeStamp, ConvertError> {
        let (secs, nsecs) = (self.word("stamp")?, self.word("stamp")?);
        if self.flavour == Flavour::Ros2 && secs > i32::MAX as u32 {
            return Err(bad("stamp", "before 1970"));
        }
        carried(secs, nsecs)
    }

    pub(super) fn header(&mut self) -> Result<Header, ConvertError> {
        let seq = match self.flavour {
            Flavour::Ros1 => self.word("header")?,
            Flavour::Ros2 => 0,
        };
        Ok(Header {
            seq,
            timestamp: Some(self.stamp()?),
            frame: self.text("frame_id")?,
        })
    }

    /// Reads three numbers of 64 bits, as 32.
    pub(super) fn vector(&mut self, field: &'static str) -> Result<Vector3, ConvertError> {
        Ok(Vector3 {
            x: narrow(field, self.word(field)?)?,
            y: narrow(field, self.word(field)?)?,
            z: narrow(field, self.word(field)?)?,
        })
    }

    pub(super) fn position(&mut self) -> Result<Position, ConvertError> {
        Ok(Position {
            x: self.word("position")?,
            y: self.word("position")?,
            z: self.word("position")?,
        })
    }

    pub(super) fn orientation(&mut self) -> Result<Orientation, ConvertError> {
        Ok(Orientation {
            x: self.word("orientation")?,
            y: self.word("orientation")?,
            z: self.word("orientation")?,
            w: self.word("orientation")?,
        })
    }

    /// Reads an array of fixed length; empty if it has only zeros.
    pub(super) fn covariance(&mut self, n: usize) -> Result<Vec<f32>, ConvertError> {
        let numbers = (0..n).map(|_| {
            let x: f64 = self.word("covariance")?;
            Ok(match x {
                x if x.is_finite() => x.clamp(f32::MIN.into(), f32::MAX.into()) as f32,
                x => x as f32,
            })
        });
        let numbers = numbers.collect::<Result<Vec<f32>, ConvertError>>()?;
        let unknown = numbers.iter().all(|x| *x == 0.0);
        Ok(if unknown { Vec::new() } else { numbers })
    }
}

/// Returns a time with less than a second of nanoseconds.
pub(super) fn carried(secs: u32, nsecs: u32) -> Result<TimeStamp, ConvertError> {
    let secs = secs
        .checked_add(nsecs / NANOS)
        .ok_or_else(|| bad("stamp", "after 2106"))?;
    let nsecs = nsecs % NANOS;
    Ok(TimeStamp { secs, nsecs })
}
