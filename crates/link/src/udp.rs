//! The UDP carrier: plain datagrams for closed networks and for comparison.
//!
//! There is no encryption and no proof of who sent a datagram beyond its source address, so
//! [`crate::Config`] wants the user's word before it binds anything but loopback.

use crate::carrier::{Carrier, CarrierError, PeerIndex, Received, Sent};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Ethernet's 1500 bytes less IPv4 and UDP.
const MAX_DATAGRAM: usize = 1472;
/// IPv4 and UDP headers.
const OVERHEAD: usize = 28;

/// Plain UDP between fixed addresses.
#[derive(Debug)]
pub struct UdpCarrier {
    socket: OwnedFd,
    local: SocketAddr,
    peers: Vec<SocketAddr>,
    dscp: Option<u8>,
    ready: bool,
    refused: u64,
}

impl UdpCarrier {
    /// Binds `local` and exchanges datagrams with `peers`; port 0 takes a free one ([`UdpCarrier::local`]).
    ///
    /// # Errors
    /// [`CarrierError::Bind`] if the address is not this host's or is taken.
    pub fn bind(local: SocketAddr, peers: Vec<SocketAddr>) -> Result<Self, CarrierError> {
        let bind = |source: Errno| CarrierError::Bind {
            address: local,
            source: source.into(),
        };
        let family = if local.is_ipv4() {
            AddressFamily::INET
        } else {
            AddressFamily::INET6
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = net::socket_with(family, SocketType::DGRAM, flags, None).map_err(bind)?;
        // The kernel's minimum: the queue that priorities cannot reach is to be one datagram long.
        sockopt::set_socket_send_buffer_size(&socket, 1).map_err(bind)?;
        // Enough that a late reader loses nothing to a burst at radio rates.
        sockopt::set_socket_recv_buffer_size(&socket, 1 << 20).map_err(bind)?;
        net::bind(&socket, &local).map_err(bind)?;
        let local = net::getsockname(&socket)
            .map_err(bind)?
            .try_into()
            .map_err(bind)?;
        Ok(UdpCarrier {
            socket,
            local,
            peers,
            dscp: None,
            ready: true,
            refused: 0,
        })
    }

    /// The bound address.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    fn mark(&mut self, priority: u8) {
        let dscp = dscp(priority);
        if self.dscp != Some(dscp) {
            let done = if self.local.is_ipv4() {
                sockopt::set_ip_tos(&self.socket, dscp << 2)
            } else {
                sockopt::set_ipv6_tclass(&self.socket, u32::from(dscp) << 2)
            };
            // A mark is a wish to the network; a host that cannot make it still sends.
            self.dscp = done.is_ok().then_some(dscp);
        }
    }
}

impl Carrier for UdpCarrier {
    fn max_datagram(&self) -> usize {
        MAX_DATAGRAM
    }

    fn overhead(&self) -> usize {
        OVERHEAD
    }

    fn ready(&mut self) -> bool {
        if !self.ready {
            let mut fds = [rustix::event::PollFd::new(
                &self.socket,
                rustix::event::PollFlags::OUT,
            )];
            let now = rustix::event::Timespec::default();
            self.ready = matches!(rustix::event::poll(&mut fds, Some(&now)), Ok(n) if n > 0);
        }
        self.ready
    }

    fn send(&mut self, peer: PeerIndex, priority: u8, datagram: &[u8]) -> Result<Sent, CarrierError> {
        let Some(address) = self.peers.get(peer).copied() else {
            return Ok(Sent::Lost);
        };
        self.mark(priority);
        match net::sendto(&self.socket, datagram, SendFlags::NOSIGNAL, &address) {
            Ok(_) => Ok(Sent::Taken),
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => {
                self.ready = false;
                Ok(Sent::NotReady)
            }
            Err(e) if passes(e) => Ok(Sent::Lost),
            Err(e) => Err(CarrierError::Socket {
                doing: "sending",
                source: e.into(),
            }),
        }
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<Received>, CarrierError> {
        // Bounded, so that a flood of strangers cannot keep the caller here.
        for _ in 0..64 {
            match net::recvfrom(&self.socket, &mut *buffer, RecvFlags::TRUNC) {
                Ok((_, len, from)) => {
                    let from = from.and_then(|a| SocketAddr::try_from(a).ok());
                    match from.and_then(|a| self.peers.iter().position(|p| *p == a)) {
                        Some(peer) if len <= buffer.len() => return Ok(Some(Received { peer, len })),
                        _ => self.refused = self.refused.saturating_add(1),
                    }
                }
                Err(Errno::AGAIN) => return Ok(None),
                Err(e) if passes(e) || e == Errno::INTR => {}
                Err(e) => {
                    return Err(CarrierError::Socket {
                        doing: "receiving",
                        source: e.into(),
                    });
                }
            }
        }
        Ok(None)
    }

    fn readable(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn writable(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn refused(&self) -> u64 {
        self.refused
    }
}

/// Faults of the path that may pass: the radio is down, the peer's port is closed, the route is gone.
fn passes(e: Errno) -> bool {
    matches!(
        e,
        Errno::CONNREFUSED
            | Errno::HOSTUNREACH
            | Errno::NETUNREACH
            | Errno::NETDOWN
            | Errno::HOSTDOWN
            | Errno::MSGSIZE
            | Errno::PERM
            | Errno::ADDRNOTAVAIL
            | Errno::NODEV
    )
}

/// The DSCP of a priority: expedited forwarding for the highest quarter, then AF41, best effort, and
/// lower effort (RFC 4594, RFC 8622). Wi-Fi maps them onto its four access categories (RFC 8325).
fn dscp(priority: u8) -> u8 {
    match priority {
        96..=u8::MAX => 46,
        64..=95 => 34,
        32..=63 => 0,
        0..=31 => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    fn wait_readable(c: &UdpCarrier) {
        let mut fds = [rustix::event::PollFd::new(
            &c.socket,
            rustix::event::PollFlags::IN,
        )];
        let limit = rustix::event::Timespec {
            tv_sec: 10,
            tv_nsec: 0,
        };
        assert_eq!(rustix::event::poll(&mut fds, Some(&limit)), Ok(1), "nothing came");
    }

    #[test]
    fn exchanges_datagrams_with_its_peers_only() {
        let any: SocketAddr = "127.0.0.1:0".parse().expect("address");
        let friend = UdpSocket::bind(any).expect("binds");
        let stranger = UdpSocket::bind(any).expect("binds");
        let peers = vec![friend.local_addr().expect("address")];
        let mut carrier = UdpCarrier::bind(any, peers).expect("binds");

        stranger.send_to(b"let me in", carrier.local()).expect("sends");
        friend.send_to(&[7; 2000], carrier.local()).expect("sends");
        friend.send_to(b"hello", carrier.local()).expect("sends");
        let mut buffer = [0; MAX_DATAGRAM];
        wait_readable(&carrier);
        let got = carrier
            .receive(&mut buffer)
            .expect("goes on")
            .expect("a datagram");
        assert_eq!((got, &buffer[..5]), (Received { peer: 0, len: 5 }, &b"hello"[..]));
        assert_eq!(carrier.receive(&mut buffer).expect("goes on"), None);
        assert_eq!(carrier.refused(), 2);

        assert!(carrier.ready());
        assert_eq!(carrier.send(0, 100, b"welcome").expect("goes on"), Sent::Taken);
        let n = friend.recv(&mut buffer).expect("receives");
        assert_eq!(&buffer[..n], b"welcome");
        assert_eq!(carrier.send(1, 100, b"nobody").expect("goes on"), Sent::Lost);
    }

    #[test]
    fn a_taken_port_is_an_error_that_names_it() {
        let first = UdpCarrier::bind("127.0.0.1:0".parse().expect("address"), vec![]).expect("binds");
        let error = UdpCarrier::bind(first.local(), vec![]).expect_err("is taken");
        assert!(error.to_string().contains(&first.local().to_string()), "{error}");
    }

    #[test]
    fn a_peer_that_is_gone_stops_nothing() {
        let any: SocketAddr = "127.0.0.1:0".parse().expect("address");
        let gone = UdpSocket::bind(any)
            .expect("binds")
            .local_addr()
            .expect("address");
        let mut carrier = UdpCarrier::bind(any, vec![gone]).expect("binds");
        for _ in 0..10 {
            assert!(carrier.send(0, 0, b"anyone there?").is_ok());
        }
        assert_eq!(carrier.receive(&mut [0; 64]).expect("goes on"), None);
    }
}
