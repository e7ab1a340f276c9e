//! Several sockets on one port: together, their receive buffers are as large as samples need where a single one may not
//! be.
//!
//! With Linux' defaults a socket's buffer may have 425,984 bytes. Fast DDS sends a sample of a megabyte at once, in
//! datagrams of 64 KB, and what does not fit is lost. Long datagrams are fragments, whose order does not matter: they
//! go to several sockets in turn. Short datagrams all go to the first socket, in order.

use crate::wire::kind;
use nix::libc::{sock_filter, sock_fprog};
use nix::sys::socket::{setsockopt, sockopt::AttachReusePortCbpf};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{SocketAddrV4, UdpSocket};

/// Total size of the buffers in bytes, if the system permits less for one.
const ENOUGH: usize = 4 << 20;
/// Maximum number of sockets of a port.
const MOST: usize = 16;
/// Shorter datagrams stay in order.
const LONG: u32 = 4_096;

/// Binds a socket with a receive buffer of about `bytes` bytes, or several sockets on the same port.
pub(super) fn bind(address: SocketAddrV4, buffer: usize) -> io::Result<Vec<UdpSocket>> {
    let first = open(buffer)?;
    let size = first.recv_buffer_size()?.max(1);
    let more = if size < ENOUGH {
        ENOUGH.div_ceil(size).min(MOST) - 1
    } else {
        0
    };
    // No other participant uses this port, since a single socket binds the discovery port that goes with it.
    first.set_reuse_port(more > 0)?;
    first.bind(&SockAddr::from(address))?;
    let mut out: Vec<UdpSocket> = vec![first.into()];
    for _ in 0..more {
        let socket = open(buffer)?;
        socket.set_reuse_port(true)?;
        socket.bind(&SockAddr::from(address))?;
        out.push(socket.into());
    }
    if more > 0 && spread(&out).is_err() {
        out.truncate(1);
    }
    Ok(out)
}

fn open(buffer: usize) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    // The system reduces the size to what it permits.
    let _ = socket.set_recv_buffer_size(buffer);
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Distributes datagrams: short ones go to the first socket, others to one of the rest, by the number of their first
/// fragment (`SO_ATTACH_REUSEPORT_CBPF` of `socket(7)`).
fn spread(sockets: &[UdpSocket]) -> io::Result<()> {
    let Some(first) = sockets.first() else {
        return Ok(());
    };
    let others = sockets.len().saturating_sub(1).max(1) as u32;
    let mut filter = program(others);
    let program = sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    Ok(setsockopt(first, AttachReusePortCbpf, &program)?)
}

/// The filter in the kernel's classic BPF. A load beyond a datagram's end selects the first socket.
fn program(others: u32) -> Vec<sock_filter> {
    let op = |code, (jt, jf), k| sock_filter { code, jt, jf, k };
    let next = (0, 0);
    let mut out = vec![
        op(LOAD_LENGTH, next, 0),
        op(JUMP_IF_AT_LEAST, (1, 0), LONG),
        op(RETURN, next, 0),
    ];
    // A DATA_FRAG after the header and INFO_DST, INFO_TS, or both; the fragment number is 24 bytes further.
    let places = [48, 32, 36];
    for (i, at) in places.into_iter().enumerate() {
        let to_the_end = 4 * (places.len() - i - 1) + 1;
        out.extend([
            op(LOAD_BYTE, next, at),
            op(JUMP_IF_EQUAL, (0, 2), u32::from(kind::DATA_FRAG)),
            op(LOAD_BYTE, next, at + 24),
            op(JUMP, next, to_the_end as u32),
        ]);
    }
    out.extend([
        op(LOAD_WORD, next, RANDOM),
        op(MODULO, next, others),
        op(ADD, next, 1),
        op(RETURN_A, next, 0),
    ]);
    out
}

const LOAD_LENGTH: u16 = 0x80;
const LOAD_WORD: u16 = 0x20;
const LOAD_BYTE: u16 = 0x30;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const ADD: u16 = 0x04;
const MODULO: u16 = 0x94;
const RETURN: u16 = 0x06;
const RETURN_A: u16 = 0x16;
/// `SKF_AD_OFF + SKF_AD_RANDOM`.
const RANDOM: u32 = (-0x1000i32 + 56) as u32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::encode::{self, Route};
    use crate::wire::inline::InlineQos;
    use crate::wire::submessage::Payload;
    use crate::{EntityId, GuidPrefix, Timestamp, VendorId};
    use std::net::{Ipv4Addr, SocketAddr};

    const ROUTE: Route = Route {
        reader: EntityId::UNKNOWN,
        writer: EntityId::UNKNOWN,
        sequence: 1,
    };

    fn free_port() -> SocketAddrV4 {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let port = socket.local_addr().map(|a| a.port()).expect("its address");
        SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)
    }

    #[test]
    fn small_buffers_hold_together_what_one_would_not_and_short_datagrams_stay_in_order() {
        let to = free_port();
        let sockets = bind(to, 212_992).expect("sockets");
        if sockets.len() == 1 {
            return; // The system permits no filter, or gives a large buffer.
        }
        let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let mut fragment = Vec::new();
        encode::header(&mut fragment, VendorId::OURS, GuidPrefix::default());
        encode::info_dst(&mut fragment, GuidPrefix::default());
        encode::info_ts(&mut fragment, Some(Timestamp(1)));
        for n in 1..=40u8 {
            let mut long = fragment.clone();
            let payload = Payload::Data(&[7; 2_600_000]);
            encode::data_frag(
                &mut long,
                ROUTE,
                &InlineQos::default(),
                u32::from(n),
                65_000,
                payload,
            );
            sender.send_to(&long, SocketAddr::V4(to)).expect("sent");
            sender.send_to(&[n; 100], SocketAddr::V4(to)).expect("sent");
        }
        let mut buffer = [0; 65_536];
        let mut got = |socket: &UdpSocket| {
            std::iter::from_fn(|| socket.recv(&mut buffer).ok().map(|len| (len, buffer[0])))
                .collect::<Vec<_>>()
        };
        let short: Vec<_> = (1..=40).map(|n| (100, n)).collect();
        assert_eq!(got(&sockets[0]), short);
        let long: Vec<_> = sockets[1..].iter().map(|s| got(s).len()).collect();
        assert_eq!(long.iter().sum::<usize>(), 40, "one socket holds 6: {long:?}");
    }

    #[test]
    fn one_socket_is_enough_where_its_buffer_is() {
        let sockets = bind(free_port(), 8 << 20).expect("sockets");
        let size = socket2::SockRef::from(&sockets[0])
            .recv_buffer_size()
            .expect("its size");
        assert_eq!(sockets.len() == 1, size >= ENOUGH);
    }
}
