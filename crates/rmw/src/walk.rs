//! Converts messages in a node's memory to control part and data parts, and back.
//!
//! [`Plan::compile`] turns a schema and the introspection tables of its type into a flat list of steps, once per type.
//! Walking a message then needs no names. Neighbouring fields of fixed size are one copy. A bulk array is one copy into
//! the block or out of it, if its elements lie in memory as in a data part. `docs/wire/control-part.md` defines what
//! becomes a data part (decision 334).

mod borrow;
mod cdr;
mod compile;
pub(crate) mod cxx;
mod fault;
mod instance;
mod layout;
mod memory;
mod place;
mod plan;
mod read;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod wheels;
pub(crate) mod write;

pub(crate) use borrow::Borrowed;
pub(crate) use fault::MessageError;
pub(crate) use instance::Instance;
pub(crate) use place::{Placed, Shape};
pub(crate) use plan::Plan;
