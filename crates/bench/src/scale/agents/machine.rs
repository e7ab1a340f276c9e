//! A machine, as the user names it.

use super::options::{Options, serve};
use crate::kit::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::str::FromStr;

/// This machine's name.
const HERE: &str = "here";

/// `HOST` or `HOST=ADDRESS`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Machine {
    pub(super) host: String,
    address: Option<Ipv4Addr>,
}

impl FromStr for Machine {
    type Err = String;

    fn from_str(text: &str) -> Result<Machine, String> {
        let (host, address) = match text.split_once('=') {
            Some((host, address)) => (host, Some(address)),
            None => (text, None),
        };
        // A name that begins with a dash would be an option of the command that reaches it.
        let right = |c: char| c.is_ascii_alphanumeric() || "._-@:[]%".contains(c);
        if host.is_empty() || host.starts_with('-') || !host.chars().all(right) {
            return Err("give HOST or HOST=ADDRESS, as ssh knows it".into());
        }
        let address = address.map(str::parse).transpose();
        Ok(Machine {
            host: host.to_owned(),
            address: address
                .map_err(|_| format!("the address of {host} must be an IPv4 address, such as 192.168.1.7"))?,
        })
    }
}

impl Machine {
    fn is_here(&self) -> bool {
        self.host == HERE
    }

    /// Returns the command that starts an agent on it.
    pub(super) fn command(&self, options: &Options, peers: Option<&PathBuf>) -> io::Result<Command> {
        if self.is_here() {
            let mut command = Command::new(crate::kit::program::ropewalk().map_err(io::Error::other)?);
            command.args(serve(peers));
            return Ok(command);
        }
        let words = options.words(&self.host, peers);
        let mut command = Command::new(words.first().map_or("", String::as_str));
        command.args(words.iter().skip(1));
        Ok(command)
    }

    /// Explains why its agent did not start, with how to fix it.
    pub(super) fn explain(&self, by_ssh: bool, status: Option<ExitStatus>, how: &str, said: &str) -> String {
        let host = &self.host;
        let version = env!("CARGO_PKG_VERSION");
        let fix = match status.and_then(|s| s.code()) {
            Some(255) if by_ssh => {
                format!("check that `ssh {host} true` works without a password (ssh-copy-id {host})")
            }
            Some(126 | 127) => format!(
                "ropewalk is not on its PATH for a shell without login: install version {version} there, or set its path with \
                 --program"
            ),
            Some(2) => format!("is its ropewalk older? Install version {version} there"),
            _ => format!("check that ropewalk {version} is installed, and that --reach is right"),
        };
        format!("no agent on {host}: the command {how}{said}; {fix}")
    }
}

/// Returns the addresses by which the machines reach each other.
///
/// # Errors
/// A machine has no address, or one that is valid only on itself, with how to fix it.
pub(super) fn addresses(machines: &[Machine]) -> Result<Vec<Ipv4Addr>, Error> {
    if let [machine] = machines {
        // It communicates only with itself.
        return Ok(vec![machine.address.unwrap_or(Ipv4Addr::LOCALHOST)]);
    }
    if machines.is_empty() || !machines.len().is_multiple_of(2) {
        return Err(Error::Input(
            "give one machine, or an even number: half of them send, the others echo".into(),
        ));
    }
    let mut found = Vec::new();
    for machine in machines {
        let address = match machine.address {
            Some(address) => address,
            None if machine.is_here() => continue,
            None => resolve(&machine.host)?,
        };
        found.push((machine, address));
    }
    // This machine's address is the source address of its route to another.
    let way = found.first().map(|(_, a)| *a);
    let mut all = Vec::new();
    for machine in machines {
        let address = match (found.iter().find(|(m, _)| *m == machine), way) {
            (Some((_, address)), _) => *address,
            (None, Some(other)) => towards(other).ok_or_else(|| unknown(HERE))?,
            (None, None) => return Err(unknown(HERE)),
        };
        if all.contains(&address) {
            return Err(Error::Input(format!(
                "two machines have the address {address}: give each HOST=ADDRESS"
            )));
        }
        all.push(address);
    }
    Ok(all)
}

fn resolve(host: &str) -> Result<Ipv4Addr, Error> {
    let name = host.rsplit_once('@').map_or(host, |(_, name)| name);
    let found = (name, 0).to_socket_addrs().map_err(|_| unknown(host))?;
    let mut found = found.filter_map(|a| match a {
        SocketAddr::V4(a) => Some(*a.ip()),
        SocketAddr::V6(_) => None,
    });
    // A host's own name often resolves to 127.0.1.1 on that host.
    found.find(|a| !a.is_loopback()).ok_or_else(|| unknown(host))
}

fn unknown(host: &str) -> Error {
    Error::Input(format!(
        "the address by which the other machines reach {host} is unknown: give {host}=ADDRESS"
    ))
}

fn towards(other: Ipv4Addr) -> Option<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // Sends nothing.
    socket.connect((other, 9)).ok()?;
    match socket.local_addr().ok()? {
        SocketAddr::V4(a) => Some(*a.ip()),
        SocketAddr::V6(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn of(texts: &[&str]) -> Result<Vec<Ipv4Addr>, Error> {
        let machines: Vec<Machine> = texts.iter().map(|t| t.parse().expect(t)).collect();
        addresses(&machines)
    }

    #[test]
    fn names_that_could_be_options_are_refused() {
        let machine: Machine = "pi@robot-1.local=10.0.0.7".parse().expect("is right");
        assert_eq!(
            (&*machine.host, machine.address),
            ("pi@robot-1.local", Some([10, 0, 0, 7].into()))
        );
        for bad in [
            "",
            "-l",
            "-oProxyCommand=x",
            "a b",
            "a;b",
            "$(x)",
            "a=b",
            "a=",
            "=10.0.0.1",
            "a=::1",
        ] {
            assert!(bad.parse::<Machine>().is_err(), "{bad}");
        }
    }

    #[test]
    fn addresses_are_those_that_others_reach() {
        let two = of(&["a=10.0.0.1", "b=10.0.0.2"]).expect("is right");
        assert_eq!(two, [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)]);
        // The route to a loopback address has a loopback source.
        assert_eq!(
            of(&["b=127.1.2.3", "here"]).expect("is right")[1],
            Ipv4Addr::LOCALHOST
        );
        assert_eq!(of(&["robot"]).expect("alone"), [Ipv4Addr::LOCALHOST]);
        for (bad, why) in [
            (&["a=10.0.0.1", "b=10.0.0.2", "c=10.0.0.3"][..], "even"),
            (&["a=10.0.0.1", "b=10.0.0.1"], "two machines"),
            (&["here", "here"], "here=ADDRESS"),
            (&["localhost", "b=10.0.0.2"], "localhost=ADDRESS"),
        ] {
            assert!(of(bad).is_err_and(|e| e.to_string().contains(why)), "{bad:?}");
        }
    }

    #[test]
    fn connection_failures_are_explained_with_the_fix() {
        let machine: Machine = "robot".parse().expect("is right");
        let reported =
            |code: i32, by_ssh| machine.explain(by_ssh, Some(ExitStatus::from_raw(code << 8)), "ended", "");
        assert!(
            reported(255, true).contains("ssh-copy-id robot") && reported(127, true).contains("--program")
        );
        assert!(reported(2, true).contains("older") && reported(255, false).contains("--reach"));
    }
}
