//! Keeps a robot from executing commands that are outdated or not permitted: checks the age of requests, repetitions,
//! their order, and the rights of controllers.
//!
//! This module does not read a clock, send or wait: it receives times and returns verdicts, so that every case can be a
//! unit test.

mod age;
mod controllers;
mod rights;
mod window;

pub(crate) use age::{Stamps, bound};
pub(crate) use controllers::{Controllers, Gone, Guest, MOST_JUMP};
pub(crate) use rights::{Held, Rights, Which};
pub(crate) use window::{Begin, Window};

/// The number by which the robot knows a controller: a random number that the robot makes up, or one of those reserved
/// for ends whose peers have none. The robot sends it to all controllers; it proves nothing.
pub(crate) type Id = u64;

/// Nobody.
pub(crate) const NOBODY: Id = 0;

/// Returns the id that stands for all controllers without an identity on the end with this number.
pub(crate) fn anonymous(end: usize) -> Id {
    Id::MAX - end.min(0xFF) as Id
}

/// Returns whether this may be the number of a controller's run, or a controller's id.
pub(crate) fn is_valid(id: Id) -> bool {
    id != NOBODY && id < Id::MAX - 0xFF
}
