//! Linux: memfds whose seals keep every promise, and doorbells that the publisher opens anew.

mod bell;
mod memory;

pub(crate) use bell::Reopened as Bell;
pub(crate) use memory::Memfd as Memory;

/// What the handshake says of this variant.
pub(crate) const VARIANT: super::Variant = super::Variant::Linux;
