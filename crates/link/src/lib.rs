#![forbid(unsafe_code)]
//! Carriers.
mod carrier;
pub mod config;
pub mod quantity;
mod udp;
pub use carrier::{Carrier, CarrierError, PeerIndex, Received, Sent};
pub use udp::UdpCarrier;
