//! The link's logic as state machines: no I/O, no clock, no bus. The daemon and a program's own link drive it,
//! and so do the tests, in virtual time.

pub(crate) mod calls;
pub(crate) mod path;
pub(crate) mod received;
