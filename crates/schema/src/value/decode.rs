//! Decodes parts and bytes into values.

use super::numbers::kind;
use super::{Message, Value};
use crate::codec::{LIFTED, MAX_COUNT};
use crate::definition::{Arity, Primitive};
use crate::layout::{Fixed, natural_to_packed};
use crate::types::{Field, FieldType, MessageType};
use crate::{CodecError, Schema};
use std::sync::Arc;

impl Schema {
    /// Decodes a control part and its data parts.
    ///
    /// The value takes memory in proportion to the message, but more of it: a message of one byte in an array becomes a
    /// value of about 80 bytes.
    ///
    /// # Errors
    /// If they are not a message of this type.
    pub fn decode(&self, control: &[u8], parts: &[&[u8]]) -> Result<Value, CodecError> {
        // All checks happen here, with the names of the fields; the following code relies on them.
        self.join(control, parts)?;
        self.read_value(control, Lifted::Read(parts))
    }

    /// Decodes only a control part: as [`Schema::decode`], but arrays that are data parts become empty, and their
    /// content is not copied.
    ///
    /// # Errors
    /// As [`Schema::decode`].
    pub fn decode_small(&self, control: &[u8], parts: &[&[u8]]) -> Result<Value, CodecError> {
        self.join(control, parts)?;
        self.read_value(control, Lifted::Empty)
    }

    /// Decodes a ROS 1 message.
    ///
    /// # Errors
    /// When the bytes are not a message of this type.
    pub fn decode_ros1(&self, bytes: &[u8]) -> Result<Value, CodecError> {
        self.split_ros1(bytes)?;
        self.read_value(bytes, Lifted::None)
    }

    /// Decodes a CDR message with its encapsulation header, of either byte order.
    ///
    /// # Errors
    /// When the bytes are not a message of this type, or not plain CDR.
    pub fn decode_cdr(&self, bytes: &[u8]) -> Result<Value, CodecError> {
        let parts = self.split_cdr(bytes)?.to_parts();
        self.decode(&parts.control, &parts.slices())
    }

    fn read_value(&self, bytes: &[u8], lifted: Lifted<'_>) -> Result<Value, CodecError> {
        let mut reader = Reader {
            bytes,
            at: 0,
            lifted,
            next_part: 0,
        };
        let left = bytes.len();
        let message = reader
            .message(&self.inner.ty)
            .ok_or_else(|| CodecError::Truncated {
                field: self.name().into(),
                offset: 0,
                needed: left as u64 + 1,
                left,
            })?;
        Ok(Value::Message(message))
    }
}

/// Decodes one field that [`encode`](super::encode) wrote.
pub(super) fn field(bytes: &[u8], ty: &MessageType, field: &Field) -> Option<Value> {
    Reader {
        bytes,
        at: 0,
        lifted: Lifted::None,
        next_part: 0,
    }
    .field(ty, field)
}

/// Reads bytes that were checked before, so that `None` does not occur.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    lifted: Lifted<'a>,
    next_part: usize,
}

/// How to treat arrays that are marked as data parts.
#[derive(Clone, Copy)]
enum Lifted<'a> {
    /// There are no data parts: the mark is part of a count.
    None,
    Empty,
    Read(&'a [&'a [u8]]),
}

impl<'a> Reader<'a> {
    fn message(&mut self, ty: &Arc<MessageType>) -> Option<Message> {
        let values = ty
            .fields
            .iter()
            .map(|f| self.field(ty, f))
            .collect::<Option<_>>()?;
        Some(Message {
            ty: ty.clone(),
            values,
        })
    }

    fn field(&mut self, ty: &MessageType, f: &Field) -> Option<Value> {
        let n = match f.arity {
            Arity::One => return self.one(ty, &f.ty),
            Arity::Fixed(n) => n,
            Arity::Bounded(_) | Arity::Unbounded => {
                let word = self.word()?;
                match self.lifted {
                    Lifted::Read(parts) if word & LIFTED != 0 => {
                        let part = parts.get(self.next_part)?;
                        self.next_part += 1;
                        return lifted(ty, f, word & MAX_COUNT, part);
                    }
                    Lifted::Empty if word & LIFTED != 0 => 0,
                    _ => word,
                }
            }
        };
        self.elements(ty, f, n)
    }

    fn elements(&mut self, ty: &MessageType, f: &Field, n: u32) -> Option<Value> {
        if let FieldType::Primitive(p) = &f.ty
            && let Some(kind) = kind(*p, ty.flavour)
        {
            let len = usize::try_from(u64::from(n) * u64::from(p.size())).ok()?;
            return Some(Value::Numbers(kind.read(self.take(len)?)));
        }
        let mut list = Vec::new();
        for _ in 0..n {
            list.push(self.one(ty, &f.ty)?);
        }
        Some(Value::List(list))
    }

    fn one(&mut self, ty: &MessageType, field: &FieldType) -> Option<Value> {
        Some(match field {
            FieldType::Primitive(p) => match kind(*p, ty.flavour) {
                Some(kind) => kind.read_one(self.take(p.size() as usize)?)?,
                None => {
                    let (secs, nsecs) = (self.word()?, self.word()?);
                    match p {
                        Primitive::Time => Value::Time { secs, nsecs },
                        _ => Value::Duration {
                            secs: secs as i32,
                            nsecs: nsecs as i32,
                        },
                    }
                }
            },
            FieldType::String { .. } => {
                let len = self.word()? as usize;
                match String::from_utf8(self.take(len)?.to_vec()) {
                    Ok(s) => Value::String(s),
                    Err(e) => Value::Bytes(e.into_bytes()),
                }
            }
            FieldType::WString { .. } => {
                let len = (self.word()? as usize).checked_mul(2)?;
                let units = self.take(len)?.chunks_exact(2);
                Value::Wide(units.map(|u| u16::from_le_bytes([u[0], u[1]])).collect())
            }
            FieldType::Message(m) => Value::Message(self.message(m)?),
        })
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(len)?;
        let bytes = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    fn word(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }
}

/// The elements of a data part.
fn lifted(ty: &MessageType, f: &Field, n: u32, part: &[u8]) -> Option<Value> {
    let packed;
    let fixed: Option<&Fixed> = match &f.ty {
        FieldType::Message(m) => m.measure.fixed.as_deref(),
        _ => None,
    };
    let bytes = match fixed {
        Some(fixed) if fixed.padded() => {
            let mut buffer = vec![0; usize::try_from(u64::from(n) * u64::from(fixed.packed)).ok()?];
            natural_to_packed(fixed, part, &mut buffer);
            packed = buffer;
            &packed
        }
        _ => part,
    };
    Reader {
        bytes,
        at: 0,
        lifted: Lifted::None,
        next_part: 0,
    }
    .elements(ty, f, n)
}
