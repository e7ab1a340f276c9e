//! The ZeroMQ ends over real sockets: the suite, with each other, and with pyzmq.

mod both;
#[path = "../conformance/mod.rs"]
mod conformance;
mod curve;
mod golden;
mod python;
mod suite;
mod support;
mod wrongs;
