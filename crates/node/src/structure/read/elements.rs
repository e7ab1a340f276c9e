//! Reads arrays from ROS 1 bytes.

use super::{Pieces, Reader};
use crate::structure::fault::Fault;
use crate::structure::shape::FieldShape;
use serde::de::{DeserializeSeed, SeqAccess};

/// The elements of one array, one after the other.
pub(super) struct Elements<'r, 'p, 's> {
    element: FieldShape<'s>,
    index: usize,
    count: usize,
    from: &'r mut Pieces<'p>,
}

impl<'r, 'p, 's> Elements<'r, 'p, 's> {
    /// `count` was checked against the bytes.
    pub(super) fn new(element: FieldShape<'s>, count: usize, from: &'r mut Pieces<'p>) -> Self {
        Elements {
            element,
            index: 0,
            count,
            from,
        }
    }

    /// Number of elements taken.
    pub(super) fn index(&self) -> usize {
        self.index
    }
}

impl<'de> SeqAccess<'de> for Elements<'_, '_, '_> {
    type Error = Fault;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        if self.index == self.count {
            return Ok(None);
        }
        let reader = Reader {
            shape: &self.element,
            from: self.from,
        };
        let value = seed.deserialize(reader).map_err(|e| e.at(self.index))?;
        self.index += 1;
        Ok(Some(value))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.count - self.index)
    }
}
