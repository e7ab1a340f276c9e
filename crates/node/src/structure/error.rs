//! Why structures and messages do not match.

use schema::CodecError;

/// Why a structure is not a message of a type, or a message cannot become a structure. `field` is a path such
/// as `transforms[3].header.frame_id`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StructureError {
    /// The bytes are not a message of the type: its publisher wrote something else.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The structure has different fields than the message, or a different order.
    #[error("{field}: {ty} has {expected} where the structure has {found}")]
    Fields {
        /// Path of the message.
        field: String,
        /// Its type.
        ty: String,
        /// The type's field, or `no further field`.
        expected: String,
        /// The structure's field.
        found: String,
    },
    /// The structure has a different kind of value.
    #[error("{field}: the type says {expected}, the structure has {found}")]
    Kind {
        /// Path of the field.
        field: String,
        /// The field's type.
        expected: String,
        /// What the structure has.
        found: String,
    },
    /// An array or a text has the wrong number of elements or units.
    #[error("{field}: {given} elements, but {taker} takes {allowed}")]
    Length {
        /// Path of the field.
        field: String,
        /// The receiver: the field's type, or the structure.
        taker: String,
        /// Elements given.
        given: usize,
        /// Elements allowed.
        allowed: String,
    },
    /// The structure has a `String` for text that is not well-formed.
    #[error("{field}: the text is not well-formed {encoding}")]
    Text {
        /// Path of the field.
        field: String,
        /// `UTF-8` or `UTF-16`.
        encoding: &'static str,
    },
    /// The structure's own code, or serde's, refuses the value.
    #[error("{field}: {reason}")]
    Refused {
        /// Path of the field.
        field: String,
        /// Its error text.
        reason: String,
    },
}
