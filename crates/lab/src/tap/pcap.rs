//! The classic pcap file format with nanoseconds (draft-ietf-opsawg-pcap), as Wireshark and tcpdump read it.

use super::air::Captured;

/// Magic number of nanosecond files, version 2.4, no zone, no accuracy, whole frames, LINKTYPE_ETHERNET.
pub(crate) fn header() -> [u8; 24] {
    let mut header = [0; 24];
    header[..4].copy_from_slice(&0xa1b2_3c4d_u32.to_le_bytes());
    header[4..6].copy_from_slice(&2u16.to_le_bytes());
    header[6..8].copy_from_slice(&4u16.to_le_bytes());
    header[16..20].copy_from_slice(&262_144u32.to_le_bytes());
    header[20..].copy_from_slice(&1u32.to_le_bytes());
    header
}

/// One frame with its time.
pub(crate) fn record(captured: &Captured, out: &mut Vec<u8>) {
    let seconds = (captured.at.0 / 1_000_000_000) as u32;
    let nanoseconds = (captured.at.0 % 1_000_000_000) as u32;
    let length = captured.frame.len() as u32;
    for word in [seconds, nanoseconds, length, length] {
        out.extend(word.to_le_bytes());
    }
    out.extend(&captured.frame);
}
