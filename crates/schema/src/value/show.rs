//! Formats values as text for people (YAML, like `rostopic echo`) and as JSON for programs.

use super::{Message, Numbers, Value};
use serde_json::{Map, Value as Json};
use std::fmt::{self, Write};

/// How much of a value to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Show {
    /// Most elements of an array; of a longer one, the first are shown with the total number.
    pub max_array: usize,
}

impl Show {
    /// Everything.
    pub const ALL: Show = Show {
        max_array: usize::MAX,
    };
    /// At most 16 elements of an array: what `Display` shows.
    pub const SHORT: Show = Show { max_array: 16 };
}

impl Value {
    /// The value as YAML, one field a line, in the style of `rostopic echo`. An uncut text parses to the same value,
    /// except for bytes of strings that are not UTF-8 or UTF-16, which are replaced. Control characters are escaped, so
    /// that a message cannot control a terminal.
    pub fn to_yaml(&self, show: Show) -> String {
        let mut out = String::new();
        // Writing to a String does not fail.
        let _ = yaml(self, show, 0, &mut out);
        out
    }

    /// The value as JSON. NaN and the infinities, which JSON lacks, become the strings `nan`, `inf` and `-inf`; bytes
    /// that are not UTF-8 are replaced.
    pub fn to_json(&self, show: Show) -> Json {
        json(self, show)
    }
}

impl fmt::Display for Value {
    /// [`to_yaml`](Value::to_yaml) with long arrays cut.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_yaml(Show::SHORT).trim_end())
    }
}

fn yaml(value: &Value, show: Show, indent: usize, out: &mut String) -> fmt::Result {
    match value {
        Value::Message(m) if !m.values.is_empty() => fields(m, show, indent, out),
        Value::Time { secs, nsecs } => parts(*secs, *nsecs, indent, out),
        Value::Duration { secs, nsecs } => parts(*secs, *nsecs, indent, out),
        Value::List(list) if list.iter().any(is_block) => {
            let space = "  ".repeat(indent);
            for item in list.iter().take(show.max_array) {
                let start = out.len();
                yaml(item, show, indent + 1, out)?;
                // The item's first line has the dash in place of its indentation.
                out.replace_range(start..start + space.len() + 2, &format!("{space}- "));
            }
            match list.len().checked_sub(show.max_array) {
                // An item, so that truncated output cannot be mistaken for complete output.
                Some(more) if more > 0 => writeln!(out, "{space}- … {more} more"),
                _ => Ok(()),
            }
        }
        other => {
            inline(other, show, out)?;
            out.push('\n');
            Ok(())
        }
    }
}

/// Whether a value takes its own lines.
fn is_block(value: &Value) -> bool {
    match value {
        Value::Message(m) => !m.values.is_empty(),
        Value::Time { .. } | Value::Duration { .. } => true,
        Value::List(list) => list.iter().any(is_block),
        _ => false,
    }
}

fn fields(m: &Message, show: Show, indent: usize, out: &mut String) -> fmt::Result {
    let space = "  ".repeat(indent);
    for (field, value) in m.fields() {
        write!(out, "{space}{}:", field.name)?;
        if is_block(value) {
            out.push('\n');
            yaml(value, show, indent + 1, out)?;
        } else {
            out.push(' ');
            inline(value, show, out)?;
            out.push('\n');
        }
    }
    Ok(())
}

fn parts(secs: impl fmt::Display, nsecs: impl fmt::Display, indent: usize, out: &mut String) -> fmt::Result {
    let space = "  ".repeat(indent);
    writeln!(out, "{space}secs: {secs}\n{space}nsecs: {nsecs}")
}

fn inline(value: &Value, show: Show, out: &mut String) -> fmt::Result {
    match value {
        Value::F32(x) if !x.is_finite() => yaml_float((*x).into(), out),
        Value::F64(x) if !x.is_finite() => yaml_float(*x, out),
        Value::Message(_) => out.write_str("{}"),
        Value::String(s) => quoted(s, out),
        Value::Bytes(b) => quoted(&String::from_utf8_lossy(b), out),
        Value::Wide(w) => quoted(&String::from_utf16_lossy(w), out),
        Value::Numbers(Numbers::U8(bytes)) if bytes.len() > show.max_array => {
            write!(out, "<{} bytes", bytes.len())?;
            bytes
                .iter()
                .take(show.max_array)
                .try_for_each(|b| write!(out, " {b:02x}"))?;
            out.write_str(" …>")
        }
        Value::Numbers(n) => list(n.len(), show, out, |i, out| {
            n.at(i).map_or(Ok(()), |v| inline(&v, show, out))
        }),
        Value::List(l) => list(l.len(), show, out, |i, out| {
            l.get(i).map_or(Ok(()), |v| inline(v, show, out))
        }),
        other => write!(out, "{}", json(other, show)),
    }
}

fn list(
    len: usize,
    show: Show,
    out: &mut String,
    item: impl Fn(usize, &mut String) -> fmt::Result,
) -> fmt::Result {
    out.push('[');
    for i in 0..len.min(show.max_array) {
        if i > 0 {
            out.push_str(", ");
        }
        item(i, out)?;
    }
    if len > show.max_array {
        write!(out, ", … {} more", len - show.max_array)?;
    }
    out.push(']');
    Ok(())
}

/// A double-quoted YAML string.
fn quoted(text: &str, out: &mut String) -> fmt::Result {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            // Characters that YAML does not consider printable, and those that change the direction of text.
            '\u{feff}' | '\u{fffe}' | '\u{ffff}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                write!(out, "\\u{:04x}", u32::from(c))?;
            }
            c if c.is_control() => write!(out, "\\u{:04x}", u32::from(c))?,
            c => out.push(c),
        }
    }
    out.push('"');
    Ok(())
}

fn yaml_float(x: f64, out: &mut String) -> fmt::Result {
    out.write_str(if x.is_nan() {
        ".nan"
    } else if x > 0.0 {
        ".inf"
    } else {
        "-.inf"
    })
}

fn json(value: &Value, show: Show) -> Json {
    match value {
        Value::Bool(b) => (*b).into(),
        Value::I8(n) => (*n).into(),
        Value::U8(n) => (*n).into(),
        Value::I16(n) => (*n).into(),
        Value::U16(n) => (*n).into(),
        Value::I32(n) => (*n).into(),
        Value::U32(n) => (*n).into(),
        Value::I64(n) => (*n).into(),
        Value::U64(n) => (*n).into(),
        // The shortest text of the float32, not that of the float64 to which it widens.
        Value::F32(x) if x.is_finite() => x.to_string().parse::<f64>().unwrap_or((*x).into()).into(),
        Value::F32(x) => json_float((*x).into()),
        Value::F64(x) => json_float(*x),
        Value::Time { secs, nsecs } => serde_json::json!({"secs": secs, "nsecs": nsecs}),
        Value::Duration { secs, nsecs } => serde_json::json!({"secs": secs, "nsecs": nsecs}),
        Value::String(s) => s.as_str().into(),
        Value::Bytes(b) => String::from_utf8_lossy(b).into(),
        Value::Wide(w) => String::from_utf16_lossy(w).into(),
        Value::Numbers(n) => array(n.len(), show, |i| n.at(i).map(|v| json(&v, show))),
        Value::List(l) => array(l.len(), show, |i| l.get(i).map(|v| json(v, show))),
        Value::Message(m) => Json::Object(
            m.fields()
                .map(|(f, v)| (f.name.clone(), json(v, show)))
                .collect::<Map<_, _>>(),
        ),
    }
}

fn array(len: usize, show: Show, item: impl Fn(usize) -> Option<Json>) -> Json {
    let mut out: Vec<Json> = (0..len.min(show.max_array)).filter_map(item).collect();
    if len > show.max_array {
        out.push(format!("… {} more", len - show.max_array).into());
    }
    Json::Array(out)
}

fn json_float(x: f64) -> Json {
    match serde_json::Number::from_f64(x) {
        Some(n) => Json::Number(n),
        None if x.is_nan() => "nan".into(),
        None if x > 0.0 => "inf".into(),
        None => "-inf".into(),
    }
}
