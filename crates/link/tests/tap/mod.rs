//! Two QUIC carriers, and the path between them.
#![allow(unreachable_pub, reason = "a module of tests")]

use link::keys::Bundle;
use link::{Carrier, QuicCarrier, QuicConfig, TeamPeer};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

const WATCHDOG: Duration = Duration::from_secs(60);

pub fn free() -> SocketAddr {
    let any: SocketAddr = "127.0.0.1:0".parse().expect("address");
    UdpSocket::bind(any).and_then(|s| s.local_addr()).expect("a port")
}

pub fn open(folder: &Path, name: &str, own: SocketAddr, peer: (&str, SocketAddr)) -> QuicCarrier {
    let bundle = Bundle::load(&folder.join("team/hosts").join(name), name).expect("loads");
    let peer = TeamPeer {
        name: peer.0.into(),
        address: peer.1,
    };
    QuicCarrier::bind(QuicConfig::new(own, vec![peer]), bundle).expect("binds")
}

/// Receives all waiting datagrams.
pub fn drain(c: &mut QuicCarrier) -> Vec<Vec<u8>> {
    let mut buffer = [0; 1500];
    let mut all = Vec::new();
    while let Some(got) = c.receive(&mut buffer).expect("goes on") {
        all.push(got.datagram.to_vec());
    }
    c.service().expect("goes on");
    all
}

/// Relays between two carriers, and keeps the observed packets.
pub struct Tap {
    pub sockets: [UdpSocket; 2],
    pub carriers: [SocketAddr; 2],
    pub seen: [Vec<Vec<u8>>; 2],
}

impl Tap {
    pub fn new(carriers: [SocketAddr; 2]) -> Self {
        let sockets = [(); 2].map(|()| {
            let s = UdpSocket::bind("127.0.0.1:0").expect("binds");
            s.set_nonblocking(true).expect("sets");
            s
        });
        Tap {
            sockets,
            carriers,
            seen: [Vec::new(), Vec::new()],
        }
    }

    pub fn address(&self, of: usize) -> SocketAddr {
        self.sockets[of].local_addr().expect("address")
    }

    /// Socket `i` stands for carrier `i` towards the other.
    pub fn relay(&mut self) {
        let mut buffer = [0; 2000];
        for to in [0, 1] {
            while let Ok((n, _)) = self.sockets[to].recv_from(&mut buffer) {
                self.seen[to].push(buffer[..n].to_vec());
                self.sockets[1 - to]
                    .send_to(&buffer[..n], self.carriers[to])
                    .expect("sends");
            }
        }
    }
}

pub fn until(mut done: impl FnMut() -> bool, what: &str) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < WATCHDOG, "{what}");
        std::thread::sleep(Duration::from_micros(300));
    }
}
