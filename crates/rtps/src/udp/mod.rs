//! All of the crate's I/O: UDP sockets over IPv4, and a thread that runs a participant over them.

mod interfaces;
mod node;
mod queue;
mod sender;
mod spread;
mod transport;

pub use node::{Handle, Node, NodeError};
pub use transport::{Range, Transport, TransportConfig, TransportError};
