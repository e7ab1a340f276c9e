//! Messages as values, for tools that learn types only at run time.

mod decode;
mod default;
mod encode;
mod node;
mod numbers;
mod path;
mod read;
mod show;

pub use numbers::Numbers;
pub use read::Template;
pub use show::Show;

use crate::types::{Field, MessageType};
use std::sync::Arc;

/// A message, or one field of it.
///
/// A `bool` is true for every byte but 0, so that a message with other bytes in a `bool` is not reproduced byte for
/// byte; everything else is.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// `bool`.
    Bool(bool),
    /// `int8`, and `byte` in ROS 1.
    I8(i8),
    /// `uint8`, `char`, and `byte` in ROS 2.
    U8(u8),
    /// `int16`.
    I16(i16),
    /// `uint16`.
    U16(u16),
    /// `int32`.
    I32(i32),
    /// `uint32`.
    U32(u32),
    /// `int64`.
    I64(i64),
    /// `uint64`.
    U64(u64),
    /// `float32`.
    F32(f32),
    /// `float64`.
    F64(f64),
    /// ROS 1 `time`.
    Time {
        /// Seconds since 1970.
        secs: u32,
        /// Nanoseconds.
        nsecs: u32,
    },
    /// ROS 1 `duration`.
    Duration {
        /// Seconds.
        secs: i32,
        /// Nanoseconds.
        nsecs: i32,
    },
    /// A `string` that is UTF-8.
    String(String),
    /// A `string` that is not UTF-8.
    Bytes(Vec<u8>),
    /// A `wstring`: UTF-16 code units, not necessarily well-formed.
    Wide(Vec<u16>),
    /// An array of numbers.
    Numbers(Numbers),
    /// Any other array.
    List(Vec<Value>),
    /// A message.
    Message(Message),
}

/// A message: its type and a value for each field.
#[derive(Clone)]
pub struct Message {
    ty: Arc<MessageType>,
    values: Vec<Value>,
}

impl Message {
    /// Its type.
    pub fn ty(&self) -> &Arc<MessageType> {
        &self.ty
    }

    /// Its fields with their values, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&Field, &Value)> {
        self.ty.fields.iter().zip(&self.values)
    }

    /// The value of one of its own fields.
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.fields().find(|(f, _)| f.name == name).map(|(_, v)| v)
    }
}

impl PartialEq for Message {
    /// Equal names and equal values; the types' texts may differ.
    fn eq(&self, other: &Self) -> bool {
        self.ty.name == other.ty.name && self.values == other.values
    }
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut s = f.debug_struct(self.ty.name.name());
        for (field, value) in self.fields() {
            s.field(&field.name, value);
        }
        s.finish()
    }
}

impl Value {
    /// The message, if it is one.
    pub fn as_message(&self) -> Option<&Message> {
        match self {
            Value::Message(m) => Some(m),
            _ => None,
        }
    }

    /// The text, if it is a string that is UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(s) => Some(s),
            _ => None,
        }
    }

    /// The whole number, if it is one.
    pub fn as_integer(&self) -> Option<i128> {
        Some(match *self {
            Value::I8(n) => n.into(),
            Value::U8(n) => n.into(),
            Value::I16(n) => n.into(),
            Value::U16(n) => n.into(),
            Value::I32(n) => n.into(),
            Value::U32(n) => n.into(),
            Value::I64(n) => n.into(),
            Value::U64(n) => n.into(),
            _ => return None,
        })
    }

    /// The number as a float, if it is a number; large whole numbers are rounded.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::F32(x) => Some((*x).into()),
            Value::F64(x) => Some(*x),
            other => other.as_integer().map(|n| n as f64),
        }
    }

    /// Number of elements of an array, bytes or units of a string; `None` for everything else.
    pub fn count(&self) -> Option<usize> {
        match self {
            Value::String(s) => Some(s.len()),
            Value::Bytes(b) => Some(b.len()),
            Value::Wide(w) => Some(w.len()),
            Value::Numbers(n) => Some(n.len()),
            Value::List(l) => Some(l.len()),
            _ => None,
        }
    }

    /// Its kind, for error messages.
    fn kind(&self) -> String {
        match self {
            Value::Bool(_) => "a bool".into(),
            Value::F32(_) | Value::F64(_) => "a number".into(),
            Value::Time { .. } => "a time".into(),
            Value::Duration { .. } => "a duration".into(),
            Value::String(_) | Value::Bytes(_) => "a string".into(),
            Value::Wide(_) => "a wide string".into(),
            Value::Numbers(_) => "an array of numbers".into(),
            Value::List(_) => "an array".into(),
            Value::Message(m) => format!("a message {}", m.ty.name),
            _ => "a whole number".into(),
        }
    }
}
