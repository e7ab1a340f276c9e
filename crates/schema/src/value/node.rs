//! YAML or JSON text before it is matched with a type. Preserves 64-bit numbers and NaN.

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    /// Its kind, for error messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Node::Null => "nothing".into(),
            Node::Bool(b) => format!("{b}"),
            Node::Integer(n) => format!("{n}"),
            Node::Float(x) => format!("{x}"),
            Node::Text(t) => {
                let short: String = t.chars().take(40).collect();
                format!("\"{short}\"")
            }
            Node::List(l) => format!("a list of {}", l.len()),
            Node::Map(_) => "a mapping".into(),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, d: D) -> Result<Node, D::Error> {
        d.deserialize_any(self)
    }

    fn visit_bool<E>(self, b: bool) -> Result<Node, E> {
        Ok(Node::Bool(b))
    }

    fn visit_i64<E>(self, n: i64) -> Result<Node, E> {
        Ok(Node::Integer(n.into()))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Node, E> {
        Ok(Node::Integer(n.into()))
    }

    fn visit_i128<E>(self, n: i128) -> Result<Node, E> {
        Ok(Node::Integer(n))
    }

    fn visit_u128<E: de::Error>(self, n: u128) -> Result<Node, E> {
        n.try_into()
            .map(Node::Integer)
            .map_err(|_| E::custom("the number is too large"))
    }

    fn visit_f64<E>(self, x: f64) -> Result<Node, E> {
        Ok(Node::Float(x))
    }

    fn visit_str<E>(self, s: &str) -> Result<Node, E> {
        Ok(Node::Text(s.to_owned()))
    }

    fn visit_string<E>(self, s: String) -> Result<Node, E> {
        Ok(Node::Text(s))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut out = Vec::new();
        while let Some(item) = seq.next_element()? {
            out.push(item);
        }
        Ok(Node::List(out))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut out = Vec::new();
        while let Some(entry) = map.next_entry()? {
            out.push(entry);
        }
        Ok(Node::Map(out))
    }
}
