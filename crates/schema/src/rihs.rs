//! The type hash of ROS 2: RIHS01 (REP-2011), SHA-256 over a canonical JSON of the type description (REP-2016).
//!
//! Constants, defaults and comments are no part of it. A message without fields has the one that IDL demands.
//! ROS 1's `time` and `duration` count as the messages of `builtin_interfaces`, so that a type with the same
//! fields has the same hash in both flavours.

use crate::definition::{Arity, Primitive};
use crate::types::{Field, FieldType, MessageType};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// `RIHS01_` and 64 hexadecimal digits.
pub(crate) fn of_message(ty: &MessageType) -> String {
    let mut referenced = BTreeMap::new();
    collect(&ty.fields, &mut referenced);
    let referenced: Vec<_> = referenced.into_values().collect();
    let json = format!(
        "{{\"type_description\": {}, \"referenced_type_descriptions\": [{}]}}",
        of_type(ty),
        referenced.join(", ")
    );
    let sum: [u8; 32] = Sha256::digest(json.as_bytes()).into();
    format!("RIHS01_{}", crate::md5::hex(&sum))
}

/// Adds the descriptions of all types that `fields` use, sorted by name.
fn collect(fields: &[Field], out: &mut BTreeMap<String, String>) {
    for f in fields {
        match &f.ty {
            FieldType::Primitive(p @ (Primitive::Time | Primitive::Duration)) => {
                let name = time_name(*p);
                let fields = [field("sec", 6, 0, 0, ""), field("nanosec", 7, 0, 0, "")];
                out.insert(name.into(), description(name, &fields));
            }
            FieldType::Message(m) if !out.contains_key(&m.name.with_folder("msg")) => {
                out.insert(m.name.with_folder("msg"), of_type(m));
                collect(&m.fields, out);
            }
            _ => {}
        }
    }
}

fn of_type(ty: &MessageType) -> String {
    let fields: Vec<_> = if ty.fields.is_empty() {
        vec![field("structure_needs_at_least_one_member", 3, 0, 0, "")]
    } else {
        ty.fields.iter().map(of_field).collect()
    };
    description(&ty.name.with_folder("msg"), &fields)
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
            // rosidl turns `char` into uint8 before it hashes.
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
            nested = m.name.with_folder("msg");
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
        Primitive::Time => "builtin_interfaces/msg/Time",
        _ => "builtin_interfaces/msg/Duration",
    }
}
