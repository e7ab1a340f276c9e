//! The C interface of Ropewalk: opaque handles over the crate `ropewalk`, for C, C++ and whatever calls C.
//!
//! It adds nothing of its own: every function converts its arguments, calls, and turns an error into a status and
//! a text. What messages look like inside is the generated code's business (`ropewalk gen`); here a message is a
//! control part and data parts (`docs/wire/control-part.md`), or ROS 1 bytes. The header is made from this source.
//!
//! # Safety of every function
//!
//! The callers' part, stated once: a handle is one that a function here gave and that was neither freed nor
//! consumed since; a text ends with a zero byte; an array has the stated length; an output pointer may be written; a function that is
//! called back may be, from any thread, and lets no exception out.
//! All stay so until the function returns. NULL is no handle, no text and no output, and is refused with a status.
//! Every block of unsafe code rests on this and on nothing else, unless it says so.
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
