//! Messages in a node's memory into control part and data parts, and back.
//!
//! [`Plan::compile`] turns a schema and the introspection tables of its type into a flat list of steps, once for each type: a message
//! is then walked without looking at names. Neighbouring fields of fixed size are one copy, and a bulk array of elements that lie in
//! memory as in a data part is one copy into the block or out of it. The rule of what becomes a data part is that of
//! `docs/wire/control-part.md`.

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
