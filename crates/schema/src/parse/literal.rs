//! Values in definitions: constants and ROS 2's defaults.

use crate::definition::{Primitive, RawType};

/// Says what is wrong with `text` as a value of `ty`, if anything is. `quoted` strings are ROS 2's.
pub(super) fn check(ty: &RawType, text: &str, quoted: bool) -> Result<(), String> {
    match ty {
        RawType::Primitive(p) => number(*p, text),
        RawType::String { bound } | RawType::WString { bound } => {
            let value = if quoted { unquote(text)? } else { text.to_owned() };
            let len = match ty {
                RawType::WString { .. } => value.encode_utf16().count(),
                _ => value.len(),
            };
            match bound {
                Some(bound) if len > *bound as usize => Err(format!("longer than its bound of {bound}")),
                _ => Ok(()),
            }
        }
        RawType::Named(name) => Err(format!("a field of type {name} cannot have a value")),
    }
}

fn number(p: Primitive, text: &str) -> Result<(), String> {
    let range = |lo: i128, hi: i128| match text.parse::<i128>() {
        Ok(n) if (lo..=hi).contains(&n) => Ok(()),
        Ok(n) => Err(format!("{n} does not fit {}: {lo} to {hi}", p.name())),
        Err(_) => Err(format!("expected a whole number for {}", p.name())),
    };
    match p {
        Primitive::Bool => match text.to_ascii_lowercase().as_str() {
            "true" | "false" => Ok(()),
            t if t.parse::<i64>().is_ok() => Ok(()),
            _ => Err("expected true, false or a number for bool".into()),
        },
        // ROS 1 takes byte as signed, ROS 2 as unsigned: both are let through.
        Primitive::Byte => range(-128, 255),
        Primitive::Char | Primitive::Uint8 => range(0, 255),
        Primitive::Int8 => range(-128, 127),
        Primitive::Int16 => range(i16::MIN.into(), i16::MAX.into()),
        Primitive::Uint16 => range(0, u16::MAX.into()),
        Primitive::Int32 => range(i32::MIN.into(), i32::MAX.into()),
        Primitive::Uint32 => range(0, u32::MAX.into()),
        Primitive::Int64 => range(i64::MIN.into(), i64::MAX.into()),
        Primitive::Uint64 => range(0, u64::MAX.into()),
        Primitive::Float32 | Primitive::Float64 => text
            .parse::<f64>()
            .map(|_| ())
            .map_err(|_| format!("expected a number for {}", p.name())),
        Primitive::Time | Primitive::Duration => Err(format!("{} cannot have a value", p.name())),
    }
}

/// Takes the quotes off a ROS 2 string literal, `"…"` or `'…'`; a backslash keeps the next character.
///
/// Text without quotes is taken as it is, as rosidl does.
pub(crate) fn unquote(text: &str) -> Result<String, String> {
    let text = text.trim();
    let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
        return Ok(text.to_owned());
    };
    let inner = text
        .get(1..)
        .and_then(|t| t.strip_suffix(quote))
        .ok_or("the string is not closed")?;
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some(c @ ('\\' | '"' | '\'')) => out.push(c),
                Some(c) => out.extend(['\\', c]),
                None => return Err("the string ends in a backslash".into()),
            },
            c if c == quote => return Err("a quote inside the string needs a backslash".into()),
            c => out.push(c),
        }
    }
    Ok(out)
}

/// The elements of `[a, b, "c,d"]`, each as written.
pub(crate) fn parse_list(text: &str) -> Result<Vec<&str>, String> {
    let inner = text.trim().strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    let inner = inner.ok_or("expected a list in brackets")?;
    let mut out = Vec::new();
    let (mut start, mut quote, mut escaped) = (0, None, false);
    for (i, c) in inner.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(q), c) if c == q => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, ',') => {
                out.push(inner.get(start..i).unwrap_or("").trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    let last = inner.get(start..).unwrap_or("").trim();
    if !last.is_empty() {
        out.push(last);
    }
    if out.iter().any(|s| s.is_empty()) {
        return Err("an element of the list is empty".into());
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_lists() {
        assert_eq!(unquote(r#""a\"b\\n\n""#).expect("quoted"), "a\"b\\n\n");
        assert_eq!(
            unquote("'it''"),
            Err("a quote inside the string needs a backslash".into())
        );
        assert!(unquote("\"open").is_err());
        assert!(unquote("\"").is_err());
        assert_eq!(unquote("plain").expect("bare"), "plain");
        assert_eq!(
            parse_list(r#"[1, "a,b", 'c']"#).expect("list"),
            ["1", "\"a,b\"", "'c'"]
        );
        assert!(parse_list("[]").expect("empty").is_empty());
        assert!(parse_list("[1,,2]").is_err());
        assert!(parse_list("1").is_err());
    }

    #[test]
    fn numbers_are_checked_against_their_type() {
        for (p, good, bad) in [
            (Primitive::Uint8, "255", "256"),
            (Primitive::Int8, "-128", "128"),
            (Primitive::Uint64, "18446744073709551615", "-1"),
            (Primitive::Bool, "True", "yes"),
            (Primitive::Float32, "-1e9", "one"),
        ] {
            let ty = RawType::Primitive(p);
            assert_eq!(check(&ty, good, false), Ok(()));
            assert!(check(&ty, bad, false).is_err(), "{bad}");
        }
    }
}
