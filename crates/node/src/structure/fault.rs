//! An error on its way out of a structure, which collects the path to its place.

use super::StructureError;
use super::shape::FieldShape;
use schema::MessageType;
use std::fmt::Display;

/// Boxed to stay small: it is the error type of every value that is read or written.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) struct Fault(Box<StructureError>);

impl Fault {
    #[cold]
    pub(super) fn kind(shape: &FieldShape<'_>, found: &str) -> Self {
        Fault::new(StructureError::Kind {
            field: String::new(),
            expected: shape.type_text(),
            found: found.to_owned(),
        })
    }

    /// `None` stands for a missing field.
    #[cold]
    pub(super) fn fields(ty: &MessageType, expected: Option<&str>, found: Option<&str>) -> Self {
        let named = |name: Option<&str>| name.map_or("no further field".into(), |name| format!("`{name}`"));
        Fault::new(StructureError::Fields {
            field: String::new(),
            ty: ty.name().to_string(),
            expected: named(expected),
            found: named(found),
        })
    }

    #[cold]
    pub(super) fn length(taker: String, given: usize, allowed: String) -> Self {
        Fault::new(StructureError::Length {
            field: String::new(),
            taker,
            given,
            allowed,
        })
    }

    #[cold]
    pub(super) fn text(encoding: &'static str) -> Self {
        Fault::new(StructureError::Text {
            field: String::new(),
            encoding,
        })
    }

    #[cold]
    pub(super) fn refused(reason: impl Display) -> Self {
        Fault::new(StructureError::Refused {
            field: String::new(),
            reason: reason.to_string(),
        })
    }

    fn new(error: StructureError) -> Self {
        Fault(Box::new(error))
    }

    /// Adds the message's field `name` to the path.
    #[cold]
    pub(super) fn inside(self, name: &str) -> Self {
        self.within(name.to_owned())
    }

    /// Adds element `i` of an array to the path.
    #[cold]
    pub(super) fn at(self, i: usize) -> Self {
        self.within(format!("[{i}]"))
    }

    fn within(mut self, mut outer: String) -> Self {
        if let Some(path) = self.path() {
            if !path.is_empty() && !path.starts_with('[') {
                outer.push('.');
            }
            path.insert_str(0, &outer);
        }
        self
    }

    /// Converts to the final error, outside the whole structure.
    pub(super) fn into_error(mut self) -> StructureError {
        if let Some(path) = self.path()
            && path.is_empty()
        {
            path.push_str("message");
        }
        *self.0
    }

    fn path(&mut self) -> Option<&mut String> {
        match self.0.as_mut() {
            // It already has the whole path.
            StructureError::Codec(_) => None,
            StructureError::Fields { field, .. }
            | StructureError::Kind { field, .. }
            | StructureError::Length { field, .. }
            | StructureError::Text { field, .. }
            | StructureError::Refused { field, .. } => Some(field),
        }
    }
}

impl serde::ser::Error for Fault {
    fn custom<T: Display>(reason: T) -> Self {
        Fault::refused(reason)
    }
}

impl serde::de::Error for Fault {
    fn custom<T: Display>(reason: T) -> Self {
        Fault::refused(reason)
    }
}
