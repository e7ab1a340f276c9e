//! The message and service types of the standard packages, by package: [`std_msgs`], [`geometry_msgs`],
//! [`sensor_msgs`] and so on.
//!
//! The definitions are those of ROS 1 (Noetic). Subscribers convert messages between these types and ROS 2's of the
//! same names. For types that only ROS 2 has, and for those of your own packages, `ropewalk gen rust` generates
//! structures. Fields have the names and the order of the definition. A service `SetBool` has the structures
//! `SetBoolRequest` and `SetBoolResponse`.
//!
//! A type with a large array has a lifetime, that of the block with the array: write `Publisher<Image<'static>>`
//! for a publisher in a structure of yours.
// Generated code repeats the definitions' names and has no comments of its own.
#![allow(missing_docs, nonstandard_style, unused_variables, clippy::all)]

include!(concat!(env!("OUT_DIR"), "/msgs.rs"));
