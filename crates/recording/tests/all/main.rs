//! Recordings by other writers, truncated ones, damaged ones, and our own.

mod damage;
mod fixtures;
mod mutation;
mod odd;
mod opening;
mod robot;
mod rosbag2;
mod support;
mod writing;
