//! A parameter's value: as a message (`rcl_interfaces/msg/ParameterValue`), as YAML, and as the user writes it.

use super::yaml::{self, Tree};
use serde_json::{Value as Json, json};

/// The types of `rcl_interfaces/msg/ParameterType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    NotSet,
    Bool,
    Integer,
    Double,
    Text,
    Bytes,
    Bools,
    Integers,
    Doubles,
    Texts,
}

/// In the order of their codes: the type, its name in `ros2 param`, and its field.
const TYPES: [(Type, &str, &str); 10] = [
    (Type::NotSet, "not set", ""),
    (Type::Bool, "boolean", "bool_value"),
    (Type::Integer, "integer", "integer_value"),
    (Type::Double, "double", "double_value"),
    (Type::Text, "string", "string_value"),
    (Type::Bytes, "byte array", "byte_array_value"),
    (Type::Bools, "boolean array", "bool_array_value"),
    (Type::Integers, "integer array", "integer_array_value"),
    (Type::Doubles, "double array", "double_array_value"),
    (Type::Texts, "string array", "string_array_value"),
];

impl Type {
    /// The type of a code.
    pub(super) fn from_code(code: u64) -> Type {
        let found = usize::try_from(code).ok().and_then(|code| TYPES.get(code));
        found.map_or(Type::NotSet, |t| t.0)
    }

    /// Its name in `ros2 param`.
    pub(super) fn word(self) -> &'static str {
        TYPES[self as usize].1
    }
}

/// A parameter's value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Parameter {
    NotSet,
    Bool(bool),
    Integer(i64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    Bools(Vec<bool>),
    Integers(Vec<i64>),
    Doubles(Vec<f64>),
    Texts(Vec<String>),
}

impl Parameter {
    pub(super) fn ty(&self) -> Type {
        match self {
            Parameter::NotSet => Type::NotSet,
            Parameter::Bool(_) => Type::Bool,
            Parameter::Integer(_) => Type::Integer,
            Parameter::Double(_) => Type::Double,
            Parameter::Text(_) => Type::Text,
            Parameter::Bytes(_) => Type::Bytes,
            Parameter::Bools(_) => Type::Bools,
            Parameter::Integers(_) => Type::Integers,
            Parameter::Doubles(_) => Type::Doubles,
            Parameter::Texts(_) => Type::Texts,
        }
    }

    /// From a message; a field of another type than stated is ignored.
    pub(super) fn from_json(json: &Json) -> Parameter {
        let ty = Type::from_code(json["type"].as_u64().unwrap_or(0));
        let field = &json[TYPES[ty as usize].2];
        let list = || field.as_array().into_iter().flatten();
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        match ty {
            Type::NotSet => Parameter::NotSet,
            Type::Bool => Parameter::Bool(field == true),
            Type::Integer => Parameter::Integer(field.as_i64().unwrap_or_default()),
            Type::Double => Parameter::Double(double(field)),
            Type::Text => Parameter::Text(text(field)),
            Type::Bytes => {
                let bytes = list()
                    .filter_map(Json::as_u64)
                    .filter_map(|n| u8::try_from(n).ok());
                Parameter::Bytes(bytes.collect())
            }
            Type::Bools => Parameter::Bools(list().map(|v| v == true).collect()),
            Type::Integers => Parameter::Integers(list().filter_map(Json::as_i64).collect()),
            Type::Doubles => Parameter::Doubles(list().map(double).collect()),
            Type::Texts => Parameter::Texts(list().map(text).collect()),
        }
    }

    /// As a message.
    pub(super) fn to_json(&self) -> Json {
        let ty = self.ty();
        let mut out = json!({ "type": ty as u8 });
        if ty != Type::NotSet {
            out[TYPES[ty as usize].2] = self.plain();
        }
        out
    }

    /// The value alone. A number that JSON cannot express is a string.
    pub(super) fn plain(&self) -> Json {
        match self {
            Parameter::NotSet => Json::Null,
            Parameter::Bool(b) => json!(b),
            Parameter::Integer(n) => json!(n),
            Parameter::Double(x) => number(*x),
            Parameter::Text(text) => json!(text),
            Parameter::Bytes(bytes) => json!(bytes),
            Parameter::Bools(all) => json!(all),
            Parameter::Integers(all) => json!(all),
            Parameter::Doubles(all) => all.iter().map(|x| number(*x)).collect(),
            Parameter::Texts(all) => json!(all),
        }
    }

    /// As YAML, on one line.
    pub(super) fn yaml(&self) -> String {
        fn list<T>(all: &[T], one: impl Fn(&T) -> String) -> String {
            format!("[{}]", all.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        match self {
            Parameter::NotSet => "null".into(),
            Parameter::Bool(b) => b.to_string(),
            Parameter::Integer(n) => n.to_string(),
            Parameter::Double(x) => yaml::double(*x),
            Parameter::Text(text) => yaml::quoted(text),
            Parameter::Bytes(all) => list(all, u8::to_string),
            Parameter::Bools(all) => list(all, bool::to_string),
            Parameter::Integers(all) => list(all, i64::to_string),
            Parameter::Doubles(all) => list(all, |x| yaml::double(*x)),
            Parameter::Texts(all) => list(all, |text| yaml::quoted(text)),
        }
    }

    /// Parses a value from the command line, as YAML. For a parameter of type `declared`, whole numbers are also
    /// doubles, and any text is a string.
    ///
    /// # Errors
    /// The text is not a parameter value.
    pub(super) fn parse(text: &str, declared: Type) -> Result<Parameter, String> {
        if declared == Type::Text {
            // A quoted text is unquoted; any other text is taken as it is.
            return Ok(Parameter::Text(match yaml::parse(text) {
                Ok(Tree::Text(text)) => text,
                _ => text.to_owned(),
            }));
        }
        Parameter::from_tree(&yaml::parse(text)?, declared)
    }

    /// Converts a value from YAML, for a parameter of type `declared`.
    ///
    /// # Errors
    /// The YAML is not a parameter value.
    pub(super) fn from_tree(tree: &Tree, declared: Type) -> Result<Parameter, String> {
        let parameter = match (tree, declared) {
            (Tree::Integer(n), Type::Double) => Parameter::Double(*n as f64),
            (Tree::Bool(b), _) => Parameter::Bool(*b),
            (Tree::Integer(n), _) => Parameter::Integer(*n),
            (Tree::Double(x), _) => Parameter::Double(*x),
            (Tree::Text(text), _) => Parameter::Text(text.clone()),
            (Tree::List(list), _) => return array(list, declared),
            (Tree::Null, _) => return Err("an empty value has no type: write '' for a string".into()),
            (Tree::Map(_), _) => return Err("a mapping is not a parameter value".into()),
        };
        Ok(parameter)
    }
}

/// An array of one type.
fn array(list: &[Tree], declared: Type) -> Result<Parameter, String> {
    let all = |is: fn(&Tree) -> bool| list.iter().all(is);
    let integers = || list.iter().filter_map(Tree::integer);
    let doubles = || Parameter::Doubles(list.iter().filter_map(Tree::double).collect());
    if list.is_empty() {
        return match declared {
            Type::Bytes => Ok(Parameter::Bytes(Vec::new())),
            Type::Bools => Ok(Parameter::Bools(Vec::new())),
            Type::Integers => Ok(Parameter::Integers(Vec::new())),
            Type::Doubles => Ok(Parameter::Doubles(Vec::new())),
            Type::Texts => Ok(Parameter::Texts(Vec::new())),
            _ => Err("an empty list has no type, and the node has not declared one".into()),
        };
    }
    if all(|t| matches!(t, Tree::Integer(_))) {
        return match declared {
            Type::Doubles => Ok(doubles()),
            Type::Bytes => {
                let bytes: Option<Vec<u8>> = integers().map(|n| u8::try_from(n).ok()).collect();
                Ok(Parameter::Bytes(bytes.ok_or("a byte is a number from 0 to 255")?))
            }
            _ => Ok(Parameter::Integers(integers().collect())),
        };
    }
    if all(|t| matches!(t, Tree::Integer(_) | Tree::Double(_))) {
        return Ok(doubles());
    }
    if all(|t| matches!(t, Tree::Bool(_))) {
        return Ok(Parameter::Bools(
            list.iter().map(|t| matches!(t, Tree::Bool(true))).collect(),
        ));
    }
    let texts: Option<Vec<String>> = list.iter().map(Tree::text).collect();
    Ok(Parameter::Texts(texts.ok_or(
        "all elements of an array must have one type: booleans, numbers or strings",
    )?))
}

fn double(json: &Json) -> f64 {
    match json.as_str() {
        Some("nan") => f64::NAN,
        Some("inf") => f64::INFINITY,
        Some("-inf") => f64::NEG_INFINITY,
        _ => json.as_f64().unwrap_or_default(),
    }
}

fn number(x: f64) -> Json {
    match serde_json::Number::from_f64(x) {
        Some(n) => Json::Number(n),
        None if x.is_nan() => "nan".into(),
        None if x > 0.0 => "inf".into(),
        None => "-inf".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_stand_in_the_order_of_their_codes() {
        for (code, (ty, ..)) in TYPES.iter().enumerate() {
            assert_eq!((*ty as usize, Type::from_code(code as u64)), (code, *ty));
        }
        assert_eq!(Type::from_code(99), Type::NotSet);
    }

    #[test]
    fn values_are_read_by_what_they_look_like_and_what_is_declared() {
        let parse = |text: &str, declared| Parameter::parse(text, declared).expect("a value");
        assert_eq!(parse("True", Type::NotSet), Parameter::Bool(true));
        assert_eq!(parse("5", Type::NotSet), Parameter::Integer(5));
        assert_eq!(parse("5", Type::Double), Parameter::Double(5.0));
        assert_eq!(parse("5", Type::Text), Parameter::Text("5".into()));
        assert_eq!(parse("'5'", Type::NotSet), Parameter::Text("5".into()));
        assert_eq!(parse("'5'", Type::Text), Parameter::Text("5".into()));
        assert_eq!(parse("a b", Type::NotSet), Parameter::Text("a b".into()));
        assert_eq!(parse("-.inf", Type::NotSet), Parameter::Double(f64::NEG_INFINITY));
        assert_eq!(
            parse("[1, 2.5]", Type::NotSet),
            Parameter::Doubles(vec![1.0, 2.5])
        );
        assert_eq!(parse("[1, 2]", Type::Doubles), Parameter::Doubles(vec![1.0, 2.0]));
        assert_eq!(parse("[1, 2]", Type::Bytes), Parameter::Bytes(vec![1, 2]));
        assert_eq!(
            parse("[a, b]", Type::NotSet),
            Parameter::Texts(vec!["a".into(), "b".into()])
        );
        assert_eq!(parse("[]", Type::Bools), Parameter::Bools(Vec::new()));
        for bad in ["[]", "[1, a]", "{a: 1}", "", "[1", "[256, -1, a]"] {
            assert!(Parameter::parse(bad, Type::NotSet).is_err(), "{bad}");
        }
        assert!(Parameter::parse("[256]", Type::Bytes).is_err());
    }

    #[test]
    fn values_make_the_round_trip_as_messages_and_as_yaml() {
        for value in [
            Parameter::Bool(false),
            Parameter::Integer(i64::MIN),
            Parameter::Double(1e300),
            Parameter::Double(0.1),
            Parameter::Text("a: \"b\"\n\u{e4}".into()),
            Parameter::Bytes(vec![0, 255]),
            Parameter::Bools(vec![true, false]),
            Parameter::Integers(vec![1, -2]),
            Parameter::Doubles(vec![1.0, f64::INFINITY]),
            Parameter::Texts(vec!["true".into(), String::new()]),
        ] {
            assert_eq!(Parameter::from_json(&value.to_json()), value);
            assert_eq!(
                Parameter::parse(&value.yaml(), value.ty()),
                Ok(value.clone()),
                "{}",
                value.yaml()
            );
        }
        assert_eq!(
            Parameter::from_json(&Parameter::NotSet.to_json()),
            Parameter::NotSet
        );
        assert_eq!(
            Parameter::from_json(&json!({ "type": 2, "integer_value": "x" })),
            Parameter::Integer(0)
        );
    }
}
