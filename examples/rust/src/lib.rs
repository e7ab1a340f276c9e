//! The types of messages that the examples share, which `build.rs` makes.

#[allow(
    dead_code,
    unused_variables,
    missing_docs,
    unreachable_pub,
    nonstandard_style,
    clippy::all
)]
pub mod ropewalk_msgs {
    include!(concat!(env!("OUT_DIR"), "/ropewalk_msgs.rs"));
}
