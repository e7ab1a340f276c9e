//! Finds the place of a key in a configuration.

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

/// A contradiction, and where it is: `topics.3.depth` is the key `depth` of the fourth topic, whether the key
/// is written or left out.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) path: String,
    pub(super) text: String,
}

impl Problem {
    pub(super) fn at(path: impl Into<String>, text: impl Into<String>) -> Problem {
        Problem {
            path: path.into(),
            text: text.into(),
        }
    }

    /// The same problem, for an item that does not know its own path.
    pub(super) fn below(self, path: &str) -> Problem {
        Problem {
            path: format!("{path}.{}", self.path),
            ..self
        }
    }
}

/// A configuration reduced to places.
enum Node {
    Map(Vec<(String, Spanned<Node>)>),
    List(Vec<Spanned<Node>>),
    Value,
}

/// Line and column of the node at `path`, or of the last step of the path that is present.
pub(super) fn find(text: &str, path: &str) -> Option<(u64, u64)> {
    let root: Spanned<Node> = serde_saphyr::from_str(text).ok()?;
    let mut here = &root;
    for step in path.split('.') {
        let next = match &here.value {
            Node::Map(entries) => entries.iter().find(|(key, _)| key == step).map(|(_, node)| node),
            Node::List(items) => step.parse().ok().and_then(|i: usize| items.get(i)),
            Node::Value => None,
        };
        let Some(next) = next else { break };
        here = next;
    }
    let at = here.referenced;
    (at.line() > 0).then(|| (at.line(), at.column()))
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(Nodes)
    }
}

struct Nodes;

/// Ignores all values but maps and lists.
macro_rules! values {
    ($($visit:ident: $kind:ty),*) => {
        $(fn $visit<E>(self, _: $kind) -> Result<Node, E> {
            Ok(Node::Value)
        })*
    };
}

impl<'de> Visitor<'de> for Nodes {
    type Value = Node;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("YAML")
    }

    values!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_i128: i128, visit_u128: u128, visit_f64: f64,
            visit_str: &str, visit_bytes: &[u8]);

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Value)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Value)
    }

    fn visit_some<D: Deserializer<'de>>(self, d: D) -> Result<Node, D::Error> {
        IgnoredAny::deserialize(d).map(|_| Node::Value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            all.push(item);
        }
        Ok(Node::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut all = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            all.push(entry);
        }
        Ok(Node::Map(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_present_and_missing_keys_are_found() {
        let text =
            "host: a\nradio: {bind: '1', rate: 6}\npeers:\n  - name: b\n  - {name: c, on: true, x: null}\n";
        assert_eq!(find(text, "host"), Some((1, 7)));
        assert_eq!(find(text, "radio.rate"), Some((2, 26)));
        assert_eq!(find(text, "radio.hops"), Some((2, 8)));
        assert_eq!(find(text, "peers.0.name"), Some((4, 11)));
        assert_eq!(find(text, "peers.1.name"), Some((5, 12)));
        assert_eq!(find(text, "peers.1.address"), Some((5, 5)));
        assert_eq!(find(text, "peers.7"), Some((4, 3)));
        assert_eq!(find("[", "host"), None);
        assert_eq!(find("", "host"), Some((1, 1)));
    }
}
