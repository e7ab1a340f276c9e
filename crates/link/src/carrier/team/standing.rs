//! The state of connections: which peer each belongs to, and which of several to a peer is current.

use crate::carrier::PeerIndex;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// How long a connection stays fresh after a sign of life.
const FRESH: Duration = Duration::from_millis(300);
/// Most connections to one peer that are kept.
const MAX_OPEN: usize = 3;

/// A carrier's knowledge of a connection, established or in its handshake.
#[derive(Clone, Copy, Debug)]
pub(in crate::carrier) struct Standing {
    /// Its peer: the dialled one, or the one named by its certificate.
    pub(in crate::carrier) peer: Option<PeerIndex>,
    /// Whether this host dialled.
    pub(in crate::carrier) dialed: bool,
    pub(in crate::carrier) from: IpAddr,
    /// Whether a peer is configured at that address, or authenticated from there.
    pub(in crate::carrier) expected: bool,
    pub(in crate::carrier) started: Instant,
    /// When it was established.
    pub(in crate::carrier) up: Option<Instant>,
    /// When the last datagram of the peer arrived.
    pub(in crate::carrier) heard: Option<Instant>,
}

impl Standing {
    /// A connection that this host dials to `peer`, or an incoming one.
    pub(in crate::carrier) fn new(peer: Option<PeerIndex>, from: IpAddr, now: Instant) -> Self {
        Standing {
            peer,
            dialed: peer.is_some(),
            from,
            expected: false,
            started: now,
            up: None,
            heard: None,
        }
    }

    /// Returns whether it is established with a peer.
    pub(in crate::carrier) fn is_up(&self) -> bool {
        self.up.is_some() && self.peer.is_some()
    }

    /// Returns whether it is this host's attempt to reach `peer`.
    pub(in crate::carrier) fn attempts(&self, peer: PeerIndex) -> bool {
        self.peer == Some(peer) && self.dialed && self.up.is_none()
    }

    /// When it last showed that the peer is alive.
    pub(in crate::carrier) fn alive(&self) -> Option<Instant> {
        self.heard.max(self.up)
    }
}

/// The current one of the `open` connections to a peer. Both ends may have dialled, and either connection may
/// be the last that a restarted or moved peer knows of. Fresh connections come first; among them, those
/// dialled by the end that is `first` by name, so that both ends choose alike; then the oldest, as a newer
/// one may be of another host with the same name and keys.
pub(in crate::carrier) fn current<'a, K>(
    open: impl Iterator<Item = (K, &'a Standing)>,
    first: bool,
    now: Instant,
) -> Option<K> {
    let rank = |s: &Standing| {
        let alive = s.alive();
        let fresh = alive.is_some_and(|t| now.saturating_duration_since(t) < FRESH);
        let oldest = s.up.filter(|_| fresh).map(std::cmp::Reverse);
        (fresh, fresh && s.dialed == first, oldest, alive)
    };
    open.max_by_key(|(_, s)| rank(s)).map(|(k, _)| k)
}

/// The connections that are superfluous once one to `peer` is established: other attempts, and beyond the
/// limit those `open` ones that were silent for the longest.
pub(in crate::carrier) fn needless<'a, K: Copy + Ord>(
    all: impl Iterator<Item = (K, &'a Standing)>,
    open: impl Iterator<Item = (K, &'a Standing)>,
    peer: PeerIndex,
) -> Vec<K> {
    let attempts = all.filter(|(_, s)| s.attempts(peer));
    let mut over: Vec<K> = attempts.map(|(k, _)| k).collect();
    let mut open: Vec<_> = open.map(|(k, s)| (s.alive(), k)).collect();
    open.sort_unstable();
    over.extend(open.iter().rev().skip(MAX_OPEN).map(|(_, k)| *k));
    over
}

/// Returns whether an incoming handshake from an address is in progress.
pub(in crate::carrier) fn is_half_open<'a>(
    mut all: impl Iterator<Item = &'a Standing>,
    from: IpAddr,
) -> bool {
    all.any(|s| !s.dialed && s.up.is_none() && s.from == from)
}

/// The part of an address that one host cannot choose freely: all of IPv4, and the network of IPv6 (RFC 4291,
/// section 2.5.4).
pub(in crate::carrier) fn prefix(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(a) => a.into(),
        IpAddr::V6(a) => {
            let [a, b, c, d, ..] = a.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_connections_that_are_alike_the_oldest_is_used_while_it_is_fresh() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let up = |ms, heard| Standing {
            peer: Some(0),
            up: Some(at(ms)),
            heard: Some(at(heard)),
            ..Standing::new(None, IpAddr::from([10, 0, 0, 1]), at(ms))
        };
        // For example, of a second host with the peer's name, which just gave a sign of life.
        let (old, new) = (up(0, 950), up(900, 1000));
        let used = |now| current([("old", &old), ("new", &new)].into_iter(), true, at(now));
        assert_eq!(used(1000), Some("old"));
        assert_eq!(used(1260), Some("new"), "the old one is silent");
        assert_eq!(used(2000), Some("new"), "both are silent");
    }
}
