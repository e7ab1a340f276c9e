//! Bulk fields.

use super::element::{Element, Word};
use std::ops::Deref;

/// A variable-length array of elements of fixed size. An array of numbers dereferences to a slice.
#[derive(Clone, Debug)]
pub enum Bulk<'a, T> {
    /// The bytes of a data part of a taken message, where the publisher wrote them.
    Part(&'a [u8]),
    /// Elements that are copied when publishing, or those of a small array in a taken message.
    Owned(Vec<T>),
    /// This many elements, which are written in place before publishing
    /// ([`Loan::slice_mut`](super::Loan::slice_mut)).
    Sized(usize),
}

impl<T> Default for Bulk<'_, T> {
    fn default() -> Self {
        Bulk::Owned(Vec::new())
    }
}

impl<T: Element> Bulk<'_, T> {
    /// Number of elements.
    pub fn count(&self) -> usize {
        match self {
            Bulk::Part(bytes) => bytes.len() / T::SIZE,
            Bulk::Owned(elements) => elements.len(),
            Bulk::Sized(n) => *n,
        }
    }

    /// Element `i`; `None` if there is no such element, or it has not been written yet.
    pub fn element(&self, i: usize) -> Option<T> {
        match self {
            Bulk::Part(bytes) => bytes.chunks_exact(T::SIZE).nth(i).map(T::load),
            Bulk::Owned(elements) => elements.get(i).copied(),
            Bulk::Sized(_) => None,
        }
    }

    /// The elements, one after the other; none if they have not been written yet.
    pub fn elements(&self) -> impl Iterator<Item = T> {
        let (bytes, owned): (&[u8], &[T]) = match self {
            Bulk::Part(bytes) => (*bytes, &[][..]),
            Bulk::Owned(elements) => (&[][..], &elements[..]),
            Bulk::Sized(_) => (&[][..], &[][..]),
        };
        bytes
            .chunks_exact(T::SIZE)
            .map(T::load)
            .chain(owned.iter().copied())
    }
}

impl<T: Word> Deref for Bulk<'_, T> {
    type Target = [T];

    /// The elements in place; empty if they have not been written yet. Relies on the publisher not to write
    /// to a published block.
    fn deref(&self) -> &[T] {
        match self {
            // Data parts are aligned to 64 bytes, and the length was checked.
            Bulk::Part(bytes) => bytemuck::try_cast_slice(bytes).unwrap_or_default(),
            Bulk::Owned(elements) => elements,
            Bulk::Sized(_) => &[],
        }
    }
}

impl<T> From<Vec<T>> for Bulk<'_, T> {
    fn from(elements: Vec<T>) -> Self {
        Bulk::Owned(elements)
    }
}

impl<T: Element + PartialEq> PartialEq for Bulk<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.count() == other.count() && self.elements().eq(other.elements())
    }
}
