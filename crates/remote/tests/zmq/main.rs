//! The ZeroMQ ends over real sockets: with each other, and with pyzmq.
#![cfg(feature = "zmq")]

mod both;
mod curve;
mod python;
mod support;
