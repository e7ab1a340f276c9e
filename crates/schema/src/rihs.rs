//! The type hash of ROS 2: RIHS01 (REP-2011), SHA-256 over a canonical JSON of the type description (REP-2016).
//!
//! Constants, defaults and comments do not affect it. A message without fields has the dummy field that IDL requires.
//! ROS 1's `time` and `duration` count as the messages of `builtin_interfaces`, so that a type with the same fields has
//! the same hash in both flavours.

use crate::TypeName;
use crate::definition::{Arity, Primitive};
use crate::types::{Field, FieldType, MessageType};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

const TIME: &str = "builtin_interfaces/msg/Time";
const DURATION: &str = "builtin_interfaces/msg/Duration";

/// A hash as ROS 2 writes it: `RIHS01_` and 64 hexadecimal digits.
pub(crate) fn written(hash: &[u8; 32]) -> String {
    format!("RIHS01_{}", crate::md5::hex(hash))
}

/// The hash of a message.
pub(crate) fn of_message(ty: &MessageType) -> [u8; 32] {
    let mut referenced = BTreeMap::new();
    collect(&ty.fields, &mut referenced);
    sum(&of_type(ty), referenced)
}

/// The hash of a service, which rosidl describes as a message of its request, its response and an event that can
/// contain both.
pub(crate) fn of_service(name: &TypeName, request: &MessageType, response: &MessageType) -> [u8; 32] {
    const INFO: &str = "service_msgs/msg/ServiceEventInfo";
    let full = name.with_folder(request.folder);
    let part = |suffix: &str| format!("{full}_{suffix}");
    let (request_name, response_name, event) = (part("Request"), part("Response"), part("Event"));
    let mut referenced = BTreeMap::new();
    for (ty, name) in [(request, &request_name), (response, &response_name)] {
        collect(&ty.fields, &mut referenced);
        referenced.insert(name.clone(), description(name, &fields(ty)));
    }
    let event_fields = [
        field("info", 1, 0, 0, INFO),
        field("request", 1 + 96, 1, 0, &request_name),
        field("response", 1 + 96, 1, 0, &response_name),
    ];
    referenced.insert(event.clone(), description(&event, &event_fields));
    let info_fields = [
        field("event_type", 3, 0, 0, ""),
        field("stamp", 1, 0, 0, TIME),
        field("client_gid", 3 + 48, 16, 0, ""),
        field("sequence_number", 8, 0, 0, ""),
    ];
    referenced.insert(INFO.into(), description(INFO, &info_fields));
    referenced.insert(TIME.into(), description(TIME, &time_fields()));
    let own = [
        field("request_message", 1, 0, 0, &request_name),
        field("response_message", 1, 0, 0, &response_name),
        field("event_message", 1, 0, 0, &event),
    ];
    sum(&description(&full, &own), referenced)
}

/// Hashes a description with the descriptions that it refers to, which the map sorts by name.
fn sum(own: &str, referenced: BTreeMap<String, String>) -> [u8; 32] {
    let referenced: Vec<_> = referenced.into_values().collect();
    let referenced = referenced.join(", ");
    let json = format!("{{\"type_description\": {own}, \"referenced_type_descriptions\": [{referenced}]}}");
    Sha256::digest(json.as_bytes()).into()
}

/// Adds the descriptions of all types that `fields` use.
fn collect(fields: &[Field], out: &mut BTreeMap<String, String>) {
    for f in fields {
        match &f.ty {
            FieldType::Primitive(p @ (Primitive::Time | Primitive::Duration)) => {
                let name = time_name(*p);
                out.insert(name.into(), description(name, &time_fields()));
            }
            FieldType::Message(m) if !out.contains_key(&m.ros2_name()) => {
                out.insert(m.ros2_name(), of_type(m));
                collect(&m.fields, out);
            }
            _ => {}
        }
    }
}

fn of_type(ty: &MessageType) -> String {
    description(&ty.ros2_name(), &fields(ty))
}

fn fields(ty: &MessageType) -> Vec<String> {
    if ty.fields.is_empty() {
        vec![field("structure_needs_at_least_one_member", 3, 0, 0, "")]
    } else {
        ty.fields.iter().map(of_field).collect()
    }
}

/// The fields of time and of duration.
fn time_fields() -> [String; 2] {
    [field("sec", 6, 0, 0, ""), field("nanosec", 7, 0, 0, "")]
}

fn description(name: &str, fields: &[String]) -> String {
    format!(
        "{{\"type_name\": \"{name}\", \"fields\": [{}]}}",
        fields.join(", ")
    )
}

fn of_field(f: &Field) -> String {
    // Numbers of type_description_interfaces/msg/FieldType.
    let nested;
    let (id, string_capacity, name) = match &f.ty {
        FieldType::Primitive(p) => match p {
            Primitive::Int8 => (2, 0, ""),
            // rosidl replaces `char` with uint8 before it hashes.
            Primitive::Uint8 | Primitive::Char => (3, 0, ""),
            Primitive::Int16 => (4, 0, ""),
            Primitive::Uint16 => (5, 0, ""),
            Primitive::Int32 => (6, 0, ""),
            Primitive::Uint32 => (7, 0, ""),
            Primitive::Int64 => (8, 0, ""),
            Primitive::Uint64 => (9, 0, ""),
            Primitive::Float32 => (10, 0, ""),
            Primitive::Float64 => (11, 0, ""),
            Primitive::Bool => (15, 0, ""),
            Primitive::Byte => (16, 0, ""),
            Primitive::Time | Primitive::Duration => (1, 0, time_name(*p)),
        },
        FieldType::String { bound: None } => (17, 0, ""),
        FieldType::WString { bound: None } => (18, 0, ""),
        FieldType::String { bound: Some(n) } => (21, *n, ""),
        FieldType::WString { bound: Some(n) } => (22, *n, ""),
        FieldType::Message(m) => {
            nested = m.ros2_name();
            (1, 0, nested.as_str())
        }
    };
    let (offset, capacity) = match f.arity {
        Arity::One => (0, 0),
        Arity::Fixed(n) => (48, n),
        Arity::Bounded(n) => (96, n),
        Arity::Unbounded => (144, 0),
    };
    field(&f.name, id + offset, capacity, string_capacity, name)
}

fn field(name: &str, id: u32, capacity: u32, string_capacity: u32, nested: &str) -> String {
    format!(
        "{{\"name\": \"{name}\", \"type\": {{\"type_id\": {id}, \"capacity\": {capacity}, \
         \"string_capacity\": {string_capacity}, \"nested_type_name\": \"{nested}\"}}}}"
    )
}

fn time_name(p: Primitive) -> &'static str {
    match p {
        Primitive::Time => TIME,
        _ => DURATION,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Flavour, Registry};

    /// Hashes from the descriptions that ROS 2 Jazzy's own generator wrote.
    #[test]
    fn equals_ros2() {
        let registry = Registry::new(Flavour::Ros2);
        for (name, hash) in [
            (
                "std_msgs/msg/Int32",
                "b6578ded3c58c626cfe8d1a6fb6e04f706f97e9f03d2727c9ff4e74b1cef0deb",
            ),
            (
                "std_msgs/msg/Header",
                "f49fb3ae2cf070f793645ff749683ac6b06203e41c891e17701b1cb597ce6a01",
            ),
            (
                "service_msgs/ServiceEventInfo",
                "41bcbbe07a75c9b52bc96bfd5c24d7f0fc0a08c0cb7921b3373c5732345a6f45",
            ),
        ] {
            assert_eq!(
                registry.schema(name).expect("known").rihs01(),
                format!("RIHS01_{hash}")
            );
        }
        let service = registry.service("std_srvs/srv/SetBool").expect("known");
        for (ours, hash) in [
            (
                service.rihs01(),
                "abe9e4bb6b41b40e6789712c00ec8871923e089af3f667a79992a428cff2da0a",
            ),
            (
                service.request().rihs01(),
                "c62fbb99d94e1b25e8ef9e109f9581956bb1b3361a45a4e5810c36a90d29932e",
            ),
            (
                service.response().rihs01(),
                "d0814e7f7b4880ab77e9c57426c7aa1562ab69f11eef8e2e968812f9cbd0b059",
            ),
        ] {
            assert_eq!(ours, format!("RIHS01_{hash}"));
        }
    }

    #[test]
    fn flavours_agree_where_fields_do() {
        let (one, two) = (Registry::new(Flavour::Ros1), Registry::new(Flavour::Ros2));
        for name in ["geometry_msgs/Pose", "std_msgs/Empty", "shape_msgs/Mesh"] {
            assert_eq!(
                one.schema(name).expect("known").rihs01(),
                two.schema(name).expect("known").rihs01()
            );
        }
    }
}
