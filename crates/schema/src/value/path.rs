//! Fields by path: `transforms[3].header.stamp.secs`.

use super::{Message, Numbers, Value, decode, encode};
use crate::definition::Arity;
use crate::types::{Field, MessageType};
use crate::{FieldType, ValueError};

enum Step<'a> {
    Name(&'a str),
    Index(usize),
}

impl Value {
    /// The value at `path`, such as `header.stamp.secs` or `ranges[3]`; the empty path is the value itself.
    ///
    /// # Errors
    /// If the path is invalid, or does not exist in the value.
    pub fn get(&self, path: &str) -> Result<Value, ValueError> {
        let mut at = Ok(self);
        for (seen, step) in parse(path)? {
            // The parts of a time and the elements of a number array are not stored as values.
            let found = match at {
                Ok(value) => value.step(&step),
                Err(_) => None,
            };
            at = match found {
                Some(Found::Inner(value)) => Ok(value),
                Some(Found::Made(value)) if seen.len() == path.len() => return Ok(value),
                _ => return Err(self.no_field(path, seen)),
            };
        }
        at.cloned()
    }

    /// Replaces the value at `path`. A whole number may have another width than the field, if it fits.
    ///
    /// # Errors
    /// If the path does not exist, or `value` does not fit. The message stays unchanged then.
    pub fn set(&mut self, path: &str, value: Value) -> Result<(), ValueError> {
        let steps: Vec<_> = parse(path)?.into_iter().map(|(_, step)| step).collect();
        match (self, steps.split_first()) {
            (Value::Message(m), Some((Step::Name(name), rest))) => set_field(m, name, rest, &value, path),
            (other, _) => Err(other.no_field(path, path)),
        }
    }

    fn step(&self, step: &Step<'_>) -> Option<Found<'_>> {
        Some(match (self, step) {
            (Value::Message(m), Step::Name(name)) => Found::Inner(m.field(name)?),
            (Value::List(l), Step::Index(i)) => Found::Inner(l.get(*i)?),
            (Value::Numbers(n), Step::Index(i)) => Found::Made(n.at(*i)?),
            (Value::Time { secs, .. }, Step::Name("secs" | "sec")) => Found::Made(Value::U32(*secs)),
            (Value::Time { nsecs, .. }, Step::Name("nsecs" | "nanosec")) => Found::Made(Value::U32(*nsecs)),
            (Value::Duration { secs, .. }, Step::Name("secs" | "sec")) => Found::Made(Value::I32(*secs)),
            (Value::Duration { nsecs, .. }, Step::Name("nsecs" | "nanosec")) => {
                Found::Made(Value::I32(*nsecs))
            }
            _ => return None,
        })
    }

    /// An error that lists the existing fields instead of the last part of `seen`.
    fn no_field(&self, path: &str, seen: &str) -> ValueError {
        let cut = seen.rfind(['.', '[']).unwrap_or(0);
        let (parent, field) = (seen.get(..cut).unwrap_or(""), seen.get(cut..).unwrap_or(path));
        let parent = if parent.is_empty() {
            Some(self.clone())
        } else {
            self.get(parent).ok()
        };
        let field = field.trim_start_matches('.').to_owned();
        let (ty, known) = match parent {
            Some(Value::Message(m)) => (m.ty.name.to_string(), field_names(&m.ty)),
            Some(Value::Time { .. } | Value::Duration { .. }) => ("a time".into(), "secs, nsecs".into()),
            Some(Value::List(l)) => ("the array".into(), format!("{} elements", l.len())),
            Some(Value::Numbers(n)) => ("the array".into(), format!("{} elements", n.len())),
            Some(other) => (other.kind(), "none".into()),
            None => ("the message".into(), "none of that path".into()),
        };
        ValueError::NoField { ty, field, known }
    }
}

enum Found<'a> {
    Inner(&'a Value),
    Made(Value),
}

pub(super) fn field_names(ty: &MessageType) -> String {
    let names: Vec<_> = ty.fields.iter().map(|f| f.name.as_str()).collect();
    if names.is_empty() {
        "none".into()
    } else {
        names.join(", ")
    }
}

fn set_field(
    m: &mut Message,
    name: &str,
    rest: &[Step<'_>],
    value: &Value,
    path: &str,
) -> Result<(), ValueError> {
    let Some(index) = m.ty.fields.iter().position(|f| f.name == name) else {
        let (ty, known) = (m.ty.name.to_string(), field_names(&m.ty));
        return Err(ValueError::NoField {
            ty,
            field: name.into(),
            known,
        });
    };
    let ty = m.ty.clone();
    match (ty.fields.get(index), m.values.get_mut(index)) {
        (Some(field), Some(slot)) => set_at(slot, &ty, field, rest, value, path),
        _ => Ok(()),
    }
}

fn set_at(
    slot: &mut Value,
    ty: &MessageType,
    field: &Field,
    rest: &[Step<'_>],
    value: &Value,
    path: &str,
) -> Result<(), ValueError> {
    let Some((step, rest)) = rest.split_first() else {
        *slot = fit(value, ty, field, path)?;
        return Ok(());
    };
    let element = Field {
        arity: Arity::One,
        ..field.clone()
    };
    match (slot, step) {
        (Value::Message(m), Step::Name(name)) => return set_field(m, name, rest, value, path),
        (Value::List(l), Step::Index(i)) => {
            if let Some(slot) = l.get_mut(*i) {
                return set_at(slot, ty, &element, rest, value, path);
            }
        }
        (Value::Numbers(numbers), Step::Index(i)) if *i < numbers.len() && rest.is_empty() => {
            let value = fit(value, ty, &element, path)?;
            let mut new = Numbers::like(numbers);
            for k in 0..numbers.len() {
                match numbers.at(k) {
                    _ if k == *i => new.push(&value),
                    Some(old) => new.push(&old),
                    None => {}
                }
            }
            *numbers = new;
            return Ok(());
        }
        (Value::Time { secs, nsecs }, Step::Name(part)) if rest.is_empty() => {
            let n = value
                .as_integer()
                .and_then(|n| u32::try_from(n).ok())
                .ok_or_else(|| range(value, path, "uint32"))?;
            match *part {
                "secs" | "sec" => *secs = n,
                "nsecs" | "nanosec" => *nsecs = n,
                _ => return Err(no_part(part)),
            }
            return Ok(());
        }
        (Value::Duration { secs, nsecs }, Step::Name(part)) if rest.is_empty() => {
            let n = value
                .as_integer()
                .and_then(|n| i32::try_from(n).ok())
                .ok_or_else(|| range(value, path, "int32"))?;
            match *part {
                "secs" | "sec" => *secs = n,
                "nsecs" | "nanosec" => *nsecs = n,
                _ => return Err(no_part(part)),
            }
            return Ok(());
        }
        _ => {}
    }
    let wanted = match step {
        Step::Name(name) => (*name).to_owned(),
        Step::Index(i) => format!("[{i}]"),
    };
    let known = match &field.ty {
        FieldType::Message(m) if field.arity == Arity::One => field_names(m),
        _ => "no such part".into(),
    };
    Err(ValueError::NoField {
        ty: field.type_text(),
        field: wanted,
        known,
    })
}

/// The value as the field stores it: the result of writing and reading it.
fn fit(value: &Value, ty: &MessageType, field: &Field, path: &str) -> Result<Value, ValueError> {
    let mut bytes = Vec::new();
    encode::field(value, ty, field, &mut path.to_owned(), &mut bytes)?;
    decode::field(&bytes, ty, field).ok_or_else(|| ValueError::Path { path: path.into() })
}

fn range(value: &Value, path: &str, ty: &str) -> ValueError {
    ValueError::Range {
        field: path.into(),
        value: value.to_string(),
        ty: ty.into(),
    }
}

fn no_part(part: &str) -> ValueError {
    ValueError::NoField {
        ty: "a time".into(),
        field: part.into(),
        known: "secs, nsecs".into(),
    }
}

/// Splits a path into steps; each comes with the path up to and including it.
fn parse(path: &str) -> Result<Vec<(&str, Step<'_>)>, ValueError> {
    let bad = || ValueError::Path { path: path.into() };
    let mut out = Vec::new();
    let mut at = 0;
    while at < path.len() {
        let rest = path.get(at..).ok_or_else(bad)?;
        if let Some(inner) = rest.strip_prefix('[') {
            let (digits, _) = inner.split_once(']').ok_or_else(bad)?;
            at += digits.len() + 2;
            let index = digits.parse().map_err(|_| bad())?;
            out.push((path.get(..at).ok_or_else(bad)?, Step::Index(index)));
            continue;
        }
        let rest = match rest.strip_prefix('.') {
            Some(rest) if at > 0 => {
                at += 1;
                rest
            }
            None if at == 0 => rest,
            _ => return Err(bad()),
        };
        let len = rest.find(['.', '[']).unwrap_or(rest.len());
        let name = rest.get(..len).filter(|n| !n.is_empty()).ok_or_else(bad)?;
        at += len;
        out.push((path.get(..at).ok_or_else(bad)?, Step::Name(name)));
    }
    Ok(out)
}
