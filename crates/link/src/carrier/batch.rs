//! Sends and receives many datagrams in one system call.
//!
//! Linux splits one buffer into datagrams of one size (`UDP_SEGMENT`, udp(7)), and returns datagrams that
//! arrived together from one sender as one buffer (`UDP_GRO`). On a wire, a host's speed depends on the
//! number of calls, not of bytes (decision 359).

use super::source::{self, Origin};
use nix::libc::in6_pktinfo;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, setsockopt, sockopt};
use rustix::io::Errno;
use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

/// Size in bytes at which a batch should leave: half a millisecond at 1 Gbit/s.
pub(super) const BATCH: usize = 62_000;
/// The largest UDP payload over IPv4.
const MOST: usize = 65_507;
/// Most datagrams into which Linux splits a buffer.
const SEGMENTS: usize = 64;

/// Datagrams that wait to leave together: to one address, with one DSCP, all of one length except the last,
/// which may be shorter.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    bytes: Vec<u8>,
    /// Bytes that have left.
    sent: usize,
    segment: usize,
    /// Destination and DSCP.
    to: Option<(SocketAddr, u8)>,
    /// The system, or this path, does not support splitting.
    one_by_one: bool,
}

impl Gathered {
    /// Returns whether this many bytes fit the batch: one datagram, or several of `segment` bytes each, of
    /// which the last may be shorter.
    pub(super) fn takes(&self, to: SocketAddr, dscp: u8, len: usize, segment: usize) -> bool {
        let alike = segment == self.segment || len <= segment && len <= self.segment;
        self.to.is_none()
            || self.to == Some((to, dscp))
                && alike
                && self.bytes.len().is_multiple_of(self.segment)
                && self.bytes.len() + len <= MOST
                && (self.bytes.len() + len).div_ceil(self.segment) <= SEGMENTS
    }

    /// Adds datagrams for which [`Gathered::takes`] returns true, of at least one byte.
    pub(super) fn put(&mut self, to: SocketAddr, dscp: u8, bytes: &[u8], segment: usize) {
        if self.to.is_none() {
            (self.to, self.segment) = (Some((to, dscp)), segment);
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The same, but swaps buffers instead of copying if the batch is empty.
    pub(super) fn put_all(&mut self, to: SocketAddr, dscp: u8, bytes: &mut Vec<u8>, segment: usize) {
        if self.to.is_none() {
            self.bytes.clear();
            std::mem::swap(&mut self.bytes, bytes);
            (self.to, self.segment) = (Some((to, dscp)), segment);
        } else {
            self.put(to, dscp, bytes, segment);
        }
    }

    /// Number of waiting datagrams.
    pub(super) fn len(&self) -> usize {
        (self.bytes.len() - self.sent).div_ceil(self.segment.max(1))
    }

    /// Their destination and DSCP.
    pub(super) fn to(&self) -> Option<(SocketAddr, u8)> {
        self.to
    }

    /// Sends as many as one call can.
    pub(super) fn send(&mut self, socket: &OwnedFd, origin: Option<&Origin>) -> Result<(), Errno> {
        let Some((to, _)) = self.to else { return Ok(()) };
        let rest = &self.bytes[self.sent..];
        let together = !self.one_by_one && rest.len() > self.segment;
        let piece = if together {
            rest
        } else {
            &rest[..self.segment.min(rest.len())]
        };
        let segment = self.segment as u16;
        let cut = ControlMessage::UdpGsoSegments(&segment);
        let both = [cut, origin.map_or(cut, Origin::message)];
        let control = &both[usize::from(!together)..1 + usize::from(origin.is_some())];
        let to = SockaddrStorage::from(to);
        let piece = [IoSlice::new(piece)];
        let done = nix::sys::socket::sendmsg(
            socket.as_raw_fd(),
            &piece,
            control,
            MsgFlags::MSG_NOSIGNAL,
            Some(&to),
        );
        let len = piece[0].len();
        match done.map_err(same) {
            Ok(_) => {
                self.passed(len);
                Ok(())
            }
            // The error may also mean that the source address no longer exists.
            Err(Errno::INVAL) if origin.is_some() => Err(Errno::INVAL),
            // No offload here, or the path's MTU is smaller than a segment: send each datagram by itself, and
            // let IP fragment it if necessary.
            Err(Errno::IO | Errno::INVAL | Errno::MSGSIZE | Errno::OPNOTSUPP) if together => {
                tracing::debug!("batches are not supported here: sending datagrams one by one");
                self.one_by_one = true;
                Ok(())
            }
            Err(e) => Err(e),
        }
    }

    /// Drops the datagrams that one call would have sent.
    pub(super) fn lose(&mut self) {
        let rest = self.bytes.len() - self.sent;
        self.passed(if self.one_by_one {
            self.segment.min(rest)
        } else {
            rest
        });
    }

    fn passed(&mut self, len: usize) {
        self.sent += len;
        if self.sent >= self.bytes.len() {
            self.bytes.clear();
            (self.sent, self.to) = (0, None);
        }
    }
}

/// A received datagram and its sender.
pub(super) type Datagram<'a> = (&'a [u8], Option<SocketAddr>);

/// Datagrams received together.
#[derive(Debug)]
pub(super) struct Came {
    bytes: Vec<u8>,
    control: Vec<u8>,
    at: usize,
    end: usize,
    /// The length of each datagram but the last.
    stride: usize,
    from: Option<SocketAddr>,
    /// The local destination address.
    to: Option<IpAddr>,
}

impl Came {
    /// Enables joint reception. A system without support returns datagrams one by one.
    pub(super) fn new(socket: &OwnedFd) -> Self {
        let _ = setsockopt(socket, sockopt::UdpGroSegment, &true);
        Came {
            bytes: vec![0; 1 << 16],
            control: nix::cmsg_space!(std::ffi::c_int, in6_pktinfo),
            at: 0,
            end: 0,
            stride: 0,
            from: None,
            to: None,
        }
    }

    /// Returns whether [`Came::receive`] is due.
    pub(super) fn is_empty(&self) -> bool {
        self.at >= self.end
    }

    /// The next datagram and its sender, or `None` once [`Came::receive`] is due.
    pub(super) fn next(&mut self) -> Option<Datagram<'_>> {
        if self.is_empty() {
            return None;
        }
        let from = self.at;
        self.at = self.end.min(from + self.stride.max(1));
        Some((&self.bytes[from..self.at], self.from))
    }

    /// Source and local destination of the received datagrams, as far as the system reports them.
    pub(super) fn between(&self) -> Option<(SocketAddr, IpAddr)> {
        self.from.zip(self.to)
    }

    /// Receives datagrams from the socket.
    pub(super) fn receive(&mut self, socket: &OwnedFd) -> Result<(), Errno> {
        (self.at, self.end) = (0, 0);
        let mut into = [IoSliceMut::new(&mut self.bytes)];
        let got = nix::sys::socket::recvmsg::<SockaddrStorage>(
            socket.as_raw_fd(),
            &mut into,
            Some(&mut self.control),
            MsgFlags::empty(),
        );
        let got = got.map_err(same)?;
        // Without the segment length, the buffer is useless.
        let (mut stride, mut to) = (None, None);
        for control in got.cmsgs().map_err(|_| Errno::INVAL)? {
            match control {
                ControlMessageOwned::UdpGroSegments(n) => stride = usize::try_from(n).ok(),
                control => to = source::came_to(&control).or(to),
            }
        }
        self.to = to;
        self.end = got.bytes;
        self.stride = stride.unwrap_or(got.bytes);
        self.from = got.address.as_ref().and_then(standard);
        Ok(())
    }
}

/// The address as in the standard library.
pub(super) fn standard(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|a| SocketAddr::V4((*a).into()));
    v4.or_else(|| address.as_sockaddr_in6().map(|a| SocketAddr::V6((*a).into())))
}

pub(super) fn same(e: nix::errno::Errno) -> Errno {
    Errno::from_raw_os_error(e as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn only_what_one_call_can_cut_goes_together() {
        let (a, b) = (address(1), address(2));
        let mut g = Gathered::default();
        let takes = |g: &Gathered, to, dscp, len| g.takes(to, dscp, len, len);
        assert!(takes(&g, a, 0, 1400));
        g.put(a, 0, &[1; 1400], 1400);
        assert!(takes(&g, a, 0, 1400) && takes(&g, a, 0, 7));
        assert!(!takes(&g, b, 0, 7), "another address");
        assert!(!takes(&g, a, 46, 7), "another mark");
        assert!(!takes(&g, a, 0, 1401), "longer than the first one");
        assert!(g.takes(a, 0, 4000, 1400), "several that are as long, and a rest");
        assert!(!g.takes(a, 0, 200, 100), "several shorter ones");
        g.put(a, 0, &[2; 1407], 1400);
        assert!(!takes(&g, a, 0, 7), "nothing follows a short one");
        assert_eq!(g.len(), 3);
        for together in [1, 7] {
            let mut many = Gathered::default();
            while many.takes(a, 0, together * 100, 100) {
                many.put(a, 0, &vec![0; together * 100], 100);
            }
            assert_eq!(many.len(), SEGMENTS / together * together);
            let mut large = Gathered::default();
            while large.takes(a, 0, together * 1472, 1472) {
                large.put(a, 0, &vec![0; together * 1472], 1472);
            }
            assert_eq!(large.len(), MOST / 1472 / together * together);
        }
    }

    #[test]
    fn a_batch_comes_as_its_datagrams_cut_by_the_system_or_not() {
        let receiver = UdpSocket::bind(address(0)).expect("binds");
        let sender = UdpSocket::bind(address(0)).expect("binds");
        receiver
            .set_read_timeout(Some(Duration::from_secs(20)))
            .expect("is set");
        let (to, from) = (
            receiver.local_addr().expect("bound"),
            sender.local_addr().expect("bound"),
        );
        let (receiver, sender) = (OwnedFd::from(receiver), OwnedFd::from(sender));
        let mut came = Came::new(&receiver);
        for one_by_one in [false, true] {
            let mut g = Gathered {
                one_by_one,
                ..Gathered::default()
            };
            let lens = [1000; 9].into_iter().chain([333]);
            let sent: Vec<Vec<u8>> = lens.enumerate().map(|(i, n)| vec![i as u8; n]).collect();
            sent.iter().for_each(|d| g.put(to, 0, d, 1000));
            while g.len() > 0 {
                g.send(&sender, None).expect("sends");
            }
            for datagram in &sent {
                let got = loop {
                    match came.next() {
                        Some((bytes, sender)) => break (bytes.to_vec(), sender),
                        None => came.receive(&receiver).expect("receives in time"),
                    }
                };
                assert_eq!(got, (datagram.clone(), Some(from)));
            }
        }
    }
}
