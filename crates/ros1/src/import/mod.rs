//! Converts configurations of other multi-master systems into files for a bridge and a link on each host.
//!
//! The input is untrusted: its size is bounded, everything that is not understood is reported with its line, and only
//! checked names and numbers of it reach the output (decision 234).

mod launch;
mod nimbro;
mod plan;
mod pound;
#[cfg(test)]
mod tests;

pub use nimbro::{Nimbro, nimbro};
pub use pound::pound;

/// Longest file to read, in bytes.
const MAX_FILE: usize = 1 << 20;
/// Maximum number of topics and services of one configuration.
const MAX_ROUTES: usize = 1024;
/// Maximum number of hosts.
const MAX_HOSTS: usize = 256;
/// Maximum number of notes.
const MAX_NOTES: usize = 1000;

/// Returns the name and text of a file that another one names, or why it cannot be read. The arguments are the file
/// that names it, and the name, which may begin with `$(find PACKAGE)`.
pub type Load<'a> = dyn FnMut(&str, &str) -> Result<(String, String), String> + 'a;

/// Result of an import.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The hosts, each with its files.
    pub hosts: Vec<ImportedHost>,
    /// Settings that could not be converted, or that change their meaning, in the order of the file.
    pub notes: Vec<Note>,
}

/// The files of one host.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedHost {
    /// Name of the host in the link's configuration.
    pub name: String,
    /// YAML for `ropewalk link`.
    pub link: String,
    /// YAML for `ropewalk ros1`.
    pub bridge: String,
}

/// A note for the user about a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The file, under the name that was given.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What the problem is, and what to do about it.
    pub text: String,
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.text)
    }
}

/// Why a configuration cannot be imported.
#[derive(Debug, thiserror::Error, PartialEq)]
#[non_exhaustive]
pub enum ImportError {
    /// The file is too long, or lists too much.
    #[error("{file}: {what}; the limit is {limit}: split it")]
    TooMuch {
        /// The file.
        file: String,
        /// What there is too much of.
        what: String,
        /// The limit.
        limit: usize,
    },
    /// The file is malformed.
    #[error("{file}:{line}: {problem}")]
    Syntax {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// A file that it names cannot be read.
    #[error("{file}:{line}: {named} cannot be read: {reason}")]
    File {
        /// The file that names it.
        file: String,
        /// Line at which it is named.
        line: usize,
        /// The named file.
        named: String,
        /// The reason.
        reason: String,
    },
    /// It lists no topic or service that can be converted.
    #[error("{file}: there is no {looked_for}")]
    Empty {
        /// The file.
        file: String,
        /// What is missing.
        looked_for: &'static str,
    },
}

fn check_length(file: &str, text: &str) -> Result<(), ImportError> {
    if text.len() <= MAX_FILE {
        return Ok(());
    }
    Err(ImportError::TooMuch {
        file: file.to_owned(),
        what: format!("{} bytes", text.len()),
        limit: MAX_FILE,
    })
}

/// Notes for the user, collected while reading.
#[derive(Debug, Default)]
struct Notes(Vec<Note>);

impl Notes {
    fn add(&mut self, file: &str, line: usize, text: impl Into<String>) {
        if self.0.len() < MAX_NOTES {
            let text: String = text.into();
            // Show text from the input, but without control characters and not at any length.
            let text = text.chars().map(|c| if c.is_control() { '?' } else { c });
            self.0.push(Note {
                file: file.to_owned(),
                line,
                text: text.take(400).collect(),
            });
        }
    }

    fn into_sorted(mut self) -> Vec<Note> {
        self.0.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
        self.0.dedup();
        self.0
    }
}

/// Returns a ROS name without a leading slash, with repeated slashes removed as in ROS; `None` if it is not valid.
fn relative_name(name: &str) -> Option<String> {
    let word = |w: &&str| {
        w.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && w.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let words: Vec<&str> = name.split('/').filter(|w| !w.is_empty()).collect();
    let good = name.len() <= 150 && !words.is_empty() && words.iter().all(word);
    good.then(|| words.join("/"))
}

/// Returns a ROS name as a global one; `None` if it is not valid.
fn global_name(name: &str) -> Option<String> {
    relative_name(name).map(|name| format!("/{name}"))
}

/// Resolves a ROS name in a node's namespace (`/` or `/ns`).
fn resolved(namespace: &str, name: &str) -> Option<String> {
    if name.starts_with('/') {
        return global_name(name);
    }
    global_name(&format!("{namespace}/{name}"))
}

/// A scalar value in YAML.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(untagged)]
enum Scalar {
    Bool(bool),
    Whole(i64),
    Number(f64),
    Text(String),
    Other(serde::de::IgnoredAny),
}

impl Scalar {
    /// Whether it is true, as roslaunch and YAML 1.1 write it.
    fn is_true(&self) -> bool {
        match self {
            Scalar::Bool(value) => *value,
            Scalar::Whole(value) => *value != 0,
            Scalar::Text(text) => matches!(text.to_ascii_lowercase().as_str(), "true" | "yes" | "on" | "1"),
            Scalar::Number(_) | Scalar::Other(_) => false,
        }
    }
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Scalar::Bool(value) => write!(f, "{value}"),
            Scalar::Whole(value) => write!(f, "{value}"),
            Scalar::Number(value) => write!(f, "{value}"),
            Scalar::Text(value) => f.write_str(value),
            Scalar::Other(_) => f.write_str("[…]"),
        }
    }
}

/// Returns the top-level keys of a YAML document, each with its line, from 1, and the number of lines below it.
fn keys(text: &str) -> Vec<(usize, &str, usize)> {
    let mut found: Vec<(usize, &str, usize)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let blank = line.trim().is_empty() || line.trim_start().starts_with('#');
        let key = line.split_once(':').map_or("", |(key, _)| key.trim_end());
        if key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            found.push((number + 1, key, 0));
        } else if let Some(last) = found.last_mut().filter(|_| !blank) {
            last.2 += 1;
        }
    }
    found
}

/// Names a key and the lines below it in a note.
fn with_lines_below(key: &str, below: usize) -> String {
    match below {
        0 => key.to_owned(),
        1 => format!("{key}, with the line below it"),
        n => format!("{key}, with the {n} lines below it"),
    }
}

/// Returns a type name with a slash; `None` if it is not valid.
fn type_name(name: &str) -> Option<String> {
    let (package, kind) = name.split_once("::").or_else(|| name.split_once('/'))?;
    let word = |w: &str| {
        w.len() <= 100
            && w.starts_with(|c: char| c.is_ascii_alphabetic())
            && w.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    (word(package) && word(kind)).then(|| format!("{package}/{kind}"))
}
