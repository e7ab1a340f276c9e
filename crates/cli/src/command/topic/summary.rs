//! Messages with long values left out.

use schema::{Arity, Field, Message, Show, Value};

/// What to leave out of a message.
#[derive(Clone, Copy, Default)]
pub(super) struct Left {
    pub(super) arrays: bool,
    pub(super) strings: bool,
}

impl Left {
    /// Whether anything is left out.
    pub(super) fn is_any(self) -> bool {
        self.arrays || self.strings
    }

    /// Replacement of a field's value, if it is left out.
    pub(super) fn stands_for(self, field: &Field, value: &Value) -> Option<String> {
        let is_array = !matches!(field.arity(), Arity::One);
        let is_string = matches!(value, Value::String(_) | Value::Bytes(_) | Value::Wide(_));
        let count = value.count().unwrap_or(0);
        match (is_array && self.arrays, is_string && self.strings) {
            (true, _) => Some(format!("<array type: {}[{count}]>", field.ty())),
            (_, true) => Some(format!("<string length: {count}>")),
            _ => None,
        }
    }
}

/// A message as YAML.
pub(super) fn yaml(value: &Value, left: Left, show: Show) -> String {
    match value {
        Value::Message(message) => {
            let mut out = String::new();
            fields(message, left, show, 0, &mut out);
            out
        }
        other => other.to_yaml(show),
    }
}

fn fields(message: &Message, left: Left, show: Show, indent: usize, out: &mut String) {
    let space = "  ".repeat(indent);
    for (field, value) in message.fields() {
        let name = field.name();
        if let Some(text) = left.stands_for(field, value) {
            *out += &format!("{space}{name}: '{text}'\n");
            continue;
        }
        match value {
            Value::Message(inner) if inner.fields().next().is_some() => {
                *out += &format!("{space}{name}:\n");
                fields(inner, left, show, indent + 1, out);
            }
            other => {
                let text = other.to_yaml(show);
                let text = text.trim_end();
                let is_block = text.contains('\n') || text.starts_with("- ");
                if is_block || matches!(other, Value::Time { .. } | Value::Duration { .. }) {
                    let lines = text.lines().map(|line| format!("{space}  {line}\n"));
                    *out += &format!("{space}{name}:\n{}", lines.collect::<String>());
                } else {
                    *out += &format!("{space}{name}: {text}\n");
                }
            }
        }
    }
}

/// A message as JSON.
pub(super) fn json(value: &Value, left: Left, show: Show) -> serde_json::Value {
    match value {
        Value::Message(message) => {
            let field = |(field, value): (&Field, &Value)| {
                let shown = match left.stands_for(field, value) {
                    Some(text) => text.into(),
                    None => json(value, left, show),
                };
                (field.name().to_owned(), shown)
            };
            serde_json::Value::Object(message.fields().map(field).collect())
        }
        other => other.to_json(show),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ropewalk::{Flavour, Registry};

    #[test]
    fn arrays_and_strings_are_left_out() {
        let schema = Registry::new(Flavour::Ros2)
            .schema("sensor_msgs/LaserScan")
            .expect("a type");
        let text = "{header: {stamp: {sec: 1}, frame_id: map}, ranges: [1, 2, 3]}";
        let value = schema.value_from_yaml(text).expect("a message");
        let arrays = Left {
            arrays: true,
            strings: false,
        };
        let yaml = yaml(&value, arrays, Show::SHORT);
        assert!(
            yaml.starts_with("header:\n  stamp:\n    sec: 1\n    nanosec: 0\n  frame_id: \"map\"\n"),
            "{yaml}"
        );
        assert!(yaml.contains("ranges: '<array type: float32[3]>'\n"), "{yaml}");
        let both = Left {
            arrays: true,
            strings: true,
        };
        let json = json(&value, both, Show::SHORT);
        assert_eq!(json["header"]["frame_id"], "<string length: 3>");
        assert_eq!(json["intensities"], "<array type: float32[0]>");
    }

    #[test]
    fn values_that_are_not_left_out_are_printed_as_usual() {
        let schema = Registry::new(Flavour::Ros1)
            .schema("tf2_msgs/TFMessage")
            .expect("a type");
        let text = "{transforms: [{header: {stamp: 1.5}}, {}]}";
        let value = schema.value_from_yaml(text).expect("a message");
        assert_eq!(yaml(&value, Left::default(), Show::ALL), value.to_yaml(Show::ALL));
        let schema = Registry::new(Flavour::Ros1)
            .schema("sensor_msgs/LaserScan")
            .expect("a type");
        let value = schema.default_value();
        assert_eq!(yaml(&value, Left::default(), Show::ALL), value.to_yaml(Show::ALL));
    }
}
