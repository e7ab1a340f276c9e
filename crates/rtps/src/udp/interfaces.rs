//! Addresses of this host.

use std::io;
use std::net::Ipv4Addr;

/// An address of this host, and the length of its network's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) address: Ipv4Addr,
    pub(super) prefix: u8,
    /// Whether it supports multicast, or is the loopback interface, which supports it without a flag.
    pub(super) multicast: bool,
}

/// All IPv4 addresses of interfaces that are up.
pub(super) fn all() -> io::Result<Vec<Interface>> {
    use nix::net::if_::InterfaceFlags;
    let mut out = Vec::new();
    for found in nix::ifaddrs::getifaddrs()? {
        let address = found.address.and_then(|a| a.as_sockaddr_in().map(|a| a.ip()));
        let mask = found.netmask.and_then(|a| a.as_sockaddr_in().map(|a| a.ip()));
        let Some(address) = address.filter(|_| found.flags.contains(InterfaceFlags::IFF_UP)) else {
            continue;
        };
        let flags = InterfaceFlags::IFF_MULTICAST | InterfaceFlags::IFF_LOOPBACK;
        out.push(Interface {
            address,
            prefix: mask.map_or(32, |m| m.to_bits().leading_ones() as u8),
            multicast: found.flags.intersects(flags),
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_there() {
        let found = all().expect("interfaces");
        let loopback = found.iter().find(|i| i.address == Ipv4Addr::LOCALHOST);
        assert_eq!(loopback.map(|i| (i.prefix, i.multicast)), Some((8, true)));
    }
}
