//! Configurations of others' multi-master nodes, turned into a bridge's and a link's for each host.
//!
//! What is read is foreign: it is bounded, whatever is not understood is told with its line, and nothing of it reaches what is
//! written but names that were checked and numbers.

mod launch;
mod nimbro;
mod plan;
mod pound;
#[cfg(test)]
mod tests;

pub use nimbro::{Nimbro, nimbro};
pub use pound::pound;

/// The longest file that is read, in bytes.
const MAX_FILE: usize = 1 << 20;
/// Most topics and services of one configuration.
const MAX_ROUTES: usize = 1024;
/// Most hosts.
const MAX_HOSTS: usize = 256;
/// Most notes that are kept.
const MAX_NOTES: usize = 1000;

/// Gives the name and text of a file that another names, or why it cannot: its arguments are the file that names it, and what it
/// names, which may begin with `$(find PACKAGE)`.
pub type Load<'a> = dyn FnMut(&str, &str) -> Result<(String, String), String> + 'a;

/// What was made of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The hosts, each with its files.
    pub hosts: Vec<ImportedHost>,
    /// What could not be carried over, or has another meaning, in the order of the file.
    pub notes: Vec<Note>,
}

/// One host's files.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedHost {
    /// Its name in the link's configuration.
    pub name: String,
    /// For `ropewalk link`, YAML.
    pub link: String,
    /// For `ropewalk ros1`, YAML.
    pub bridge: String,
}

/// Something that a user should know of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What, and what to do about it.
    pub text: String,
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.text)
    }
}

/// Why nothing could be made of a configuration.
#[derive(Debug, thiserror::Error, PartialEq)]
#[non_exhaustive]
pub enum ImportError {
    /// It is too long, or lists too much.
    #[error("{file}: {what}, at most {limit} are read: divide it")]
    TooMuch {
        /// The file.
        file: String,
        /// What there is too much of.
        what: String,
        /// How much may be.
        limit: usize,
    },
    /// It cannot be read as what it should be.
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
        /// Where.
        line: usize,
        /// The file that is named.
        named: String,
        /// Why.
        reason: String,
    },
    /// It lists no topic and no service that could be carried over.
    #[error("{file}: there is no {looked_for}")]
    Empty {
        /// The file.
        file: String,
        /// What should be there.
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

/// What is remembered for the user while a file is read.
#[derive(Debug, Default)]
struct Notes(Vec<Note>);

impl Notes {
    fn add(&mut self, file: &str, line: usize, text: impl Into<String>) {
        if self.0.len() < MAX_NOTES {
            let text: String = text.into();
            // Foreign words are shown, but no control characters, and not at any length.
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

/// A ROS name without a leading slash, and as ROS cleans it of doubled ones; `None` if it is none.
fn relative_name(name: &str) -> Option<String> {
    let word = |w: &&str| {
        w.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && w.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let words: Vec<&str> = name.split('/').filter(|w| !w.is_empty()).collect();
    let good = name.len() <= 150 && !words.is_empty() && words.iter().all(word);
    good.then(|| words.join("/"))
}

/// A ROS name, made global; `None` if it is none.
fn global_name(name: &str) -> Option<String> {
    relative_name(name).map(|name| format!("/{name}"))
}

/// A ROS name as a node in this namespace (`/` or `/ns`) understands it.
fn resolved(namespace: &str, name: &str) -> Option<String> {
    if name.starts_with('/') {
        return global_name(name);
    }
    global_name(&format!("{namespace}/{name}"))
}

/// A value of YAML that stands for itself.
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
    /// As roslaunch and YAML 1.1 write it.
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

/// The keys of a YAML document itself, each with its line, from 1, and how many lines are below it.
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

/// A key and what is below it, as it is named in notes.
fn with_lines_below(key: &str, below: usize) -> String {
    match below {
        0 => key.to_owned(),
        1 => format!("{key}, with the line below it"),
        n => format!("{key}, with the {n} lines below it"),
    }
}

/// A type's name with a slash; `None` if it is none.
fn type_name(name: &str) -> Option<String> {
    let (package, kind) = name.split_once("::").or_else(|| name.split_once('/'))?;
    let word = |w: &str| {
        w.len() <= 100
            && w.starts_with(|c: char| c.is_ascii_alphabetic())
            && w.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    (word(package) && word(kind)).then(|| format!("{package}/{kind}"))
}
