//! Ports for hosts of tests.

use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

/// Ports of 127.0.0.1, for UDP and TCP, that no other test of this program gets. They lie below those that the system
/// gives to sockets without a port, which another test's socket could get in between.
pub fn ports<const N: usize>() -> [u16; N] {
    const FIRST: u32 = 10_000;
    const ALL: u32 = 22_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let offset = std::process::id().wrapping_mul(97);
    [(); N].map(|()| {
        loop {
            let n = offset.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
            let port = u16::try_from(FIRST + n % ALL).expect("a port");
            let address = ("127.0.0.1", port);
            if UdpSocket::bind(address).is_ok() && TcpListener::bind(address).is_ok() {
                return port;
            }
        }
    })
}
