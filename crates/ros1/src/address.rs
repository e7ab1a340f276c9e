//! Where the bridge listens, and the name at which other nodes reach it.

use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};

/// Where the bridge listens, and the name at which other nodes reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) bind: IpAddr,
    /// Host name or address that other nodes receive.
    pub(crate) host: String,
}

/// Why there is no address.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AddressError {
    #[error(
        "ROS_IP is '{0}', which is not an IP address: set it to this host's address in the robot's network"
    )]
    Ip(String),
    #[error("ROS_HOSTNAME is '{0}', which has no address: correct it, or add the name to /etc/hosts")]
    Hostname(String),
}

impl Address {
    /// Chooses the address like ROS, from `ROS_HOSTNAME` and `ROS_IP`, but loopback if neither they nor `listen` are
    /// set.
    pub(crate) fn choose(
        listen: Option<IpAddr>,
        ros_hostname: Option<String>,
        ros_ip: Option<String>,
        host_name: impl FnOnce() -> String,
    ) -> Result<Address, AddressError> {
        let given = |v: Option<String>| v.map(|v| v.trim().to_owned()).filter(|v| !v.is_empty());
        let advertised = match (given(ros_hostname), given(ros_ip)) {
            (Some(name), _) => {
                let found = (name.as_str(), 0)
                    .to_socket_addrs()
                    .ok()
                    .and_then(|mut all| all.next());
                let found = found.ok_or_else(|| AddressError::Hostname(name.clone()))?;
                Some((name, found.ip()))
            }
            (None, Some(ip)) => {
                let parsed = ip.parse().map_err(|_| AddressError::Ip(ip.clone()))?;
                Some((ip, parsed))
            }
            (None, None) => None,
        };
        Ok(match (listen, advertised) {
            (Some(bind), Some((host, _))) => Address { bind, host },
            (Some(bind), None) if bind.is_unspecified() => Address {
                bind,
                host: host_name(),
            },
            (Some(bind), None) => Address {
                bind,
                host: bind.to_string(),
            },
            (None, Some((host, bind))) => Address { bind, host },
            (None, None) => {
                let bind = IpAddr::from(Ipv4Addr::LOCALHOST);
                Address {
                    bind,
                    host: bind.to_string(),
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(listen: &str, hostname: &str, ip: &str) -> Result<(String, String), AddressError> {
        let some = |text: &str| Some(text.to_owned());
        let address = Address::choose(listen.parse().ok(), some(hostname), some(ip), || "robot".into())?;
        Ok((address.bind.to_string(), address.host))
    }

    #[test]
    fn loopback_unless_the_user_says_otherwise() {
        let ok = |bind: &str, host: &str| Ok((bind.to_owned(), host.to_owned()));
        assert_eq!(choose("", "", ""), ok("127.0.0.1", "127.0.0.1"));
        assert_eq!(choose("", "", "192.0.2.7"), ok("192.0.2.7", "192.0.2.7"));
        assert_eq!(
            choose("", "localhost", "192.0.2.7").map(|a| a.1),
            Ok("localhost".into())
        );
        assert_eq!(choose("0.0.0.0", "", ""), ok("0.0.0.0", "robot"));
        assert_eq!(choose("0.0.0.0", "", "192.0.2.7"), ok("0.0.0.0", "192.0.2.7"));
        assert_eq!(choose("192.0.2.7", "", ""), ok("192.0.2.7", "192.0.2.7"));
        assert_eq!(choose("", "", "robot"), Err(AddressError::Ip("robot".into())));
        assert!(choose("", "no.such.name.invalid", "").is_err());
    }
}
