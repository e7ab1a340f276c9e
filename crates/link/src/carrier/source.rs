//! Chooses the local address from which datagrams leave.
//!
//! For a socket bound to all addresses, the system chooses the source address by its routes. That may differ
//! from the address to which a peer sends; a QUIC client does not accept packets from there (RFC 9000,
//! section 9), nor does a firewall. A peer is therefore answered from the address at which its datagrams
//! arrive, but only for a while: an address without arrivals may belong to an uplink that is gone.

use nix::libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo};
use nix::sys::socket::{ControlMessage, ControlMessageOwned};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

/// How long an address stays valid after an arrival: two keep-alive intervals of a peer.
const FRESH: Duration = Duration::from_millis(500);
/// Most senders that are remembered.
const MOST: usize = 256;

#[derive(Debug)]
struct Heard {
    from: SocketAddr,
    at: IpAddr,
    last: Instant,
}

/// The local address at which each sender's datagrams arrive.
#[derive(Debug, Default)]
pub(super) struct Sources(Vec<Heard>);

impl Sources {
    /// Notes a datagram from `from` to the address `at`. A forged one changes nothing while the known address
    /// is fresh.
    pub(super) fn heard(&mut self, from: SocketAddr, at: IpAddr, now: Instant) {
        let is_fresh = |h: &Heard| now.saturating_duration_since(h.last) < FRESH;
        if let Some(known) = self.0.iter_mut().find(|h| h.from == from) {
            if known.at == at || !is_fresh(known) {
                (known.at, known.last) = (at, now);
            }
            return;
        }
        if self.0.len() >= MOST {
            let oldest = (0..self.0.len()).min_by_key(|i| self.0[*i].last);
            self.0.swap_remove(oldest.unwrap_or(0));
        }
        self.0.push(Heard { from, at, last: now });
    }

    /// The source address for an answer; `None` to let the system choose.
    pub(super) fn of(&self, to: SocketAddr, now: Instant) -> Option<IpAddr> {
        let known = self.0.iter().find(|h| h.from == to)?;
        (now.saturating_duration_since(known.last) < FRESH).then_some(known.at)
    }

    /// Forgets the address for `to`, since nothing can leave from it.
    pub(super) fn forget(&mut self, to: SocketAddr) {
        self.0.retain(|h| h.from != to);
    }
}

/// Tells the system the source address of a datagram.
#[derive(Debug)]
pub(super) enum Origin {
    V4(in_pktinfo),
    V6(in6_pktinfo),
}

impl Origin {
    /// The source address `at` for a datagram to `to`.
    pub(super) fn new(at: IpAddr, to: SocketAddr) -> Self {
        match at {
            IpAddr::V4(at) => Origin::V4(in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: in_addr {
                    s_addr: u32::from_ne_bytes(at.octets()),
                },
                ipi_addr: in_addr { s_addr: 0 },
            }),
            IpAddr::V6(at) => Origin::V6(in6_pktinfo {
                ipi6_addr: in6_addr { s6_addr: at.octets() },
                ipi6_ifindex: match to {
                    SocketAddr::V6(to) => to.scope_id(),
                    SocketAddr::V4(_) => 0,
                },
            }),
        }
    }

    pub(super) fn message(&self) -> ControlMessage<'_> {
        match self {
            Origin::V4(info) => ControlMessage::Ipv4PacketInfo(info),
            Origin::V6(info) => ControlMessage::Ipv6PacketInfo(info),
        }
    }
}

/// The destination address of a received datagram, if the system reports it.
pub(super) fn came_to(control: &ControlMessageOwned) -> Option<IpAddr> {
    match control {
        ControlMessageOwned::Ipv4PacketInfo(info) => {
            Some(Ipv4Addr::from(info.ipi_spec_dst.s_addr.to_ne_bytes()).into())
        }
        ControlMessageOwned::Ipv6PacketInfo(info) => Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_answered_from_where_it_was_heard_while_that_is_fresh() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let peer = SocketAddr::from(([10, 0, 0, 1], 7400));
        let (one, other) = (IpAddr::from([10, 0, 0, 2]), IpAddr::from([10, 1, 0, 2]));
        let mut sources = Sources::default();
        assert_eq!(sources.of(peer, at(0)), None);
        sources.heard(peer, one, at(0));
        sources.heard(peer, other, at(499));
        assert_eq!(
            sources.of(peer, at(499)),
            Some(one),
            "another one while it is fresh"
        );
        assert_eq!(
            sources.of(peer, at(500)),
            None,
            "no arrival there for half a second"
        );
        sources.heard(peer, other, at(501));
        assert_eq!(sources.of(peer, at(502)), Some(other));
        sources.forget(peer);
        assert_eq!(sources.of(peer, at(502)), None);
    }

    #[test]
    fn senders_without_end_take_no_memory() {
        let now = Instant::now();
        let mut sources = Sources::default();
        for i in 0..10_000u32 {
            let from = SocketAddr::from((Ipv4Addr::from(i), 1));
            sources.heard(
                from,
                IpAddr::from([10, 0, 0, 2]),
                now + Duration::from_micros(i.into()),
            );
        }
        assert_eq!(sources.0.len(), MOST);
        let last = SocketAddr::from((Ipv4Addr::from(9_999), 1));
        assert!(sources.of(last, now + Duration::from_millis(11)).is_some());
    }
}
