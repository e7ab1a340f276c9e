//! POSIX alone: `shm_open`, `posix_fallocate` and pipes, for systems without memfds, seals and `/proc`.
//!
//! It holds against honest peers and against accidents, not against a hostile process of the same user. What the
//! Linux variant promises and this one cannot (`docs/decisions/037-posix-variant.md` has the reasons):
//!
//! - **Sizes are not sealed.** Whoever holds a writable descriptor can truncate: both ends of a ring, and the
//!   publisher of a segment. The other end's next access is then a SIGBUS.
//! - **Payload is read-only by its descriptor alone.** Where a descriptor can be reopened (`/proc/self/fd` on
//!   Linux), a reader of the same user can make itself a writable one.
//! - **The doorbell's open description is shared** with the subscriber. One that makes it blocking, and fills it
//!   between the publisher's look and its write, stops the publisher.
//! - **A descriptor is looked at by `fstat`,** which a hostile peer's file system may answer late or never.

mod bell;
mod memory;

pub(crate) use bell::Passed as Bell;
pub(crate) use memory::ShmOpen as Memory;

/// What the handshake says of this variant.
pub(crate) const VARIANT: super::Variant = super::Variant::Posix;
