//! YAML of parameters, written so that PyYAML, which `ros2 param load` uses, reads the same scalars.

use serde::Deserialize;
use std::collections::BTreeMap;

/// Most scalars, lists and mappings in a file.
const MAX_NODES: usize = 1_000_000;
/// Most of them that aliases may repeat.
const MAX_ALIASED: usize = 100_000;

/// A document.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum Tree {
    Null,
    Bool(bool),
    Integer(i64),
    Double(f64),
    Text(String),
    List(Vec<Tree>),
    Map(BTreeMap<String, Tree>),
}

impl Tree {
    pub(super) fn integer(&self) -> Option<i64> {
        match self {
            Tree::Integer(n) => Some(*n),
            _ => None,
        }
    }

    /// A number of either kind.
    pub(super) fn double(&self) -> Option<f64> {
        match self {
            Tree::Integer(n) => Some(*n as f64),
            Tree::Double(x) => Some(*x),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<String> {
        match self {
            Tree::Text(text) => Some(text.clone()),
            _ => None,
        }
    }
}

/// Reads one document.
///
/// # Errors
/// The text is not YAML.
pub(super) fn parse(text: &str) -> Result<Tree, String> {
    if text.trim().is_empty() {
        return Ok(Tree::Null);
    }
    let options = serde_saphyr::options! {
        non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::PassThrough,
        strict_booleans: true,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_nodes: MAX_NODES,
            max_events: 2 * MAX_NODES,
            max_recorded_anchor_events: MAX_ALIASED,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_ALIASED },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|e| format!("not YAML: {e}"))
}

/// Formats a double so that no reader takes it for a whole number or a word: PyYAML needs a dot, and a sign in the
/// exponent.
pub(super) fn double(x: f64) -> String {
    if x.is_nan() {
        return ".nan".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { ".inf".into() } else { "-.inf".into() };
    }
    let text = format!("{x:?}");
    match text.split_once('e') {
        None => text,
        Some((digits, exponent)) => {
            let dot = if digits.contains('.') { "" } else { ".0" };
            let plus = if exponent.starts_with('-') { "" } else { "+" };
            format!("{digits}{dot}e{plus}{exponent}")
        }
    }
}

/// A string in quotes.
pub(super) fn quoted(text: &str) -> String {
    // Double-quoted YAML accepts JSON's escapes.
    serde_json::Value::from(text).to_string()
}

/// A key of a mapping, quoted where YAML would read it as something else than a string.
pub(super) fn key(name: &str) -> String {
    const WORDS: [&str; 10] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan"];
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '/')
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '.' | '-'))
        && !WORDS.contains(&name.to_ascii_lowercase().as_str());
    if is_plain { name.to_owned() } else { quoted(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_have_the_forms_of_pyyaml() {
        assert_eq!(double(1.0), "1.0");
        assert_eq!(double(1e300), "1.0e+300");
        assert_eq!(double(1.5e-9), "1.5e-9");
        assert_eq!(double(f64::NEG_INFINITY), "-.inf");
        assert_eq!(quoted("a\n\u{1b}"), "\"a\\n\\u001b\"");
        assert_eq!(
            (key("qos_overrides"), key("/a.b")),
            ("qos_overrides".into(), "/a.b".into())
        );
        assert_eq!(
            (key("on"), key("1"), key("a b")),
            ("\"on\"".into(), "\"1\"".into(), "\"a b\"".into())
        );
    }

    #[test]
    fn documents_keep_the_kinds_of_their_scalars() {
        let tree = parse("{a: [1, 2.0, x, 'y', true], b: {c: }}").expect("YAML");
        let list = vec![
            Tree::Integer(1),
            Tree::Double(2.0),
            Tree::Text("x".into()),
            Tree::Text("y".into()),
            Tree::Bool(true),
        ];
        let b = Tree::Map(BTreeMap::from([("c".to_owned(), Tree::Null)]));
        assert_eq!(
            tree,
            Tree::Map(BTreeMap::from([
                ("a".to_owned(), Tree::List(list)),
                ("b".to_owned(), b)
            ]))
        );
        assert!(parse("{a").is_err());
    }
}
