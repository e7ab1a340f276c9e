//! Blocks filled from structures.

use super::element::{Element, Word};

/// A block whose bulk fields are filled in place before it is published or sent.
#[derive(Debug)]
pub struct Loan {
    loan: bus::Loan,
    /// For each data part, the field's name, prefixed with those of the enclosing messages.
    fields: Vec<String>,
}

/// There is no such bulk field in the block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{field} is not a bulk field of this block with such elements: it has {fields:?}; give arrays shorter than 256 bytes with their elements"
)]
pub struct NoBulk {
    /// The requested field.
    pub field: String,
    /// The fields that the block has.
    pub fields: Vec<String>,
}

impl Loan {
    pub(super) fn new(loan: bus::Loan, fields: Vec<String>) -> Self {
        Loan { loan, fields }
    }

    /// The elements of a bulk field of numbers, for writing: `"data"`, or `"layout.data"` in a nested
    /// message. Their initial values are undefined. If several fields have that name (in an array of
    /// messages), returns the first.
    ///
    /// # Errors
    /// [`NoBulk`]
    pub fn slice_mut<T: Word>(&mut self, field: &str) -> Result<&mut [T], NoBulk> {
        let none = self.none(field);
        let bytes = self.bytes(field).ok_or_else(|| none.clone())?;
        bytemuck::try_cast_slice_mut(bytes).map_err(|_| none)
    }

    /// Writes an element of a bulk field. Returns false if there is no such element.
    ///
    /// # Errors
    /// [`NoBulk`]
    pub fn set<T: Element>(&mut self, field: &str, i: usize, element: &T) -> Result<bool, NoBulk> {
        let none = self.none(field);
        let bytes = self.bytes(field).ok_or(none)?;
        let place = bytes.chunks_exact_mut(T::SIZE).nth(i);
        let there = place.is_some();
        if let Some(place) = place {
            element.store(place);
        }
        Ok(there)
    }

    /// Returns the bus's loan, for publishing or sending.
    pub fn into_inner(self) -> bus::Loan {
        self.loan
    }

    fn bytes(&mut self, field: &str) -> Option<&mut [u8]> {
        let i = self.fields.iter().position(|name| name == field)?;
        Some(self.loan.part_mut(i))
    }

    fn none(&self, field: &str) -> NoBulk {
        NoBulk {
            field: field.to_owned(),
            fields: self.fields.clone(),
        }
    }
}
