//! What keeps a robot from doing what nobody wants any more: the age of requests, repetitions, their order, and who may move what.
//!
//! Nothing here reads a clock, sends or waits: time comes in, verdicts go out, so that every case is a unit test.

mod age;
mod controllers;
mod rights;
mod window;

pub(crate) use age::{Stamps, bound};
pub(crate) use controllers::{Controllers, Gone, Guest, MOST_JUMP};
pub(crate) use rights::{Held, Rights, Which};
pub(crate) use window::{Begin, Window};

/// What the robot calls a controller: a random number of its own making, or one of those kept for ends whose peers have none. It is told
/// to everyone and proves nothing.
pub(crate) type Id = u64;

/// Nobody.
pub(crate) const NOBODY: Id = 0;

/// The controller that stands for everyone who comes over the end of this number without an identity.
pub(crate) fn anonymous(end: usize) -> Id {
    Id::MAX - end.min(0xFF) as Id
}

/// Whether a controller's run may have this number, and a controller be called so.
pub(crate) fn is_valid(id: Id) -> bool {
    id != NOBODY && id < Id::MAX - 0xFF
}
