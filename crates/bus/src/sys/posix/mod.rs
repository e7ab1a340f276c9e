//! POSIX alone: `shm_open`, `posix_fallocate` and pipes, for systems without memfds, seals and `/proc`.
//!
//! It is safe against honest peers and accidents, not against a hostile process of the same user. The Linux
//! variant gives these guarantees, and this one cannot (`docs/decisions/037-posix-variant.md` has the
//! reasons):
//!
//! - **Sizes are not sealed.** Any holder of a writable descriptor can truncate: both ends of a ring, and the
//!   publisher of a segment. The other end's next access then raises SIGBUS.
//! - **Payload is read-only only through its descriptor.** Where a descriptor can be reopened
//!   (`/proc/self/fd` on Linux), a reader of the same user can get a writable one.
//! - **The subscriber shares the doorbell's open description.** If it makes the pipe blocking and fills it
//!   between the publisher's check and its write, the publisher hangs.
//! - **A descriptor is checked with `fstat`,** which a hostile peer's file system may answer late or never.

mod bell;
mod memory;

pub(crate) use bell::Passed as Bell;
pub(crate) use memory::ShmOpen as Memory;

/// What the handshake announces for this variant.
pub(crate) const VARIANT: super::Variant = super::Variant::Posix;
