//! Why structures and messages do not fit each other.

use schema::CodecError;

/// Why a structure is no message of a type, or a message does not become a structure. `field` is a path such as
/// `transforms[3].header.frame_id`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StructureError {
    /// The bytes are no message of the type: its publisher wrote something else.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The structure has other fields than the message, or in another order.
    #[error("{field}: {ty} has {expected} where the structure has {found}")]
    Fields {
        /// Path of the message.
        field: String,
        /// Its type.
        ty: String,
        /// The type's field, or `no further field`.
        expected: String,
        /// The structure's.
        found: String,
    },
    /// The structure has another kind of value.
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
        /// What takes them: the field's type, or the structure.
        taker: String,
        /// Elements given.
        given: usize,
        /// Elements allowed.
        allowed: String,
    },
    /// The structure has a `String` for a text that is none.
    #[error("{field}: the text is not well-formed {encoding}")]
    Text {
        /// Path of the field.
        field: String,
        /// `UTF-8` or `UTF-16`.
        encoding: &'static str,
    },
    /// The structure's own code, or serde's, refuses.
    #[error("{field}: {reason}")]
    Refused {
        /// Path of the field.
        field: String,
        /// Its words.
        reason: String,
    },
}
