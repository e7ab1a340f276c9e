//! Content filters: conditions on fields, in the subset of SQL of DDS 1.4, annex B.2.1.
//!
//! `header.frame_id = %0 AND (range BETWEEN 0.2 AND %1 OR NOT label LIKE 'wall%')`: fields by path (also `ranges[3]`),
//! integers and floating-point numbers, `'texts'`, `TRUE` and `FALSE`, parameters `%0` to `%99` whose texts are such
//! values, the operators `= <> != < <= > >= LIKE BETWEEN`, and `AND`, `OR`, `NOT` and parentheses.

mod parse;
mod tokens;

use crate::error::{Failure, Outcome};
use schema::{Schema, Value};
use std::cmp::Ordering;

/// A condition on the messages of a type.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    /// The expression as the user wrote it.
    pub(crate) expression: String,
    pub(crate) parameters: Vec<String>,
    condition: Condition,
    /// Whether the condition reads arrays, which may be large.
    in_arrays: bool,
}

/// Why an expression cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FilterError {
    #[error("content filter, character {at}: {what}")]
    Syntax { at: usize, what: String },
    #[error("content filter: {0}")]
    Field(schema::ValueError),
    #[error("content filter: {path} is {kind}, which cannot be compared; name a field of it")]
    NotPlain { path: String, kind: &'static str },
    #[error("content filter: {left} and {right} are of different kinds and never compare")]
    Kinds { left: String, right: String },
    #[error("content filter: LIKE compares texts, and {0} is not a text")]
    NoText(String),
    #[error("content filter: parameter %{number} is missing: only {given} were given")]
    Parameter { number: usize, given: usize },
}

#[derive(Debug, Clone, PartialEq)]
enum Condition {
    Or(Vec<Condition>),
    And(Vec<Condition>),
    Not(Box<Condition>),
    Compare(Operand, Relation, Operand),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Like,
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Field(String),
    Plain(Plain),
}

/// A value that can be compared.
#[derive(Debug, Clone, PartialEq)]
enum Plain {
    Whole(i128),
    Float(f64),
    /// A `float32`. The other operand is rounded to `float32`, so that `0.1` equals a node's 0.1.
    Single(f32),
    Text(Vec<u8>),
}

impl Filter {
    /// Reads an expression and checks it against the type.
    pub(crate) fn new(
        schema: &Schema,
        expression: &str,
        parameters: Vec<String>,
    ) -> Result<Self, FilterError> {
        let condition = parse::expression(expression, &parameters)?;
        let mut in_arrays = false;
        let example = schema.default_value();
        condition.each(&mut |left, relation, right| {
            let (a, b) = (Kind::of(left, &example)?, Kind::of(right, &example)?);
            in_arrays |= [left, right].iter().any(|o| o.is_in_array());
            if let (Some(a), Some(b)) = (a, b)
                && a != b
            {
                let (left, right) = (left.to_string(), right.to_string());
                return Err(FilterError::Kinds { left, right });
            }
            let is_number = |kind| kind == Some(Kind::Number);
            match relation {
                Relation::Like if is_number(a) => Err(FilterError::NoText(left.to_string())),
                Relation::Like if is_number(b) => Err(FilterError::NoText(right.to_string())),
                _ => Ok(()),
            }
        })?;
        Ok(Filter {
            expression: expression.to_owned(),
            parameters,
            condition,
            in_arrays,
        })
    }

    /// Whether a message meets the condition.
    pub(crate) fn passes(&self, message: &ropewalk::Message) -> Outcome<bool> {
        let value = match self.in_arrays {
            true => message.value(),
            false => message.small_value(),
        };
        Ok(self.condition.holds(&value.map_err(Failure::error)?))
    }
}

impl Condition {
    /// Calls a function for each comparison until one fails.
    fn each<E>(&self, f: &mut impl FnMut(&Operand, Relation, &Operand) -> Result<(), E>) -> Result<(), E> {
        match self {
            Condition::Or(all) | Condition::And(all) => all.iter().try_for_each(|c| c.each(f)),
            Condition::Not(inner) => inner.each(f),
            Condition::Compare(left, relation, right) => f(left, *relation, right),
        }
    }

    fn holds(&self, message: &Value) -> bool {
        match self {
            Condition::Or(all) => all.iter().any(|c| c.holds(message)),
            Condition::And(all) => all.iter().all(|c| c.holds(message)),
            Condition::Not(inner) => !inner.holds(message),
            Condition::Compare(left, relation, right) => {
                // A comparison with an element beyond the end of an array is false.
                let (Some(left), Some(right)) = (left.value(message), right.value(message)) else {
                    return false;
                };
                relation.holds(&left, &right)
            }
        }
    }
}

impl Relation {
    fn holds(self, left: &Plain, right: &Plain) -> bool {
        if self == Relation::Like {
            return match (left, right) {
                (Plain::Text(text), Plain::Text(pattern)) => is_like(text, pattern),
                _ => false,
            };
        }
        let Some(order) = left.order(right) else {
            // NaN is neither equal to, less than nor greater than anything.
            return self == Relation::Unequal;
        };
        match self {
            Relation::Equal => order.is_eq(),
            Relation::Unequal => order.is_ne(),
            Relation::Less => order.is_lt(),
            Relation::LessOrEqual => order.is_le(),
            Relation::Greater => order.is_gt(),
            Relation::GreaterOrEqual => order.is_ge(),
            Relation::Like => false,
        }
    }
}

impl Operand {
    fn is_in_array(&self) -> bool {
        matches!(self, Operand::Field(path) if path.contains('['))
    }

    fn value(&self, message: &Value) -> Option<Plain> {
        match self {
            Operand::Field(path) => Plain::of(&message.get(path).ok()?),
            Operand::Plain(plain) => Some(plain.clone()),
        }
    }
}

impl std::fmt::Display for Operand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Operand::Field(path) => f.write_str(path),
            Operand::Plain(Plain::Whole(n)) => write!(f, "{n}"),
            Operand::Plain(Plain::Float(x)) => write!(f, "{x}"),
            Operand::Plain(Plain::Single(x)) => write!(f, "{x}"),
            Operand::Plain(Plain::Text(text)) => write!(f, "'{}'", String::from_utf8_lossy(text)),
        }
    }
}

impl Plain {
    fn of(value: &Value) -> Option<Plain> {
        Some(match value {
            Value::Bool(b) => Plain::Whole((*b).into()),
            Value::F32(x) => Plain::Single(*x),
            Value::F64(x) => Plain::Float(*x),
            Value::String(text) => Plain::Text(text.as_bytes().to_vec()),
            Value::Bytes(bytes) => Plain::Text(bytes.clone()),
            Value::Wide(units) => Plain::Text(String::from_utf16_lossy(units).into_bytes()),
            other => Plain::Whole(other.as_integer()?),
        })
    }

    fn order(&self, other: &Plain) -> Option<Ordering> {
        match (self, other) {
            (Plain::Whole(a), Plain::Whole(b)) => Some(a.cmp(b)),
            (Plain::Text(a), Plain::Text(b)) => Some(a.cmp(b)),
            (Plain::Float(a), Plain::Float(b)) => a.partial_cmp(b),
            (Plain::Whole(a), Plain::Float(b)) => (*a as f64).partial_cmp(b),
            (Plain::Float(a), Plain::Whole(b)) => a.partial_cmp(&(*b as f64)),
            (Plain::Single(a), Plain::Single(b)) => a.partial_cmp(b),
            (Plain::Single(a), Plain::Float(b)) => a.partial_cmp(&(*b as f32)),
            (Plain::Float(a), Plain::Single(b)) => (*a as f32).partial_cmp(b),
            (Plain::Single(a), Plain::Whole(b)) => f64::from(*a).partial_cmp(&(*b as f64)),
            (Plain::Whole(a), Plain::Single(b)) => (*a as f64).partial_cmp(&f64::from(*b)),
            (Plain::Text(_), _) | (_, Plain::Text(_)) => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Text,
}

impl Kind {
    /// The kind of an operand; `None` for an array element, whose kind is only known from a message.
    fn of(operand: &Operand, example: &Value) -> Result<Option<Kind>, FilterError> {
        let path = match operand {
            Operand::Plain(Plain::Text(_)) => return Ok(Some(Kind::Text)),
            Operand::Plain(_) => return Ok(Some(Kind::Number)),
            Operand::Field(path) => path,
        };
        let (named, indexed) = match path.split_once('[') {
            Some((array, _)) => (array, true),
            None => (path.as_str(), false),
        };
        let value = example.get(named).map_err(FilterError::Field)?;
        let not_plain = |kind| {
            let path = named.to_owned();
            Err(FilterError::NotPlain { path, kind })
        };
        match value {
            Value::List(_) | Value::Numbers(_) if indexed => Ok(None),
            Value::List(_) | Value::Numbers(_) => not_plain("an array"),
            Value::Message(_) => not_plain("a message"),
            Value::String(_) | Value::Bytes(_) | Value::Wide(_) => Ok(Some(Kind::Text)),
            _ => Ok(Some(Kind::Number)),
        }
    }
}

/// SQL's LIKE: `%` is any text, `_` any character.
fn is_like(text: &[u8], pattern: &[u8]) -> bool {
    let (text, pattern) = (String::from_utf8_lossy(text), String::from_utf8_lossy(pattern));
    let (text, pattern): (Vec<char>, Vec<char>) = (text.chars().collect(), pattern.chars().collect());
    let (mut t, mut p) = (0, 0);
    // Where to resume if the text after the last `%` does not match: `%` then takes one more character.
    let mut back = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('%') => {
                p += 1;
                back = Some((t, p));
            }
            Some(c) if *c == '_' || text.get(t) == Some(c) => {
                t += 1;
                p += 1;
            }
            _ => match back {
                Some((from, after)) => {
                    t = from + 1;
                    p = after;
                    back = Some((t, p));
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(p).all(|c| *c == '%')
}

#[cfg(test)]
mod tests {
    use super::*;
    use schema::{Flavour, Registry, Schema};

    const DEFINITION: &str = "string name\nint32 count\nuint64 large\nfloat64 x\nbool on\nwstring wide\nfloat32[] ranges\n\
        Point at\nstring[] labels";

    fn schema() -> Schema {
        let mut registry = Registry::new(Flavour::Ros2);
        for (name, text) in [
            ("t/Point", "float64 x\nfloat64 y\nfloat64 z"),
            ("t/Seen", DEFINITION),
        ] {
            registry.add_message(name, text).unwrap();
        }
        registry.schema("t/Seen").unwrap()
    }

    fn holds(expression: &str, parameters: &[&str]) -> bool {
        let text = "{name: wall-7, count: -3, large: 18446744073709551615, x: 0.5, on: true, wide: grün, ranges: [1, 2.5, .nan, 3.14159], \
            at: {x: 1, y: 2, z: 3}, labels: [a, b]}";
        let message = schema().value_from_yaml(text).unwrap();
        let parameters = parameters.iter().map(|p| (*p).to_owned()).collect();
        let filter = Filter::new(&schema(), expression, parameters).unwrap();
        filter.condition.holds(&message)
    }

    fn error(expression: &str, parameters: &[&str]) -> String {
        let parameters = parameters.iter().map(|p| (*p).to_owned()).collect();
        Filter::new(&schema(), expression, parameters)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn conditions_are_those_of_sql() {
        for (expression, expected) in [
            ("count = -3", true),
            ("count <> -3", false),
            ("count != -3 OR on = TRUE", true),
            ("count < 0 AND x > 0.25", true),
            ("count < 0 AND x > 0.75", false),
            ("NOT count < 0", false),
            ("not (count >= 0 or x >= 1)", true),
            ("count = -3 OR x = 9 AND on = FALSE", true),
            ("(count = -3 OR x = 9) AND on = FALSE", false),
            ("x BETWEEN 0.5 AND 1", true),
            ("x NOT BETWEEN 0.5 AND 1", false),
            ("count BETWEEN -3 AND -3 AND on = 1", true),
            ("name = 'wall-7'", true),
            ("name LIKE 'wall%'", true),
            ("name LIKE '%-_'", true),
            ("name NOT LIKE 'w_ll-7'", false),
            ("name LIKE 'wall'", false),
            ("name > 'wall-10'", true),
            ("wide = 'grün'", true),
            ("wide LIKE 'gr_n'", true),
            ("large = 18446744073709551615", true),
            ("large > 18446744073709551614", true),
            ("at.x < at.y AND at.z = 3.0", true),
            ("ranges[1] = 2.5", true),
            ("ranges[2] = 2.5 OR ranges[2] < 2.5 OR ranges[2] > 2.5", false),
            (
                "ranges[3] = 3.14159 AND ranges[3] > 3 AND 3.1415 < ranges[3]",
                true,
            ),
            ("ranges[7] = 2.5", false),
            ("labels[1] = 'b'", true),
            ("x = 5e-1", true),
            ("3 > 2", true),
            ("name = 'it''s'", false),
        ] {
            assert_eq!(holds(expression, &[]), expected, "{expression}");
        }
    }

    #[test]
    fn parameters_stand_for_values() {
        assert!(holds("name = %0 AND count > %1", &["'wall-7'", "-4"]));
        assert!(holds("x BETWEEN %1 AND %0", &["1", "0.25"]));
        assert!(holds("on = %0", &["TRUE"]));
        // A text without quotes is still a text if it is not a number.
        assert!(holds("name = %0", &["wall-7"]));
        assert!(error("count = %1", &["1"]).contains("parameter %1 is missing: only 1 were given"));
    }

    #[test]
    fn errors_name_the_place_and_the_fix() {
        for (expression, part) in [
            ("", "character 1: a field"),
            ("count", "character 6: one of = <> < <= > >= LIKE BETWEEN"),
            ("count = ", "character 9: a field"),
            ("count = 3 on = 1", "character 11: AND, OR or the end"),
            ("(count = 3", "character 11: )"),
            ("count = 'a", "character 9: the text has no end"),
            ("count = #", "character 9: '#'"),
            ("colour = 1", "colour"),
            ("at.w = 1", "w"),
            ("at = 1", "at is a message"),
            ("ranges = 1", "ranges is an array"),
            ("name = 1", "name and 1 are of different kinds"),
            ("count LIKE 'a'", "are of different kinds"),
            ("count LIKE count", "LIKE compares texts"),
            ("x BETWEEN 1 2", "character 13: AND"),
            (
                "count = 99999999999999999999999999999999999999999",
                "character 9: the number is too large",
            ),
            ("count = %x", "character 9: a parameter is % and its number"),
        ] {
            let text = error(expression, &[]);
            assert!(text.contains(part), "{expression}: {text}");
        }
        assert!(error(&"(".repeat(100_000), &[]).contains("too many nested parentheses"));
        assert!(error(&"NOT ".repeat(100_000), &[]).contains("too many nested parentheses"));
    }

    #[test]
    fn no_text_ends_the_process() {
        let words = [
            "count", "x", "name", "at", ".", "x", "[", "1", "]", "(", ")", "AND", "OR", "NOT", "LIKE",
            "BETWEEN", "=", "<>", "<", "'a'", "'", "%0", "%", "-", "1e", "ü", "TRUE", " ", "\0",
        ];
        let mut seed = 7_u64;
        let mut next = |n: usize| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % n
        };
        let message = schema().default_value();
        for _ in 0..20_000 {
            let text: Vec<&str> = (0..next(12)).map(|_| words[next(words.len())]).collect();
            let text = text.join(if next(2) == 0 { " " } else { "" });
            if let Ok(filter) = Filter::new(&schema(), &text, vec!["1".into()]) {
                filter.condition.holds(&message);
            }
        }
    }
}
