//! A UDP socket that queues at most about one datagram, or on a wire one batch, and marks each datagram with
//! its priority.

use super::CarrierError;
use super::batch::{self, BATCH, Came, Datagram, Gathered};
use super::source::{self, Origin, Sources};
use bytes::BytesMut;
use nix::libc::in6_pktinfo;
use nix::sys::socket::{MsgFlags, SockaddrStorage};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Instant;

/// Ethernet's 1500 bytes minus IPv4 and UDP.
pub(super) const MAX_PAYLOAD: usize = 1472;
/// Length of the IPv4 and UDP headers.
const IP_UDP: usize = 28;
/// Length of the IPv6 and UDP headers.
const IP6_UDP: usize = 48;

/// Requested receive buffer, in bytes. The system doubles it to cover its own overhead.
const RECEIVE_BUFFER: usize = 1 << 20;

/// The fate of bytes given to a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// The socket has them.
    Taken,
    /// The socket has no room at present.
    Full,
    /// They are lost: no route, peer unreachable.
    Lost,
    /// This host's device does not take this many at once.
    TooLong,
}

#[derive(Debug)]
pub(super) struct Socket {
    fd: OwnedFd,
    local: SocketAddr,
    dscp: Option<u8>,
    ready: bool,
    wire: Option<Wire>,
    /// For a socket bound to all addresses: the local address with which to answer each peer.
    sources: Option<Sources>,
    control: Vec<u8>,
}

/// Additional state on a wire, where datagrams leave and arrive in batches.
#[derive(Debug)]
struct Wire {
    gathered: Gathered,
    /// The system did not take the batch.
    stuck: bool,
    came: Came,
}

impl Socket {
    /// Binds `local`. Port 0 selects a free port.
    pub(super) fn bind(local: SocketAddr) -> Result<Self, CarrierError> {
        // The kernel's minimum: the queue beyond the priorities' reach must not exceed one datagram.
        Self::bound(local, 1)
    }

    /// The same for a wire: batches datagrams until [`Socket::flush`].
    pub(super) fn bind_to_wire(local: SocketAddr) -> Result<Self, CarrierError> {
        // The kernel doubles the size, and reports the socket as writable below half of that: while it holds
        // less than a batch.
        let socket = Self::bound(local, 1 << 16)?;
        // Exceeds the usual limit (`net.core.rmem_max`) if this process is permitted to. [`Socket::holds`] reports the
        // resulting size.
        let _ = sockopt::set_socket_recv_buffer_size_force(&socket.fd, RECEIVE_BUFFER);
        Ok(Socket {
            wire: Some(Wire {
                gathered: Gathered::default(),
                stuck: false,
                came: Came::new(&socket.fd),
            }),
            ..socket
        })
    }

    fn bound(local: SocketAddr, send_buffer: usize) -> Result<Self, CarrierError> {
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
        let fd = net::socket_with(family, SocketType::DGRAM, flags, None).map_err(bind)?;
        sockopt::set_socket_send_buffer_size(&fd, send_buffer).map_err(bind)?;
        // Large enough that a late reader loses nothing to a burst at radio rates.
        sockopt::set_socket_recv_buffer_size(&fd, RECEIVE_BUFFER).map_err(bind)?;
        let sources = local.ip().is_unspecified().then(Sources::default);
        if sources.is_some() {
            // A system that does not report the destination chooses the source address itself.
            let _ = match local.is_ipv4() {
                true => nix::sys::socket::setsockopt(&fd, nix::sys::socket::sockopt::Ipv4PacketInfo, &true),
                false => {
                    nix::sys::socket::setsockopt(&fd, nix::sys::socket::sockopt::Ipv6RecvPacketInfo, &true)
                }
            };
        }
        net::bind(&fd, &local).map_err(bind)?;
        let local = net::getsockname(&fd).map_err(bind)?.try_into().map_err(bind)?;
        Ok(Socket {
            fd,
            local,
            dscp: None,
            ready: true,
            wire: None,
            sources,
            control: nix::cmsg_space!(in6_pktinfo),
        })
    }

    /// Number of datagrams that fit the receive buffer, with as much again for the system's overhead.
    pub(super) fn holds(&self) -> usize {
        sockopt::socket_recv_buffer_size(&self.fd).unwrap_or(0) / (2 * MAX_PAYLOAD)
    }

    /// Length of the IP and UDP headers, in bytes.
    pub(super) fn headers(&self) -> usize {
        if self.local.is_ipv4() { IP_UDP } else { IP6_UDP }
    }

    /// Sets whether IP must not fragment anything on the way, neither here nor in routers, regardless of this
    /// host's path MTU: datagrams that are too long are lost. A host without this option keeps its behaviour.
    pub(super) fn set_whole(&self, whole: bool) {
        use sockopt::{Ipv4PathMtuDiscovery as V4, Ipv6PathMtuDiscovery as V6};
        let _ = match (self.local.is_ipv4(), whole) {
            (true, true) => sockopt::set_ip_mtu_discover(&self.fd, V4::PROBE),
            (true, false) => sockopt::set_ip_mtu_discover(&self.fd, V4::DONT),
            (false, true) => sockopt::set_ipv6_mtu_discover(&self.fd, V6::PROBE),
            (false, false) => sockopt::set_ipv6_mtu_discover(&self.fd, V6::DONT),
        };
    }

    pub(super) fn local(&self) -> SocketAddr {
        self.local
    }

    /// Returns whether the previous datagram has left for the device. Linux reports a UDP socket as writable
    /// while less than half of its buffer is in use; with the smallest buffer that is one large datagram.
    pub(super) fn ready(&mut self) -> bool {
        // The batch leaves first, if nothing can join it.
        let full = |w: &Wire| {
            w.stuck
                || w.gathered
                    .to()
                    .is_some_and(|(to, dscp)| !w.gathered.takes(to, dscp, 1, 1))
        };
        if self.wire.as_ref().is_some_and(full) && !matches!(self.flush(), Ok(Given::Taken)) {
            return false;
        }
        if self.wire.as_ref().is_some_and(|w| w.gathered.len() > 0) {
            return true;
        }
        if !self.ready {
            let mut fds = [PollFd::new(&self.fd, PollFlags::OUT)];
            self.ready = matches!(rustix::event::poll(&mut fds, Some(&Timespec::default())), Ok(n) if n > 0);
        }
        self.ready
    }

    /// Sends one datagram, marked for `priority` (0–127).
    pub(super) fn send(&mut self, to: SocketAddr, priority: u8, bytes: &[u8]) -> Result<Given, CarrierError> {
        if self.wire.is_some() {
            return self.gather(to, priority, bytes);
        }
        self.mark(dscp(priority));
        self.ready = false;
        let origin = self.origin(to);
        let mut sent = send(&self.fd, to, bytes, origin.as_ref());
        if origin.is_some() && sent.is_err_and(passes) {
            // That source address no longer works.
            self.forget(to);
            sent = send(&self.fd, to, bytes, None);
        }
        match sent {
            Ok(_) => Ok(Given::Taken),
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => Ok(Given::Full),
            Err(Errno::MSGSIZE) => Ok(Given::TooLong),
            Err(e) if passes(e) => Ok(Given::Lost),
            Err(e) => Err(CarrierError::Socket {
                doing: "sending",
                source: e.into(),
            }),
        }
    }

    /// Sends several datagrams at once on a wire, of `segment` bytes each, of which the last may be shorter;
    /// elsewhere `bytes` is one datagram. Unless the socket is full, the caller may find another buffer in
    /// the place of this one.
    pub(super) fn send_several(
        &mut self,
        to: SocketAddr,
        priority: u8,
        bytes: &mut Vec<u8>,
        segment: usize,
    ) -> Result<Given, CarrierError> {
        if self.wire.is_none() {
            return self.send(to, priority, bytes);
        }
        let dscp = dscp(priority);
        let given = self.make_room(to, dscp, bytes.len(), segment)?;
        if let Some(wire) = self.wire.as_mut().filter(|_| given == Given::Taken) {
            wire.gathered.put_all(to, dscp, bytes, segment);
        }
        Ok(given)
    }

    /// Adds a datagram to the batch.
    fn gather(&mut self, to: SocketAddr, priority: u8, bytes: &[u8]) -> Result<Given, CarrierError> {
        let dscp = dscp(priority);
        let given = self.make_room(to, dscp, bytes.len(), bytes.len())?;
        if let Some(wire) = self.wire.as_mut().filter(|_| given == Given::Taken) {
            wire.gathered.put(to, dscp, bytes, bytes.len());
        }
        Ok(given)
    }

    /// Flushes the batch, unless this many bytes can join it.
    fn make_room(
        &mut self,
        to: SocketAddr,
        dscp: u8,
        len: usize,
        segment: usize,
    ) -> Result<Given, CarrierError> {
        let takes = |w: &Wire| !w.stuck && w.gathered.takes(to, dscp, len, segment);
        if len == 0 {
            return Ok(Given::Lost);
        }
        if !self.wire.as_ref().is_some_and(takes) && self.flush()? == Given::Full {
            return Ok(Given::Full);
        }
        Ok(Given::Taken)
    }

    /// Passes the batch to the system, which may have no room for it at present.
    pub(super) fn flush(&mut self) -> Result<Given, CarrierError> {
        while let Some((to, dscp)) = self.wire.as_ref().and_then(|w| w.gathered.to()) {
            self.mark(dscp);
            self.ready = false;
            let origin = self.origin(to);
            let Some(wire) = &mut self.wire else { break };
            match wire.gathered.send(&self.fd, origin.as_ref()) {
                Ok(()) => {}
                Err(e) if origin.is_some() && passes(e) => self.forget(to),
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => {
                    wire.stuck = true;
                    return Ok(Given::Full);
                }
                Err(e) if passes(e) => wire.gathered.lose(),
                Err(e) => {
                    return Err(CarrierError::Socket {
                        doing: "sending",
                        source: e.into(),
                    });
                }
            }
        }
        if let Some(wire) = &mut self.wire {
            wire.stuck = false;
        }
        Ok(Given::Taken)
    }

    /// Bytes to batch before [`Socket::flush`]; `None` without a wire.
    pub(super) fn batch(&self) -> Option<usize> {
        self.wire.as_ref().map(|_| BATCH)
    }

    /// Returns whether datagrams of the last batch are not taken yet.
    pub(super) fn has_more(&self) -> bool {
        self.wire.as_ref().is_some_and(|w| !w.came.is_empty())
    }

    /// Number of datagrams in the batch.
    pub(super) fn gathered(&self) -> usize {
        self.wire.as_ref().map_or(0, |w| w.gathered.len())
    }

    /// Receives one datagram into `buffer`, up to a byte more than the largest payload. Returns its length
    /// and sender.
    pub(super) fn receive_into(
        &mut self,
        buffer: &mut BytesMut,
    ) -> Result<Option<(usize, Option<SocketAddr>)>, CarrierError> {
        buffer.clear();
        if self.wire.is_none() {
            buffer.resize(MAX_PAYLOAD + 1, 0);
            let got = self.receive(buffer)?;
            buffer.truncate(got.map_or(0, |(len, _)| len));
            return Ok(got);
        }
        Ok(self.next_of_batch()?.map(|(datagram, from)| {
            if buffer.capacity() < MAX_PAYLOAD {
                // Room for many: datagrams are split off the front as they are passed on.
                buffer.reserve(BATCH);
            }
            buffer.extend_from_slice(&datagram[..datagram.len().min(MAX_PAYLOAD)]);
            (datagram.len(), from)
        }))
    }

    /// The next datagram of the last received batch, or of the next one.
    fn next_of_batch(&mut self) -> Result<Option<Datagram<'_>>, CarrierError> {
        let Some(wire) = &mut self.wire else {
            return Ok(None);
        };
        if wire.came.is_empty() {
            let fetch = || wire.came.receive(&self.fd);
            if received(fetch)?.is_none() {
                return Ok(None);
            }
            if let (Some(sources), Some((from, at))) = (&mut self.sources, wire.came.between()) {
                sources.heard(from, at, Instant::now());
            }
        }
        Ok(wire.came.next())
    }

    /// Receives one datagram. Returns its length (which may exceed the buffer's) and sender.
    pub(super) fn receive(
        &mut self,
        buffer: &mut [u8],
    ) -> Result<Option<(usize, Option<SocketAddr>)>, CarrierError> {
        if self.wire.is_some() {
            return Ok(self.next_of_batch()?.map(|(datagram, from)| {
                let n = datagram.len().min(buffer.len());
                buffer[..n].copy_from_slice(&datagram[..n]);
                (datagram.len(), from)
            }));
        }
        let (fd, control) = (&self.fd, &mut self.control);
        let Some((len, from, at)) = received(|| receive(fd, buffer, control))? else {
            return Ok(None);
        };
        if let (Some(sources), Some(from), Some(at)) = (&mut self.sources, from, at) {
            sources.heard(from, at, Instant::now());
        }
        Ok(Some((len, from)))
    }

    /// The source address for a datagram to `to`, unless the system is to choose.
    fn origin(&self, to: SocketAddr) -> Option<Origin> {
        let at = self.sources.as_ref()?.of(to, Instant::now())?;
        Some(Origin::new(at, to))
    }

    fn forget(&mut self, to: SocketAddr) {
        if let Some(sources) = &mut self.sources {
            sources.forget(to);
        }
    }

    fn mark(&mut self, dscp: u8) {
        if self.dscp != Some(dscp) {
            let done = if self.local.is_ipv4() {
                sockopt::set_ip_tos(&self.fd, dscp << 2)
            } else {
                sockopt::set_ipv6_tclass(&self.fd, u32::from(dscp) << 2)
            };
            // The mark is only a hint to the network; a host that cannot set it still sends.
            self.dscp = done.is_ok().then_some(dscp);
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Sends one datagram, from the address `origin` if given.
fn send(fd: &OwnedFd, to: SocketAddr, bytes: &[u8], origin: Option<&Origin>) -> Result<usize, Errno> {
    let control = origin.map(Origin::message);
    nix::sys::socket::sendmsg(
        fd.as_raw_fd(),
        &[IoSlice::new(bytes)],
        control.as_slice(),
        MsgFlags::MSG_NOSIGNAL,
        Some(&SockaddrStorage::from(to)),
    )
    .map_err(batch::same)
}

/// Receives one datagram. Returns its length, which may exceed the buffer's, its sender, and its destination
/// address.
fn receive(
    fd: &OwnedFd,
    buffer: &mut [u8],
    control: &mut [u8],
) -> Result<(usize, Option<SocketAddr>, Option<IpAddr>), Errno> {
    let mut into = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::MSG_TRUNC;
    let got = nix::sys::socket::recvmsg::<SockaddrStorage>(fd.as_raw_fd(), &mut into, Some(control), flags)
        .map_err(batch::same)?;
    let at = (got.cmsgs().ok()).and_then(|control| control.into_iter().find_map(|c| source::came_to(&c)));
    Ok((got.bytes, got.address.as_ref().and_then(batch::standard), at))
}

/// The result of a receiving call, or `None` if there is no datagram.
fn received<T>(mut receive: impl FnMut() -> Result<T, Errno>) -> Result<Option<T>, CarrierError> {
    // The system reports an error of an earlier datagram once. Bounded in case an error persists.
    for _ in 0..16 {
        match receive() {
            Ok(got) => return Ok(Some(got)),
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

/// Temporary faults of the path: the radio is down, the peer's port is closed, the route is gone.
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
            // An invalid destination, such as port 0 of a forged sender.
            | Errno::INVAL
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
