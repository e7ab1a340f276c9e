//! The C interface of Ropewalk: opaque handles over the crate `ropewalk`, for C, C++ and any language that
//! can call C.
//!
//! It adds no features: every function converts its arguments, calls the crate, and turns an error into a
//! status and a text. Generated code (`ropewalk gen`) defines the inside of messages; here a message is a
//! control part and data parts (`docs/wire/control-part.md`), or ROS 1 bytes. The header is generated from
//! this source.
//!
//! # Safety of every function
//!
//! The callers' obligations, stated once: a handle was returned by a function here and has been neither freed
//! nor consumed since; a text ends with a zero byte; an array has the stated length; an output pointer is
//! writable; a callback may be called from any thread and throws no exception. All of this holds until the
//! function returns. NULL is not a valid handle, text or output, and is refused with a status. Every block of
//! unsafe code relies on this and on nothing else, unless it says so.
#![allow(clippy::missing_safety_doc)] // Stated once, above.

mod callback;
pub mod controller;
pub mod loan;
pub mod message;
pub mod node;
pub mod options;
mod pointer;
pub mod publisher;
pub mod robot;
pub mod service;
pub mod status;
pub mod subscriber;
pub mod types;
pub mod wait;
pub mod zmq;
