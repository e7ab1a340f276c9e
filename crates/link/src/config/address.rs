//! Addresses as written in a configuration: IP and port, and for a link-local address the network device (RFC
//! 4007, section 11).

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// Reads an address such as 192.168.1.7:7400, [2001:db8::7]:7400 or [fe80::7%wlan0]:7400.
pub(super) fn parse(text: &str) -> Result<SocketAddr, String> {
    let wrong = || {
        format!(
            "'{text}' is not an IP address with a port: write, for example, 192.168.1.7:7400, or \
             [fe80::7%wlan0]:7400"
        )
    };
    let Some((ip, rest)) = text.strip_prefix('[').and_then(|t| t.split_once('%')) else {
        return text.parse().map_err(|_| wrong());
    };
    let (device, port) = rest.split_once("]:").ok_or_else(wrong)?;
    let (ip, port): (Ipv6Addr, u16) = (
        ip.parse().map_err(|_| wrong())?,
        port.parse().map_err(|_| wrong())?,
    );
    if !ip.is_unicast_link_local() {
        return Err(format!(
            "{ip} does not depend on a network device: leave out '%{device}'"
        ));
    }
    Ok(SocketAddrV6::new(ip, port, 0, scope(device)?).into())
}

/// The number of a network device, from its name or the number itself.
fn scope(device: &str) -> Result<u32, String> {
    if let Some(number) = device.parse().ok().filter(|n| *n > 0) {
        return Ok(number);
    }
    nix::net::if_::if_nametoindex(device)
        .map_err(|_| format!("this host has no network device '{device}': `ip link` lists those it has"))
}

/// Returns whether a link-local address lacks its device, without which it is ambiguous.
pub(super) fn lacks_device(address: SocketAddr) -> bool {
    matches!(address, SocketAddr::V6(a) if a.ip().is_unicast_link_local() && a.scope_id() == 0)
}

/// An address without its port, with its device if it has one.
pub(super) fn host(address: SocketAddr) -> String {
    match address {
        SocketAddr::V6(a) if a.scope_id() != 0 => format!("{}%{}", a.ip(), a.scope_id()),
        _ => IpAddr::to_string(&address.ip()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_local_address_has_its_device_by_name_or_number() {
        // Every host has the device `lo`, and Linux gives it the number 1.
        for text in ["[fe80::7%lo]:7400", "[fe80::7%1]:7400"] {
            let SocketAddr::V6(address) = parse(text).expect(text) else {
                panic!("{text} is IPv6");
            };
            assert_eq!((address.scope_id(), address.port()), (1, 7400), "{text}");
            assert_eq!(host(address.into()), "fe80::7%1");
            assert!(!lacks_device(address.into()));
        }
        assert!(lacks_device(parse("[fe80::7]:7400").expect("is an address")));
        for text in ["192.168.1.7:7400", "[::]:7400", "[2001:db8::7]:1"] {
            let address = parse(text).expect(text);
            assert_eq!(address.to_string(), text);
            assert!(!lacks_device(address));
        }
    }

    #[test]
    fn invalid_addresses_are_refused_with_the_fix() {
        for (text, word) in [
            (
                "[fe80::7%no_such_device]:7400",
                "no network device 'no_such_device'",
            ),
            ("[fe80::7%]:7400", "no network device ''"),
            ("[fe80::7%0]:7400", "no network device '0'"),
            ("[fe80::7%a\0b]:7400", "no network device"),
            ("[2001:db8::7%lo]:7400", "leave out '%lo'"),
            ("[fe80::7%lo]", "not an IP address with a port"),
            ("[fe80::7%lo]:65536", "not an IP address with a port"),
            ("[fe80::7%lo", "not an IP address with a port"),
            ("[%lo]:7400", "not an IP address with a port"),
            ("fe80::7%lo:7400", "not an IP address with a port"),
            ("base:7400", "not an IP address with a port"),
        ] {
            let problem = parse(text).expect_err(text);
            assert!(problem.contains(word), "{text}: {problem}");
        }
    }
}
