//! Encodes values into ROS 1 bytes and parts.

use super::numbers::kind;
use super::{Message, Value};
use crate::codec::MAX_COUNT;
use crate::definition::{Arity, Primitive};
use crate::types::{Field, FieldType, MessageType};
use crate::{Parts, Schema, ValueError};

impl Schema {
    /// Writes a message as ROS 1 bytes. Whole numbers may have another width than their field, if they fit.
    ///
    /// # Errors
    /// When `value` is not a message of this type.
    pub fn encode_ros1(&self, value: &Value) -> Result<Vec<u8>, ValueError> {
        let mut out = Vec::new();
        match value {
            Value::Message(m) => message(m, &self.inner.ty, &mut String::new(), &mut out)?,
            other => {
                let (expected, found) = (self.name().into(), other.kind());
                return Err(ValueError::Kind {
                    field: "message".into(),
                    expected,
                    found,
                });
            }
        }
        Ok(out)
    }

    /// Writes a message as a control part and data parts.
    ///
    /// # Errors
    /// When `value` is not a message of this type.
    pub fn encode(&self, value: &Value) -> Result<Parts, ValueError> {
        let bytes = self.encode_ros1(value)?;
        Ok(self.split_ros1(&bytes)?.to_parts())
    }

    /// Writes a message as CDR, little-endian, with its encapsulation header.
    ///
    /// # Errors
    /// When `value` is not a message of this type.
    pub fn encode_cdr(&self, value: &Value) -> Result<Vec<u8>, ValueError> {
        let bytes = self.encode_ros1(value)?;
        Ok(self.join_cdr(&bytes, &[])?)
    }
}

/// Appends all fields of `m`, which must be a `ty`. `path` is its path.
fn message(m: &Message, ty: &MessageType, path: &mut String, out: &mut Vec<u8>) -> Result<(), ValueError> {
    if m.ty.name != ty.name || m.values.len() != ty.fields.len() {
        let (expected, found) = (ty.name.to_string(), format!("a message {}", m.ty.name));
        return Err(ValueError::Kind {
            field: path.clone(),
            expected,
            found,
        });
    }
    for (f, value) in ty.fields.iter().zip(&m.values) {
        let len = path.len();
        if len > 0 {
            path.push('.');
        }
        path.push_str(&f.name);
        field(value, ty, f, path, out)?;
        path.truncate(len);
    }
    Ok(())
}

/// Appends one field of a `ty`.
pub(super) fn field(
    value: &Value,
    ty: &MessageType,
    f: &Field,
    path: &mut String,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    if f.arity == Arity::One {
        return one(value, ty, f, path, out);
    }
    let count = match value {
        Value::Numbers(n) => n.len(),
        Value::List(l) => l.len(),
        _ => return Err(mismatch(value, f, path)),
    };
    let (fits, allowed) = match f.arity {
        Arity::Fixed(n) => (count == n as usize, n.to_string()),
        Arity::Bounded(n) => (count <= n as usize, format!("at most {n}")),
        _ => (count <= MAX_COUNT as usize, format!("at most {MAX_COUNT}")),
    };
    if !fits {
        let (field, ty) = (path.clone(), f.type_text());
        return Err(ValueError::Length {
            field,
            ty,
            given: count as u64,
            allowed,
        });
    }
    if !matches!(f.arity, Arity::Fixed(_)) {
        out.extend_from_slice(&(count as u32).to_le_bytes());
    }
    if let (Value::Numbers(n), FieldType::Primitive(p)) = (value, &f.ty)
        && kind(*p, ty.flavour)
            .is_some_and(|k| std::mem::discriminant(&k.empty()) == std::mem::discriminant(n))
    {
        n.write(out);
        return Ok(());
    }
    for i in 0..count {
        let len = path.len();
        path.push_str(&format!("[{i}]"));
        match value {
            Value::List(l) => l.get(i).map_or(Ok(()), |v| one(v, ty, f, path, out))?,
            Value::Numbers(n) => n.at(i).map_or(Ok(()), |v| one(&v, ty, f, path, out))?,
            _ => {}
        }
        path.truncate(len);
    }
    Ok(())
}

/// Appends one value of the field's type, ignoring its arity.
fn one(
    value: &Value,
    ty: &MessageType,
    f: &Field,
    path: &mut String,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    match (&f.ty, value) {
        (FieldType::Primitive(Primitive::Time), Value::Time { secs, nsecs }) => {
            out.extend_from_slice(&secs.to_le_bytes());
            out.extend_from_slice(&nsecs.to_le_bytes());
        }
        (FieldType::Primitive(Primitive::Duration), Value::Duration { secs, nsecs }) => {
            out.extend_from_slice(&secs.to_le_bytes());
            out.extend_from_slice(&nsecs.to_le_bytes());
        }
        (FieldType::Primitive(p), value) => {
            let kind = kind(*p, ty.flavour).ok_or_else(|| mismatch(value, f, path))?;
            let fitted = match value {
                Value::Bool(b) if *p == Primitive::Bool => Some(Value::Bool(*b)),
                // A float32 is not converted, which preserves the bits of a NaN.
                Value::F32(x) if *p == Primitive::Float32 => Some(Value::F32(*x)),
                Value::F32(x) => kind.float((*x).into()),
                Value::F64(x) => kind.float(*x),
                other => match other.as_integer() {
                    Some(n) => Some(kind.integer(n).ok_or_else(|| ValueError::Range {
                        field: path.clone(),
                        value: n.to_string(),
                        ty: f.ty.to_string(),
                    })?),
                    None => None,
                },
            };
            let mut number = kind.empty();
            number.push(&fitted.ok_or_else(|| mismatch(value, f, path))?);
            number.write(out);
        }
        (FieldType::String { bound }, Value::String(s)) => text(s.as_bytes(), s.len(), *bound, f, path, out)?,
        (FieldType::String { bound }, Value::Bytes(b)) => text(b, b.len(), *bound, f, path, out)?,
        (FieldType::WString { bound }, Value::Wide(w)) => {
            let bytes: Vec<u8> = w.iter().flat_map(|u| u.to_le_bytes()).collect();
            text(&bytes, w.len(), *bound, f, path, out)?;
        }
        (FieldType::WString { bound }, Value::String(s)) => {
            let bytes: Vec<u8> = s.encode_utf16().flat_map(u16::to_le_bytes).collect();
            text(&bytes, bytes.len() / 2, *bound, f, path, out)?;
        }
        (FieldType::Message(inner), Value::Message(m)) => message(m, inner, path, out)?,
        _ => return Err(mismatch(value, f, path)),
    }
    Ok(())
}

fn text(
    bytes: &[u8],
    units: usize,
    bound: Option<u32>,
    f: &Field,
    path: &str,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let limit = bound.unwrap_or(u32::MAX).min(MAX_COUNT);
    if units > limit as usize {
        let (ty, allowed) = (f.ty.to_string(), format!("at most {limit}"));
        return Err(ValueError::Length {
            field: path.into(),
            ty,
            given: units as u64,
            allowed,
        });
    }
    out.extend_from_slice(&(units as u32).to_le_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

fn mismatch(value: &Value, f: &Field, path: &str) -> ValueError {
    ValueError::Kind {
        field: path.into(),
        expected: f.type_text(),
        found: value.kind(),
    }
}
