//! Writing control parts (`docs/wire/control-part.md`).

use super::bulk::Bulk;
use super::element::Element;
use super::{FieldError, Fields};
use schema::{DEFAULT_THRESHOLD, LIFTED, MAX_COUNT, MAX_PARTS};

/// A control part that is being written, with the fields that become data parts.
#[derive(Debug, Default)]
pub struct Put {
    control: Vec<u8>,
    lifts: Vec<Lift>,
    /// Names of the fields that are being written, outermost first.
    path: Vec<&'static str>,
}

/// A field that becomes a data part.
#[derive(Debug)]
pub(super) struct Lift {
    pub(super) field: String,
    pub(super) len: usize,
    /// `None` if it is written in place.
    pub(super) bytes: Option<Vec<u8>>,
}

impl Put {
    pub(super) fn finish(self) -> (Vec<u8>, Vec<Lift>) {
        (self.control, self.lifts)
    }

    /// Writes a number, a time, or another element whose packed and natural layouts are the same.
    pub fn word<T: Element>(&mut self, value: &T) {
        let at = self.control.len();
        self.control.resize(at + T::SIZE, 0);
        value.store(&mut self.control[at..]);
    }

    /// Writes a text.
    ///
    /// # Errors
    /// [`FieldError::Count`]
    pub fn text(&mut self, field: &'static str, text: &str, most: Option<usize>) -> Result<(), FieldError> {
        self.count(field, text.len(), most, 0)?;
        self.control.extend_from_slice(text.as_bytes());
        Ok(())
    }

    /// Writes a text of UTF-16 code units.
    ///
    /// # Errors
    /// [`FieldError::Count`]
    pub fn wide(&mut self, field: &'static str, text: &[u16], most: Option<usize>) -> Result<(), FieldError> {
        self.count(field, text.len(), most, 0)?;
        text.iter().for_each(|unit| self.word(unit));
        Ok(())
    }

    /// Writes a nested message.
    ///
    /// # Errors
    /// Those of its fields.
    pub fn message<'a, T: Fields<'a>>(&mut self, field: &'static str, message: &T) -> Result<(), FieldError> {
        self.path.push(field);
        message.put(self)?;
        self.path.pop();
        Ok(())
    }

    /// Writes the number of elements that follow; the caller writes the elements.
    ///
    /// # Errors
    /// [`FieldError::Count`]
    pub fn list(&mut self, field: &'static str, len: usize, most: Option<usize>) -> Result<(), FieldError> {
        self.count(field, len, most, 0)
    }

    /// Writes a bulk field.
    ///
    /// # Errors
    /// [`FieldError`]
    pub fn bulk<'a, T: Element + Fields<'a>>(
        &mut self,
        field: &'static str,
        bulk: &Bulk<'_, T>,
        most: Option<usize>,
    ) -> Result<(), FieldError> {
        let (count, len) = (bulk.count(), bulk.count().saturating_mul(T::SIZE));
        let to_be_written = matches!(bulk, Bulk::Sized(_));
        let lifts = count > 0 && (len >= DEFAULT_THRESHOLD || to_be_written) && self.lifts.len() < MAX_PARTS;
        if !lifts {
            if to_be_written && count > 0 {
                return Err(FieldError::Unwritten { field });
            }
            self.count(field, count, most, 0)?;
            return bulk.elements().try_for_each(|element| element.put(self));
        }
        self.count(field, count, most, LIFTED)?;
        let bytes = match bulk {
            Bulk::Part(bytes) => Some(bytes.to_vec()),
            Bulk::Owned(elements) => {
                let mut bytes = vec![0; len];
                for (element, to) in elements.iter().zip(bytes.chunks_exact_mut(T::SIZE)) {
                    element.store(to);
                }
                Some(bytes)
            }
            Bulk::Sized(_) => None,
        };
        let mut path = self.path.join(".");
        if !path.is_empty() {
            path.push('.');
        }
        let field = path + field;
        self.lifts.push(Lift { field, len, bytes });
        Ok(())
    }

    fn count(
        &mut self,
        field: &'static str,
        count: usize,
        most: Option<usize>,
        flag: u32,
    ) -> Result<(), FieldError> {
        self.word(&(bounded(field, count, most)? | flag));
        Ok(())
    }
}

/// Returns a count that the definition and the format allow.
pub(super) fn bounded(field: &'static str, count: usize, most: Option<usize>) -> Result<u32, FieldError> {
    let most = most.unwrap_or(usize::MAX).min(MAX_COUNT as usize);
    match u32::try_from(count) {
        Ok(n) if count <= most => Ok(n),
        _ => Err(FieldError::Count { field, count, most }),
    }
}
