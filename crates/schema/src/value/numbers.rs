//! Arrays of numbers, as compact as on the wire.

use super::Value;
use crate::Flavour;
use crate::definition::Primitive;

macro_rules! numbers {
    ($($variant:ident($ty:ty) = $name:literal),+ $(,)?) => {
        /// An array of numbers of one type.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum Numbers {
            /// `bool[]`.
            Bool(Vec<bool>),
            $(#[doc = concat!("`", $name, "[]`.")] $variant(Vec<$ty>),)+
        }

        impl Numbers {
            /// Number of elements.
            pub fn len(&self) -> usize {
                match self {
                    Numbers::Bool(v) => v.len(),
                    $(Numbers::$variant(v) => v.len(),)+
                }
            }

            /// Whether the array is empty.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Element `i`.
            pub fn at(&self, i: usize) -> Option<Value> {
                match self {
                    Numbers::Bool(v) => v.get(i).map(|x| Value::Bool(*x)),
                    $(Numbers::$variant(v) => v.get(i).map(|x| Value::$variant(*x)),)+
                }
            }

            /// Appends an element of the same type; ignores any other.
            pub(super) fn push(&mut self, value: &Value) {
                match (self, value) {
                    (Numbers::Bool(v), Value::Bool(x)) => v.push(*x),
                    $((Numbers::$variant(v), Value::$variant(x)) => v.push(*x),)+
                    _ => {}
                }
            }

            /// An empty array of the same type.
            pub(super) fn like(other: &Numbers) -> Self {
                match other {
                    Numbers::Bool(_) => Numbers::Bool(Vec::new()),
                    $(Numbers::$variant(_) => Numbers::$variant(Vec::new()),)+
                }
            }

            /// Appends the bytes of all elements, little-endian.
            pub(super) fn write(&self, out: &mut Vec<u8>) {
                match self {
                    Numbers::Bool(v) => out.extend(v.iter().map(|x| u8::from(*x))),
                    $(Numbers::$variant(v) => v.iter().for_each(|x| out.extend_from_slice(&x.to_le_bytes())),)+
                }
            }

            /// Reads elements from little-endian bytes.
            fn read(kind: Kind, bytes: &[u8]) -> Self {
                match kind {
                    Kind::Bool => Numbers::Bool(bytes.iter().map(|b| *b != 0).collect()),
                    $(Kind::$variant => {
                        const N: usize = size_of::<$ty>();
                        let words = bytes.chunks_exact(N).filter_map(|w| <[u8; N]>::try_from(w).ok());
                        Numbers::$variant(words.map(<$ty>::from_le_bytes).collect())
                    })+
                }
            }
        }

        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Kind { Bool, $($variant),+ }
    };
}

numbers! {
    I8(i8) = "int8",
    U8(u8) = "uint8",
    I16(i16) = "int16",
    U16(u16) = "uint16",
    I32(i32) = "int32",
    U32(u32) = "uint32",
    I64(i64) = "int64",
    U64(u64) = "uint64",
    F32(f32) = "float32",
    F64(f64) = "float64",
}

/// How a primitive is stored as a value; `None` for `time` and `duration`, which are two numbers.
pub(super) fn kind(p: Primitive, flavour: Flavour) -> Option<Kind> {
    Some(match p {
        Primitive::Bool => Kind::Bool,
        Primitive::Byte if flavour == Flavour::Ros1 => Kind::I8,
        Primitive::Int8 => Kind::I8,
        Primitive::Byte | Primitive::Char | Primitive::Uint8 => Kind::U8,
        Primitive::Int16 => Kind::I16,
        Primitive::Uint16 => Kind::U16,
        Primitive::Int32 => Kind::I32,
        Primitive::Uint32 => Kind::U32,
        Primitive::Int64 => Kind::I64,
        Primitive::Uint64 => Kind::U64,
        Primitive::Float32 => Kind::F32,
        Primitive::Float64 => Kind::F64,
        Primitive::Time | Primitive::Duration => return None,
    })
}

impl Kind {
    /// An array of this kind.
    pub(super) fn read(self, bytes: &[u8]) -> Numbers {
        Numbers::read(self, bytes)
    }

    /// One number of this kind.
    pub(super) fn read_one(self, bytes: &[u8]) -> Option<Value> {
        Numbers::read(self, bytes).at(0)
    }

    /// The whole number `n` as this kind, if it fits. Floats round it.
    pub(super) fn integer(self, n: i128) -> Option<Value> {
        Some(match self {
            Kind::Bool => Value::Bool(match n {
                0 => false,
                1 => true,
                _ => return None,
            }),
            Kind::I8 => Value::I8(n.try_into().ok()?),
            Kind::U8 => Value::U8(n.try_into().ok()?),
            Kind::I16 => Value::I16(n.try_into().ok()?),
            Kind::U16 => Value::U16(n.try_into().ok()?),
            Kind::I32 => Value::I32(n.try_into().ok()?),
            Kind::U32 => Value::U32(n.try_into().ok()?),
            Kind::I64 => Value::I64(n.try_into().ok()?),
            Kind::U64 => Value::U64(n.try_into().ok()?),
            Kind::F32 => Value::F32(n as f32),
            Kind::F64 => Value::F64(n as f64),
        })
    }

    /// The float `x` as this kind, if the kind is a float and, unless `x` is infinite, can represent it.
    pub(super) fn float(self, x: f64) -> Option<Value> {
        match self {
            Kind::F32 if x.is_finite() && !(x as f32).is_finite() => None,
            Kind::F32 => Some(Value::F32(x as f32)),
            Kind::F64 => Some(Value::F64(x)),
            _ => None,
        }
    }

    /// An empty array of this kind.
    pub(super) fn empty(self) -> Numbers {
        Numbers::read(self, &[])
    }
}
