//! Values in definitions: constants and ROS 2's defaults.

use crate::definition::{Primitive, RawType};

/// Returns what is wrong with `text` as a value of `ty` in ROS 2, if anything.
pub(super) fn check(ty: &RawType, text: &str) -> Result<(), String> {
    match ty {
        RawType::Primitive(p) => number(*p, text),
        RawType::String { bound } | RawType::WString { bound } => {
            let value = unquote(text)?;
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

/// The value of a ROS 1 constant that is not a string, parsed with Python's rules as genmsg does: returned as plain
/// decimals, or `True` or `False` for a bool.
pub(super) fn python(ty: &RawType, text: &str) -> Result<String, String> {
    let RawType::Primitive(p) = ty else {
        return Err("a message cannot have a value".into());
    };
    let expected = |what: &str| format!("expected {what} for {}", p.name());
    match p {
        Primitive::Bool => {
            let value = python_truth(text).ok_or_else(|| expected("True, False or a number"))?;
            let plain = matches!(text, "True" | "False" | "0" | "1");
            Ok(match value {
                _ if plain => text.to_owned(),
                true => "True".into(),
                false => "False".into(),
            })
        }
        Primitive::Float32 | Primitive::Float64 => {
            let plain = without_underscores(text).ok_or_else(|| expected("a number"))?;
            plain.parse::<f64>().map_err(|_| expected("a number"))?;
            Ok(plain)
        }
        Primitive::Time | Primitive::Duration => Err(format!("{} cannot have a value", p.name())),
        _ => {
            let plain = without_underscores(text).ok_or_else(|| expected("a whole number"))?;
            let number: i128 = plain.parse().map_err(|_| expected("a whole number"))?;
            // ROS 1's byte is signed.
            let range = if *p == Primitive::Byte {
                Primitive::Int8
            } else {
                *p
            };
            self::number(range, &number.to_string())?;
            Ok(number.to_string())
        }
    }
}

/// Python allows a single underscore between two digits.
fn without_underscores(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let misplaced = (0..bytes.len())
        .any(|at| bytes.get(at) == Some(&b'_') && !(digit(at.checked_sub(1)) && digit(Some(at + 1))));
    (!misplaced).then(|| text.replace('_', ""))
}

/// Whether Python's `ast.literal_eval` returns a true value; only names and real numbers are supported.
fn python_truth(text: &str) -> Option<bool> {
    match text {
        "True" => return Some(true),
        "False" | "None" => return Some(false),
        _ => {}
    }
    let digits = text.trim_start_matches(['+', '-', ' ']);
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = digits.to_ascii_lowercase().strip_prefix(prefix) {
            return u128::from_str_radix(digits, radix).ok().map(|n| n != 0);
        }
    }
    let plain = without_underscores(digits)?;
    // `inf` and `nan` are names, and only zero may start with zeros.
    if !plain.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let number: f64 = plain.parse().ok()?;
    let whole = plain.bytes().all(|b| b.is_ascii_digit());
    let padded = plain.len() > 1 && plain.starts_with('0');
    (!(whole && padded && number != 0.0)).then_some(number != 0.0)
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
        // A byte is unsigned in ROS 2, but signed in definitions carried over from ROS 1.
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

/// Removes the quotes of a ROS 2 string literal, `"…"` or `'…'`; a backslash escapes the next character.
///
/// Text without quotes is returned unchanged, as rosidl does.
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
            assert_eq!(check(&ty, good), Ok(()));
            assert!(check(&ty, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ros1_constants_are_read_as_python_reads_them() {
        for (p, text, value) in [
            (Primitive::Uint16, "1_000", Some("1000")),
            (Primitive::Uint8, "+007", Some("7")),
            (Primitive::Int8, "0x10", None),
            (Primitive::Uint8, "1__0", None),
            (Primitive::Byte, "-128", Some("-128")),
            (Primitive::Byte, "200", None),
            (Primitive::Char, "255", Some("255")),
            (Primitive::Float32, "1_0.5e1_0", Some("10.5e10")),
            (Primitive::Float64, "-Infinity", Some("-Infinity")),
            (Primitive::Float64, "one", None),
            (Primitive::Bool, "True", Some("True")),
            (Primitive::Bool, "true", None),
            (Primitive::Bool, "1", Some("1")),
            (Primitive::Bool, "0x0", Some("False")),
            (Primitive::Bool, "-2.5", Some("True")),
            (Primitive::Bool, "01", None),
            (Primitive::Bool, "00", Some("False")),
            (Primitive::Bool, "nan", None),
        ] {
            let read = python(&RawType::Primitive(p), text).ok();
            assert_eq!(read.as_deref(), value, "{text}");
        }
    }
}
