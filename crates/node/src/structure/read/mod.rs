//! Reads one value of a structure from ROS 1 bytes.

mod elements;
mod fields;
mod pieces;

pub(super) use pieces::Pieces;

use super::fault::Fault;
use super::shape::{FieldShape, Number};
use elements::Elements;
use fields::Fields;
use schema::{Arity, FieldType};
use serde::de::value::SeqDeserializer;
use serde::de::{Deserializer, Visitor};

/// Reads the value of one field or element.
pub(super) struct Reader<'r, 'p, 's> {
    pub(super) shape: &'r FieldShape<'s>,
    pub(super) from: &'r mut Pieces<'p>,
}

impl Reader<'_, '_, '_> {
    fn kind(&self, found: &str) -> Fault {
        Fault::kind(self.shape, found)
    }

    #[inline]
    fn number<const N: usize>(&mut self, number: Number, found: &str) -> Result<[u8; N], Fault> {
        if self.shape.number != Some(number) {
            return Err(self.kind(found));
        }
        self.from.word()
    }

    /// Reads the number of elements of an array or a text.
    fn count(&mut self, arity: Arity) -> Result<usize, Fault> {
        match arity {
            Arity::Fixed(n) => Ok(n as usize),
            _ => Ok(u32::from_le_bytes(self.from.word()?) as usize),
        }
    }

    fn sequence<'de, V: Visitor<'de>>(
        mut self,
        wanted: Option<usize>,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let Some((arity, element)) = self.shape.elements() else {
            return Err(self.kind("a sequence"));
        };
        let count = self.count(arity)?;
        if let Some(wanted) = wanted.filter(|wanted| *wanted != count) {
            return Err(taken(count, wanted));
        }
        let mut elements = Elements::new(element, count, self.from);
        let value = visitor.visit_seq(&mut elements)?;
        match elements.index() {
            index if index == count => Ok(value),
            index => Err(taken(count, index)),
        }
    }
}

/// The structure does not take all elements.
#[cold]
fn taken(given: usize, allowed: usize) -> Fault {
    Fault::length("the structure".into(), given, allowed.to_string())
}

macro_rules! numbers {
    ($($method:ident($ty:ty) $number:ident $visit:ident,)+) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Fault> {
            let bytes = self.number(Number::$number, concat!("`", stringify!($ty), "`"))?;
            visitor.$visit(<$ty>::from_le_bytes(bytes))
        }
    )+};
}

macro_rules! refused {
    ($($method:ident($($argument:ty),*) $found:literal,)+) => {$(
        fn $method<V: Visitor<'de>>(self, $(_: $argument,)* _: V) -> Result<V::Value, Fault> {
            Err(self.kind($found))
        }
    )+};
}

impl<'de> Deserializer<'de> for Reader<'_, '_, '_> {
    type Error = Fault;

    numbers! {
        deserialize_i8(i8) I8 visit_i8,
        deserialize_u8(u8) U8 visit_u8,
        deserialize_i16(i16) I16 visit_i16,
        deserialize_u16(u16) U16 visit_u16,
        deserialize_i32(i32) I32 visit_i32,
        deserialize_u32(u32) U32 visit_u32,
        deserialize_i64(i64) I64 visit_i64,
        deserialize_u64(u64) U64 visit_u64,
        deserialize_f32(f32) F32 visit_f32,
        deserialize_f64(f64) F64 visit_f64,
    }

    refused! {
        deserialize_char() "a char",
        deserialize_option() "an option",
        deserialize_unit() "nothing",
        deserialize_identifier() "an identifier",
        deserialize_tuple_struct(&'static str, usize) "a structure without names",
        deserialize_enum(&'static str, &'static [&'static str]) "an enumeration",
    }

    fn deserialize_bool<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Fault> {
        let [byte] = self.number(Number::Bool, "`bool`")?;
        visitor.visit_bool(byte != 0)
    }

    fn deserialize_str<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Fault> {
        let (Some(ty), Some((arity, _))) = (self.shape.text(), self.shape.elements()) else {
            return Err(self.kind("a text"));
        };
        let count = self.count(arity)?;
        if let FieldType::WString { .. } = ty {
            let bytes = self.from.take(count.saturating_mul(2))?;
            let units = bytes.as_chunks().0.iter().map(|unit| u16::from_le_bytes(*unit));
            return match char::decode_utf16(units.clone()).collect::<Result<String, _>>() {
                Ok(text) => visitor.visit_string(text),
                // A structure that takes units accepts any.
                Err(_) => {
                    let units = SeqDeserializer::new(units);
                    visitor.visit_seq(units).map_err(|_: Fault| Fault::text("UTF-16"))
                }
            };
        }
        let bytes = self.from.take(count)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => visitor.visit_str(text),
            Err(_) => visitor
                .visit_bytes(bytes)
                .map_err(|_: Fault| Fault::text("UTF-8")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Fault> {
        match self.shape.elements() {
            Some((arity, element)) if element.number == Some(Number::U8) => {
                let count = self.count(arity)?;
                visitor.visit_bytes(self.from.take(count)?)
            }
            _ => Err(self.kind("bytes")),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.sequence(None, visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Fault> {
        self.sequence(Some(len), visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.shape.message() {
            Some(ty) => Fields::of_structure(ty, names, self.from)?.give(visitor),
            None => Err(self.kind(&format!("a structure {name}"))),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.shape.message() {
            Some(ty) => Fields::of_map(ty, self.from).give(visitor),
            None => Err(self.kind("a map")),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.shape.message() {
            Some(ty) => Fields::of_structure(ty, &[], self.from).and_then(|_| visitor.visit_unit()),
            None => Err(self.kind(&format!("a structure {name}"))),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    /// For a value that accepts any type, as a JSON value does.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.shape.number {
            Some(Number::Bool) => self.deserialize_bool(visitor),
            Some(Number::I8) => self.deserialize_i8(visitor),
            Some(Number::U8) => self.deserialize_u8(visitor),
            Some(Number::I16) => self.deserialize_i16(visitor),
            Some(Number::U16) => self.deserialize_u16(visitor),
            Some(Number::I32) => self.deserialize_i32(visitor),
            Some(Number::U32) => self.deserialize_u32(visitor),
            Some(Number::I64) => self.deserialize_i64(visitor),
            Some(Number::U64) => self.deserialize_u64(visitor),
            Some(Number::F32) => self.deserialize_f32(visitor),
            Some(Number::F64) => self.deserialize_f64(visitor),
            None if self.shape.text().is_some() => self.deserialize_str(visitor),
            None if self.shape.elements().is_some() => self.deserialize_seq(visitor),
            None if self.shape.message().is_some() => self.deserialize_map(visitor),
            None => Err(self.kind("nothing for it")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_any(visitor)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}
