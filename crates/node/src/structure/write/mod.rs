//! Writes one value of a structure as ROS 1 bytes.

mod compound;

use super::fault::Fault;
use super::shape::{FieldShape, Number};
use compound::{Elements, Fields};
use schema::{Arity, FieldType};
use serde::ser::{Impossible, Serialize, Serializer};

/// Appends the value of one field or element.
pub(super) struct Writer<'p, 's, 'o> {
    pub(super) shape: &'p FieldShape<'s>,
    pub(super) out: &'o mut Vec<u8>,
}

type Nothing = Result<(), Fault>;
type Never = Impossible<(), Fault>;

impl<'s, 'o> Writer<'_, 's, 'o> {
    fn kind(&self, found: &str) -> Fault {
        Fault::kind(self.shape, found)
    }

    #[inline]
    fn number<const N: usize>(self, number: Number, bytes: [u8; N], found: &str) -> Nothing {
        if self.shape.number != Some(number) {
            return Err(self.kind(found));
        }
        self.out.extend_from_slice(&bytes);
        Ok(())
    }

    /// Appends units or elements that are available as bytes.
    fn units(self, arity: Arity, count: usize, bytes: &[u8]) -> Nothing {
        let count = self.shape.check_count(arity, count)?;
        if !matches!(arity, Arity::Fixed(_)) {
            self.out.extend_from_slice(&count.to_le_bytes());
        }
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn elements(self, found: &str) -> Result<Elements<'s, 'o>, Fault> {
        match self.shape.elements() {
            Some((arity, element)) => Ok(Elements::new(self, arity, element)),
            None => Err(self.kind(found)),
        }
    }
}

macro_rules! numbers {
    ($($method:ident($ty:ty) $number:ident,)+) => {$(
        #[inline]
        fn $method(self, value: $ty) -> Nothing {
            self.number(Number::$number, value.to_le_bytes(), concat!("`", stringify!($ty), "`"))
        }
    )+};
}

impl<'s, 'o> Serializer for Writer<'_, 's, 'o> {
    type Ok = ();
    type Error = Fault;
    type SerializeSeq = Elements<'s, 'o>;
    type SerializeTuple = Elements<'s, 'o>;
    type SerializeTupleStruct = Never;
    type SerializeTupleVariant = Never;
    type SerializeMap = Never;
    type SerializeStruct = Fields<'s, 'o>;
    type SerializeStructVariant = Never;

    numbers! {
        serialize_i8(i8) I8,
        serialize_u8(u8) U8,
        serialize_i16(i16) I16,
        serialize_u16(u16) U16,
        serialize_i32(i32) I32,
        serialize_u32(u32) U32,
        serialize_i64(i64) I64,
        serialize_u64(u64) U64,
        serialize_f32(f32) F32,
        serialize_f64(f64) F64,
    }

    fn serialize_bool(self, value: bool) -> Nothing {
        self.number(Number::Bool, [value.into()], "`bool`")
    }

    fn serialize_str(self, text: &str) -> Nothing {
        match (self.shape.text(), self.shape.elements()) {
            (Some(FieldType::WString { .. }), Some((arity, _))) => {
                let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
                self.units(arity, bytes.len() / 2, &bytes)
            }
            (Some(_), Some((arity, _))) => self.units(arity, text.len(), text.as_bytes()),
            _ => Err(self.kind("a text")),
        }
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Nothing {
        match self.shape.elements() {
            Some((arity, element)) if element.number == Some(Number::U8) => {
                self.units(arity, bytes.len(), bytes)
            }
            _ => Err(self.kind("bytes")),
        }
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Elements<'s, 'o>, Fault> {
        self.elements("a sequence")
    }

    fn serialize_tuple(self, _: usize) -> Result<Elements<'s, 'o>, Fault> {
        self.elements("an array")
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Fields<'s, 'o>, Fault> {
        match self.shape.message() {
            Some(ty) => Ok(Fields::new(ty, self.out)),
            None => Err(self.kind(&format!("a structure {name}"))),
        }
    }

    fn serialize_unit_struct(self, name: &'static str) -> Nothing {
        serde::ser::SerializeStruct::end(self.serialize_struct(name, 0)?)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Nothing {
        value.serialize(self)
    }

    fn serialize_char(self, _: char) -> Nothing {
        Err(self.kind("a char"))
    }

    fn serialize_none(self) -> Nothing {
        Err(self.kind("an option"))
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Nothing {
        Err(self.kind("an option"))
    }

    fn serialize_unit(self) -> Nothing {
        Err(self.kind("nothing"))
    }

    fn serialize_unit_variant(self, name: &'static str, _: u32, _: &'static str) -> Nothing {
        Err(self.kind(&format!("an enumeration {name}")))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Nothing {
        Err(self.kind(&format!("an enumeration {name}")))
    }

    fn serialize_tuple_struct(self, name: &'static str, _: usize) -> Result<Never, Fault> {
        Err(self.kind(&format!("a structure {name} without names")))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Never, Fault> {
        Err(self.kind(&format!("an enumeration {name}")))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Never, Fault> {
        Err(self.kind("a map"))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Never, Fault> {
        Err(self.kind(&format!("an enumeration {name}")))
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}
