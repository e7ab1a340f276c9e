//! Limits the connections to a robot's port, by address.
//!
//! libzmq accepts every connection and waits 30 s for its handshake, so unauthenticated peers that stay silent would
//! take all descriptors of the process. Its monitor reports each connection by the number of its descriptor; a
//! connection above the limit is shut down through a duplicate of that descriptor.

use ::zmq::{Context, DONTWAIT, PAIR, Socket, SocketEvent};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, Resource, getpid, getrlimit, pidfd_getfd, pidfd_open};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Maximum connections at a time; fewer if three quarters of the process's descriptor limit are fewer. One address gets
/// at most half of them.
const MAX_CONNECTIONS: u64 = 16_384;
/// After this time a connection has finished its handshake, by libzmq's own limit.
const HANDSHAKE: Duration = Duration::from_secs(30);
/// Maximum events that wait for the robot's thread: libzmq blocks if there are more.
const EVENTS: i32 = 100_000;

pub(super) struct Doors {
    pub(super) monitor: Socket,
    own: OwnedFd,
    table: Table,
}

impl Doors {
    /// To be called before the router is bound. `None` if connections cannot be distinguished (Linux before 5.6, or a
    /// container that forbids it).
    pub(super) fn open(context: &Context, router: &Socket) -> ::zmq::Result<Option<Self>> {
        let own = pidfd_open(getpid(), PidfdFlags::empty()).and_then(|own| {
            // A container may permit only one of the two calls.
            pidfd_getfd(&own, own.as_raw_fd(), PidfdGetfdFlags::empty())?;
            Ok(own)
        });
        let own = match own {
            Ok(own) => own,
            Err(error) => {
                tracing::warn!(
                    "connections of unauthenticated peers are not limited, because pidfd_getfd failed ({error}): it needs Linux 5.6, and \
                     in a container a seccomp profile that permits it"
                );
                return Ok(None);
            }
        };
        let events = [
            SocketEvent::ACCEPTED,
            SocketEvent::DISCONNECTED,
            SocketEvent::CLOSED,
        ];
        let events = events
            .into_iter()
            .fold(0, |all, event| all | i32::from(event.to_raw()));
        let at = "inproc://doors";
        router.monitor(at, events)?;
        let monitor = context.socket(PAIR)?;
        monitor.set_linger(0)?;
        monitor.set_rcvhwm(EVENTS)?;
        monitor.connect(at)?;
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let most = (descriptors / 4 * 3).min(MAX_CONNECTIONS);
        Ok(Some(Doors {
            monitor,
            own,
            table: Table::new(most as usize),
        }))
    }

    /// Processes connections that opened and closed.
    pub(super) fn turn(&mut self, displaced: &AtomicU64) {
        while let Ok(event) = self.monitor.recv_bytes(DONTWAIT) {
            while self.monitor.get_rcvmore() == Ok(true) {
                if self.monitor.recv_bytes(DONTWAIT).is_err() {
                    break;
                }
            }
            let (Some(kind), Some(number)) = (event.first_chunk(), event.last_chunk()) else {
                continue;
            };
            let number = RawFd::from_ne_bytes(*number);
            self.table.gone(number);
            if u16::from_ne_bytes(*kind) == SocketEvent::ACCEPTED.to_raw() {
                self.came(number, displaced);
            }
        }
    }

    fn came(&mut self, number: RawFd, displaced: &AtomicU64) {
        let Some((_, from)) = self.copy(number) else {
            return;
        };
        let Some((number, from)) = self.table.came(number, from, Instant::now()) else {
            return;
        };
        // The descriptor may belong to another connection by now.
        let Some((stream, _)) = self.copy(number).filter(|(_, now)| *now == from) else {
            return;
        };
        let _ = stream.shutdown(Shutdown::Both);
        let count = displaced.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_power_of_two() {
            tracing::warn!(address = %from.ip(), count, "closed connections of an address that has too many");
        }
    }

    /// Returns a duplicate of a connection's descriptor, with the peer's address; `None` if it is closed, or not a TCP
    /// connection.
    fn copy(&self, number: RawFd) -> Option<(TcpStream, SocketAddr)> {
        let stream = TcpStream::from(pidfd_getfd(&self.own, number, PidfdGetfdFlags::empty()).ok()?);
        let from = stream.peer_addr().ok()?;
        Some((stream, from))
    }
}

/// The open connections.
struct Table {
    most: usize,
    all: BTreeMap<RawFd, (SocketAddr, Instant)>,
    of: BTreeMap<IpAddr, usize>,
}

impl Table {
    fn new(most: usize) -> Self {
        Table {
            most,
            all: BTreeMap::new(),
            of: BTreeMap::new(),
        }
    }

    /// Adds a connection. Returns the connection to close for it: the oldest of its own address that may still be in
    /// its handshake, if that address has more than half; or of the address that has the most, if there are too many in
    /// total.
    fn came(&mut self, number: RawFd, from: SocketAddr, now: Instant) -> Option<(RawFd, SocketAddr)> {
        self.all.insert(number, (from, now));
        *self.of.entry(network(from.ip())).or_default() += 1;
        let own = network(from.ip());
        let busiest = if self.of.get(&own).is_some_and(|n| *n > self.most / 2) {
            own
        } else if self.all.len() > self.most {
            *self.of.iter().max_by_key(|(_, n)| **n)?.0
        } else {
            return None;
        };
        let alike = self.all.iter().filter(|(_, (a, _))| network(a.ip()) == busiest);
        let young = alike.filter(|(_, (_, since))| now.duration_since(*since) < HANDSHAKE);
        let oldest = young.min_by_key(|(_, (_, since))| *since)?;
        let leaves = (*oldest.0, oldest.1.0);
        self.gone(leaves.0);
        Some(leaves)
    }

    fn gone(&mut self, number: RawFd) {
        let Some((from, _)) = self.all.remove(&number) else {
            return;
        };
        let of = network(from.ip());
        if let Some(n) = self.of.get_mut(&of) {
            *n -= 1;
            if *n == 0 {
                self.of.remove(&of);
            }
        }
    }
}

/// Returns an IPv4 address, or an IPv6 network of 64 bits, all of which one host may use.
fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) if !ip.is_loopback() => Ipv6Addr::from(u128::from(ip) & !u128::from(u64::MAX)).into(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: u8, port: u16) -> SocketAddr {
        ([10, 0, 0, host], port).into()
    }

    #[test]
    fn unknown_hosts_of_one_address_leave_half_of_the_places_and_authenticated_ones_stay() {
        let mut table = Table::new(100);
        let start = Instant::now();
        let mut number = 0;
        let mut come = |table: &mut Table, host, now| {
            number += 1;
            table
                .came(number, at(host, number as u16), now)
                .map(|(gone, _)| gone)
        };
        // A controller of the same address, much earlier.
        assert_eq!(come(&mut table, 1, start), None);
        let later = start + HANDSHAKE;
        for _ in 0..49 {
            assert_eq!(come(&mut table, 1, later), None);
        }
        assert_eq!(
            come(&mut table, 1, later),
            Some(2),
            "the oldest unauthenticated peer"
        );
        assert_eq!(come(&mut table, 1, later), Some(3));
        // Other addresses find room.
        for host in 2..52 {
            assert_eq!(come(&mut table, host, later), None);
        }
        assert_eq!(table.all.len(), 100);
        assert_eq!(
            come(&mut table, 99, later),
            Some(4),
            "of the address that has the most"
        );
        assert!(table.all.contains_key(&1));
        let numbers: Vec<RawFd> = table.all.keys().copied().collect();
        numbers.into_iter().for_each(|n| table.gone(n));
        assert!(table.of.is_empty());
    }
}
