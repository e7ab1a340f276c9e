//! Parses one line of ROS 2, which is empty, a field or a constant.

use super::cursor::Cursor;
use super::{Origin, literal};
use crate::definition::{Arity, Constant, Definition, Flavour, Primitive, RawField, RawType};
use crate::limits::MAX_ARRAY;
use crate::name::is_identifier;
use crate::{DefinitionError, TypeName};

pub(super) fn parse(def: &mut Definition, line: &str, origin: Origin<'_>) -> Result<(), DefinitionError> {
    let mut c = Cursor::new(line, origin);
    if c.at_end() {
        return Ok(());
    }
    let start = c.clone();
    let (ty, arity, written) = field_type(&mut c, def.name.package(), Flavour::Ros2)?;
    let gap = c.clone();
    if c.at_end() {
        return Err(gap.error("expected a name after the type"));
    }
    if c.rest().len() == gap.rest().len() {
        return Err(c.error(format!("expected a space after the type, found {}", c.found())));
    }
    let at_name = c.clone();
    let name = c.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_identifier(name) {
        return Err(at_name.error(format!("expected a name, found {}", at_name.found())));
    }
    if def.fields.iter().any(|f| f.name == name) || def.constants.iter().any(|k| k.name == name) {
        return Err(at_name.error(format!("`{name}` is declared twice")));
    }
    let after = c.clone();
    c.skip_space();
    if c.eat("=") {
        if arity != Arity::One || matches!(ty, RawType::Named(_)) {
            return Err(start.error(format!("a constant cannot be of type `{written}`")));
        }
        let value = constant_value(&mut c, &ty)?;
        def.sums.push(format!("{written} {name}={value}"));
        def.constants.push(Constant {
            name: name.into(),
            ty: written.into(),
            value,
        });
        return Ok(());
    }
    let mut default = None;
    if !c.at_end() {
        if after.rest().len() == c.rest().len() {
            return Err(c.error(format!("expected the end of the line, found {}", c.found())));
        }
        default = Some(default_value(&mut c, &ty, arity)?);
    }
    def.fields.push(RawField {
        name: name.into(),
        written: None,
        ty,
        arity,
        default,
    });
    Ok(())
}

/// Parses `pkg/Type`, `string<=10`, `T[]`, `T[3]`, `T[<=3]`; also returns the parsed text.
pub(super) fn field_type<'a>(
    c: &mut Cursor<'a>,
    package: &str,
    flavour: Flavour,
) -> Result<(RawType, Arity, &'a str), DefinitionError> {
    let start = c.clone();
    let word = c.take_while(|c| c.is_ascii_alphanumeric() || c == '_' || c == '/');
    let ros2 = flavour == Flavour::Ros2;
    let mut ty = match word {
        "string" => RawType::String { bound: None },
        "wstring" if ros2 => RawType::WString { bound: None },
        // rosidl replaces these with the corresponding message types.
        "time" if ros2 => RawType::Named(TypeName::join("builtin_interfaces", "Time")),
        "duration" if ros2 => RawType::Named(TypeName::join("builtin_interfaces", "Duration")),
        "Header" if !ros2 => RawType::Named(TypeName::join("std_msgs", "Header")),
        word => match Primitive::parse(word) {
            Some(p) => RawType::Primitive(p),
            None if is_identifier(word) => RawType::Named(TypeName::join(package, word)),
            None => RawType::Named(
                TypeName::parse(word)
                    .map_err(|_| start.error(format!("expected a type, found {}", start.found())))?,
            ),
        },
    };
    if ros2 && c.eat("<=") {
        let n = number(c, "a string's bound")?;
        match &mut ty {
            RawType::String { bound } | RawType::WString { bound } => *bound = Some(n),
            _ => return Err(start.error(format!("only strings have a bound, `{word}` has none"))),
        }
    }
    let mut arity = Arity::One;
    if c.eat("[") {
        arity = if c.eat("]") {
            Arity::Unbounded
        } else if ros2 && c.eat("<=") {
            let n = number(c, "an array's bound")?;
            close(c)?;
            Arity::Bounded(n)
        } else {
            let n = number(c, "an array's size")?;
            close(c)?;
            Arity::Fixed(n)
        };
    }
    if c.rest().starts_with('[') {
        return Err(c.error("arrays of arrays do not exist: put the inner array into a message of its own"));
    }
    let len = start.rest().len() - c.rest().len();
    Ok((ty, arity, start.rest().get(..len).unwrap_or("")))
}

fn close(c: &mut Cursor<'_>) -> Result<(), DefinitionError> {
    if c.eat("]") {
        Ok(())
    } else {
        Err(c.error(format!("expected `]`, found {}", c.found())))
    }
}

fn number(c: &mut Cursor<'_>, what: &str) -> Result<u32, DefinitionError> {
    let start = c.clone();
    let digits = c.take_while(|c| c.is_ascii_digit());
    if digits.is_empty() {
        return Err(start.error(format!("expected a number as {what}, found {}", start.found())));
    }
    match digits.parse::<u32>() {
        Ok(n) if n <= MAX_ARRAY => Ok(n),
        _ => Err(start.error(format!("{what} is at most {MAX_ARRAY}, found {digits}"))),
    }
}

fn constant_value(c: &mut Cursor<'_>, ty: &RawType) -> Result<String, DefinitionError> {
    c.skip_space();
    let start = c.clone();
    let value = without_comment(c.take_rest()).trim();
    if value.is_empty() {
        return Err(start.error("expected a value after `=`"));
    }
    literal::check(ty, value).map_err(|what| start.error(what))?;
    Ok(value.to_owned())
}

fn default_value(c: &mut Cursor<'_>, ty: &RawType, arity: Arity) -> Result<String, DefinitionError> {
    let start = c.clone();
    let value = without_comment(c.take_rest()).trim();
    if arity == Arity::One {
        literal::check(ty, value).map_err(|what| start.error(what))?;
        return Ok(value.to_owned());
    }
    let list = literal::parse_list(value).map_err(|what| start.error(what))?;
    let fits = match arity {
        Arity::Fixed(n) => list.len() == n as usize,
        Arity::Bounded(n) => list.len() <= n as usize,
        _ => true,
    };
    if !fits {
        return Err(start.error(format!(
            "the default has {} elements, the field takes {arity}",
            list.len()
        )));
    }
    for item in list {
        literal::check(ty, item).map_err(|what| start.error(what))?;
    }
    Ok(value.to_owned())
}

/// Cuts the text at the first `#` outside quotes.
fn without_comment(text: &str) -> &str {
    let mut quote = None;
    let mut escaped = false;
    for (i, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(q), c) if c == q => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '#') => return text.get(..i).unwrap_or(""),
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, flavour: Flavour) -> Result<Definition, DefinitionError> {
        let name = TypeName::parse("pkg/T").expect("name");
        super::super::message(
            name,
            text,
            flavour,
            Origin {
                file: "T.msg",
                line: 0,
            },
        )
    }

    #[test]
    fn ros1_grammar() {
        let d = read(
            "# comment\n\nHeader header # trailing\nbyte b\nchar c\ntime[] t\nuint8 X = 3 # three\n\
             string S=a # \"b\" = c  \nfloat64[9] k\r\nother/Type[] o\nType mine\nint32 Y=-1\n\tbool \tz",
            Flavour::Ros1,
        )
        .expect("parses");
        let constants: Vec<_> = d
            .constants
            .iter()
            .map(|c| (c.name.as_str(), c.value.as_str()))
            .collect();
        assert_eq!(constants, [("X", "3"), ("S", "a # \"b\" = c"), ("Y", "-1")]);
        let fields: Vec<_> = d.fields.iter().map(|f| (f.name.as_str(), f.arity)).collect();
        assert_eq!(
            fields,
            [
                ("header", Arity::One),
                ("b", Arity::One),
                ("c", Arity::One),
                ("t", Arity::Unbounded),
                ("k", Arity::Fixed(9)),
                ("o", Arity::Unbounded),
                ("mine", Arity::One),
                ("z", Arity::One)
            ]
        );
        assert_eq!(
            d.fields[0].ty,
            RawType::Named(TypeName::join("std_msgs", "Header"))
        );
        assert_eq!(d.fields[6].ty, RawType::Named(TypeName::join("pkg", "Type")));
    }

    #[test]
    fn ros2_grammar() {
        let d = read(
            "string<=5 a \"x#y\" # c\nint32[<=4] b [1, 2]\nwstring<=7[<=2] w\nstring S=\"q # r\" # c\n\
             pkg/msg/Type t\nfloat32 f -1.5\nstring[] s [\"a,b\", 'c']\ntime stamp\nbool g true",
            Flavour::Ros2,
        )
        .expect("parses");
        assert_eq!(d.fields[0].default.as_deref(), Some("\"x#y\""));
        assert_eq!(d.fields[0].ty, RawType::String { bound: Some(5) });
        assert_eq!(d.fields[1].default.as_deref(), Some("[1, 2]"));
        assert_eq!(d.fields[2].ty, RawType::WString { bound: Some(7) });
        assert_eq!(d.constants[0].value, "\"q # r\"");
        assert_eq!(
            d.fields[6].ty,
            RawType::Named(TypeName::join("builtin_interfaces", "Time"))
        );
    }

    #[test]
    fn errors_name_line_and_column() {
        let cases = [
            (Flavour::Ros1, "int32 a\nint32", 2, 6),
            (Flavour::Ros1, "int32 a b", 1, 9),
            (Flavour::Ros1, "  int32 1a", 1, 9),
            (Flavour::Ros1, "int32[ x", 1, 7),
            (Flavour::Ros1, "int32[4 x", 1, 8),
            (Flavour::Ros1, "int32[4294967296] x", 1, 7),
            (Flavour::Ros1, "int32[][] x", 1, 8),
            (Flavour::Ros1, "uint8 X=256", 1, 9),
            (Flavour::Ros1, "uint8 X=", 1, 9),
            (Flavour::Ros1, "Foo X=1", 1, 1),
            (Flavour::Ros1, "string<=5 x", 1, 7),
            (Flavour::Ros1, "a/b/c x", 1, 1),
            (Flavour::Ros1, "int32 a\nint32 a", 2, 7),
            (Flavour::Ros1, "ünt32 a", 1, 1),
            (Flavour::Ros2, "int32<=5 x", 1, 1),
            (Flavour::Ros2, "int32 x 1.5", 1, 9),
            (Flavour::Ros2, "int32[2] x [1]", 1, 12),
            (Flavour::Ros2, "string<=2 x \"abc\"", 1, 13),
            (Flavour::Ros2, "Foo x 1", 1, 7),
        ];
        for (flavour, text, line, column) in cases {
            match read(text, flavour) {
                Err(DefinitionError::Syntax {
                    file,
                    line: l,
                    column: c,
                    what,
                }) => {
                    assert_eq!((file.as_str(), l, c), ("T.msg", line, column), "{text:?}: {what}");
                }
                other => panic!("{text:?}: {other:?}"),
            }
        }
    }
}
