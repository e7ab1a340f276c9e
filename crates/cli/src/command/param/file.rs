//! Parameter files of ROS 2, and `ropewalk param load`.

use super::Target;
use super::change::failed;
use super::value::{Parameter, Type};
use super::yaml::{self, Tree};
use crate::failure::{Failure, Outcome};
use clap::Args;
use ropewalk::Node;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The key below a node's name.
const PARAMETERS: &str = "ros__parameters";

/// Set the parameters of a node from a file
///
///   ropewalk param load /talker talker.yaml
///
/// The file has ROS 2's format: `/talker: {ros__parameters: {rate: 5}}`.
/// Parameters below /** apply to all nodes.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Load {
    #[command(flatten)]
    target: Target,
    /// The file.
    file: PathBuf,
    /// Ignore entries for several nodes: names with * or **.
    #[arg(long)]
    no_use_wildcard: bool,
}

pub(super) fn load(node: &Node, options: &Load) -> Outcome {
    let bad =
        |what: &dyn std::fmt::Display| Failure::input(format_args!("{}: {what}", options.file.display()));
    let text = std::fs::read_to_string(&options.file).map_err(|e| bad(&e))?;
    let tree = yaml::parse(&text).map_err(|e| bad(&e))?;
    let remote = options.target.remote(node);
    let found = parameters_of(&tree, remote.name(), !options.no_use_wildcard);
    if found.is_empty() {
        let others = nodes(&tree);
        return Err(bad(&match others.as_slice() {
            [] => format!(
                "no parameters: write `{}: {{{PARAMETERS}: {{NAME: VALUE}}}}`",
                remote.name()
            ),
            others => format!(
                "no parameters of {}; it has those of {}",
                remote.name(),
                others.join(", ")
            ),
        }));
    }
    let names: Vec<String> = found.keys().cloned().collect();
    let descriptors = remote.descriptors(&names)?;
    let (mut wanted, mut fixed) = (Vec::new(), Vec::new());
    for ((name, tree), descriptor) in found.iter().zip(&descriptors) {
        let value = Parameter::from_tree(tree, descriptor.ty).map_err(|e| bad(&format!("{name}: {e}")))?;
        let list = if descriptor.is_read_only && descriptor.ty != Type::NotSet {
            &mut fixed
        } else {
            &mut wanted
        };
        list.push((name.clone(), value));
    }
    let mut refused = Vec::new();
    // A file from `dump` also contains read-only parameters, which is no error if their values are the same.
    let fixed_names: Vec<String> = fixed.iter().map(|(name, _)| name.clone()).collect();
    let now = if fixed.is_empty() {
        Vec::new()
    } else {
        remote.values_if_set(&fixed_names)?
    };
    for ((name, value), now) in fixed.iter().zip(now) {
        match *value == now {
            true => crate::screen::say!("Parameter {name} is read-only and has this value"),
            false => refused.push(format!("{name}: read-only, its value is {}", now.yaml())),
        }
    }
    let answers = if wanted.is_empty() {
        Vec::new()
    } else {
        remote.set(&wanted)?
    };
    for ((name, _), answer) in wanted.iter().zip(answers) {
        match answer.is_successful {
            true => crate::screen::say!("Set parameter {name} successful"),
            false => refused.push(format!("{name}: {}", answer.reason)),
        }
    }
    failed("set", &refused)
}

/// Parameters for a node; those below patterns come first, so that the node's own override them.
fn parameters_of(tree: &Tree, node: &str, wildcards: bool) -> BTreeMap<String, Tree> {
    let mut parts = Vec::new();
    sections(tree, "", &mut parts);
    let wanted: Vec<&str> = node.trim_matches('/').split('/').collect();
    parts.retain(|(pattern, _)| {
        let pattern: Vec<&str> = pattern.trim_matches('/').split('/').collect();
        matches(&pattern, &wanted) && (wildcards || !pattern.iter().any(|word| word.contains('*')))
    });
    parts.sort_by_key(|(pattern, _)| !pattern.contains('*'));
    let mut out = BTreeMap::new();
    parts.iter().for_each(|(_, tree)| flatten(tree, "", &mut out));
    out
}

/// Names of the nodes in a file.
fn nodes(tree: &Tree) -> Vec<String> {
    let mut parts = Vec::new();
    sections(tree, "", &mut parts);
    parts.into_iter().map(|(name, _)| name).collect()
}

/// Every node name, or pattern of names, with its parameters. Namespaces may be levels.
fn sections<'a>(tree: &'a Tree, path: &str, out: &mut Vec<(String, &'a Tree)>) {
    let Tree::Map(map) = tree else { return };
    for (key, below) in map {
        match key.as_str() {
            PARAMETERS if !path.is_empty() => out.push((path.to_owned(), below)),
            key => sections(below, &format!("{path}/{}", key.trim_matches('/')), out),
        }
    }
}

/// Whether a pattern of words matches a name: `*` is one word, `**` any number of words.
fn matches(pattern: &[&str], name: &[&str]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some((&"**", rest)) => (0..=name.len()).any(|skipped| matches(rest, &name[skipped..])),
        Some((word, rest)) => {
            let first = name.split_first();
            first.is_some_and(|(first, others)| (*word == "*" || word == first) && matches(rest, others))
        }
    }
}

/// Parameters by their full names, with dots between levels.
fn flatten(tree: &Tree, prefix: &str, out: &mut BTreeMap<String, Tree>) {
    let Tree::Map(map) = tree else { return };
    for (key, value) in map {
        let name = if prefix.is_empty() {
            key.clone()
        } else {
            format!("{prefix}.{key}")
        };
        match value {
            Tree::Map(_) => flatten(value, &name, out),
            value => drop(out.insert(name, value.clone())),
        }
    }
}

/// A level of a file.
#[derive(Default)]
struct Level(BTreeMap<String, Entry>);

enum Entry {
    Value(String),
    Level(Level),
}

impl Level {
    /// A name with dots becomes nested levels, unless a value already has one of their names.
    fn insert(&mut self, name: &str, value: String) {
        let (first, rest) = match name.split_once('.') {
            Some((first, rest)) if !first.is_empty() && !rest.is_empty() => (first, rest),
            _ => return drop(self.0.insert(name.to_owned(), Entry::Value(value))),
        };
        match self
            .0
            .entry(first.to_owned())
            .or_insert_with(|| Entry::Level(Level::default()))
        {
            Entry::Level(level) => level.insert(rest, value),
            Entry::Value(_) => drop(self.0.insert(name.to_owned(), Entry::Value(value))),
        }
    }

    fn write(&self, indent: usize, out: &mut String) {
        let space = "  ".repeat(indent);
        for (key, entry) in &self.0 {
            let key = yaml::key(key);
            match entry {
                Entry::Value(value) => *out += &format!("{space}{key}: {value}\n"),
                Entry::Level(level) => {
                    *out += &format!("{space}{key}:\n");
                    level.write(indent + 1, out);
                }
            }
        }
    }
}

/// A file with the parameters of one node.
pub(super) fn text(node: &str, parameters: &[(String, Parameter)]) -> String {
    let mut level = Level::default();
    // Shorter names first: a value in the way of a level is inserted before the level.
    let mut sorted: Vec<_> = parameters.iter().collect();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    sorted
        .iter()
        .for_each(|(name, value)| level.insert(name, value.yaml()));
    let mut out = format!(
        "{}:\n  {PARAMETERS}:{}\n",
        yaml::key(node),
        if sorted.is_empty() { " {}" } else { "" }
    );
    level.write(2, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str, node: &str, wildcards: bool) -> Vec<(String, Tree)> {
        let tree = yaml::parse(text).expect("YAML");
        parameters_of(&tree, node, wildcards).into_iter().collect()
    }

    #[test]
    fn dumped_parameters_are_loaded_unchanged() {
        let parameters = [
            ("a".to_owned(), Parameter::Integer(1)),
            ("a.b".to_owned(), Parameter::Text("x: y".into())),
            ("qos./events.depth".to_owned(), Parameter::Doubles(vec![1.0])),
            ("on".to_owned(), Parameter::Bool(true)),
        ];
        let text = text("/ns/talker", &parameters);
        let begins = "/ns/talker:\n  ros__parameters:\n    a: 1\n    a.b: \"x: y\"\n    \"on\": true\n    qos:\n      /events:\n        depth: [1.0]\n";
        assert_eq!(text, begins);
        let loaded = file(&text, "/ns/talker", true);
        assert_eq!(loaded.len(), 4);
        for (name, value) in parameters {
            let tree = &loaded.iter().find(|(n, _)| *n == name).expect("is there").1;
            assert_eq!(Parameter::from_tree(tree, Type::NotSet), Ok(value));
        }
    }

    #[test]
    fn a_node_gets_its_own_over_what_is_for_all() {
        let text = "/**: {ros__parameters: {a: 1, b: 1}}\n/ns: {talker: {ros__parameters: {b: 2}}}\n/other: {ros__parameters: {c: 3}}\n";
        let of = |node, wildcards| {
            let all = file(text, node, wildcards);
            all.into_iter()
                .map(|(name, tree)| (name, tree.integer()))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            of("/ns/talker", true),
            [("a".into(), Some(1)), ("b".into(), Some(2))]
        );
        assert_eq!(of("/ns/talker", false), [("b".into(), Some(2))]);
        assert_eq!(of("/talker", false), []);
        assert!(matches(&["**", "talker"], &["a", "b", "talker"]) && !matches(&["*", "talker"], &["talker"]));
    }
}
