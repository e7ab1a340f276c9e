//! Linux: sealed memfds, and doorbells that the publisher reopens.

mod bell;
mod memory;

pub(crate) use bell::Reopened as Bell;
pub(crate) use memory::Memfd as Memory;

/// What the handshake announces for this variant.
pub(crate) const VARIANT: super::Variant = super::Variant::Linux;
