//! Constants and defaults of definitions, for all languages.

use schema::{Flavour, Primitive};

/// A number of a definition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    /// Value of a `bool`, 0 or 1, or of an integer.
    Integer(i128),
    /// Value of a float.
    Float(f64),
}

/// The type of a numeric constant; `None` for a string constant.
pub(crate) fn primitive(name: &str) -> Option<Primitive> {
    const ALL: [Primitive; 13] = [
        Primitive::Bool,
        Primitive::Byte,
        Primitive::Char,
        Primitive::Int8,
        Primitive::Uint8,
        Primitive::Int16,
        Primitive::Uint16,
        Primitive::Int32,
        Primitive::Uint32,
        Primitive::Int64,
        Primitive::Uint64,
        Primitive::Float32,
        Primitive::Float64,
    ];
    ALL.into_iter().find(|p| p.name() == name)
}

/// The text as a number of this type.
pub(crate) fn number(p: Primitive, text: &str) -> Option<Number> {
    let text = text.trim();
    match p {
        Primitive::Bool => match text {
            "true" | "True" | "1" => Some(Number::Integer(1)),
            "false" | "False" | "0" => Some(Number::Integer(0)),
            _ => None,
        },
        Primitive::Float32 | Primitive::Float64 => text.parse().ok().map(Number::Float),
        _ => {
            let (minus, digits) = match text.strip_prefix('-') {
                Some(digits) => (true, digits),
                None => (false, text.strip_prefix('+').unwrap_or(text)),
            };
            let n = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
                Some(hex) => i128::from_str_radix(hex, 16).ok()?,
                None => digits.parse::<i128>().ok()?,
            };
            Some(Number::Integer(if minus { n.checked_neg()? } else { n }))
        }
    }
}

/// A string of a definition, without the quotes that ROS 2 requires.
pub(crate) fn unquoted(text: &str, flavour: Flavour) -> String {
    let inner = ['"', '\'']
        .into_iter()
        .find_map(|q| text.strip_prefix(q)?.strip_suffix(q));
    match (flavour, inner) {
        (Flavour::Ros2, Some(inner)) => inner.replace("\\\"", "\"").replace("\\'", "'"),
        _ => text.to_owned(),
    }
}
