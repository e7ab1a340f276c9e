//! Default values: zeros and empty arrays, or the defaults of a ROS 2 definition.

use super::numbers::kind;
use super::{Message, Value};
use crate::Schema;
use crate::definition::{Arity, Primitive};
use crate::parse::{parse_list, unquote};
use crate::types::{Field, FieldType, MessageType};
use std::sync::Arc;

impl Schema {
    /// A message with every field at its default.
    pub fn default_value(&self) -> Value {
        Value::Message(message(&self.inner.ty))
    }
}

pub(super) fn message(ty: &Arc<MessageType>) -> Message {
    let values = ty.fields.iter().map(|f| of_field(ty, f)).collect();
    Message {
        ty: ty.clone(),
        values,
    }
}

pub(super) fn of_field(ty: &MessageType, f: &Field) -> Value {
    // The parser has checked the text against the type; a text that is wrong all the same becomes zero.
    let texts = match (&f.default, f.arity) {
        (None, _) => Vec::new(),
        (Some(text), Arity::One) => vec![text.as_str()],
        (Some(text), _) => parse_list(text).unwrap_or_default(),
    };
    let count = match f.arity {
        Arity::One => return one(ty, &f.ty, texts.first().copied()),
        Arity::Fixed(n) => n as usize,
        Arity::Bounded(_) | Arity::Unbounded => texts.len(),
    };
    if let FieldType::Primitive(p) = &f.ty
        && let Some(kind) = kind(*p, ty.flavour)
    {
        if texts.is_empty() {
            return Value::Numbers(kind.read(&vec![0; count * p.size() as usize]));
        }
        let mut numbers = kind.empty();
        texts.iter().for_each(|t| numbers.push(&one(ty, &f.ty, Some(t))));
        return Value::Numbers(numbers);
    }
    Value::List(
        (0..count)
            .map(|i| one(ty, &f.ty, texts.get(i).copied()))
            .collect(),
    )
}

fn one(ty: &MessageType, field: &FieldType, text: Option<&str>) -> Value {
    match field {
        FieldType::Primitive(Primitive::Time) => Value::Time { secs: 0, nsecs: 0 },
        FieldType::Primitive(Primitive::Duration) => Value::Duration { secs: 0, nsecs: 0 },
        FieldType::Primitive(p) => {
            let number = kind(*p, ty.flavour).and_then(|kind| {
                let text = text.unwrap_or("0");
                match text.to_ascii_lowercase().as_str() {
                    "true" => kind.integer(1),
                    "false" => kind.integer(0),
                    _ if *p == Primitive::Bool => kind.integer((text.parse::<i64>().ok()? != 0).into()),
                    _ => match text.parse::<i128>() {
                        Ok(n) => kind.integer(n),
                        Err(_) => kind.float(text.parse().ok()?),
                    },
                }
            });
            number.unwrap_or(Value::U8(0))
        }
        FieldType::String { .. } => Value::String(text.and_then(|t| unquote(t).ok()).unwrap_or_default()),
        FieldType::WString { .. } => {
            let text = text.and_then(|t| unquote(t).ok()).unwrap_or_default();
            Value::Wide(text.encode_utf16().collect())
        }
        FieldType::Message(m) => Value::Message(message(m)),
    }
}
