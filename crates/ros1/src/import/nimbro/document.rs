//! YAML for senders and clients: their topics or services, and further parameters.

use super::super::{ImportError, Notes, Scalar, check_length, keys, with_lines_below};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_saphyr::Spanned;
use std::collections::BTreeMap;

/// Content of a document.
#[derive(Default)]
pub(super) struct Document {
    pub(super) topics: Vec<Entry>,
    pub(super) services: Vec<Entry>,
    /// Top-level scalar values of the document, each with its line.
    pub(super) values: Vec<(usize, String, String)>,
}

/// A topic or a service.
pub(super) struct Entry {
    pub(super) file: String,
    pub(super) line: usize,
    pub(super) fields: BTreeMap<String, Scalar>,
    /// Line of each field.
    lines: BTreeMap<String, usize>,
}

impl Entry {
    pub(super) fn text(&self, key: &str) -> Option<String> {
        self.fields.get(key).map(Scalar::to_string)
    }

    pub(super) fn is_true(&self, key: &str) -> bool {
        self.fields.get(key).is_some_and(Scalar::is_true)
    }

    pub(super) fn line_of(&self, key: &str) -> usize {
        self.lines.get(key).copied().unwrap_or(self.line)
    }
}

#[derive(Deserialize)]
struct Written {
    #[serde(default)]
    topics: Vec<Spanned<Item>>,
    #[serde(default)]
    services: Vec<Spanned<Item>>,
    #[serde(flatten)]
    rest: BTreeMap<String, Scalar>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Item {
    Fields(BTreeMap<String, Scalar>),
    Other(IgnoredAny),
}

impl Document {
    /// Reads a document that begins at line `first` of its file. `name` is the parameter whose value it is.
    pub(super) fn read(
        file: &str,
        first: usize,
        name: &str,
        text: &str,
        notes: &mut Notes,
    ) -> Result<Document, ImportError> {
        check_length(file, text)?;
        let text = dedent(text);
        if text.trim().is_empty() {
            return Ok(Document::default());
        }
        let syntax = |e: serde_saphyr::Error| ImportError::Syntax {
            file: file.to_owned(),
            line: first - 1 + e.location().map_or(1, |l| l.line() as usize),
            problem: "this is not YAML with `topics: [{name: …}]` or `services: [{name: …, type: …}]`".into(),
        };
        let read = match name {
            "" => serde_saphyr::from_str::<Written>(&text).map_err(syntax)?,
            "topics" => Written::of(serde_saphyr::from_str(&text).map_err(syntax)?, Vec::new()),
            "services" => Written::of(Vec::new(), serde_saphyr::from_str(&text).map_err(syntax)?),
            // A scalar value, or an empty list.
            _ => Written {
                rest: BTreeMap::from([(
                    name.to_owned(),
                    serde_saphyr::from_str(&text).unwrap_or(Scalar::Other(IgnoredAny)),
                )]),
                ..Written::of(Vec::new(), Vec::new())
            },
        };
        let mut document = Document::default();
        let lines = match name {
            "" => keys(&text),
            _ => Vec::new(),
        };
        for (key, value) in read.rest {
            let found = lines.iter().find(|(_, k, _)| *k == key);
            let (line, below) = found.map_or((1, 0), |(line, _, below)| (*line, *below));
            let line = first - 1 + line;
            match value {
                Scalar::Other(_) => {
                    let why = super::not_carried(&key).unwrap_or("is not understood: ignored");
                    notes.add(file, line, format!("{}: {why}", with_lines_below(&key, below)));
                }
                value => document.values.push((line, key, value.to_string())),
            }
        }
        let mut entries = |items: Vec<Spanned<Item>>| -> Vec<Entry> {
            let lines = items.iter().map(|i| i.referenced.line().max(1) as usize);
            let lines: Vec<usize> = lines.collect();
            let each = items.into_iter().enumerate();
            let each = each.filter_map(|(i, item)| match item.value {
                Item::Fields(fields) => Some(Entry {
                    file: file.to_owned(),
                    line: first - 1 + lines[i],
                    lines: places(&text, lines[i], lines.get(i + 1).copied(), first, &fields),
                    fields,
                }),
                Item::Other(_) => {
                    let what = "is not of the form {name: …}: ignored";
                    notes.add(file, first - 1 + lines[i], format!("entry {} {what}", i + 1));
                    None
                }
            });
            each.collect()
        };
        document.topics = entries(read.topics);
        document.services = entries(read.services);
        Ok(document)
    }
}

impl Written {
    fn of(topics: Vec<Spanned<Item>>, services: Vec<Spanned<Item>>) -> Written {
        Written {
            topics,
            services,
            rest: BTreeMap::new(),
        }
    }
}

/// Returns the lines of an entry's fields, in its file.
fn places(
    text: &str,
    from: usize,
    to: Option<usize>,
    first: usize,
    fields: &BTreeMap<String, Scalar>,
) -> BTreeMap<String, usize> {
    let lines = text.lines().enumerate().skip(from - 1);
    let lines = lines.take_while(|(i, _)| to.is_none_or(|to| i + 1 < to.max(from + 1)));
    let mut found = BTreeMap::new();
    for (i, line) in lines {
        let key = line
            .trim_start_matches([' ', '-'])
            .split(':')
            .next()
            .unwrap_or_default();
        if fields.contains_key(key) {
            found.entry(key.to_owned()).or_insert(first + i);
        }
    }
    found
}

/// Removes the indentation that all lines share.
fn dedent(text: &str) -> String {
    let lines = text.lines().filter(|l| !l.trim().is_empty());
    let depth = lines
        .map(|l| l.len() - l.trim_start_matches([' ', '\t']).len())
        .min()
        .unwrap_or(0);
    let cut = |line: &str| {
        line.get(depth.min(line.len())..)
            .unwrap_or_default()
            .replace('\t', "  ")
    };
    text.lines().map(cut).collect::<Vec<_>>().join("\n")
}
