//! Admits connection attempts: expected peers have a budget of their own, and unknown hosts share one by
//! address.

use super::admission::TOKEN_LEN;
use super::standing::{Standing, prefix};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Most handshakes in progress from unknown hosts. A further one ends an older one.
const MAX_HALF_OPEN: usize = 64;
/// The same from one address, or for each peer that is expected there.
const MAX_SAME: usize = 4;
/// Most handshakes per second with unknown hosts, since each costs a key agreement and a signature.
const MAX_RATE: u32 = 50;
/// The same from one address.
const MAX_SAME_RATE: u32 = 8;
/// Most handshakes per second for each peer that is expected at an address. Both ends dial 2.5 times a
/// second, at the configured and at the last seen address.
const EXPECTED_RATE: u32 = 16;
/// Most admission tokens that are remembered, so that none works twice: those of a peer's attempts in 27
/// minutes.
const MAX_USED: usize = 4096;

#[derive(Debug, PartialEq, Eq)]
pub(in crate::carrier) enum Verdict {
    /// Send nothing, keep nothing.
    Ignore,
    /// Let the sender prove that it receives at its address, without keeping state.
    Retry,
    /// Start the handshake.
    Accept,
}

/// Decides on connection attempts with a valid token, at a bounded rate.
#[derive(Debug)]
pub(in crate::carrier) struct Incoming {
    second: Instant,
    unauthenticated: u32,
    /// Handshakes with unknown hosts in this second, by the prefix of their address. Bounded by their total
    /// number.
    same: BTreeMap<IpAddr, u32>,
    /// Handshakes in this second from addresses where peers are expected.
    expected: BTreeMap<IpAddr, u32>,
    used: Used,
}

impl Incoming {
    pub(in crate::carrier) fn new(now: Instant) -> Self {
        Incoming {
            second: now,
            unauthenticated: 0,
            same: BTreeMap::new(),
            expected: BTreeMap::new(),
            used: Used::default(),
        }
    }

    /// Returns whether a token is new, and marks it as used. A reused token was overheard.
    pub(in crate::carrier) fn is_fresh(&mut self, token: &[u8; TOKEN_LEN]) -> bool {
        self.used.put(token)
    }

    /// Decides on an attempt `from` an address where this many peers are `expected`. A sender that is not
    /// `validated` must first prove that it receives there.
    pub(in crate::carrier) fn decide(
        &mut self,
        from: IpAddr,
        validated: bool,
        expected: usize,
        now: Instant,
    ) -> Verdict {
        if !validated {
            return Verdict::Retry;
        }
        if now.saturating_duration_since(self.second) >= Duration::from_secs(1) {
            self.second = now;
            self.unauthenticated = 0;
            self.same.clear();
            self.expected.clear();
        }
        if expected > 0 {
            let begun = self.expected.entry(from).or_default();
            if *begun < EXPECTED_RATE.saturating_mul(u32::try_from(expected).unwrap_or(u32::MAX)) {
                *begun += 1;
                return Verdict::Accept;
            }
        }
        // Beyond the peer's budget, its address counts as that of an unknown host.
        let prefix = prefix(from);
        let same = self.same.get(&prefix).copied().unwrap_or_default();
        if self.unauthenticated >= MAX_RATE || same >= MAX_SAME_RATE {
            return Verdict::Ignore;
        }
        self.unauthenticated += 1;
        self.same.insert(prefix, same + 1);
        Verdict::Accept
    }
}

/// The incoming handshake to end before another one starts `from` an address where this many peers are
/// `expected`: the oldest from there if there are many, or the oldest from the address with the most if there
/// are many of unknown hosts.
pub(in crate::carrier) fn surplus<'a, K: Copy>(
    all: impl Iterator<Item = (K, &'a Standing)>,
    from: IpAddr,
    expected: usize,
) -> Option<K> {
    let half_open = all.filter(|(_, s)| !s.dialed && s.up.is_none());
    let half_open: Vec<_> = half_open.collect();
    let from = prefix(from);
    let same = half_open.iter().filter(|(_, s)| prefix(s.from) == from);
    if same.clone().count() >= MAX_SAME * expected.max(1) {
        return same.min_by_key(|(_, s)| s.started).map(|(k, _)| *k);
    }
    if expected > 0 {
        return None;
    }
    let unauthenticated = half_open.into_iter().filter(|(_, s)| !s.expected);
    oldest_of_most(unauthenticated, MAX_HALF_OPEN)
}

/// The oldest of the prefix with the most handshakes, if there are `most` or more in total.
pub(in crate::carrier) fn oldest_of_most<'a, K: Copy>(
    all: impl Iterator<Item = (K, &'a Standing)>,
    most: usize,
) -> Option<K> {
    let all: Vec<_> = all.collect();
    if all.len() < most {
        return None;
    }
    let mut counts = BTreeMap::<IpAddr, usize>::new();
    all.iter()
        .for_each(|(_, s)| *counts.entry(prefix(s.from)).or_default() += 1);
    let largest = counts.into_iter().max_by_key(|(_, n)| *n)?.0;
    let its = all.into_iter().filter(|(_, s)| prefix(s.from) == largest);
    its.min_by_key(|(_, s)| s.started).map(|(k, _)| k)
}

/// The random halves of the newest used tokens.
#[derive(Debug, Default)]
struct Used {
    order: VecDeque<[u8; 8]>,
    all: BTreeSet<[u8; 8]>,
}

impl Used {
    /// Adds one. Returns false if it is present.
    fn put(&mut self, token: &[u8; TOKEN_LEN]) -> bool {
        let Some(random) = token.first_chunk::<8>() else {
            return false;
        };
        if !self.all.insert(*random) {
            return false;
        }
        self.order.push_back(*random);
        if self.order.len() > MAX_USED
            && let Some(oldest) = self.order.pop_front()
        {
            self.all.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn unknown_hosts_share_a_rate_per_address_and_peers_have_their_own() {
        let now = Instant::now();
        let mut i = Incoming::new(now);
        assert_eq!(i.decide(at(1), false, 0, now), Verdict::Retry);
        let mut accepted = |from, expected, now| {
            let all = (0..1000).filter(|_| i.decide(from, true, expected, now) == Verdict::Accept);
            all.count()
        };
        assert_eq!(accepted(at(1), 0, now), 8, "one address");
        let many: usize = (2..200).map(|n| accepted(at(n), 0, now)).sum();
        assert_eq!(many, 42, "the rest of the total budget");
        assert_eq!(accepted(at(250), 1, now), 16, "a peer has its own budget");
        assert_eq!(accepted(at(251), 2, now), 32, "so have two");
        let later = now + Duration::from_secs(1);
        assert_eq!(accepted(at(251), 1, later), 24, "others there share a budget");
        let network = |n: u16| IpAddr::from([0xfd00, 0, 0, 1, 0, 0, 0, n]);
        let many: usize = (1..200).map(|n| accepted(network(n), 0, later)).sum();
        assert_eq!(many, 8, "an IPv6 network counts as one address");
    }

    #[test]
    fn an_admission_token_is_accepted_once() {
        let mut i = Incoming::new(Instant::now());
        let token = |n: usize| {
            let mut token = [7; TOKEN_LEN];
            token[..8].copy_from_slice(&n.to_le_bytes());
            token
        };
        assert!(i.is_fresh(&token(0)) && !i.is_fresh(&token(0)));
        assert!((1..MAX_USED).all(|n| i.is_fresh(&token(n))));
        assert!(!i.is_fresh(&token(0)), "it is still remembered");
        assert!(i.is_fresh(&token(MAX_USED)) && i.used.all.len() == MAX_USED);
    }

    #[test]
    fn a_surplus_handshake_ends_the_oldest_of_the_address_with_the_most() {
        let now = Instant::now();
        let begun = |from, ms, expected| {
            let at = now + Duration::from_millis(ms);
            Standing {
                expected,
                ..Standing::new(None, from, at)
            }
        };
        let ends = |all: &[Standing], from, expected| surplus(all.iter().enumerate(), from, expected);
        let few: Vec<_> = (0..3).map(|ms| begun(at(1), ms, false)).collect();
        assert_eq!(ends(&few, at(1), 0), None);
        let mut many = few.clone();
        many.push(begun(at(1), 9, false));
        assert_eq!(ends(&many, at(1), 0), Some(0), "the oldest from there");
        assert_eq!(ends(&many, at(1), 2), None, "two peers may be at the address");
        assert_eq!(ends(&many, at(2), 0), None, "somebody else");
        many.extend((10..69).map(|n| begun(at(n), 0, false)));
        many.push(begun(at(99), 0, true));
        assert_eq!(ends(&many, at(2), 0), None, "one of them is expected");
        many.push(begun(at(3), 0, false));
        assert_eq!(ends(&many, at(2), 0), Some(0), "of the address with the most");
        assert_eq!(ends(&many, at(2), 1), None, "a peer ends no unknown host's");
    }
}
