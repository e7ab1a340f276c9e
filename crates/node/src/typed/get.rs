//! Reading control parts (`docs/wire/control-part.md`).

use super::bulk::Bulk;
use super::element::Element;
use super::put::bounded;
use super::{FieldError, Fields};
use schema::{LIFTED, MAX_EMPTY_ELEMENTS};

/// A control part that is being read.
#[derive(Debug)]
pub struct Get<'a> {
    control: &'a [u8],
    at: usize,
    parts: std::vec::IntoIter<&'a [u8]>,
    empties: usize,
}

impl<'a> Get<'a> {
    pub(super) fn new(control: &'a [u8], parts: Vec<&'a [u8]>) -> Self {
        Get {
            control,
            at: 0,
            parts: parts.into_iter(),
            empties: 0,
        }
    }

    pub(super) fn finish(self) -> Result<(), FieldError> {
        let (bytes, parts) = (self.control.len() - self.at, self.parts.len());
        if bytes + parts > 0 {
            return Err(FieldError::Rest { bytes, parts });
        }
        Ok(())
    }

    /// Reads what [`Put::word`](super::Put::word) writes.
    ///
    /// # Errors
    /// [`FieldError::Truncated`]
    pub fn word<T: Element>(&mut self, field: &'static str) -> Result<T, FieldError> {
        Ok(T::load(self.take(field, T::SIZE)?))
    }

    /// Reads a text.
    ///
    /// # Errors
    /// [`FieldError`]
    pub fn text(&mut self, field: &'static str, most: Option<usize>) -> Result<String, FieldError> {
        let len = self.list(field, most)?;
        let text = std::str::from_utf8(self.take(field, len)?);
        Ok(text.map_err(|_| FieldError::Text { field })?.to_owned())
    }

    /// Reads a text of UTF-16 code units.
    ///
    /// # Errors
    /// [`FieldError`]
    pub fn wide(&mut self, field: &'static str, most: Option<usize>) -> Result<Vec<u16>, FieldError> {
        let len = self.list(field, most)?;
        let bytes = self.take(field, len.saturating_mul(2))?;
        Ok(bytes.chunks_exact(2).map(u16::load).collect())
    }

    /// Reads a nested message.
    ///
    /// # Errors
    /// Those of its fields.
    pub fn message<T: Fields<'a>>(&mut self) -> Result<T, FieldError> {
        T::get(self)
    }

    /// Reads the number of elements that follow; the caller reads the elements.
    ///
    /// # Errors
    /// [`FieldError`]
    pub fn list(&mut self, field: &'static str, most: Option<usize>) -> Result<usize, FieldError> {
        let count = self.word::<u32>(field)? as usize;
        Ok(bounded(field, count, most)? as usize)
    }

    /// Reads elements of varying size.
    ///
    /// # Errors
    /// [`FieldError`]
    pub fn vec<T>(
        &mut self,
        field: &'static str,
        most: Option<usize>,
        mut element: impl FnMut(&mut Self) -> Result<T, FieldError>,
    ) -> Result<Vec<T>, FieldError> {
        let count = self.list(field, most)?;
        // Grows with the elements that are present, not with the stated count.
        let mut elements = Vec::new();
        for _ in 0..count {
            let before = self.at;
            elements.push(element(self)?);
            if self.at == before {
                self.empties += 1;
                bounded(field, self.empties, Some(MAX_EMPTY_ELEMENTS as usize))?;
            }
        }
        Ok(elements)
    }

    /// Reads as many elements as the definition says.
    ///
    /// # Errors
    /// [`FieldError`]
    pub fn array<T: Default, const N: usize>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<T, FieldError>,
    ) -> Result<[T; N], FieldError> {
        let mut array = std::array::from_fn(|_| T::default());
        for to in &mut array {
            *to = element(self)?;
        }
        Ok(array)
    }

    /// Reads a bulk field: a view if it is a data part.
    ///
    /// # Errors
    /// [`FieldError`]
    pub fn bulk<T: Element + Fields<'a>>(
        &mut self,
        field: &'static str,
        most: Option<usize>,
    ) -> Result<Bulk<'a, T>, FieldError> {
        let word = self.word::<u32>(field)?;
        let count = bounded(field, (word & !LIFTED) as usize, most)? as usize;
        if word & LIFTED != 0 {
            let whole = |part: &&[u8]| count.checked_mul(T::SIZE) == Some(part.len());
            let part = self.parts.next().filter(whole);
            return Ok(Bulk::Part(part.ok_or(FieldError::Part { field, count })?));
        }
        let mut elements = Vec::new();
        for _ in 0..count {
            elements.push(T::get(self)?);
        }
        Ok(Bulk::Owned(elements))
    }

    fn take(&mut self, field: &'static str, len: usize) -> Result<&'a [u8], FieldError> {
        let all = self.control;
        let truncated = FieldError::Truncated {
            field,
            len: all.len(),
        };
        let end = self.at.checked_add(len).ok_or_else(|| truncated.clone())?;
        let taken = all.get(self.at..end).ok_or(truncated)?;
        self.at = end;
        Ok(taken)
    }
}
