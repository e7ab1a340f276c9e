//! Sends no faster than the system and the receivers on this host can take it.

use super::queue::Queues;
use super::transport::Transport;
use crate::config::Reach;
use core::time::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::SocketAddrV4;

/// How long a datagram waits for room in the system's buffer before it is dropped.
const SEND_TIMEOUT: Duration = Duration::from_millis(20);

/// Sends datagrams, and checks whether their receivers keep up.
pub(super) struct Sender {
    pub(super) transport: Transport,
    /// The buffers of this host's sockets, if the kernel reports them.
    queues: Option<Queues>,
    reach: Reach,
    /// The next datagram to send.
    pub(super) datagram: Vec<u8>,
}

impl Sender {
    pub(super) fn new(transport: Transport, queues: Option<Queues>, reach: Reach) -> Self {
        Sender {
            transport,
            queues,
            reach,
            datagram: Vec::with_capacity(65_536),
        }
    }

    /// Sends, and waits a while if the system's buffer is full.
    pub(super) fn send(&self, to: SocketAddrV4) -> io::Result<()> {
        let sent = self.transport.send(&self.datagram, to);
        if !sent
            .as_ref()
            .is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock)
        {
            return sent;
        }
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(SEND_TIMEOUT.subsec_nanos()),
        };
        let _ = poll(
            &mut [PollFd::new(self.transport.sender(), PollFlags::OUT)],
            Some(&timeout),
        );
        self.transport.send(&self.datagram, to)
    }

    /// How long to wait before the next sample, depending on the receiver's buffer.
    pub(super) fn pause(&mut self, to: SocketAddrV4) -> Option<Duration> {
        let queues = self.queues.as_mut()?;
        self.reach
            .is_own(*to.ip())
            .then(|| queues.sent(to, self.datagram.len()))?
    }
}
