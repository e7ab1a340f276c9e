//! A message as a line of comma-separated values (RFC 4180): every leaf, in the order of the definition.

use super::summary::Left;
use schema::{Show, Value};

/// The line, without its end. A time is two values; each array element is one.
pub(super) fn line(value: &Value, left: Left) -> String {
    let mut cells = Vec::new();
    add(value, left, &mut cells);
    cells.join(",")
}

fn add(value: &Value, left: Left, cells: &mut Vec<String>) {
    match value {
        Value::Message(message) => {
            for (field, value) in message.fields() {
                match left.stands_for(field, value) {
                    Some(text) => cells.push(quoted(&text)),
                    None => add(value, left, cells),
                }
            }
        }
        Value::List(list) => list.iter().for_each(|value| add(value, left, cells)),
        Value::Numbers(numbers) => {
            let all = (0..numbers.len()).filter_map(|i| numbers.at(i));
            all.for_each(|value| add(&value, left, cells));
        }
        Value::Time { secs, nsecs } => cells.extend([secs.to_string(), nsecs.to_string()]),
        Value::Duration { secs, nsecs } => cells.extend([secs.to_string(), nsecs.to_string()]),
        other => cells.push(match other.to_json(Show::ALL) {
            serde_json::Value::String(text) => quoted(&text),
            number => number.to_string(),
        }),
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ropewalk::{Flavour, Registry};

    #[test]
    fn every_leaf_is_a_value() {
        let schema = Registry::new(Flavour::Ros1)
            .schema("sensor_msgs/JointState")
            .expect("a type");
        let text =
            r#"{header: {seq: 7, stamp: 1.5, frame_id: 'a,"b"'}, name: [x, y], position: [0.5, .nan]}"#;
        let value = schema.value_from_yaml(text).expect("a message");
        assert_eq!(
            line(&value, Left::default()),
            r#"7,1,500000000,"a,""b""",x,y,0.5,nan"#
        );
        let arrays = Left {
            arrays: true,
            strings: false,
        };
        assert!(
            line(&value, arrays)
                .ends_with("<array type: float64[2]>,<array type: float64[0]>,<array type: float64[0]>")
        );
    }
}
