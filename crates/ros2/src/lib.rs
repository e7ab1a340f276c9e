#![forbid(unsafe_code)]
//! A bridge between nodes of ROS 2 that speak DDS and the bus.

pub mod entities;
pub mod names;
