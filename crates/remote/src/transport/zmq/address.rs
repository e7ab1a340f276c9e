//! The addresses where an end binds or connects.

use crate::transport::TransportError;
use std::net::{IpAddr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::{fmt, fs};

/// An address of ZeroMQ: `tcp://HOST:PORT` or `ipc://PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// Port 0: the system chooses one.
    Tcp {
        host: String,
        port: u16,
    },
    Ipc(PathBuf),
}

impl Address {
    pub(super) fn parse(text: &str) -> Result<Self, TransportError> {
        let wrong = |why: &str| {
            TransportError::Setup(format!(
                "`{text}` is not an address: {why}; write tcp://HOST:PORT or ipc:///PATH"
            ))
        };
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(wrong("it contains spaces"));
        }
        if let Some(path) = text.strip_prefix("ipc://") {
            // sockaddr_un takes 108 bytes with the final zero.
            return match path.len() {
                0 => Err(wrong("the path is missing")),
                1..108 => Ok(Address::Ipc(path.into())),
                _ => Err(wrong("a socket's path has at most 107 bytes")),
            };
        }
        let Some(rest) = text.strip_prefix("tcp://") else {
            return Err(wrong("tcp:// or ipc:// is missing"));
        };
        let Some((host, port)) = rest.rsplit_once(':') else {
            return Err(wrong("the port is missing"));
        };
        let port = match port {
            "*" => 0,
            port => port
                .parse()
                .map_err(|_| wrong("the port is not a number up to 65535"))?,
        };
        let host = host
            .strip_prefix('[')
            .and_then(|h| h.strip_suffix(']'))
            .unwrap_or(host);
        if host.is_empty() || host.contains(['/', ';', '[', ']']) {
            return Err(wrong("the host is missing"));
        }
        let host = match host {
            "*" => "0.0.0.0",
            "localhost" => "127.0.0.1",
            host => host,
        };
        Ok(Address::Tcp {
            host: host.into(),
            port,
        })
    }

    /// Returns whether only processes of this host can reach it.
    pub(super) fn is_local(&self) -> bool {
        match self {
            Address::Tcp { host, .. } => host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
            Address::Ipc(_) => true,
        }
    }

    pub(super) fn is_v6(&self) -> bool {
        matches!(self, Address::Tcp { host, .. } if host.parse::<Ipv6Addr>().is_ok())
    }

    /// Returns the IP address to bind, which must not be a host name.
    pub(super) fn bind_ip(&self) -> Result<Option<(IpAddr, u16)>, TransportError> {
        match self {
            Address::Tcp { host, port } => match host.parse() {
                Ok(ip) => Ok(Some((ip, *port))),
                Err(_) => Err(TransportError::Setup(format!(
                    "{self}: to bind, use an IP address of this host (127.0.0.1 for this host only, 0.0.0.0 for all networks)"
                ))),
            },
            Address::Ipc(_) => Ok(None),
        }
    }

    /// Builds an error of binding or connecting, with how to fix it.
    pub(super) fn failed(&self, what: &str, error: impl fmt::Display, in_use: bool) -> TransportError {
        let fix = match (in_use, self) {
            (true, Address::Tcp { port, .. }) => match owner(*port) {
                Some(owner) => format!(": {owner} uses it; stop that program or choose another port"),
                None => {
                    ": a program of another user uses it; choose another port (`ss -tlnp` as root shows which program)"
                        .into()
                }
            },
            (true, Address::Ipc(_)) => {
                ": another program listens there; stop it or choose another path".into()
            }
            (false, _) => String::new(),
        };
        TransportError::Setup(format!("cannot {what} {self}: {error}{fix}"))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp { host, port } if host.contains(':') => write!(f, "tcp://[{host}]:{port}"),
            Address::Tcp { host, port } => write!(f, "tcp://{host}:{port}"),
            Address::Ipc(path) => write!(f, "ipc://{}", path.display()),
        }
    }
}

/// Returns the process that listens on a TCP port, as far as this user may see: `rrc_robot (process 4711)`.
fn owner(port: u16) -> Option<String> {
    let sockets: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .into_iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| {
            table
                .lines()
                .filter_map(|line| listening(line, port))
                .collect::<Vec<_>>()
        })
        .collect();
    let processes = fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path());
    let process = processes
        .filter(|path| is_number(path))
        .find(|path| holds(path, &sockets))?;
    let name = fs::read_to_string(process.join("comm")).ok()?;
    Some(format!(
        "{} (process {})",
        name.trim(),
        process.file_name()?.to_str()?
    ))
}

/// Returns the link by which a process's descriptors name the socket of this line, if the socket listens on the port.
fn listening(line: &str, port: u16) -> Option<String> {
    let mut fields = line.split_whitespace();
    let (_, local) = fields.nth(1)?.rsplit_once(':')?;
    let is_listening = fields.nth(1)? == "0A";
    let inode = fields.nth(5)?;
    (is_listening && u16::from_str_radix(local, 16) == Ok(port)).then(|| format!("socket:[{inode}]"))
}

fn is_number(path: &Path) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.parse::<u32>().is_ok())
}

fn holds(process: &Path, sockets: &[String]) -> bool {
    let Ok(descriptors) = fs::read_dir(process.join("fd")) else {
        return false;
    };
    descriptors
        .flatten()
        .filter_map(|fd| fs::read_link(fd.path()).ok())
        .any(|link| {
            link.to_str()
                .is_some_and(|link| sockets.iter().any(|socket| socket == link))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (text, shown, local) in [
            ("tcp://127.0.0.1:7001", "tcp://127.0.0.1:7001", true),
            ("tcp://localhost:1", "tcp://127.0.0.1:1", true),
            ("tcp://[::1]:7001", "tcp://[::1]:7001", true),
            ("tcp://*:7001", "tcp://0.0.0.0:7001", false),
            ("tcp://127.0.0.1:*", "tcp://127.0.0.1:0", true),
            ("tcp://robot.example:65535", "tcp://robot.example:65535", false),
            ("ipc:///tmp/x", "ipc:///tmp/x", true),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!((address.to_string().as_str(), address.is_local()), (shown, local));
        }
        let long = format!("ipc:///{}", "x".repeat(107));
        for wrong in [
            "",
            "7001",
            "tcp://",
            "tcp://:7001",
            "tcp://host",
            "tcp://host:70000",
            "tcp://a b:1",
            "udp://x:1",
            "ipc://",
            "tcp://a;b:1",
            "inproc://x",
            &long,
        ] {
            let error = Address::parse(wrong).unwrap_err().to_string();
            assert!(error.contains("write tcp://HOST:PORT"), "{error}");
        }
        assert!(
            Address::parse("tcp://robot:1")
                .unwrap()
                .bind_ip()
                .unwrap_err()
                .to_string()
                .contains("0.0.0.0")
        );
    }

    #[test]
    fn the_process_that_holds_a_port_is_named() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let owner = owner(listener.local_addr().unwrap().port()).unwrap();
        assert!(
            owner.ends_with(&format!("(process {})", std::process::id())),
            "{owner}"
        );
    }
}
