//! The type of one field or element of a message, as structures need it.

use super::fault::Fault;
use schema::{Arity, Field, FieldType, Flavour, MAX_COUNT, MessageType, Primitive};

/// A field, or an element of an array.
#[derive(Clone, Copy)]
pub(super) struct FieldShape<'s> {
    ty: &'s FieldType,
    arity: Arity,
    flavour: Flavour,
    /// The Rust type, if it is a single number.
    pub(super) number: Option<Number>,
}

/// A built-in Rust type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

impl<'s> FieldShape<'s> {
    pub(super) fn root(ty: &'s FieldType, flavour: Flavour) -> Self {
        FieldShape::new(ty, Arity::One, flavour)
    }

    /// A field of a message of type `ty`.
    pub(super) fn field(field: &'s Field, ty: &MessageType) -> Self {
        FieldShape::new(field.ty(), field.arity(), ty.flavour())
    }

    fn new(ty: &'s FieldType, arity: Arity, flavour: Flavour) -> Self {
        let number = match (arity, ty) {
            (Arity::One, FieldType::Primitive(primitive)) => number(*primitive, flavour),
            _ => None,
        };
        FieldShape {
            ty,
            arity,
            flavour,
            number,
        }
    }

    /// Returns the message type, if it is a message.
    pub(super) fn message(&self) -> Option<&'s MessageType> {
        match (self.arity, self.ty) {
            (Arity::One, FieldType::Message(ty)) => Some(ty),
            _ => None,
        }
    }

    /// Returns the type of the text, if it is one.
    pub(super) fn text(&self) -> Option<&'s FieldType> {
        let text = matches!(self.ty, FieldType::String { .. } | FieldType::WString { .. });
        (self.arity == Arity::One && text).then_some(self.ty)
    }

    /// Returns the number and type of elements, if it is an array. A text is an array of its units, also in
    /// messages.
    pub(super) fn elements(&self) -> Option<(Arity, FieldShape<'s>)> {
        let units = |bound: &Option<u32>, unit| {
            let arity = bound.map_or(Arity::Unbounded, Arity::Bounded);
            (arity, FieldShape::new(unit, Arity::One, self.flavour))
        };
        match (self.arity, self.ty) {
            (Arity::One, FieldType::String { bound }) => {
                Some(units(bound, &FieldType::Primitive(Primitive::Uint8)))
            }
            (Arity::One, FieldType::WString { bound }) => {
                Some(units(bound, &FieldType::Primitive(Primitive::Uint16)))
            }
            (Arity::One, _) => None,
            (arity, ty) => Some((arity, FieldShape::new(ty, Arity::One, self.flavour))),
        }
    }

    /// Checks that an array of `arity` may have `given` elements here.
    pub(super) fn check_count(&self, arity: Arity, given: usize) -> Result<u32, Fault> {
        let (least, most) = match arity {
            Arity::Fixed(n) => (n, n),
            Arity::Bounded(n) => (0, n),
            Arity::One | Arity::Unbounded => (0, MAX_COUNT),
        };
        match u32::try_from(given) {
            Ok(count) if (least..=most).contains(&count) => Ok(count),
            _ if least == most => Err(Fault::length(self.type_text(), given, most.to_string())),
            _ => Err(Fault::length(self.type_text(), given, format!("at most {most}"))),
        }
    }

    pub(super) fn type_text(&self) -> String {
        format!("{}{}", self.ty, self.arity)
    }
}

/// Returns `None` for ROS 1's `time` and `duration`, which are two numbers.
fn number(primitive: Primitive, flavour: Flavour) -> Option<Number> {
    Some(match primitive {
        Primitive::Bool => Number::Bool,
        Primitive::Byte if flavour == Flavour::Ros1 => Number::I8,
        Primitive::Int8 => Number::I8,
        Primitive::Byte | Primitive::Char | Primitive::Uint8 => Number::U8,
        Primitive::Int16 => Number::I16,
        Primitive::Uint16 => Number::U16,
        Primitive::Int32 => Number::I32,
        Primitive::Uint32 => Number::U32,
        Primitive::Int64 => Number::I64,
        Primitive::Uint64 => Number::U64,
        Primitive::Float32 => Number::F32,
        Primitive::Float64 => Number::F64,
        Primitive::Time | Primitive::Duration => return None,
    })
}

/// Whether a structure's field corresponds to the type's. ros2_rust appends an underscore to names that are
/// Rust keywords; no ROS 2 name ends with one.
pub(super) fn is_called(structure: &str, field: &str) -> bool {
    structure == field || structure.strip_suffix('_') == Some(field)
}

/// The member that ros2_rust, like IDL, gives a message without fields: a `u8` that no message carries.
pub(super) const FILLER: &str = "structure_needs_at_least_one_member";
