//! Addresses of participants (DDSI-RTPS 2.5, section 9.3.2.4).

use super::bytes::{Reader, put_u32};
use super::error::WireError;
use std::net::{Ipv4Addr, SocketAddrV4};

/// `LOCATOR_KIND_UDPv4`.
const UDP_V4: i32 = 1;

/// Reads a UDP address over IPv4. Returns `None` for every other kind (IPv6, TCP, shared memory, which Fast DDS
/// announces as kind 16) and for addresses that cannot be sent to.
pub(crate) fn read(r: &mut Reader<'_>) -> Result<Option<SocketAddrV4>, WireError> {
    let (kind, port) = (r.i32()?, r.u32()?);
    let address = r.array::<16>()?;
    let ip = match address {
        [.., a, b, c, d] => Ipv4Addr::new(a, b, c, d),
    };
    let port = u16::try_from(port).ok().filter(|p| *p != 0);
    Ok(port
        .filter(|_| kind == UDP_V4 && !ip.is_unspecified() && !ip.is_broadcast())
        .map(|port| SocketAddrV4::new(ip, port)))
}

pub(crate) fn put(out: &mut Vec<u8>, address: SocketAddrV4) {
    put_u32(out, UDP_V4 as u32);
    put_u32(out, u32::from(address.port()));
    out.extend_from_slice(&[0; 12]);
    out.extend_from_slice(&address.ip().octets());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_udp_over_ipv4_is_an_address() {
        let address = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 7), 7411);
        let mut out = Vec::new();
        put(&mut out, address);
        assert_eq!(read(&mut Reader::new(&out, true)), Ok(Some(address)));
        let mut shared_memory = out.clone();
        shared_memory[0] = 16;
        assert_eq!(read(&mut Reader::new(&shared_memory, true)), Ok(None));
        let mut port = out.clone();
        port[4..8].copy_from_slice(&[0, 0, 1, 0]);
        assert_eq!(read(&mut Reader::new(&port, true)), Ok(None));
        assert!(read(&mut Reader::new(&out[..23], true)).is_err());
    }
}
