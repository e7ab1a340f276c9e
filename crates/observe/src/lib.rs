#![forbid(unsafe_code)]
//! What a link did between two of its states, as numbers that every view shows alike.
//!
//! `ropewalk top`, its JSON and the page of `ropewalk web` show a [`View`]. Asking links for their states is left to
//! the caller.

#[doc(hidden)]
pub mod sample;
pub mod text;
mod view;

pub use view::{Direction, Peer, Service, Topic, View, Way};
