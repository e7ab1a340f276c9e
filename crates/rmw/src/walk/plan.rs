//! The steps that walk a message.

use super::layout::Element;
use super::memory::Access;

/// How messages of one type lie in memory and in their control part.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(super) steps: Box<[Step]>,
    /// Paths of fields for errors, with `[]` where an index belongs; steps refer to them by number.
    pub(super) paths: Vec<String>,
    /// Size of the structure in bytes.
    pub(crate) size: usize,
    /// Functions that create and end a message; `None` if the tables lack one of them.
    pub(super) life: Option<Life>,
}

/// Functions that initialize a message in given memory, and end it.
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
        /// Whether all of them are `bool`, which has only two valid values in C and C++.
        bools: bool,
        /// Offset at which each field begins, with the number of its path.
        fields: Vec<(usize, u32)>,
    },
    /// A string, plain or wide.
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
        /// Minimum size of an element in the control part, in bytes. If it is 0, no length limits their number.
        min: usize,
        body: Box<[Step]>,
    },
    /// A variable array of elements of fixed size: a data part, unless it is too short.
    Bulk { array: Array, element: Element },
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Text {
    pub(super) offset: usize,
    /// Bytes of a unit: 1, or 2 in a wide string.
    pub(super) unit: usize,
    /// Maximum number of units.
    pub(super) bound: u32,
    pub(super) path: u32,
    pub(super) language: crate::typesupport::Language,
}

#[derive(Debug)]
pub(super) struct Array {
    pub(super) offset: usize,
    /// Bytes from one element to the next in memory.
    pub(super) stride: usize,
    /// Maximum number of elements.
    pub(super) bound: u32,
    pub(super) path: u32,
    pub(super) access: Access,
}
