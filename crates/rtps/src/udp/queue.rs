//! How full the receive buffer of another socket on this host is, as the kernel reports it through `sock_diag(7)`.
//!
//! UDP has no backpressure: a process that gets no processor for a few milliseconds loses what arrives once its buffer
//! is full. For processes on this host, a sender can see that in advance, at a few microseconds per query.

use core::time::Duration;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, socket_with};
use rustix::net::{recv, send};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

/// `SOCK_DIAG_BY_FAMILY`, `NLM_F_REQUEST`, `INET_DIAG_SKMEMINFO`.
const BY_FAMILY: u16 = 20;
const REQUEST: u16 = 1;
const MEMORY: u16 = 7;
const UDP: u8 = 17;
const INET: u8 = 2;

/// Overhead of a datagram in a buffer, including the kernel's rounding.
const OVERHEAD: usize = 1_200;
/// First interval at which a full buffer is checked again; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_micros(200);
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// Estimated state of the buffers of the sockets that are sent to.
#[derive(Debug)]
pub(super) struct Queues {
    netlink: OwnedFd,
    own: u16,
    known: BTreeMap<SocketAddrV4, Queue>,
}

#[derive(Debug)]
struct Queue {
    /// Bytes that may be sent before the kernel is queried again.
    credit: usize,
    pause: Duration,
}

/// Maximum number of sockets to remember.
const MOST: usize = 1_024;

impl Queues {
    /// For datagrams sent from a port. Returns `None` if the kernel or a sandbox does not report buffers.
    pub(super) fn new(own: u16) -> Option<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let of = Some(netlink::SOCK_DIAG);
        let netlink = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, of).ok()?;
        let out = Queues {
            netlink,
            own,
            known: BTreeMap::new(),
        };
        // If the kernel reports the port itself, it reports others too.
        out.ask(SocketAddrV4::new(Ipv4Addr::LOCALHOST, own))?;
        Some(out)
    }

    /// Records a datagram sent to a socket of this host. If the socket's buffer is nearly full, returns how long to
    /// wait before the next.
    pub(super) fn sent(&mut self, to: SocketAddrV4, len: usize) -> Option<Duration> {
        if self.known.len() >= MOST && !self.known.contains_key(&to) {
            self.known.clear();
        }
        let queue = self.known.entry(to).or_insert(Queue {
            credit: 0,
            pause: FIRST_PAUSE,
        });
        queue.credit = queue.credit.saturating_sub(len + OVERHEAD);
        if queue.credit > 0 {
            return None;
        }
        // Nothing listens there, or the kernel does not report it: nothing can be known.
        let Some((held, size)) = self.ask(to) else {
            self.known.remove(&to);
            return None;
        };
        let queue = self.known.get_mut(&to)?;
        if held < size / 2 {
            // Leave a quarter for other senders and for a datagram of maximum length.
            queue.credit = (size / 4 * 3).saturating_sub(held) / 2;
            queue.pause = FIRST_PAUSE;
            return None;
        }
        let pause = queue.pause;
        queue.pause = (pause * 2).min(LONGEST_PAUSE);
        Some(pause)
    }

    /// Returns the number of bytes in a socket's receive buffer, and the buffer's size.
    fn ask(&self, socket: SocketAddrV4) -> Option<(usize, usize)> {
        let mut out = Vec::with_capacity(72);
        out.extend_from_slice(&72u32.to_ne_bytes());
        out.extend_from_slice(&BY_FAMILY.to_ne_bytes());
        out.extend_from_slice(&REQUEST.to_ne_bytes());
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&[INET, UDP, 1 << (MEMORY - 1), 0]);
        out.extend_from_slice(&u32::MAX.to_ne_bytes());
        // The sender, then the receiver: the order in which a datagram's path to the socket is looked up.
        out.extend_from_slice(&self.own.to_be_bytes());
        out.extend_from_slice(&socket.port().to_be_bytes());
        for address in [Ipv4Addr::LOCALHOST, *socket.ip()] {
            out.extend_from_slice(&address.octets());
            out.extend_from_slice(&[0; 12]);
        }
        // Any interface, and no cookie.
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&[0xff; 8]);
        send(&self.netlink, &out, SendFlags::empty()).ok()?;
        let mut answer = [0; 512];
        let (_, length) = recv(&self.netlink, &mut answer, RecvFlags::DONTWAIT).ok()?;
        memory(answer.get(..length)?)
    }
}

/// `SK_MEMINFO_RMEM_ALLOC` and `SK_MEMINFO_RCVBUF` of an answer.
fn memory(answer: &[u8]) -> Option<(usize, usize)> {
    let word = |bytes: &[u8], at: usize| {
        let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_ne_bytes(bytes) as usize)
    };
    let half = |bytes: &[u8], at: usize| {
        let bytes = bytes.get(at..at + 2)?.try_into().ok()?;
        Some(u16::from_ne_bytes(bytes))
    };
    if half(answer, 4)? != BY_FAMILY {
        return None;
    }
    // Attributes follow the headers of 16 and 72 bytes: length, kind, value.
    let mut rest = answer.get(88..)?;
    loop {
        let length = usize::from(half(rest, 0)?);
        if half(rest, 2)? == MEMORY {
            return Some((word(rest, 4)?, word(rest, 8)?));
        }
        rest = rest.get(length.max(4).next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{SocketAddr, UdpSocket};

    fn bound() -> (UdpSocket, SocketAddrV4) {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        match socket.local_addr().expect("its address") {
            SocketAddr::V4(address) => (socket, address),
            SocketAddr::V6(_) => unreachable!("it is bound to IPv4"),
        }
    }

    #[test]
    fn a_buffer_that_fills_up_asks_for_a_pause_and_one_that_is_read_does_not() {
        let (sender, own) = bound();
        let (receiver, to) = bound();
        let Some(mut queues) = Queues::new(own.port()) else {
            return; // The kernel does not report buffers.
        };
        assert_eq!(queues.sent(to, 1000), None, "it is empty");
        let datagram = [7; 16_000];
        let mut sent = 0;
        while queues.sent(to, datagram.len()).is_none() {
            sender.send_to(&datagram, to).expect("sent");
            sent += 1;
            assert!(sent < 10_000, "it never fills");
        }
        let first = queues.sent(to, datagram.len()).expect("still full");
        assert!(queues.sent(to, datagram.len()).expect("still full") >= first);
        receiver.set_nonblocking(true).expect("a flag");
        let mut buffer = [0; 16_000];
        let received = (0..sent).filter(|_| receiver.recv(&mut buffer).is_ok()).count();
        assert_eq!(received, sent, "nothing was lost");
        assert_eq!(queues.sent(to, datagram.len()), None);
        drop(receiver);
        assert_eq!(
            queues.sent(to, datagram.len()),
            None,
            "nothing is known without a listener"
        );
    }

    #[test]
    fn invalid_answers_yield_nothing() {
        assert_eq!(memory(&[]), None);
        assert_eq!(memory(&[0xff; 512]), None);
        let mut answer = [0; 100];
        answer[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        assert_eq!(memory(&answer), None, "attributes without a length");
    }
}
