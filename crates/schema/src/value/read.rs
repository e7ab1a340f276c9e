//! Reads values from YAML or JSON, in the forms of `rostopic pub`.

use super::node::Node;
use super::numbers::{Kind, kind};
use super::path::field_names;
use super::{Message, Value, default};
use crate::definition::{Arity, Primitive};
use crate::types::{Field, FieldType, MessageType};
use crate::{Schema, ValueError};
use std::sync::Arc;
use std::time::Duration;

/// Most scalars, lists and mappings in one YAML text.
const MAX_NODES: usize = 4_000_000;
/// Most of them that aliases may repeat: messages rarely need aliases, and YAML bombs consist of them.
const MAX_ALIASED: usize = 100_000;

/// Messages as text, parsed before their type and their time of publishing are known.
#[derive(Debug, Clone, PartialEq)]
pub struct Template(Node);

impl Template {
    /// Parses one message from YAML; an empty text is the default message.
    ///
    /// # Errors
    /// If the text is not YAML.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        if text.trim().is_empty() {
            return Ok(Template(Node::Null));
        }
        let options = serde_saphyr::options! {
            non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::PassThrough,
            // `yes` and `on` are strings, only `true` is a boolean.
            strict_booleans: true,
            with_snippet: false,
            budget: serde_saphyr::budget! {
                max_nodes: MAX_NODES,
                max_events: 2 * MAX_NODES,
                max_recorded_anchor_events: MAX_ALIASED,
            },
            alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_ALIASED },
        };
        serde_saphyr::from_str_with_options(text, options)
            .map(Template)
            .map_err(|e| ValueError::Text {
                reason: e.to_string(),
            })
    }

    /// Parses all messages of a text in the form of `topic echo`: YAML documents separated by a line `---`, also after
    /// the last, or one line of JSON each. A text without any is one default message.
    ///
    /// # Errors
    /// If a document is not YAML.
    pub fn all(text: &str) -> Result<Vec<Self>, ValueError> {
        let mut documents = vec![String::new()];
        for line in text.lines() {
            let is_json = |line: &str| line.starts_with('{') && line.trim_end().ends_with('}');
            let document = documents.last_mut();
            if line.trim_end() == "---" {
                documents.push(String::new());
            } else if let Some(document) = document {
                // A mapping in braces ends where another starts: one line of JSON each.
                if is_json(line) && is_json(document.trim_end()) && !document.trim_end().contains('\n') {
                    documents.push(String::new());
                }
                if let Some(document) = documents.last_mut() {
                    document.push_str(line);
                    document.push('\n');
                }
            }
        }
        documents.retain(|document| !document.trim().is_empty());
        if documents.is_empty() {
            return Ok(vec![Template(Node::Null)]);
        }
        documents.iter().map(|document| Self::parse(document)).collect()
    }

    /// Whether it contains the word `now` or `auto`, so that it may differ each time it is published.
    pub fn is_timed(&self) -> bool {
        fn any(node: &Node) -> bool {
            match node {
                Node::Text(text) => text == NOW || text == AUTO,
                Node::List(items) => items.iter().any(any),
                Node::Map(entries) => entries.iter().any(|(_, node)| any(node)),
                _ => false,
            }
        }
        any(&self.0)
    }
}

/// Replaced with the time of publishing, in place of a time.
const NOW: &str = "now";
/// Replaced with a header with the time of publishing, in place of a header.
const AUTO: &str = "auto";

/// Position of the parser in a message.
struct At {
    path: String,
    /// Time that `now` stands for, since 1970.
    now: Option<Duration>,
}

impl Schema {
    /// Parses a message from YAML (JSON is YAML), in the forms of `rostopic pub`: a mapping of fields, where missing
    /// fields have their default; a list with one item for every field; or, for a message with one field, only that
    /// field's value. An empty text is the default message.
    ///
    /// A time is a mapping `{secs, nsecs}`, a list of the two, a whole number of nanoseconds, or a decimal number of
    /// seconds. A float accepts `.nan`, `.inf`, `nan`, `inf`, `-inf`. A `uint8[]` also accepts a string, whose bytes
    /// become its elements.
    ///
    /// # Errors
    /// If the text is not YAML, names an unknown field, or a value does not fit its field.
    pub fn value_from_yaml(&self, text: &str) -> Result<Value, ValueError> {
        self.value_from_node(&Template::parse(text)?.0, None)
    }

    /// As [`value_from_yaml`](Self::value_from_yaml); a time may also be `now` and a header `auto`, which are replaced
    /// with the time of publishing, `now` since 1970.
    ///
    /// # Errors
    /// If the template names an unknown field, or a value does not fit its field.
    pub fn value_from_template(&self, template: &Template, now: Duration) -> Result<Value, ValueError> {
        self.value_from_node(&template.0, Some(now))
    }

    /// A message from a JSON value; as [`value_from_yaml`](Self::value_from_yaml).
    ///
    /// # Errors
    /// If the value names an unknown field, or a value does not fit its field.
    pub fn value_from_json(&self, json: &serde_json::Value) -> Result<Value, ValueError> {
        let node = serde::Deserialize::deserialize(json);
        let node = node.map_err(|e: serde_json::Error| ValueError::Text {
            reason: e.to_string(),
        })?;
        self.value_from_node(&node, None)
    }

    fn value_from_node(&self, node: &Node, now: Option<Duration>) -> Result<Value, ValueError> {
        let ty = &self.inner.ty;
        let mut at = At {
            path: String::new(),
            now,
        };
        if let (false, [field]) = (
            matches!(node, Node::Null | Node::Map(_) | Node::List(_)),
            ty.fields.as_slice(),
        ) {
            at.path.push_str(&field.name);
            let values = vec![of_field(node, ty, field, &mut at)?];
            return Ok(Value::Message(Message {
                ty: ty.clone(),
                values,
            }));
        }
        Ok(Value::Message(message(node, ty, &mut at)?))
    }
}

fn message(node: &Node, ty: &Arc<MessageType>, at: &mut At) -> Result<Message, ValueError> {
    let base = at.path.len();
    let inner = |at: &mut At, name: &str| {
        if base > 0 {
            at.path.push('.');
        }
        at.path.push_str(name);
    };
    match node {
        Node::Null => Ok(default::message(ty)),
        Node::Text(word) if at.now.is_some() && stands_for(word, ty) => {
            // ROS 1's header has its stamp as a time, ROS 2's as a message with the two numbers.
            let word = Node::Text(NOW.into());
            let node = match (ty.name.name(), at.now) {
                ("Header", _) => Node::Map(vec![("stamp".into(), word)]),
                (_, now) => seconds(now.unwrap_or_default()),
            };
            message(&node, ty, at)
        }
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
                inner(at, name);
                *slot = of_field(node, ty, field, at)?;
                at.path.truncate(base);
            }
            Ok(out)
        }
        Node::List(items) => {
            if items.len() != ty.fields.len() {
                return Err(ValueError::Length {
                    field: if base > 0 {
                        at.path.clone()
                    } else {
                        "message".into()
                    },
                    ty: ty.name.to_string(),
                    given: items.len() as u64,
                    allowed: ty.fields.len().to_string(),
                });
            }
            let mut values = Vec::with_capacity(items.len());
            for (node, field) in items.iter().zip(&ty.fields) {
                inner(at, &field.name);
                values.push(of_field(node, ty, field, at)?);
                at.path.truncate(base);
            }
            Ok(Message {
                ty: ty.clone(),
                values,
            })
        }
        other => Err(ValueError::Kind {
            field: if base > 0 {
                at.path.clone()
            } else {
                "message".into()
            },
            expected: ty.name.to_string(),
            found: other.describe(),
        }),
    }
}

fn of_field(node: &Node, ty: &MessageType, f: &Field, at: &mut At) -> Result<Value, ValueError> {
    if matches!(node, Node::Null) {
        return Ok(default::of_field(ty, f));
    }
    if f.arity == Arity::One {
        return one(node, ty, f, at);
    }
    let element = match &f.ty {
        FieldType::Primitive(p) => kind(*p, ty.flavour),
        _ => None,
    };
    let cut = |at: &At| ValueError::Cut {
        field: at.path.clone(),
    };
    let (value, count) = match (node, element) {
        (Node::Text(text), Some(_)) if is_cut(text) => return Err(cut(at)),
        (Node::Text(text), Some(Kind::U8)) => (Value::Numbers(Kind::U8.read(text.as_bytes())), text.len()),
        (Node::List(items), _) => {
            let mut numbers = element.map(Kind::empty);
            let mut list = Vec::new();
            if matches!(items.last(), Some(Node::Text(text)) if is_cut(text)) {
                return Err(cut(at));
            }
            for (i, node) in items.iter().enumerate() {
                let len = at.path.len();
                at.path.push_str(&format!("[{i}]"));
                let value = one(node, ty, f, at)?;
                at.path.truncate(len);
                match &mut numbers {
                    Some(numbers) => numbers.push(&value),
                    None => list.push(value),
                }
            }
            (numbers.map_or(Value::List(list), Value::Numbers), items.len())
        }
        (other, _) => return Err(mismatch(other, f, &at.path)),
    };
    let (fits, allowed) = match f.arity {
        Arity::Fixed(n) => (count == n as usize, n.to_string()),
        Arity::Bounded(n) => (count <= n as usize, format!("at most {n}")),
        _ => (true, String::new()),
    };
    if !fits {
        let (field, ty) = (at.path.clone(), f.type_text());
        return Err(ValueError::Length {
            field,
            ty,
            given: count as u64,
            allowed,
        });
    }
    Ok(value)
}

fn one(node: &Node, ty: &MessageType, f: &Field, at: &mut At) -> Result<Value, ValueError> {
    match (&f.ty, node) {
        (FieldType::Primitive(p @ (Primitive::Time | Primitive::Duration)), node) => {
            time(node, *p == Primitive::Time, at).unwrap_or_else(|| Err(mismatch(node, f, &at.path)))
        }
        (FieldType::Primitive(p), node) => {
            let kind = kind(*p, ty.flavour).ok_or_else(|| mismatch(node, f, &at.path))?;
            let range = || ValueError::Range {
                field: at.path.clone(),
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
                    _ => Err(mismatch(node, f, &at.path)),
                },
                _ => Err(mismatch(node, f, &at.path)),
            }
        }
        (FieldType::String { bound }, Node::Text(t)) => {
            check_len(t.len(), *bound, f, &at.path)?;
            Ok(Value::String(t.clone()))
        }
        (FieldType::WString { bound }, Node::Text(t)) => {
            let units: Vec<u16> = t.encode_utf16().collect();
            check_len(units.len(), *bound, f, &at.path)?;
            Ok(Value::Wide(units))
        }
        (FieldType::Message(m), node) => Ok(Value::Message(message(node, m, at)?)),
        _ => Err(mismatch(node, f, &at.path)),
    }
}

/// A time or duration; `None` if the node has none of the forms.
fn time(node: &Node, time: bool, at: &At) -> Option<Result<Value, ValueError>> {
    const NANOS: i128 = 1_000_000_000;
    let (secs, nsecs) = match node {
        Node::Text(word) if word == NOW && time => {
            let now = at.now?;
            (now.as_secs().into(), now.subsec_nanos().into())
        }
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
        field: at.path.clone(),
        value: format!("{secs} s {nsecs} ns"),
        ty: if time { "time".into() } else { "duration".into() },
    }))
}

/// Whether the word stands for a whole message of this type.
fn stands_for(word: &str, ty: &MessageType) -> bool {
    match (ty.name.package(), ty.name.name()) {
        ("std_msgs", "Header") => word == AUTO,
        ("builtin_interfaces", "Time") => word == NOW,
        _ => false,
    }
}

/// A time in the form of ROS 2's message.
fn seconds(time: Duration) -> Node {
    let (secs, nsecs) = (time.as_secs().into(), time.subsec_nanos().into());
    Node::List(vec![Node::Integer(secs), Node::Integer(nsecs)])
}

/// The placeholder of elements that are not shown; see [`Show`](super::Show).
fn is_cut(text: &str) -> bool {
    (text.starts_with("… ") && text.ends_with(" more")) || (text.starts_with('<') && text.ends_with(" …>"))
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
