//! One parsed definition, before the names in it are resolved.

use crate::TypeName;
use std::sync::Arc;

/// The two generations of ROS, where definitions, grammar and encodings differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flavour {
    /// ROS 1: `time` and `duration` are built in, `Header` has `seq`, a `byte` is signed.
    Ros1,
    /// ROS 2: bounded strings and arrays, defaults, `wstring`, quoted string constants.
    Ros2,
}

impl Flavour {
    /// The other flavour.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Flavour::Ros1 => Flavour::Ros2,
            Flavour::Ros2 => Flavour::Ros1,
        }
    }

    /// `ros1` or `ros2`.
    pub const fn name(self) -> &'static str {
        match self {
            Flavour::Ros1 => "ros1",
            Flavour::Ros2 => "ros2",
        }
    }
}

impl std::fmt::Display for Flavour {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A built-in type of fixed size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Primitive {
    /// One byte; 0 is false, every other value is true and is kept unchanged.
    Bool,
    /// Deprecated: an `int8` in ROS 1, an `uint8` in ROS 2.
    Byte,
    /// Deprecated: an `uint8`.
    Char,
    /// 8 bits, signed.
    Int8,
    /// 8 bits.
    Uint8,
    /// 16 bits, signed.
    Int16,
    /// 16 bits.
    Uint16,
    /// 32 bits, signed.
    Int32,
    /// 32 bits.
    Uint32,
    /// 64 bits, signed.
    Int64,
    /// 64 bits.
    Uint64,
    /// IEEE 754 single.
    Float32,
    /// IEEE 754 double.
    Float64,
    /// ROS 1: seconds and nanoseconds since 1970, both `uint32`.
    Time,
    /// ROS 1: seconds and nanoseconds, both `int32`.
    Duration,
}

const NAMES: [(&str, Primitive); 15] = [
    ("bool", Primitive::Bool),
    ("byte", Primitive::Byte),
    ("char", Primitive::Char),
    ("int8", Primitive::Int8),
    ("uint8", Primitive::Uint8),
    ("int16", Primitive::Int16),
    ("uint16", Primitive::Uint16),
    ("int32", Primitive::Int32),
    ("uint32", Primitive::Uint32),
    ("int64", Primitive::Int64),
    ("uint64", Primitive::Uint64),
    ("float32", Primitive::Float32),
    ("float64", Primitive::Float64),
    ("time", Primitive::Time),
    ("duration", Primitive::Duration),
];

impl Primitive {
    /// The name in a definition.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, p)| *p == self).map_or("", |(n, _)| n)
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        NAMES.iter().find(|(n, _)| *n == name).map(|(_, p)| *p)
    }

    /// Size of a word and number of words: `time` is two words of four bytes.
    pub(crate) const fn words(self) -> (u8, u32) {
        match self {
            Primitive::Bool | Primitive::Byte | Primitive::Char | Primitive::Int8 | Primitive::Uint8 => {
                (1, 1)
            }
            Primitive::Int16 | Primitive::Uint16 => (2, 1),
            Primitive::Int32 | Primitive::Uint32 | Primitive::Float32 => (4, 1),
            Primitive::Int64 | Primitive::Uint64 | Primitive::Float64 => (8, 1),
            Primitive::Time | Primitive::Duration => (4, 2),
        }
    }

    /// Size in bytes, the same in every encoding.
    pub const fn size(self) -> u32 {
        let (word, n) = self.words();
        word as u32 * n
    }
}

/// Number of elements of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arity {
    /// One.
    One,
    /// Always this many: `T[3]`.
    Fixed(u32),
    /// As many as the message states, up to this many: `T[<=3]` (ROS 2).
    Bounded(u32),
    /// As many as the message states: `T[]`.
    Unbounded,
}

impl std::fmt::Display for Arity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Arity::One => Ok(()),
            Arity::Fixed(n) => write!(f, "[{n}]"),
            Arity::Bounded(n) => write!(f, "[<={n}]"),
            Arity::Unbounded => f.write_str("[]"),
        }
    }
}

/// A type as written, with message types by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RawType {
    Primitive(Primitive),
    String { bound: Option<u32> },
    WString { bound: Option<u32> },
    Named(TypeName),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawField {
    pub(crate) name: String,
    /// The type as written, if it differs from its displayed form.
    pub(crate) written: Option<String>,
    pub(crate) ty: RawType,
    pub(crate) arity: Arity,
    pub(crate) default: Option<String>,
}

/// A named number or string in a definition; not part of the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constant {
    /// Its name.
    pub name: String,
    /// Its type, as written: `uint8`, `string`.
    pub ty: String,
    /// Its value, as written (a ROS 1 string without quotes, a ROS 2 string with them); a ROS 1 number that only Python
    /// reads, such as `1_000`, in plain form.
    pub value: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Definition {
    pub(crate) name: TypeName,
    /// Folder of its file, `msg`, `srv` or `action`, which is part of a ROS 2 name.
    pub(crate) folder: &'static str,
    pub(crate) fields: Vec<RawField>,
    /// Constants that a program can use: their names are identifiers; the last one of each name.
    pub(crate) constants: Vec<Constant>,
    /// All constants as they enter the MD5 sum, `type NAME=value`.
    pub(crate) sums: Vec<String>,
    /// The text exactly as given.
    pub(crate) text: Arc<str>,
}
