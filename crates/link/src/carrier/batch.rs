//! Many datagrams in one system call.
//!
//! Linux cuts one piece into datagrams of one size (`UDP_SEGMENT`, udp(7)), and gives datagrams of one sender that came
//! together as one piece (`UDP_GRO`). Over a wire the calls, not the bytes, are what a host is slowed by.

use super::source::{self, Origin};
use nix::libc::in6_pktinfo;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, setsockopt, sockopt};
use rustix::io::Errno;
use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

/// Bytes after which a batch should leave: half a millisecond of a gigabit.
pub(super) const BATCH: usize = 62_000;
/// The largest UDP payload over IPv4.
const MOST: usize = 65_507;
/// Linux cuts a piece into no more.
const SEGMENTS: usize = 64;

/// Datagrams that wait to leave together: to one address, marked alike, all of one length but the last, which may be
/// shorter.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    bytes: Vec<u8>,
    /// What has left of them.
    sent: usize,
    segment: usize,
    /// Whither, with which DSCP.
    to: Option<(SocketAddr, u8)>,
    /// This system, or this path, cannot cut them.
    one_by_one: bool,
}

impl Gathered {
    /// Whether so many bytes may go with them: one datagram, or several of `segment` bytes each, of which the last may be
    /// shorter.
    pub(super) fn takes(&self, to: SocketAddr, dscp: u8, len: usize, segment: usize) -> bool {
        let alike = segment == self.segment || len <= segment && len <= self.segment;
        self.to.is_none()
            || self.to == Some((to, dscp))
                && alike
                && self.bytes.len().is_multiple_of(self.segment)
                && self.bytes.len() + len <= MOST
                && (self.bytes.len() + len).div_ceil(self.segment) <= SEGMENTS
    }

    /// Adds what [`Gathered::takes`], of a byte at least.
    pub(super) fn put(&mut self, to: SocketAddr, dscp: u8, bytes: &[u8], segment: usize) {
        if self.to.is_none() {
            (self.to, self.segment) = (Some((to, dscp)), segment);
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The same, but what comes first is not copied: the caller gets another buffer for it.
    pub(super) fn put_all(&mut self, to: SocketAddr, dscp: u8, bytes: &mut Vec<u8>, segment: usize) {
        if self.to.is_none() {
            self.bytes.clear();
            std::mem::swap(&mut self.bytes, bytes);
            (self.to, self.segment) = (Some((to, dscp)), segment);
        } else {
            self.put(to, dscp, bytes, segment);
        }
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        (self.bytes.len() - self.sent).div_ceil(self.segment.max(1))
    }

    /// Whither they go, and their DSCP.
    pub(super) fn to(&self) -> Option<(SocketAddr, u8)> {
        self.to
    }

    /// Sends as many as one call may.
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
            // It may also be the address that does not exist any more.
            Err(Errno::INVAL) if origin.is_some() => Err(Errno::INVAL),
            // No offload here, or the path's MTU is below a segment: each by itself then, cut by IP where it must be.
            Err(Errno::IO | Errno::INVAL | Errno::MSGSIZE | Errno::OPNOTSUPP) if together => {
                tracing::debug!("batches are not cut here: datagrams go one by one");
                self.one_by_one = true;
                Ok(())
            }
            Err(e) => Err(e),
        }
    }

    /// Drops what one call would have sent.
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

/// A datagram that came, and its sender.
pub(super) type Datagram<'a> = (&'a [u8], Option<SocketAddr>);

/// Datagrams that came together.
#[derive(Debug)]
pub(super) struct Came {
    bytes: Vec<u8>,
    control: Vec<u8>,
    at: usize,
    end: usize,
    /// The length of each but the last.
    stride: usize,
    from: Option<SocketAddr>,
    /// To which of this host's addresses.
    to: Option<IpAddr>,
}

impl Came {
    /// Lets the system give datagrams together. One that cannot gives them one by one.
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

    /// Whether [`Came::receive`] is due.
    pub(super) fn is_empty(&self) -> bool {
        self.at >= self.end
    }

    /// The next datagram and its sender; `None` once [`Came::receive`] is due.
    pub(super) fn next(&mut self) -> Option<Datagram<'_>> {
        if self.is_empty() {
            return None;
        }
        let from = self.at;
        self.at = self.end.min(from + self.stride.max(1));
        Some((&self.bytes[from..self.at], self.from))
    }

    /// From where what was fetched came, and to which of this host's addresses, as far as the system tells.
    pub(super) fn between(&self) -> Option<(SocketAddr, IpAddr)> {
        self.from.zip(self.to)
    }

    /// Fetches what came.
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
        // Without its lengths a piece is nothing.
        let (mut stride, mut to) = (None, None);
        for told in got.cmsgs().map_err(|_| Errno::INVAL)? {
            match told {
                ControlMessageOwned::UdpGroSegments(n) => stride = usize::try_from(n).ok(),
                told => to = source::came_to(&told).or(to),
            }
        }
        self.to = to;
        self.end = got.bytes;
        self.stride = stride.unwrap_or(got.bytes);
        self.from = got.address.as_ref().and_then(standard);
        Ok(())
    }
}

/// As the standard library has it.
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
        assert!(!takes(&g, a, 0, 1401), "longer than the first");
        assert!(g.takes(a, 0, 4000, 1400), "several that are as long, and a rest");
        assert!(!g.takes(a, 0, 200, 100), "several that are shorter");
        g.put(a, 0, &[2; 1407], 1400);
        assert!(!takes(&g, a, 0, 7), "behind a short one nothing more");
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
