//! Values from YAML or JSON, as `rostopic pub` takes them.

use super::node::Node;
use super::numbers::{Kind, kind};
use super::path::field_names;
use super::{Message, Value, default};
use crate::definition::{Arity, Primitive};
use crate::types::{Field, FieldType, MessageType};
use crate::{Schema, ValueError};
use std::sync::Arc;

/// Most scalars, lists and mappings in one YAML text.
const MAX_NODES: usize = 4_000_000;
/// Most of them that aliases may repeat: messages have little use for aliases, and bombs are made of them.
const MAX_ALIASED: usize = 100_000;

impl Schema {
    /// A message from YAML (JSON is YAML), as the arguments of `rostopic pub`: a mapping of fields, of which
    /// those left out keep their default; a list with one item for every field; or, for a message of one
    /// field, that field's value alone. An empty text is the default message.
    ///
    /// A time is a mapping `{secs, nsecs}`, a list of the two, a whole number of nanoseconds, or a decimal
    /// number of seconds. A float takes `.nan`, `.inf`, `nan`, `inf`, `-inf`. A `uint8[]` also takes a string,
    /// whose bytes it becomes.
    ///
    /// # Errors
    /// When the text is not YAML, names a field that is not there, or a value does not fit its field.
    pub fn value_from_yaml(&self, text: &str) -> Result<Value, ValueError> {
        let node = if text.trim().is_empty() {
            Node::Null
        } else {
            let options = serde_saphyr::options! {
                non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::PassThrough,
                // `yes` and `on` are words, `true` is the truth.
                strict_booleans: true,
                with_snippet: false,
                budget: serde_saphyr::budget! {
                    max_nodes: MAX_NODES,
                    max_events: 2 * MAX_NODES,
                    max_recorded_anchor_events: MAX_ALIASED,
                },
                alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_ALIASED },
            };
            serde_saphyr::from_str_with_options(text, options).map_err(|e| ValueError::Text {
                reason: e.to_string(),
            })?
        };
        self.value_from_node(&node)
    }

    /// A message from a JSON value; as [`value_from_yaml`](Self::value_from_yaml).
    ///
    /// # Errors
    /// When it names a field that is not there, or a value does not fit its field.
    pub fn value_from_json(&self, json: &serde_json::Value) -> Result<Value, ValueError> {
        let node = serde::Deserialize::deserialize(json);
        self.value_from_node(&node.map_err(|e: serde_json::Error| ValueError::Text {
            reason: e.to_string(),
        })?)
    }

    fn value_from_node(&self, node: &Node) -> Result<Value, ValueError> {
        let ty = &self.inner.ty;
        let mut path = String::new();
        if let (false, [field]) = (
            matches!(node, Node::Null | Node::Map(_) | Node::List(_)),
            ty.fields.as_slice(),
        ) {
            path.push_str(&field.name);
            let values = vec![of_field(node, ty, field, &mut path)?];
            return Ok(Value::Message(Message {
                ty: ty.clone(),
                values,
            }));
        }
        Ok(Value::Message(message(node, ty, &mut path)?))
    }
}

fn message(node: &Node, ty: &Arc<MessageType>, path: &mut String) -> Result<Message, ValueError> {
    let base = path.len();
    let inner = |path: &mut String, name: &str| {
        if base > 0 {
            path.push('.');
        }
        path.push_str(name);
    };
    match node {
        Node::Null => Ok(default::message(ty)),
        Node::Map(entries) => {
            let mut out = default::message(ty);
            for (name, node) in entries {
                let found = ty
                    .fields
                    .iter()
                    .zip(&mut out.values)
                    .find(|(f, _)| f.name == *name);
                let Some((field, slot)) = found else {
                    let (ty, known) = (ty.name.to_string(), field_names(ty));
                    return Err(ValueError::NoField {
                        ty,
                        field: name.clone(),
                        known,
                    });
                };
                inner(path, name);
                *slot = of_field(node, ty, field, path)?;
                path.truncate(base);
            }
            Ok(out)
        }
        Node::List(items) => {
            if items.len() != ty.fields.len() {
                return Err(ValueError::Length {
                    field: if base > 0 { path.clone() } else { "message".into() },
                    ty: ty.name.to_string(),
                    given: items.len() as u64,
                    allowed: ty.fields.len().to_string(),
                });
            }
            let mut values = Vec::with_capacity(items.len());
            for (node, field) in items.iter().zip(&ty.fields) {
                inner(path, &field.name);
                values.push(of_field(node, ty, field, path)?);
                path.truncate(base);
            }
            Ok(Message {
                ty: ty.clone(),
                values,
            })
        }
        other => Err(ValueError::Kind {
            field: if base > 0 { path.clone() } else { "message".into() },
            expected: ty.name.to_string(),
            found: other.describe(),
        }),
    }
}

fn of_field(node: &Node, ty: &MessageType, f: &Field, path: &mut String) -> Result<Value, ValueError> {
    if matches!(node, Node::Null) {
        return Ok(default::of_field(ty, f));
    }
    if f.arity == Arity::One {
        return one(node, ty, f, path);
    }
    let element = match &f.ty {
        FieldType::Primitive(p) => kind(*p, ty.flavour),
        _ => None,
    };
    let (value, count) = match (node, element) {
        (Node::Text(text), Some(Kind::U8)) => (Value::Numbers(Kind::U8.read(text.as_bytes())), text.len()),
        (Node::List(items), _) => {
            let mut numbers = element.map(Kind::empty);
            let mut list = Vec::new();
            for (i, node) in items.iter().enumerate() {
                let len = path.len();
                path.push_str(&format!("[{i}]"));
                let value = one(node, ty, f, path)?;
                path.truncate(len);
                match &mut numbers {
                    Some(numbers) => numbers.push(&value),
                    None => list.push(value),
                }
            }
            (numbers.map_or(Value::List(list), Value::Numbers), items.len())
        }
        (other, _) => return Err(mismatch(other, f, path)),
    };
    let (fits, allowed) = match f.arity {
        Arity::Fixed(n) => (count == n as usize, n.to_string()),
        Arity::Bounded(n) => (count <= n as usize, format!("at most {n}")),
        _ => (true, String::new()),
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
    Ok(value)
}

fn one(node: &Node, ty: &MessageType, f: &Field, path: &mut String) -> Result<Value, ValueError> {
    match (&f.ty, node) {
        (FieldType::Primitive(p @ (Primitive::Time | Primitive::Duration)), node) => {
            time(node, *p == Primitive::Time, path).unwrap_or_else(|| Err(mismatch(node, f, path)))
        }
        (FieldType::Primitive(p), node) => {
            let kind = kind(*p, ty.flavour).ok_or_else(|| mismatch(node, f, path))?;
            let range = || ValueError::Range {
                field: path.clone(),
                value: node.describe(),
                ty: f.ty.to_string(),
            };
            match (kind, node) {
                (Kind::Bool, Node::Bool(b)) => Ok(Value::Bool(*b)),
                (_, Node::Integer(n)) => kind.integer(*n).ok_or_else(range),
                (Kind::F32 | Kind::F64, Node::Float(x)) => kind.float(*x).ok_or_else(range),
                // 3.0 is a whole number; 3.5 and 1e300 are not.
                (_, Node::Float(x)) if kind != Kind::Bool && x.fract() == 0.0 && x.abs() < 9e15 => {
                    kind.integer(*x as i128).ok_or_else(range)
                }
                (Kind::F32 | Kind::F64, Node::Text(t)) => match t.to_ascii_lowercase().as_str() {
                    "nan" | ".nan" => kind.float(f64::NAN).ok_or_else(range),
                    "inf" | ".inf" | "infinity" => kind.float(f64::INFINITY).ok_or_else(range),
                    "-inf" | "-.inf" | "-infinity" => kind.float(f64::NEG_INFINITY).ok_or_else(range),
                    _ => Err(mismatch(node, f, path)),
                },
                _ => Err(mismatch(node, f, path)),
            }
        }
        (FieldType::String { bound }, Node::Text(t)) => {
            check_len(t.len(), *bound, f, path)?;
            Ok(Value::String(t.clone()))
        }
        (FieldType::WString { bound }, Node::Text(t)) => {
            let units: Vec<u16> = t.encode_utf16().collect();
            check_len(units.len(), *bound, f, path)?;
            Ok(Value::Wide(units))
        }
        (FieldType::Message(m), node) => Ok(Value::Message(message(node, m, path)?)),
        _ => Err(mismatch(node, f, path)),
    }
}

/// A time or duration; `None` when the node has none of the forms.
fn time(node: &Node, time: bool, path: &str) -> Option<Result<Value, ValueError>> {
    const NANOS: i128 = 1_000_000_000;
    let (secs, nsecs) = match node {
        Node::Integer(ns) => (ns.div_euclid(NANOS), ns.rem_euclid(NANOS)),
        Node::Float(s) if s.is_finite() && s.abs() < 1e12 => {
            let ns = (s * 1e9).round() as i128;
            (ns.div_euclid(NANOS), ns.rem_euclid(NANOS))
        }
        Node::List(items) => match items.as_slice() {
            [Node::Integer(s), Node::Integer(ns)] => (*s, *ns),
            _ => return None,
        },
        Node::Map(entries) => {
            let (mut secs, mut nsecs) = (0, 0);
            for (name, node) in entries {
                match (name.as_str(), node) {
                    ("secs" | "sec", Node::Integer(n)) => secs = *n,
                    ("nsecs" | "nanosec", Node::Integer(n)) => nsecs = *n,
                    ("secs" | "sec" | "nsecs" | "nanosec", _) => return None,
                    _ => {
                        let (ty, known) = ("a time".into(), "secs, nsecs".into());
                        return Some(Err(ValueError::NoField {
                            ty,
                            field: name.clone(),
                            known,
                        }));
                    }
                }
            }
            (secs, nsecs)
        }
        _ => return None,
    };
    let value = if time {
        secs.try_into()
            .ok()
            .zip(nsecs.try_into().ok())
            .map(|(secs, nsecs)| Value::Time { secs, nsecs })
    } else {
        secs.try_into()
            .ok()
            .zip(nsecs.try_into().ok())
            .map(|(secs, nsecs)| Value::Duration { secs, nsecs })
    };
    Some(value.ok_or_else(|| ValueError::Range {
        field: path.into(),
        value: format!("{secs} s {nsecs} ns"),
        ty: if time { "time".into() } else { "duration".into() },
    }))
}

fn check_len(units: usize, bound: Option<u32>, f: &Field, path: &str) -> Result<(), ValueError> {
    match bound {
        Some(bound) if units > bound as usize => Err(ValueError::Length {
            field: path.into(),
            ty: f.ty.to_string(),
            given: units as u64,
            allowed: format!("at most {bound}"),
        }),
        _ => Ok(()),
    }
}

fn mismatch(node: &Node, f: &Field, path: &str) -> ValueError {
    ValueError::Kind {
        field: path.into(),
        expected: f.type_text(),
        found: node.describe(),
    }
}
