//! Parses one line of ROS 1, which is empty, a field or a constant, as genmsg does (`genmsg/msg_loader.py`).
//!
//! genmsg splits a line at spaces and strips other white space from each word. It takes a line with `=` before any `#`
//! for a constant, checks the value of a constant but not its name, and accepts constants that are declared twice or
//! named like a field. This parser accepts exactly what genmsg accepts, with the MD5 sum that genmsg
//! computes (decision 316).

use super::Origin;
use super::cursor::Cursor;
use super::line::field_type;
use super::literal;
use crate::DefinitionError;
use crate::definition::{Arity, Constant, Definition, Flavour, RawField, RawType};
use crate::name::is_identifier;

pub(super) fn parse(def: &mut Definition, line: &str, origin: Origin<'_>) -> Result<(), DefinitionError> {
    // Editors put a byte order mark before the first line.
    let line = line.strip_prefix('\u{feff}').unwrap_or(line);
    let clean = strip(line.split('#').next().unwrap_or(""));
    let words: Vec<&str> = clean.split(' ').map(strip).filter(|w| !w.is_empty()).collect();
    let Some((&kind, rest)) = words.split_first() else {
        return Ok(());
    };
    let text = Text { line, origin };
    if kind.starts_with('_') {
        let found = text.cursor(kind).found();
        return Err(text.error(kind, format!("expected a type, found {found}")));
    }
    let mut cursor = text.cursor(kind);
    let (mut ty, arity, written) = field_type(&mut cursor, def.name.package(), Flavour::Ros1)?;
    if written.len() != kind.len() {
        let found = cursor.found();
        return Err(cursor.error(format!("expected a space after the type, found {found}")));
    }
    if clean.contains('=') {
        if arity != Arity::One || matches!(ty, RawType::Named(_)) {
            return Err(text.error(kind, format!("a constant cannot be of type `{written}`")));
        }
        return constant(def, text, kind, rest, &ty);
    }
    // Only a bare `Header` means that of std_msgs.
    if written.starts_with("Header[") {
        ty = RawType::Named(crate::TypeName::join(def.name.package(), "Header"));
    }
    let name = match rest {
        [] => return Err(text.after(kind).error("expected a name after the type")),
        [name] => *name,
        [_, third, ..] => {
            let found = text.cursor(third).found();
            return Err(text.error(third, format!("expected the end of the line, found {found}")));
        }
    };
    if !is_identifier(name) || name.starts_with('_') {
        let found = text.cursor(name).found();
        return Err(text.error(
            name,
            format!("expected a name that begins with a letter, found {found}"),
        ));
    }
    if def.fields.iter().any(|f| f.name == name) {
        return Err(text.error(name, format!("`{name}` is declared twice")));
    }
    let canonical = arity.to_string();
    def.fields.push(RawField {
        name: name.into(),
        // The sum is over the text: `int32[03]` has a different sum than `int32[3]`.
        written: (!written.ends_with(&canonical)).then(|| written.into()),
        ty,
        arity,
        default: None,
    });
    Ok(())
}

fn constant(
    def: &mut Definition,
    text: Text<'_>,
    kind: &str,
    rest: &[&str],
    ty: &RawType,
) -> Result<(), DefinitionError> {
    let line = text.line;
    let (before, value) = line.split_once('=').unwrap_or((line, ""));
    let (name, value, canonical) = if matches!(ty, RawType::String { .. }) {
        // A string is everything after the sign, including `#` and quotes. Its name starts after the line's first
        // space, so that an indented line has its type in the name, and in the sum.
        let name = before.split_once(' ').map_or("", |(_, name)| name);
        let value = strip(value);
        (strip(name).to_owned(), value.to_owned(), value.to_owned())
    } else {
        let joined = rest.join(" ");
        let mut parts = joined.split('=').map(strip);
        let (Some(name), Some(stated), None) = (parts.next(), parts.next(), parts.next()) else {
            return Err(text.error(value, "expected one `=` in a constant"));
        };
        if stated.is_empty() {
            return Err(text.error(value, "expected a value after `=`"));
        }
        let at = value.trim_start_matches(is_space);
        let canonical = literal::python(ty, stated).map_err(|what| text.error(at, what))?;
        (name.to_owned(), stated.to_owned(), canonical)
    };
    def.sums.push(format!("{kind} {name}={value}"));
    // Of several constants of one name the last counts, as in Python.
    def.constants.retain(|known| known.name != name);
    if is_identifier(&name) {
        def.constants.push(Constant {
            name,
            ty: kind.into(),
            value: canonical,
        });
    }
    Ok(())
}

/// A line, for errors in parts of it.
#[derive(Clone, Copy)]
struct Text<'a> {
    line: &'a str,
    origin: Origin<'a>,
}

impl<'a> Text<'a> {
    /// A cursor at `part`, which is part of the line.
    fn cursor(self, part: &str) -> Cursor<'a> {
        let at = (part.as_ptr() as usize).saturating_sub(self.line.as_ptr() as usize);
        Cursor::at(self.line, at, self.origin)
    }

    fn after(self, part: &str) -> Cursor<'a> {
        let at = (part.as_ptr() as usize + part.len()).saturating_sub(self.line.as_ptr() as usize);
        Cursor::at(self.line, at, self.origin)
    }

    fn error(self, part: &str, what: impl Into<String>) -> DefinitionError {
        self.cursor(part).error(what)
    }
}

/// White space as stripped by Python's `strip`.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}
