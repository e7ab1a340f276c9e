//! A cursor over one line, read from left to right, that knows its column.

use super::Origin;
use crate::DefinitionError;

#[derive(Clone)]
pub(super) struct Cursor<'a> {
    line: &'a str,
    at: usize,
    origin: Origin<'a>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(line: &'a str, origin: Origin<'a>) -> Self {
        Self { line, at: 0, origin }
    }

    /// A cursor at byte `at` of the line.
    pub(super) fn at(line: &'a str, at: usize, origin: Origin<'a>) -> Self {
        Self { line, at, origin }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.line.get(self.at..).unwrap_or("")
    }

    pub(super) fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\u{feff}']).len();
    }

    /// Takes the longest prefix whose characters all satisfy `f`.
    pub(super) fn take_while(&mut self, f: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let len = rest.find(|c| !f(c)).unwrap_or(rest.len());
        self.at += len;
        rest.get(..len).unwrap_or("")
    }

    /// Takes `s` if it comes next.
    pub(super) fn eat(&mut self, s: &str) -> bool {
        let found = self.rest().starts_with(s);
        if found {
            self.at += s.len();
        }
        found
    }

    /// Takes the rest.
    pub(super) fn take_rest(&mut self) -> &'a str {
        let rest = self.rest();
        self.at = self.line.len();
        rest
    }

    /// Whether only space or a comment is left.
    pub(super) fn at_end(&mut self) -> bool {
        self.skip_space();
        self.rest().is_empty() || self.rest().starts_with('#')
    }

    pub(super) fn error(&self, what: impl Into<String>) -> DefinitionError {
        let before = self.line.get(..self.at).unwrap_or(self.line);
        DefinitionError::Syntax {
            file: self.origin.file.into(),
            line: self.origin.line + 1,
            column: before.chars().count() + 1,
            what: what.into(),
        }
    }

    /// The text at the cursor, short enough for a message.
    pub(super) fn found(&self) -> String {
        let rest = self.rest().trim_end();
        if rest.is_empty() {
            return "the end of the line".into();
        }
        let mut text: String = rest.chars().take(20).collect();
        if text.len() < rest.len() {
            text.push('…');
        }
        format!("`{text}`")
    }
}
