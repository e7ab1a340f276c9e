//! Limits on untrusted input. Real definitions stay far below all of them.

/// Longest text of one definition file or embedded definition, in bytes.
pub const MAX_TEXT: usize = 1 << 20;
/// Most fields and constants of one definition.
pub const MAX_FIELDS: usize = 4096;
/// Largest fixed or bounded array size and string bound in a definition.
pub const MAX_ARRAY: u32 = 1 << 24;
/// Deepest nesting of types.
pub const MAX_DEPTH: usize = 32;
/// Most leaf fields of a type with all nested types written out (a fixed array of messages counts each).
pub const MAX_LEAVES: u64 = 1 << 14;
/// Largest fixed part of a type, in bytes.
pub const MAX_FIXED: u64 = 1 << 24;
/// Most types that one registry holds.
pub const MAX_TYPES: usize = 1 << 14;
/// Most data parts of one message; arrays after them stay in the control part.
pub const MAX_PARTS: usize = 32;
/// Arrays whose data part would be shorter than this many bytes stay in the control part.
pub const DEFAULT_THRESHOLD: usize = 256;
/// Most elements without content (of an empty type) in one message: they take no bytes, so that no length bounds them.
pub const MAX_EMPTY_ELEMENTS: u32 = 1 << 12;
