//! Writes arrays and messages of structures as ROS 1 bytes.

use super::Writer;
use crate::structure::fault::Fault;
use crate::structure::shape::{FILLER, FieldShape, is_called};
use schema::{Arity, MessageType};
use serde::ser::{Serialize, SerializeSeq, SerializeStruct, SerializeTuple};

/// The elements of one array, one after the other.
pub(in crate::structure) struct Elements<'s, 'o> {
    array: FieldShape<'s>,
    arity: Arity,
    element: FieldShape<'s>,
    count: usize,
    /// Position of the count, which is known only at the end.
    count_at: usize,
    out: &'o mut Vec<u8>,
}

impl<'s, 'o> Elements<'s, 'o> {
    pub(super) fn new(array: Writer<'_, 's, 'o>, arity: Arity, element: FieldShape<'s>) -> Self {
        let Writer { shape, out } = array;
        let count_at = out.len();
        if !matches!(arity, Arity::Fixed(_)) {
            out.extend_from_slice(&[0; 4]);
        }
        Elements {
            array: *shape,
            arity,
            element,
            count: 0,
            count_at,
            out,
        }
    }
}

impl SerializeSeq for Elements<'_, '_> {
    type Ok = ();
    type Error = Fault;

    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        let writer = Writer {
            shape: &self.element,
            out: self.out,
        };
        value.serialize(writer).map_err(|e| e.at(self.count))?;
        self.count += 1;
        Ok(())
    }

    fn end(self) -> Result<(), Fault> {
        let count = self.array.check_count(self.arity, self.count)?;
        if !matches!(self.arity, Arity::Fixed(_))
            && let Some(word) = self
                .out
                .get_mut(self.count_at..)
                .and_then(<[u8]>::first_chunk_mut)
        {
            *word = count.to_le_bytes();
        }
        Ok(())
    }
}

impl SerializeTuple for Elements<'_, '_> {
    type Ok = ();
    type Error = Fault;

    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Result<(), Fault> {
        SerializeSeq::end(self)
    }
}

/// The fields of one message, one after the other.
pub(in crate::structure) struct Fields<'s, 'o> {
    ty: &'s MessageType,
    next: usize,
    out: &'o mut Vec<u8>,
}

impl<'s, 'o> Fields<'s, 'o> {
    pub(super) fn new(ty: &'s MessageType, out: &'o mut Vec<u8>) -> Self {
        Fields { ty, next: 0, out }
    }
}

impl SerializeStruct for Fields<'_, '_> {
    type Ok = ();
    type Error = Fault;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Fault> {
        let fields = self.ty.fields();
        let field = fields.get(self.next);
        let Some(field) = field.filter(|field| is_called(key, field.name())) else {
            if fields.is_empty() && key == FILLER {
                return Ok(());
            }
            let expected = field.map(|field| field.name());
            return Err(Fault::fields(self.ty, expected, Some(key)));
        };
        self.next += 1;
        let writer = Writer {
            shape: &FieldShape::field(field, self.ty),
            out: self.out,
        };
        value.serialize(writer).map_err(|e| e.inside(field.name()))
    }

    fn end(self) -> Result<(), Fault> {
        match self.ty.fields().get(self.next) {
            None => Ok(()),
            Some(field) => Err(Fault::fields(self.ty, Some(field.name()), None)),
        }
    }
}
