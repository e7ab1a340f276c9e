//! The steps in which a message is walked.

use super::layout::Element;
use super::memory::Access;

/// How messages of one type lie in memory and in their control part.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(super) steps: Box<[Step]>,
    /// Paths of fields for errors, with `[]` where an index belongs; steps refer to them by number.
    pub(super) paths: Vec<String>,
    /// Bytes of the structure.
    pub(crate) size: usize,
    /// Make and end a message; `None` where the tables lack one of them.
    pub(super) life: Option<Life>,
}

/// The functions that make a message in given memory and end it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Life {
    pub(super) init: super::cxx::Init,
    pub(super) fini: unsafe extern "C" fn(*mut std::ffi::c_void),
}

/// Offsets are bytes from the start of the structure that the steps belong to: the message, or an element of an array.
#[derive(Debug)]
pub(super) enum Step {
    /// Bytes that are the same in memory and in the control part.
    Copy {
        offset: usize,
        len: usize,
        /// Whether all of them are `bool`, of which C and C++ know two values only.
        bools: bool,
        /// Where in it which field begins, by number of its path.
        fields: Vec<(usize, u32)>,
    },
    /// A string, or a wide one.
    Text(Text),
    /// A fixed array of elements that vary in size.
    Repeat {
        offset: usize,
        count: usize,
        stride: usize,
        body: Box<[Step]>,
    },
    /// A variable array of elements that vary in size or have no content.
    List {
        array: Array,
        /// Fewest bytes of an element in the control part. Where it is 0 no length bounds their number.
        min: usize,
        body: Box<[Step]>,
    },
    /// A variable array of elements of fixed size: a data part, if it is not too short.
    Bulk { array: Array, element: Element },
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Text {
    pub(super) offset: usize,
    /// Bytes of a unit: 1, or 2 of a wide string.
    pub(super) unit: usize,
    /// Most units.
    pub(super) bound: u32,
    pub(super) path: u32,
    pub(super) language: crate::typesupport::Language,
}

#[derive(Debug)]
pub(super) struct Array {
    pub(super) offset: usize,
    /// Bytes from one element to the next in memory.
    pub(super) stride: usize,
    /// Most elements.
    pub(super) bound: u32,
    pub(super) path: u32,
    pub(super) access: Access,
}
