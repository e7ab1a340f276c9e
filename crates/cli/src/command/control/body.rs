//! Message bodies as JSON and as text, by the descriptors in `remote`.

use prost_reflect::{
    DescriptorPool, DeserializeOptions, DynamicMessage, Kind, MessageDescriptor, SerializeOptions,
};
use serde_json::Value;
use std::sync::OnceLock;

/// Array elements and string characters shown unless the user asks for all.
const SHOWN: usize = 8;
const SHOWN_TEXT: usize = 60;
/// Longest value shown on one line, in characters.
const LINE: usize = 100;

fn pool() -> Result<&'static DescriptorPool, String> {
    static POOL: OnceLock<Result<DescriptorPool, String>> = OnceLock::new();
    let decode = || DescriptorPool::decode(remote::DESCRIPTORS).map_err(|e| format!("the descriptors: {e}"));
    POOL.get_or_init(decode).as_ref().map_err(Clone::clone)
}

fn descriptor(message: &str) -> Result<MessageDescriptor, String> {
    let none = || format!("there is no message {message}");
    pool()?.get_message_by_name(message).ok_or_else(none)
}

/// All fields, named as in the `.proto` file, in the encoding of ProtoJSON: bytes as Base64, enumerations as names, NaN
/// and infinities as strings.
pub(super) fn to_json(message: &str, body: &[u8]) -> Result<Value, String> {
    let message = DynamicMessage::decode(descriptor(message)?, body).map_err(|e| e.to_string())?;
    let options = SerializeOptions::new()
        .stringify_64_bit_integers(false)
        .use_proto_field_name(true)
        .skip_default_fields(false);
    // Through text, where a 32-bit float has its shortest form.
    let mut text = Vec::new();
    message
        .serialize_with_options(&mut serde_json::Serializer::new(&mut text), &options)
        .and_then(|()| serde_json::from_slice(&text))
        .map_err(|e| e.to_string())
}

/// Parses the output of [`to_json`]; missing fields have their defaults.
pub(super) fn from_json(message: &str, json: &str) -> Result<Vec<u8>, String> {
    let descriptor = descriptor(message)?;
    let fields: Vec<_> = descriptor.fields().map(|f| f.name().to_owned()).collect();
    let mut text = serde_json::Deserializer::from_str(json);
    let read = DynamicMessage::deserialize_with_options(descriptor, &mut text, &DeserializeOptions::new());
    let read = read.and_then(|body| text.end().map(|()| body));
    let fix = |e| {
        let name = message.rsplit('.').next().unwrap_or(message);
        format!("{e}; the fields of {name} are {}", fields.join(", "))
    };
    Ok(prost::Message::encode_to_vec(&read.map_err(fix)?))
}

/// Fields of a message, one per line, with type and comment.
pub(super) fn fields(message: &str) -> Result<Vec<String>, String> {
    let descriptor = descriptor(message)?;
    let field = |field: prost_reflect::FieldDescriptor| {
        let kind = match field.kind() {
            Kind::Message(message) => message.name().to_owned(),
            Kind::Enum(kind) => kind
                .values()
                .map(|v| v.name().to_owned())
                .collect::<Vec<_>>()
                .join(" | "),
            kind => format!("{kind:?}").to_lowercase(),
        };
        let list = if field.is_list() { " ..." } else { "" };
        let comment = comment(&descriptor, field.path());
        format!("  {:<28} {kind}{list}{comment}", field.name())
            .trim_end()
            .to_owned()
    };
    Ok(descriptor.fields().map(field).collect())
}

/// The comment above it in the `.proto` file.
fn comment(of: &MessageDescriptor, path: &[i32]) -> String {
    let file = of.parent_file();
    let info = file.file_descriptor_proto().source_code_info.as_ref();
    let location = info.and_then(|info| info.location.iter().find(|l| l.path == path));
    let text = location.map(|l| l.leading_comments()).unwrap_or_default();
    match text.split_whitespace().collect::<Vec<_>>().join(" ") {
        text if text.is_empty() => text,
        text => format!("   # {text}"),
    }
}

/// For people: one line per field, short messages on one line; long arrays and strings are shortened unless `full`.
pub(super) fn show(value: &Value, full: bool) -> String {
    let mut out = String::new();
    let short = if full { value.clone() } else { shortened(value) };
    write(&short, 0, &mut out);
    out.trim_end().to_owned()
}

fn write(value: &Value, indent: usize, out: &mut String) {
    let line = inline(value);
    let items: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (format!("{name}:"), value))
            .collect(),
        Value::Array(items) => items.iter().map(|value| ("-".to_owned(), value)).collect(),
        _ => Vec::new(),
    };
    let whole = indent == 0 && value.is_object() && !items.is_empty();
    if !whole && (items.is_empty() || line.chars().count() <= LINE) {
        out.push_str(&format!("{line}\n"));
        return;
    }
    if indent > 0 {
        out.push('\n');
    }
    for (name, item) in items {
        out.push_str(&" ".repeat(indent));
        out.push_str(&format!("{name} "));
        write(item, indent + 2, out);
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| format!("{name}: {}", inline(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::String(text) if text.starts_with('…') => text.clone(),
        other => other.to_string(),
    }
}

fn shortened(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| (name.clone(), shortened(value)));
            Value::Object(fields.collect())
        }
        Value::Array(items) => {
            let mut shown: Vec<_> = items.iter().take(SHOWN).map(shortened).collect();
            if items.len() > SHOWN {
                shown.push(Value::String(format!("… {} in all", items.len())));
            }
            Value::Array(shown)
        }
        Value::String(text) if text.chars().count() > SHOWN_TEXT => {
            let shown: String = text.chars().take(SHOWN_TEXT).collect();
            Value::String(format!("{shown}… {} characters in all", text.chars().count()))
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;
    use remote::types::{GridMap, LaserScan, Map, Twist, Vector3};

    const TWIST: &str = "robot_remote_control.Twist";

    #[test]
    fn bodies_come_back_as_they_were() {
        let twist = Twist {
            linear: Some(Vector3 {
                x: 0.1,
                y: 0.0,
                z: f32::NAN,
            }),
            ..Default::default()
        };
        let json = to_json(TWIST, &twist.encode_to_vec()).expect("shows");
        assert_eq!(
            (&json["linear"]["x"], &json["linear"]["z"]),
            (&0.1.into(), &"NaN".into())
        );
        let back = from_json(TWIST, &json.to_string()).expect("reads");
        assert_eq!(
            Twist::decode(&*back).expect("decodes").linear.map(|l| l.x),
            Some(0.1)
        );
        // Messages packed into a map are shown as well.
        let grid = GridMap {
            frame: "map".into(),
            ..Default::default()
        };
        let map = Map {
            map: Some(prost_types::Any::from_msg(&grid).expect("packs")),
        };
        let json = to_json("robot_remote_control.Map", &map.encode_to_vec()).expect("shows");
        assert_eq!(json["map"]["frame"], "map", "{json}");
    }

    #[test]
    fn doubles_keep_their_last_bit() {
        const GO_TO: &str = "robot_remote_control.GoTo";
        let mut state = 1u64;
        for _ in 0..20_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let speed = f64::from_bits(state ^ state >> 29);
            if !speed.is_finite() {
                continue;
            }
            let command = remote::types::GoTo {
                max_forward_speed: speed,
                ..Default::default()
            };
            let json = to_json(GO_TO, &command.encode_to_vec()).expect("shows");
            let back = from_json(GO_TO, &json.to_string()).expect("reads");
            let back = remote::types::GoTo::decode(&*back)
                .expect("decodes")
                .max_forward_speed;
            assert_eq!(
                back.to_bits(),
                speed.to_bits(),
                "{speed:e} was read back as {back:e}"
            );
        }
    }

    #[test]
    fn malformed_bodies_are_refused_with_the_known_fields() {
        for (json, word) in [
            ("{\"linar\": {}}", "linear"),
            ("{\"linear\": 3}", "linear"),
            ("{\"linear\": {}} more", "trailing"),
            ("{", "EOF"),
            ("[1]", "fields of Twist"),
        ] {
            let error = from_json(TWIST, json).expect_err(json);
            assert!(error.contains(word) && error.contains("angular"), "{error}");
        }
        assert!(to_json(TWIST, &[0xff, 0xff]).is_err());
        let deep = "{\"linear\":".repeat(100_000);
        assert!(from_json(TWIST, &deep).is_err());
    }

    #[test]
    fn people_see_the_beginning_of_what_is_long() {
        let scan = LaserScan {
            ranges: vec![1.5; 100],
            ..Default::default()
        };
        let json = to_json("robot_remote_control.LaserScan", &scan.encode_to_vec()).expect("shows");
        let text = show(&json, false);
        assert!(
            text.contains("… 100 in all]") && text.contains("range_max: 0.0\n"),
            "{text}"
        );
        assert!(!show(&json, true).contains('…'));
    }

    #[test]
    fn fields_are_listed_with_their_comments() {
        let fields = fields("robot_remote_control.GoTo").expect("known");
        assert!(
            fields.iter().any(|f| f.contains("max_forward_speed")
                && f.contains("double")
                && f.contains("# Metres per second")),
            "{fields:?}"
        );
    }
}
