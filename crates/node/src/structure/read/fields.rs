//! Reads messages from ROS 1 bytes.

use super::{Pieces, Reader};
use crate::structure::fault::Fault;
use crate::structure::shape::{FILLER, FieldShape, is_called};
use schema::MessageType;
use serde::de::{DeserializeSeed, IntoDeserializer, MapAccess, Visitor};

/// The fields of one message, one after the other, under the structure's names.
pub(super) struct Fields<'r, 'p, 's> {
    ty: &'s MessageType,
    /// The structure's names, unless the type's names are used.
    names: Option<&'static [&'static str]>,
    next: usize,
    from: &'r mut Pieces<'p>,
}

impl<'r, 'p, 's> Fields<'r, 'p, 's> {
    /// For a value that accepts any fields.
    pub(super) fn of_map(ty: &'s MessageType, from: &'r mut Pieces<'p>) -> Self {
        Fields {
            ty,
            names: None,
            next: 0,
            from,
        }
    }

    /// For a structure with fields of these names, which must match the type's.
    pub(super) fn of_structure(
        ty: &'s MessageType,
        names: &'static [&'static str],
        from: &'r mut Pieces<'p>,
    ) -> Result<Self, Fault> {
        let fields = ty.fields();
        if !(fields.is_empty() && names == [FILLER]) {
            for i in 0..fields.len().max(names.len()) {
                let expected = fields.get(i).map(|field| field.name());
                let found = names.get(i).copied();
                if !found
                    .zip(expected)
                    .is_some_and(|(found, expected)| is_called(found, expected))
                {
                    return Err(Fault::fields(ty, expected, found));
                }
            }
        }
        let names = Some(names);
        Ok(Fields {
            names,
            ..Fields::of_map(ty, from)
        })
    }

    /// Passes all fields to `visitor`.
    pub(super) fn give<'de, V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Fault> {
        let value = visitor.visit_map(&mut self)?;
        match self.name() {
            None => Ok(value),
            // A structure with its own deserialization may not read all fields.
            expected => Err(Fault::fields(self.ty, expected, None)),
        }
    }

    /// Returns the name of the next field.
    fn name(&self) -> Option<&'s str> {
        match self.names {
            Some(names) => names.get(self.next).copied(),
            None => self.ty.fields().get(self.next).map(|field| field.name()),
        }
    }
}

impl<'de> MapAccess<'de> for Fields<'_, '_, '_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let name = self.name().map(|name| seed.deserialize(name.into_deserializer()));
        name.transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let (field, name) = (self.ty.fields().get(self.next), self.name());
        self.next += 1;
        let Some(field) = field else {
            return match name {
                // The placeholder member.
                Some(_) => seed.deserialize(0u8.into_deserializer()),
                None => Err(Fault::refused("there is no further field")),
            };
        };
        let reader = Reader {
            shape: &FieldShape::field(field, self.ty),
            from: self.from,
        };
        seed.deserialize(reader).map_err(|e| e.inside(field.name()))
    }

    fn size_hint(&self) -> Option<usize> {
        let all = self.names.map_or(self.ty.fields().len(), <[_]>::len);
        all.checked_sub(self.next)
    }
}
