//! The UDP carrier: plain datagrams, for closed networks and for comparison.
//!
//! It has no encryption and, apart from the source address, no authentication. [`crate::Config`] therefore
//! requires the user's consent before it binds anything but loopback.

use super::socket::{Given, MAX_PAYLOAD, Socket};
use super::{Carrier, CarrierError, PeerIndex, Received, Sent};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// Plain UDP between fixed addresses.
#[derive(Debug)]
pub struct UdpCarrier {
    socket: Socket,
    peers: Vec<SocketAddr>,
    /// Size of the largest datagram.
    most: usize,
    refused: u64,
}

impl UdpCarrier {
    /// Binds `local` and exchanges datagrams with `peers`. Port 0 selects a free port
    /// ([`UdpCarrier::local`]).
    ///
    /// # Errors
    /// [`CarrierError::Bind`] if the address is not this host's or is in use.
    pub fn bind(local: SocketAddr, peers: Vec<SocketAddr>) -> Result<Self, CarrierError> {
        Ok(UdpCarrier {
            socket: Socket::bind(local)?,
            peers,
            most: MAX_PAYLOAD,
            refused: 0,
        })
    }

    /// The same over a wire: datagrams are sent in batches.
    ///
    /// # Errors
    /// As [`UdpCarrier::bind`].
    pub fn bind_to_wire(local: SocketAddr, peers: Vec<SocketAddr>) -> Result<Self, CarrierError> {
        Ok(UdpCarrier {
            socket: Socket::bind_to_wire(local)?,
            peers,
            most: MAX_PAYLOAD,
            refused: 0,
        })
    }

    /// Limits IP packets to `mtu` bytes. Without it, or if the path takes less, IP fragments them.
    #[must_use]
    pub fn with_mtu(mut self, mtu: Option<u16>) -> Self {
        self.socket.set_whole(false);
        if let Some(mtu) = mtu {
            self.most = usize::from(mtu)
                .saturating_sub(self.socket.headers())
                .min(MAX_PAYLOAD);
        }
        self
    }

    /// The bound address.
    pub fn local(&self) -> SocketAddr {
        self.socket.local()
    }
}

impl Carrier for UdpCarrier {
    fn max_datagram(&self) -> usize {
        self.most
    }

    fn overhead(&self) -> usize {
        self.socket.headers()
    }

    fn holds(&self) -> usize {
        self.socket.holds()
    }

    fn ready(&mut self) -> bool {
        self.socket.ready()
    }

    fn send(&mut self, peer: PeerIndex, priority: u8, datagram: &[u8]) -> Result<Sent, CarrierError> {
        let Some(address) = self.peers.get(peer).copied() else {
            return Ok(Sent::Lost);
        };
        if datagram.len() > self.most {
            return Ok(Sent::Lost);
        }
        Ok(match self.socket.send(address, priority, datagram)? {
            Given::Taken => Sent::Taken,
            Given::Full => Sent::NotReady,
            Given::Lost | Given::TooLong => Sent::Lost,
        })
    }

    fn receive<'a>(&'a mut self, buffer: &'a mut [u8]) -> Result<Option<Received<'a>>, CarrierError> {
        // Bounded, so that a flood of foreign datagrams cannot keep the caller here.
        for _ in 0..64 {
            let Some((len, from)) = self.socket.receive(buffer)? else {
                return Ok(None);
            };
            match from.and_then(|a| self.peers.iter().position(|p| *p == a)) {
                Some(peer) if len <= buffer.len() => {
                    let datagram = &buffer[..len];
                    return Ok(Some(Received { peer, datagram }));
                }
                _ => self.refused = self.refused.saturating_add(1),
            }
        }
        Ok(None)
    }

    fn readable(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn writable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn refused(&self) -> u64 {
        self.refused
    }

    fn batch(&self) -> Option<usize> {
        self.socket.batch()
    }

    fn flush(&mut self) -> Result<(), CarrierError> {
        self.socket.flush().map(drop)
    }

    fn held(&self) -> usize {
        self.socket.gathered()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::conformance::{Rig, conformance};
    use std::net::UdpSocket;

    conformance!(conforms, Pair<false>);
    conformance!(conforms_on_a_wire, Pair<true>);

    /// Two carriers that know each other's addresses.
    struct Pair<const WIRE: bool> {
        carriers: Vec<UdpCarrier>,
    }

    fn free() -> SocketAddr {
        let any: SocketAddr = "127.0.0.1:0".parse().expect("address");
        UdpSocket::bind(any).and_then(|s| s.local_addr()).expect("a port")
    }

    fn open<const WIRE: bool>(own: SocketAddr, peer: SocketAddr) -> UdpCarrier {
        let carrier = match WIRE {
            true => UdpCarrier::bind_to_wire(own, vec![peer]),
            false => UdpCarrier::bind(own, vec![peer]),
        };
        carrier.expect("binds")
    }

    impl<const WIRE: bool> Rig for Pair<WIRE> {
        type Carrier = UdpCarrier;

        fn new() -> Self {
            let (a, b) = (free(), free());
            let carriers = [(a, b), (b, a)].map(|(own, peer)| open::<WIRE>(own, peer));
            Pair {
                carriers: carriers.into(),
            }
        }

        fn carrier(&mut self, which: usize) -> &mut UdpCarrier {
            &mut self.carriers[which]
        }

        fn restart(&mut self) {
            let peer = self.carriers[0].local();
            let own = self.carriers.pop().expect("a carrier").local();
            self.carriers.push(open::<WIRE>(own, peer));
        }

        fn intrude(&mut self, bytes: &[u8]) {
            let attacker = UdpSocket::bind(free()).expect("binds");
            attacker.send_to(bytes, self.carriers[0].local()).expect("sends");
        }
    }

    #[test]
    fn a_taken_port_is_an_error_that_names_it() {
        let first = UdpCarrier::bind("127.0.0.1:0".parse().expect("address"), vec![]).expect("binds");
        let error = UdpCarrier::bind(first.local(), vec![]).expect_err("is taken");
        assert!(error.to_string().contains(&first.local().to_string()), "{error}");
    }
}
