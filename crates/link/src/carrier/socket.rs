//! A UDP socket that queues at most about one datagram and marks each with its priority.

use super::CarrierError;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Ethernet's 1500 bytes less IPv4 and UDP.
pub(super) const MAX_PAYLOAD: usize = 1472;
/// IPv4 and UDP headers.
pub(super) const IP_UDP: usize = 28;

/// What became of bytes given to a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// The socket has them.
    Taken,
    /// Not now.
    Full,
    /// They are gone: no route, peer unreachable, too large for the path.
    Lost,
}

#[derive(Debug)]
pub(super) struct Socket {
    fd: OwnedFd,
    local: SocketAddr,
    dscp: Option<u8>,
    ready: bool,
}

impl Socket {
    /// Binds `local`; port 0 takes a free one.
    pub(super) fn bind(local: SocketAddr) -> Result<Self, CarrierError> {
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
        // The kernel's minimum: the queue that priorities cannot reach is to be one datagram long.
        sockopt::set_socket_send_buffer_size(&fd, 1).map_err(bind)?;
        // Enough that a late reader loses nothing to a burst at radio rates.
        sockopt::set_socket_recv_buffer_size(&fd, 1 << 20).map_err(bind)?;
        net::bind(&fd, &local).map_err(bind)?;
        let local = net::getsockname(&fd).map_err(bind)?.try_into().map_err(bind)?;
        Ok(Socket {
            fd,
            local,
            dscp: None,
            ready: true,
        })
    }

    pub(super) fn local(&self) -> SocketAddr {
        self.local
    }

    /// Whether what was sent before has left for the device. Linux calls a UDP socket writable while less than
    /// half of its buffer is taken; of the smallest buffer that is one large datagram.
    pub(super) fn ready(&mut self) -> bool {
        if !self.ready {
            let mut fds = [PollFd::new(&self.fd, PollFlags::OUT)];
            self.ready = matches!(rustix::event::poll(&mut fds, Some(&Timespec::default())), Ok(n) if n > 0);
        }
        self.ready
    }

    /// Sends one datagram, marked for `priority` (0–127).
    pub(super) fn send(&mut self, to: SocketAddr, priority: u8, bytes: &[u8]) -> Result<Given, CarrierError> {
        self.mark(priority);
        self.ready = false;
        match net::sendto(&self.fd, bytes, SendFlags::NOSIGNAL, &to) {
            Ok(_) => Ok(Given::Taken),
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => Ok(Given::Full),
            Err(e) if passes(e) => Ok(Given::Lost),
            Err(e) => Err(CarrierError::Socket {
                doing: "sending",
                source: e.into(),
            }),
        }
    }

    /// Receives one datagram: its length (which may exceed the buffer's) and sender.
    pub(super) fn receive(
        &mut self,
        buffer: &mut [u8],
    ) -> Result<Option<(usize, Option<SocketAddr>)>, CarrierError> {
        // An error of an earlier datagram is told once each; bounded in case one stays.
        for _ in 0..16 {
            match net::recvfrom(&self.fd, &mut *buffer, RecvFlags::TRUNC) {
                Ok((_, len, from)) => return Ok(Some((len, from.and_then(|a| a.try_into().ok())))),
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

    fn mark(&mut self, priority: u8) {
        let dscp = dscp(priority);
        if self.dscp != Some(dscp) {
            let done = if self.local.is_ipv4() {
                sockopt::set_ip_tos(&self.fd, dscp << 2)
            } else {
                sockopt::set_ipv6_tclass(&self.fd, u32::from(dscp) << 2)
            };
            // A mark is a wish to the network; a host that cannot make it still sends.
            self.dscp = done.is_ok().then_some(dscp);
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
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
            // An address that no datagram can be sent to, such as port 0 of a forged sender.
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
