//! The bytes of RTPS: messages and their submessages, parameter lists, and the announcements of discovery in them.
//!
//! Reads both byte orders, writes little endian. Reading never panics, and allocates no memory for a length that is
//! only announced.

pub(crate) mod bytes;
pub(crate) mod encode;
pub(crate) mod endpoint;
pub(crate) mod error;
pub(crate) mod ids;
pub(crate) mod inline;
pub(crate) mod liveliness;
pub(crate) mod locator;
pub(crate) mod message;
pub(crate) mod number;
pub(crate) mod parameters;
pub(crate) mod participant;
pub(crate) mod policies;
pub(crate) mod submessage;
pub(crate) mod time;

/// Version of the protocol.
pub(crate) const VERSION: [u8; 2] = [2, 3];

/// Kinds of submessages (DDSI-RTPS 2.5, section 9.4.5.1.1).
pub(crate) mod kind {
    pub(crate) const PAD: u8 = 0x01;
    pub(crate) const ACKNACK: u8 = 0x06;
    pub(crate) const HEARTBEAT: u8 = 0x07;
    pub(crate) const GAP: u8 = 0x08;
    pub(crate) const INFO_TS: u8 = 0x09;
    pub(crate) const INFO_SRC: u8 = 0x0c;
    pub(crate) const INFO_DST: u8 = 0x0e;
    pub(crate) const NACK_FRAG: u8 = 0x12;
    pub(crate) const HEARTBEAT_FRAG: u8 = 0x13;
    pub(crate) const DATA: u8 = 0x15;
    pub(crate) const DATA_FRAG: u8 = 0x16;
}
