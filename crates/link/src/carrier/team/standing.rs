//! How connections stand: whose they are, and which of several to a peer counts.

use crate::carrier::PeerIndex;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// A connection is fresh so long after it was heard.
const FRESH: Duration = Duration::from_millis(300);
/// Connections to one peer that are kept at once.
const MAX_OPEN: usize = 3;

/// What carriers know of a connection, established or on the way there.
#[derive(Clone, Copy, Debug)]
pub(in crate::carrier) struct Standing {
    /// Whose it is: dialled, or proved by its certificate.
    pub(in crate::carrier) peer: Option<PeerIndex>,
    /// We made it.
    pub(in crate::carrier) dialed: bool,
    pub(in crate::carrier) from: IpAddr,
    /// A peer is configured at that address, or proved who it is from there.
    pub(in crate::carrier) expected: bool,
    pub(in crate::carrier) started: Instant,
    /// When it was established.
    pub(in crate::carrier) up: Option<Instant>,
    /// When something of the peer came last.
    pub(in crate::carrier) heard: Option<Instant>,
}

impl Standing {
    /// Of one that we dial to `peer`, or that somebody else began.
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

    /// Whether it is established, with a peer.
    pub(in crate::carrier) fn is_up(&self) -> bool {
        self.up.is_some() && self.peer.is_some()
    }

    /// Whether it is an attempt of ours to reach `peer`.
    pub(in crate::carrier) fn attempts(&self, peer: PeerIndex) -> bool {
        self.peer == Some(peer) && self.dialed && self.up.is_none()
    }

    /// When it last showed that the peer is there.
    pub(in crate::carrier) fn alive(&self) -> Option<Instant> {
        self.heard.max(self.up)
    }
}

/// Which of the `open` connections to a peer is to be used. Both ends may have dialled, and either may be the last that a
/// restarted or moved peer knows of: what was heard of late counts, then what the end dialled that is `first` by name, so
/// that both choose alike, and then the oldest, as a newer one may be of another host with the same name and keys.
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

/// Which connections are needless once one to `peer` is established: other attempts, and of many `open` ones to it those that
/// are silent for the longest time.
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

/// Whether a handshake is under way that others began from an address.
pub(in crate::carrier) fn is_half_open<'a>(
    mut all: impl Iterator<Item = &'a Standing>,
    from: IpAddr,
) -> bool {
    all.any(|s| !s.dialed && s.up.is_none() && s.from == from)
}

/// What of an address one host cannot choose freely: all of IPv4, and of IPv6 the network (RFC 4291, section 2.5.4).
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
        // Such as of a second host with the peer's name, which is heard just now.
        let (old, new) = (up(0, 950), up(900, 1000));
        let used = |now| current([("old", &old), ("new", &new)].into_iter(), true, at(now));
        assert_eq!(used(1000), Some("old"));
        assert_eq!(used(1260), Some("new"), "the old one is silent");
        assert_eq!(used(2000), Some("new"), "both are silent");
    }
}
