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

/// A ROS name, made global; `None` if it is none.
fn global_name(name: &str) -> Option<String> {
    let name = name.strip_prefix('/').unwrap_or(name);
    let word = |w: &str| {
        w.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && w.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let good = name.len() <= 200 && name.split('/').all(word);
    good.then(|| format!("/{name}"))
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
