//! The concatenated text of a definition and all its dependencies (`gendeps --cat`).

use crate::definition::{Definition, Flavour};
use crate::parse::{self, Origin};
use crate::{DefinitionError, TypeName};

/// One definition in such a text.
pub(super) struct Part<'a> {
    pub(super) name: TypeName,
    text: &'a str,
    line: usize,
}

/// Splits `text` at its separators and parses every part.
pub(super) fn parse(
    root: TypeName,
    text: &str,
    flavour: Flavour,
) -> Result<Vec<Definition>, DefinitionError> {
    let file = format!("definition of {root}");
    let mut parts = cut(root, text)?.into_iter();
    let mut out = Vec::new();
    if let Some(own) = parts.next() {
        match flavour {
            Flavour::Ros2 if own.is_of_a_service() => out.extend(own.event(&file)?),
            _ => out.push(own.message(flavour, &file)?),
        }
    }
    for part in parts {
        out.push(part.message(flavour, &file)?);
    }
    Ok(out)
}

/// As [`parse`], for a service, which is the first part: returns its text, and the messages.
pub(super) fn parse_service(
    root: TypeName,
    text: &str,
    flavour: Flavour,
) -> Result<(&str, Vec<Definition>), DefinitionError> {
    let file = format!("definition of {root}");
    let mut parts = cut(root, text)?.into_iter();
    let own = parts.next().map_or("", |part| part.text);
    let messages: Result<_, _> = parts.map(|part| part.message(flavour, &file)).collect();
    Ok((own, messages?))
}

/// Suffix of the name of a service's events.
const EVENT: &str = "_Event";

impl Part<'_> {
    /// Whether this is the text of a service under the name of its events, as rosbag2 records them.
    fn is_of_a_service(&self) -> bool {
        self.name.name().len() > EVENT.len()
            && self.name.name().ends_with(EVENT)
            && self.text.lines().any(|line| line.starts_with("---"))
    }

    /// The events of a service (`rosidl_parser/definition.py`, `ServiceEventMessage`), with its request and response.
    fn event(&self, file: &str) -> Result<Vec<Definition>, DefinitionError> {
        let name = self.name.name().strip_suffix(EVENT).unwrap_or_default();
        let service = TypeName::join(self.name.package(), name);
        let mut out = parse::service(&service, "srv", self.text, Flavour::Ros2, file)?.to_vec();
        let text = format!(
            "service_msgs/ServiceEventInfo info\n{service}_Request[<=1] request\n{service}_Response[<=1] response\n"
        );
        let origin = Origin { file, line: 0 };
        let event = parse::message(self.name.clone(), &text, Flavour::Ros2, origin)?;
        out.push(Definition {
            folder: "srv",
            ..event
        });
        Ok(out)
    }

    fn message(self, flavour: Flavour, file: &str) -> Result<Definition, DefinitionError> {
        let origin = Origin {
            file,
            line: self.line,
        };
        parse::message(self.name, self.text, flavour, origin)
    }
}

/// Splits `text` at its separators.
fn cut(root: TypeName, text: &str) -> Result<Vec<Part<'_>>, DefinitionError> {
    let file = format!("definition of {root}");
    let mut out = Vec::new();
    let mut name = root;
    // Byte and line where the current part starts.
    let (mut start, mut start_line) = (0, 0);
    let mut lines = LineIter { text, at: 0 }.enumerate();
    while let Some((i, (at, line))) = lines.next() {
        if !is_separator(line) {
            continue;
        }
        // The concatenation added the line end before the separator.
        let part = text.get(start..at).unwrap_or("");
        let part = part.strip_suffix('\n').unwrap_or(part);
        out.push(Part {
            name,
            text: part,
            line: start_line,
        });
        let syntax = |what: String| DefinitionError::Syntax {
            file: file.clone(),
            line: i + 2,
            column: 1,
            what,
        };
        let Some((_, (at, line))) = lines.next() else {
            return Err(syntax("expected `MSG: package/Type` after the separator".into()));
        };
        let line = line.trim();
        let named = line.strip_prefix("MSG:").ok_or_else(|| {
            let found: String = line.chars().take(40).collect();
            syntax(format!(
                "expected `MSG: package/Type` after the separator, found `{found}`"
            ))
        })?;
        name = TypeName::parse(named.trim()).map_err(|e| syntax(e.to_string()))?;
        start = lines_end(text, at);
        start_line = i + 2;
    }
    out.push(Part {
        name,
        text: text.get(start..).unwrap_or(""),
        line: start_line,
    });
    Ok(out)
}

/// A line that consists of many `=`; ROS writes 80.
fn is_separator(line: &str) -> bool {
    let line = line.trim_end();
    line.len() >= 20 && line.bytes().all(|b| b == b'=')
}

fn lines_end(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or("");
    at + rest.find('\n').map_or(rest.len(), |n| n + 1)
}

/// Lines with the byte where each starts.
struct LineIter<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for LineIter<'a> {
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        let rest = self.text.get(at..).filter(|r| !r.is_empty())?;
        self.at = lines_end(self.text, at);
        Some((at, rest.split('\n').next().unwrap_or("")))
    }
}
