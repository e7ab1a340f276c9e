//! Decides whose share of a limit is used. ROS 1 has no identities, so a peer is its address.
//!
//! This host, the master's and those of the configuration (`peers`) are known: unknown peers cannot use up their
//! shares.

mod share;

pub(crate) use share::{Full, Share};

use crate::hub::lock;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Maximum number of connections to one host, and to all hosts, established or attempted: each has a thread.
const MAX_DIALLED_EACH: usize = 1024;
const MAX_DIALLED: usize = 2048;
/// Minimum time between two log lines about refusals of one kind: unknown peers may cause any number.
const LOG_PAUSE: Duration = Duration::from_secs(10);

/// An IPv4 address, or an IPv6 network of 64 bits, all of which a single host may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Peer(IpAddr);

impl Peer {
    pub(crate) fn of(ip: IpAddr) -> Peer {
        Peer(match ip.to_canonical() {
            IpAddr::V6(ip) if !ip.is_loopback() => {
                Ipv6Addr::from(u128::from(ip) & !u128::from(u64::MAX)).into()
            }
            other => other,
        })
    }
}

impl Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Status of the peer at the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub(crate) peer: Peer,
    /// It has a share of its own.
    pub(crate) known: bool,
    /// It is the master's host.
    pub(crate) master: bool,
}

/// Why something was refused, as counted in [`Status::refused`](crate::Status::refused).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// A connection beyond the peer's limit.
    Connection,
    /// A connection that did not identify itself in time, and was closed to make room for another.
    Silent,
    /// A request or header that is too long or malformed.
    Malformed,
    /// A message or call beyond the peer's memory limit.
    Memory,
    /// A call that only the master or a known host may make.
    Call,
    /// An invalid name from the master.
    Name,
    /// A connection to a publisher beyond the bridge's limit.
    Dial,
}

impl Reason {
    const ALL: [Reason; 7] = [
        Reason::Connection,
        Reason::Silent,
        Reason::Malformed,
        Reason::Memory,
        Reason::Call,
        Reason::Name,
        Reason::Dial,
    ];

    fn name(self) -> &'static str {
        match self {
            Reason::Connection => "connections",
            Reason::Silent => "silent",
            Reason::Malformed => "malformed",
            Reason::Memory => "memory",
            Reason::Call => "calls",
            Reason::Name => "names",
            Reason::Dial => "dialled",
        }
    }
}

/// Limits of peers, what they use, and what was refused.
#[derive(Debug)]
pub(crate) struct Peers {
    configured: BTreeSet<Peer>,
    /// Address from which the master last answered.
    master: Mutex<Option<Peer>>,
    /// Memory limits in bytes, of an unknown peer and of a known one.
    unknown_memory: u64,
    known_memory: u64,
    taken: Mutex<share::Taken>,
    dialled: Mutex<BTreeMap<String, usize>>,
    refused: [AtomicU64; Reason::ALL.len()],
    logged: Mutex<BTreeMap<Reason, Instant>>,
}

impl Peers {
    pub(crate) fn new(configured: &[IpAddr], unknown_memory: u64, known_memory: u64) -> Peers {
        Peers {
            configured: configured.iter().map(|ip| Peer::of(*ip)).collect(),
            master: Mutex::default(),
            unknown_memory,
            known_memory,
            taken: Mutex::default(),
            dialled: Mutex::default(),
            refused: Default::default(),
            logged: Mutex::default(),
        }
    }

    pub(crate) fn set_master(&self, ip: IpAddr) {
        *lock(&self.master) = Some(Peer::of(ip));
    }

    pub(crate) fn standing(&self, stream: &TcpStream) -> io::Result<Standing> {
        Ok(self.judge(stream.peer_addr()?.ip(), stream.local_addr()?.ip()))
    }

    fn judge(&self, far: IpAddr, near: IpAddr) -> Standing {
        let peer = Peer::of(far);
        let loopback = |p: Peer| [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()].contains(&p.0);
        // A connection of a host to itself has the same address at both ends.
        let here = loopback(peer) || peer == Peer::of(near) && far.to_canonical() == near.to_canonical();
        let at = *lock(&self.master);
        let master = at == Some(peer) || here && at.is_some_and(loopback);
        Standing {
            peer,
            known: here || master || self.configured.contains(&peer),
            master,
        }
    }

    /// Counts a refusal, and logs it unless one of its kind was logged recently.
    pub(crate) fn refuse(&self, reason: Reason, why: impl Display) {
        let count = self.refused[reason as usize].fetch_add(1, Relaxed) + 1;
        let mut logged = lock(&self.logged);
        let now = Instant::now();
        if logged
            .get(&reason)
            .is_none_or(|at| now.duration_since(*at) > LOG_PAUSE)
        {
            logged.insert(reason, now);
            let why = bridge::printable(&why.to_string());
            tracing::warn!(count, kind = reason.name(), "refused: {why}");
        }
    }

    /// Returns the number of refusals of each kind that occurred.
    pub(crate) fn refused(&self) -> BTreeMap<&'static str, u64> {
        let counts = Reason::ALL.map(|r| (r.name(), self.refused[r as usize].load(Relaxed)));
        counts.into_iter().filter(|(_, n)| *n > 0).collect()
    }

    /// Reserves a connection to a host until the result is dropped.
    pub(crate) fn dial(self: &Arc<Self>, host: &str) -> Option<Dialled> {
        let mut dialled = lock(&self.dialled);
        let all: usize = dialled.values().sum();
        let each = dialled.get(host).copied().unwrap_or(0);
        if all >= MAX_DIALLED || each >= MAX_DIALLED_EACH {
            drop(dialled);
            self.refuse(
                Reason::Dial,
                format_args!("{each} connections to {host}, {all} in all"),
            );
            return None;
        }
        dialled.insert(host.to_owned(), each + 1);
        Some(Dialled {
            peers: self.clone(),
            host: host.to_owned(),
        })
    }
}

/// A connection to a host, established or attempted.
#[derive(Debug)]
pub(crate) struct Dialled {
    peers: Arc<Peers>,
    host: String,
}

impl Drop for Dialled {
    fn drop(&mut self) {
        let mut dialled = lock(&self.peers.dialled);
        if let Some(count) = dialled.get_mut(&self.host) {
            *count -= 1;
            if *count == 0 {
                dialled.remove(&self.host);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers() -> Peers {
        Peers::new(&["192.0.2.9".parse().unwrap()], 1000, 5000)
    }

    #[test]
    fn this_host_the_master_and_those_configured_are_known() {
        let peers = peers();
        let known = |far: &str, near: &str| peers.judge(far.parse().unwrap(), near.parse().unwrap()).known;
        let master = |far: &str, near: &str| peers.judge(far.parse().unwrap(), near.parse().unwrap()).master;
        assert!(known("127.0.0.1", "127.0.0.1") && known("::1", "::1") && known("192.0.2.1", "192.0.2.1"));
        assert!(known("192.0.2.9", "192.0.2.1") && known("::ffff:192.0.2.9", "::ffff:192.0.2.1"));
        assert!(!known("127.0.0.2", "127.0.0.1") && !known("192.0.2.8", "192.0.2.1"));
        assert!(!known("2001:db8::2", "2001:db8::1"), "one network, two hosts");
        assert!(!master("127.0.0.1", "127.0.0.1"), "nobody knows where it is");
        peers.set_master("192.0.2.8".parse().unwrap());
        assert!(known("192.0.2.8", "192.0.2.1") && master("192.0.2.8", "192.0.2.1"));
        assert!(!master("127.0.0.1", "127.0.0.1") && !master("192.0.2.9", "192.0.2.1"));
        // A master on this host calls from any address that the bridge has.
        peers.set_master("127.0.0.1".parse().unwrap());
        assert!(master("192.0.2.1", "192.0.2.1") && !master("192.0.2.8", "192.0.2.1"));
    }

    #[test]
    fn an_ipv6_network_is_one_peer() {
        let of = |ip: &str| Peer::of(ip.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }

    #[test]
    fn connections_to_one_host_are_bounded_and_given_back() {
        let peers = Arc::new(peers());
        let held: Vec<_> = std::iter::from_fn(|| peers.dial("a")).take(5000).collect();
        assert_eq!(held.len(), MAX_DIALLED_EACH);
        assert!(peers.dial("b").is_some(), "others have their own limit");
        assert_eq!(peers.refused(), [("dialled", 1)].into());
        drop(held);
        assert!(peers.dial("a").is_some() && lock(&peers.dialled).is_empty());
    }
}
