// Made by `ropewalk gen rust`; do not edit.
//! Types of messages and services, by package.
#![allow(dead_code, unused_variables, missing_docs)]
#![allow(unreachable_pub, nonstandard_style, clippy::all)]

#[rustfmt::skip]
pub mod rospy_tutorials;
