//! The headers that the emulator reads from a host's frame: Ethernet II (IEEE 802.3) around IPv4 (RFC 791).

use super::plan::Mac;

/// Destination, source and type.
pub(crate) const ETHERNET_HEADER: usize = 14;

/// The parts of a frame that determine its route through the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) to: Mac,
    /// Length of the IP packet.
    pub(crate) ip_bytes: usize,
    /// Differentiated services code point (RFC 2474).
    pub(crate) dscp: u8,
}

impl Header {
    /// Returns `None` if it is not an IPv4 packet in an Ethernet frame.
    pub(crate) fn parse(frame: &[u8]) -> Option<Header> {
        let (ethernet, ip) = frame.split_at_checked(ETHERNET_HEADER)?;
        let is_ip4 = ethernet[12..] == [0x08, 0x00] && ip.len() >= 20 && ip[0] >> 4 == 4;
        is_ip4.then(|| Header {
            to: Mac([frame[0], frame[1], frame[2], frame[3], frame[4], frame[5]]),
            ip_bytes: ip.len(),
            dscp: ip[1] >> 2,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_ipv4_and_nothing_else() {
        let mut frame = vec![0x02, 0x52, 0x57, 0, 0, 3, 9, 9, 9, 9, 9, 9, 0x08, 0x00];
        frame.extend([0x45, 46 << 2]);
        frame.resize(ETHERNET_HEADER + 28, 0);
        let header = Header::parse(&frame).expect("is IPv4");
        assert_eq!(
            (header.to.place(), header.ip_bytes, header.dscp),
            (Some((0, 2)), 28, 46)
        );
        for cut in 0..ETHERNET_HEADER + 20 {
            assert_eq!(Header::parse(&frame[..cut]), None, "{cut}");
        }
        frame[13] = 0x06;
        assert_eq!(Header::parse(&frame), None, "ARP");
    }
}
