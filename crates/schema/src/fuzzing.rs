//! Entry points for fuzzing: each takes arbitrary bytes and has to return.

use crate::{Conversion, Flavour, Parts, Registry, Schema, Template};
use std::sync::LazyLock;
use std::time::Duration;

/// Types that together contain every kind of field and array.
static SCHEMAS: LazyLock<Vec<Schema>> = LazyLock::new(|| {
    let mut ros1 = Registry::new(Flavour::Ros1);
    let mut ros2 = Registry::new(Flavour::Ros2);
    let inner = "uint8 a\nfloat64 b\nuint16 c";
    let all = "bool f\nIn[] x\nIn[2] y\nstring[3] z\nstd_msgs/Empty[] e\nstd_msgs/Empty g\ntime[] t\n\
               std_msgs/String[] s\nIn[] last";
    let bounded =
        "string<=5 a\nint32[<=4] b\nwstring<=7[<=2] w\nfloat64 d\nstd_msgs/Header[<=2] h\nuint8[] u";
    // Fixed texts of this file: they parse.
    let _ = ros1.add_message("t/In", inner);
    let _ = ros1.add_message("t/All", all);
    let _ = ros2.add_message("t/Bounded", bounded);
    let mut out = Vec::new();
    for name in [
        "t/All",
        "tf2_msgs/TFMessage",
        "sensor_msgs/PointCloud2",
        "visualization_msgs/MarkerArray",
    ] {
        out.extend(ros1.schema(name));
    }
    for name in ["t/Bounded", "sensor_msgs/Image", "rcl_interfaces/ParameterEvent"] {
        out.extend(ros2.schema(name));
    }
    out
});

/// The first byte chooses a schema and a threshold; the rest is the input.
fn choose(data: &[u8]) -> Option<(Schema, &[u8])> {
    let (first, rest) = data.split_first()?;
    let schema = SCHEMAS.get(usize::from(*first) % SCHEMAS.len())?.clone();
    Some((
        schema.with_threshold(if first & 0x80 == 0 { 0 } else { 256 }),
        rest,
    ))
}

/// A definition in either flavour, as a message, a service, an action and an embedded text.
pub fn msg_text(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(rest);
    let flavour = if first & 1 == 0 {
        Flavour::Ros1
    } else {
        Flavour::Ros2
    };
    let mut registry = Registry::new(flavour);
    let _ = registry.add_service("t/S", &text);
    let _ = registry.add_embedded_service("t/E", &text);
    let _ = registry.add_action("t/A", &text);
    let event = "t/srv/T_Event";
    if registry.add_embedded(event, &text).is_ok()
        && let Ok(schema) = registry.schema(event)
    {
        let _ = (schema.rihs01(), schema.definition());
    }
    if registry.add_embedded("t/T", &text).is_ok()
        && let Ok(schema) = registry.schema("t/T")
    {
        let _ = (
            schema.md5(),
            schema.rihs01(),
            schema.canonical_text(),
            schema.parts(),
        );
        let value = schema.default_value();
        let bytes = schema.encode_ros1(&value).expect("a default fits its type");
        assert_eq!(schema.decode_ros1(&bytes).expect("own bytes"), value);
    }
    let _ = registry.service("t/S");
}

/// A ROS 1 message: an accepted message is reproduced byte for byte, also through CDR.
pub fn ros1_split(data: &[u8]) {
    let Some((schema, bytes)) = choose(data) else {
        return;
    };
    let Ok(split) = schema.split_ros1(bytes) else {
        return;
    };
    let Parts { control, parts } = split.to_parts();
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    assert_eq!(schema.join_ros1(&control, &parts).expect("own parts"), bytes);
    let cdr = schema.join_cdr(&control, &parts).expect("own parts");
    let back = schema.split_cdr(&cdr).expect("own CDR").to_parts();
    assert_eq!(
        (back.control.as_slice(), back.slices()),
        (control.as_slice(), parts.clone())
    );
    let value = schema.decode(&control, &parts).expect("own parts");
    schema.encode_ros1(&value).expect("own value");
    let _ = value.to_string();
}

/// A CDR message: an accepted message stays the same when it is written and read again.
pub fn cdr_split(data: &[u8]) {
    let Some((schema, bytes)) = choose(data) else {
        return;
    };
    let Ok(split) = schema.split_cdr(bytes) else {
        return;
    };
    let parts = split.to_parts();
    let cdr = schema
        .join_cdr(&parts.control, &parts.slices())
        .expect("own parts");
    assert_eq!(schema.split_cdr(&cdr).expect("own CDR").to_parts(), parts);
}

/// The same types in the other ROS, if it can express them.
static NAMESAKES: LazyLock<Vec<Option<Schema>>> = LazyLock::new(|| {
    let namesake = |s: &Schema| s.in_flavour(s.flavour().other()).ok();
    SCHEMAS.iter().map(namesake).collect()
});

/// A message is converted to the other ROS and back, unchanged except for each `seq`; invalid input is refused or
/// yields invalid output.
fn convert(schema: &Schema, control: &[u8], parts: &[&[u8]], accepted: bool) {
    let place = SCHEMAS.iter().position(|s| s.name() == schema.name());
    let Some(namesake) = place.and_then(|i| NAMESAKES.get(i)?.as_ref()) else {
        return;
    };
    let Some(there) = Conversion::new(namesake) else {
        return;
    };
    let converted = match there.control(control) {
        Ok(converted) => converted,
        Err(_) => return assert!(!accepted),
    };
    if !accepted {
        return;
    }
    namesake.decode(&converted, parts).expect("a message");
    let back = Conversion::new(schema).expect("both have a header");
    let back = back.control(&converted).expect("a message");
    schema.decode(&back, parts).expect("a message");
    assert_eq!(there.control(&back).expect("a message"), converted);
}

/// A control part and data parts: after the choice, two bytes for the control part's length, the control part, then
/// parts, each preceded by two bytes of its length.
pub fn join(data: &[u8]) {
    let Some((schema, mut rest)) = choose(data) else {
        return;
    };
    let mut pieces = Vec::new();
    while let Some((len, after)) = rest.split_first_chunk::<2>() {
        let len = usize::from(u16::from_le_bytes(*len)).min(after.len());
        let (piece, after) = after.split_at(len);
        pieces.push(piece);
        rest = after;
    }
    let Some((control, parts)) = pieces.split_first() else {
        return;
    };
    let ros1 = schema.join_ros1(control, parts);
    convert(&schema, control, parts, ros1.is_ok());
    let Ok(ros1) = ros1 else {
        return;
    };
    let _ = schema.join_cdr(control, parts).expect("accepted before");
    let _ = schema.decode(control, parts).expect("accepted before");
    let again = schema.split_ros1(&ros1).expect("own bytes").to_parts();
    assert_eq!(
        schema
            .join_ros1(&again.control, &again.slices())
            .expect("own parts"),
        ros1
    );
}

/// YAML text for a message.
pub fn yaml(data: &[u8]) {
    let Some((schema, bytes)) = choose(data) else {
        return;
    };
    let text = String::from_utf8_lossy(bytes);
    if let Ok(value) = schema.value_from_yaml(&text) {
        schema.encode_ros1(&value).expect("a value that was read fits");
    }
    for template in Template::all(&text).unwrap_or_default() {
        if let Ok(value) = schema.value_from_template(&template, Duration::from_secs(1)) {
            schema.encode_ros1(&value).expect("a value that was read fits");
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_schema_is_there() {
        assert_eq!(super::SCHEMAS.len(), 7);
    }
}
