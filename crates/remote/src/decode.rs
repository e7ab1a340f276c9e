//! Decoding within a budget: the memory that a message takes is counted before it is decoded.
//!
//! In protobuf, two bytes can encode one element of a repeated field, and that element takes as much memory as its
//! type: a frame of 16 MiB becomes hundreds of MiB. The messages' own descriptors give the cost of each field, so a
//! received message is measured first.

use prost::{DecodeError, Message};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FileDescriptorSet};
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

/// Maximum memory in bytes of one decoded message: twice the longest frame.
pub(crate) const MAX_DECODED: usize = 128 << 20;
/// Shorter messages are decoded without counting: they take a few megabytes at worst.
const SHORT: usize = 16 << 10;
/// Maximum nesting of messages, the same as in `prost`.
const DEEPEST: usize = 100;
/// Size of a string, a `Vec` or `Bytes` without its content.
const HANDLE: usize = 32;

/// Shape of a message type: for each field, the size of one element and the type of message that it holds.
struct Shape {
    fields: BTreeMap<u32, Field>,
}

struct Field {
    /// Bytes in memory of one element of a repeated field; 0 for any other field, which is part of its message's
    /// struct.
    element: usize,
    of: Of,
}

enum Of {
    Message(usize),
    /// A string or bytes.
    Content,
    /// Packed if it is repeated. Holds the bytes of one element on the wire; 0 where that varies.
    Scalar(usize),
}

struct Shapes {
    all: Vec<Shape>,
    by_name: HashMap<String, usize>,
    by_kind: HashMap<&'static str, usize>,
}

static SHAPES: LazyLock<Shapes> = LazyLock::new(Shapes::read);

/// Decodes the body of a kind. For one of the library's kinds, all levels are measured by its type; for a user's own
/// kind only the first level, because only the user's program knows its inner types.
///
/// # Errors
/// The body is malformed, or takes more than [`MAX_DECODED`].
pub(crate) fn body<M: Message + Default>(
    kind: &str,
    bytes: impl prost::bytes::Buf + AsRef<[u8]>,
) -> Result<M, DecodeError> {
    if bytes.as_ref().len() > SHORT {
        measure(bytes.as_ref(), SHAPES.by_kind.get(kind).copied())?;
    }
    M::decode(bytes)
}

/// Decodes a message of either wire, given its full name in the descriptors.
///
/// # Errors
/// As [`body`].
pub(crate) fn message<M: Message + Default>(
    name: &str,
    bytes: impl prost::bytes::Buf + AsRef<[u8]>,
) -> Result<M, DecodeError> {
    if bytes.as_ref().len() > SHORT {
        measure(bytes.as_ref(), SHAPES.by_name.get(name).copied())?;
    }
    M::decode(bytes)
}

fn measure(bytes: &[u8], shape: Option<usize>) -> Result<(), DecodeError> {
    let mut left = MAX_DECODED;
    match SHAPES.measure(bytes, shape, &mut left, 0) {
        Some(()) => Ok(()),
        None => Err(refused()),
    }
}

#[expect(
    deprecated,
    reason = "`prost` has no other way to construct its error, which callers receive for malformed bytes"
)]
fn refused() -> DecodeError {
    DecodeError::new(format!("malformed, or larger than {MAX_DECODED} B in memory"))
}

impl Shapes {
    fn read() -> Shapes {
        // This crate's build wrote the descriptors.
        let set = FileDescriptorSet::decode(crate::DESCRIPTORS).unwrap_or_default();
        let mut types: Vec<(String, &DescriptorProto)> = Vec::new();
        for file in &set.file {
            let package = file.package();
            let top = file.message_type.iter();
            let mut open: Vec<_> = top.map(|m| (format!(".{package}.{}", m.name()), m)).collect();
            while let Some((name, message)) = open.pop() {
                let nested = message.nested_type.iter();
                open.extend(nested.map(|m| (format!("{name}.{}", m.name()), m)));
                types.push((name, message));
            }
        }
        let by_name: HashMap<String, usize> = types
            .iter()
            .enumerate()
            .map(|(i, (name, _))| (name.clone(), i))
            .collect();
        let size = |i| size(&types, &by_name, i, 0);
        let shape = |(_, message): &(String, &DescriptorProto)| {
            let field = |f: &prost_types::FieldDescriptorProto| {
                let of = match f.r#type() {
                    Type::Message | Type::Group => Of::Message(by_name[f.type_name()]),
                    Type::String | Type::Bytes => Of::Content,
                    Type::Double | Type::Fixed64 | Type::Sfixed64 => Of::Scalar(8),
                    Type::Float | Type::Fixed32 | Type::Sfixed32 => Of::Scalar(4),
                    _ => Of::Scalar(0),
                };
                let one = match &of {
                    Of::Message(i) => size(*i),
                    Of::Content => HANDLE,
                    Of::Scalar(4) => 4,
                    Of::Scalar(_) => 8,
                };
                let element = if f.label() == Label::Repeated { one } else { 0 };
                (f.number().unsigned_abs(), Field { element, of })
            };
            Shape {
                fields: message.field.iter().map(field).collect(),
            }
        };
        let all = types.iter().map(shape).collect();
        let named = |kind: &'static str, body: &str| {
            let found = by_name.get(&format!(".robot_remote_control.{body}"));
            found.map(|i| (kind, *i))
        };
        use crate::{command, telemetry};
        let commands = command::ALL.iter().zip(command::BODIES);
        let kinds = telemetry::ALL.iter().zip(telemetry::BODIES);
        let by_kind = commands
            .filter_map(|(kind, body)| named(kind.name, body))
            .chain(kinds.filter_map(|(kind, body)| named(kind.name, body)))
            .collect();
        let by_name = by_name.into_iter().map(|(n, i)| (n[1..].to_owned(), i)).collect();
        Shapes {
            all,
            by_name,
            by_kind,
        }
    }

    /// Subtracts from `left` the memory that a message takes beyond its own struct. Returns `None` if `left` does not
    /// suffice, or if the message is malformed or contains groups, which no message here has.
    fn measure(&self, bytes: &[u8], shape: Option<usize>, left: &mut usize, depth: usize) -> Option<()> {
        let fields = shape.map(|i| &self.all[i].fields);
        let mut rest = bytes;
        while !rest.is_empty() {
            let key = varint(&mut rest)?;
            let number = u32::try_from(key >> 3).ok()?;
            let field = fields.map(|f| f.get(&number));
            // A field that the type does not have is skipped and costs nothing; in an unknown type any field may be an
            // element.
            let takes = match field {
                Some(field) => field.map_or(0, |f| f.element),
                None => HANDLE,
            };
            let mut cost = takes;
            match key & 7 {
                0 => drop(varint(&mut rest)?),
                1 => rest = rest.get(8..)?,
                5 => rest = rest.get(4..)?,
                2 => {
                    let len = usize::try_from(varint(&mut rest)?).ok()?;
                    let (content, after) = rest.split_at_checked(len)?;
                    rest = after;
                    match field {
                        None => cost = cost.checked_add(len)?,
                        Some(None) => {}
                        Some(Some(field)) => match field.of {
                            Of::Content => cost = cost.checked_add(len)?,
                            Of::Message(i) if depth < DEEPEST => {
                                *left = left.checked_sub(takes)?;
                                cost = 0;
                                self.measure(content, Some(i), left, depth + 1)?;
                            }
                            Of::Message(_) => return None,
                            Of::Scalar(width) => {
                                let elements = match len.checked_div(width) {
                                    Some(n) => n,
                                    None => content.iter().filter(|b| **b < 0x80).count(),
                                };
                                cost = elements.checked_mul(field.element)?;
                            }
                        },
                    }
                }
                _ => return None,
            }
            *left = left.checked_sub(cost)?;
        }
        Some(())
    }
}

/// Returns an upper estimate of the size of a message's struct: each repeated field and each string has a handle.
fn size(
    types: &[(String, &DescriptorProto)],
    by_name: &HashMap<String, usize>,
    i: usize,
    depth: usize,
) -> usize {
    let field = |f: &prost_types::FieldDescriptorProto| match f.r#type() {
        _ if f.label() == Label::Repeated => 24,
        Type::Message | Type::Group if depth < 8 => {
            8 + size(types, by_name, by_name[f.type_name()], depth + 1)
        }
        Type::Message | Type::Group => 8,
        Type::String | Type::Bytes => HANDLE,
        Type::Float
        | Type::Fixed32
        | Type::Sfixed32
        | Type::Bool
        | Type::Int32
        | Type::Uint32
        | Type::Enum => 4,
        _ => 8,
    };
    types[i].1.field.iter().map(field).sum()
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7F).checked_shl(shift).unwrap_or(0);
        if *byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{own, types};
    use proptest::prelude::*;

    const FOLDER: &str = "robot_remote_control.FolderTransfer";

    #[test]
    fn messages_small_on_the_wire_and_large_in_memory_are_refused() {
        // An element of no bytes, of field 3, takes two bytes.
        let empty = [0x1A, 0].repeat(8 << 20);
        assert!(message::<types::FolderTransfer>(FOLDER, &empty[..]).is_err());
        assert!(message::<types::FolderTransfer>(FOLDER, &empty[..2000]).is_ok());
        let entries = [0x2A, 0].repeat(8 << 20);
        let chunk = own::Response {
            what: Some(own::response::What::File(own::FileChunk::default())),
            ..Default::default()
        };
        let mut frame = chunk.encode_to_vec();
        frame.truncate(frame.len() - 2);
        prost::encoding::encode_key(13, prost::encoding::WireType::LengthDelimited, &mut frame);
        prost::encoding::encode_varint(entries.len() as u64, &mut frame);
        frame.extend_from_slice(&entries);
        assert!(message::<own::Response>("ropewalk.remote.Response", &frame[..]).is_err());
        // For a program's own type, the first level is measured.
        assert!(body::<types::Poses>("acme.Poses", &[0x0A, 0].repeat(8 << 20)[..]).is_err());
    }

    #[test]
    fn messages_large_on_the_wire_are_decoded() {
        let image = types::Image {
            data: vec![10; 60 << 20],
            ..Default::default()
        };
        let bytes = image.encode_to_vec();
        assert_eq!(body("robot_remote_control.Image", &bytes[..]), Ok(image));
        let scan = types::LaserScan {
            ranges: vec![1.5; 1 << 20],
            ..Default::default()
        };
        let bytes = scan.encode_to_vec();
        assert_eq!(body("robot_remote_control.LaserScan", &bytes[..]), Ok(scan));
    }

    #[test]
    fn every_kind_of_the_library_has_its_type() {
        for kind in crate::telemetry::ALL.iter().map(|k| k.name) {
            assert!(SHAPES.by_kind.contains_key(kind), "{kind}");
        }
        for kind in crate::command::ALL.iter().map(|k| k.name) {
            assert!(SHAPES.by_kind.contains_key(kind), "{kind}");
        }
        assert!(
            SHAPES.by_name.contains_key(FOLDER) && SHAPES.by_name.contains_key("ropewalk.remote.Response")
        );
    }

    proptest! {
        /// A message within the budget is decoded or refused as without the budget; nothing else is decoded.
        #[test]
        fn any_bytes_give_a_verdict(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut left = MAX_DECODED;
            let measured = SHAPES.measure(&bytes, SHAPES.by_name.get(FOLDER).copied(), &mut left, 0);
            if types::FolderTransfer::decode(&bytes[..]).is_ok() && measured.is_none() {
                // Groups, which no message here has.
                prop_assert!(bytes.iter().any(|b| matches!(b & 7, 3 | 4)));
            }
        }
    }
}
