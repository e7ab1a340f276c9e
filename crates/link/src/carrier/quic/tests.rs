use super::pieces::AROUND;
use super::*;
use crate::carrier::conformance::{Rig, conformance};
use crate::carrier::team::pair::{self, Kind, team_suite};
use std::net::UdpSocket;

type Pair<const WIRE: bool> = pair::Pair<Quic<WIRE>>;

conformance!(conforms, Pair<false>);
conformance!(conforms_on_a_wire, Pair<true>);
team_suite!(Quic<false>);

/// On a wire or not.
struct Quic<const WIRE: bool>;

impl<const WIRE: bool> Kind for Quic<WIRE> {
    type Carrier = QuicCarrier;

    fn free() -> SocketAddr {
        let any: SocketAddr = "127.0.0.1:0".parse().expect("address");
        UdpSocket::bind(any).and_then(|s| s.local_addr()).expect("a port")
    }

    fn bind(own: SocketAddr, peers: Vec<TeamPeer>, bundle: Bundle) -> QuicCarrier {
        let config = QuicConfig {
            wire: WIRE,
            joins: WIRE,
            ..QuicConfig::new(own, peers)
        };
        QuicCarrier::bind(config, bundle).expect("binds")
    }

    fn local(carrier: &QuicCarrier) -> SocketAddr {
        carrier.local()
    }

    fn connected(carrier: &QuicCarrier) -> bool {
        carrier.connected(0)
    }

    fn intrude(to: SocketAddr, bytes: &[u8]) {
        let attacker = UdpSocket::bind(Self::free()).expect("binds");
        attacker.send_to(bytes, to).expect("sends");
    }

    fn rebind(carrier: &mut QuicCarrier) -> bool {
        carrier.rebind(Self::free()).expect("binds");
        true
    }
}

#[test]
fn a_server_may_move_too() {
    let mut pair = Pair::<false>::new();
    assert!(pair.connected());
    // Each host moves once, no matter which of the two accepted the connection.
    for which in [0, 1] {
        pair.carriers[which].rebind(Quic::<false>::free()).expect("binds");
        let before: Vec<_> = pair
            .carriers
            .iter()
            .map(|c| c.path(0).map(|p| p.connection))
            .collect();
        let mut heard = [false; 2];
        let mut buffer = [0; 1500];
        assert!(
            pair.until(|p| {
                for (c, heard) in std::iter::zip(&mut p.carriers, &mut heard) {
                    if c.ready() {
                        c.send(0, 0, b"where are you?").expect("goes on");
                    }
                    *heard |= c.receive(&mut buffer).expect("goes on").is_some();
                }
                heard == [true; 2]
            }),
            "host {which} moved, connections {before:?}"
        );
    }
}

/// Passes packets of up to `most` bytes between two hosts, at its own address for each.
fn hole(most: usize, hosts: [SocketAddr; 2]) -> [SocketAddr; 2] {
    let sockets = [Quic::<false>::free(), Quic::<false>::free()].map(|a| UdpSocket::bind(a).expect("binds"));
    let addresses = [0, 1].map(|i| sockets[i].local_addr().expect("bound"));
    for from in [0, 1] {
        let [out, into] = [from, 1 - from].map(|i| sockets[i].try_clone().expect("a socket"));
        let to = hosts[1 - from];
        // It ends with the test process.
        std::thread::spawn(move || {
            let mut buffer = [0; 2000];
            while let Ok(len) = into.recv(&mut buffer) {
                if len <= most {
                    let _ = out.send_to(&buffer[..len], to);
                }
            }
        });
    }
    addresses
}

#[test]
fn any_path_mtu_is_found_and_what_is_longer_passes_all_the_same() {
    for most in [548, 1000, 1232, 1392, 1472] {
        let mut pair = Pair::<false>::new();
        pair.carriers.clear();
        // Each appears at the address of the hole that the other dials.
        let seen = hole(most, pair.addresses);
        for which in [0, 1] {
            let peer = TeamPeer {
                address: seen[1 - which],
                ..pair.peer(1 - which)
            };
            let carrier = pair.open_as(["base", "robot"][which], pair.addresses[which], vec![peer]);
            pair.carriers.push(carrier);
        }
        assert!(pair.connected(), "over {most} bytes");
        let mut buffer = [0; 1500];
        let (mut came, long) = (0, [7; MAX_DATAGRAM]);
        assert!(
            pair.until(|p| {
                for c in &mut p.carriers {
                    if c.ready() {
                        c.send(0, 0, &long).expect("goes on");
                    }
                }
                while let Some(got) = p.carriers[1].receive(&mut buffer).expect("goes on") {
                    assert_eq!(got.datagram, long);
                    came += 1;
                }
                let size = p.carriers[0].max_datagram_to(0) + AROUND;
                came > 20 && size <= most + 8 && size + 250 >= most
            }),
            "over {most} bytes: {} come, {came} came",
            pair.carriers[0].max_datagram_to(0)
        );
    }
}

/// Packets sent to a host that never answers within a span, and attempts to reach it, with or without another
/// way to it.
fn sought(elsewhere: bool, span: Duration) -> (u64, u64) {
    let mut pair = Pair::<false>::new();
    pair.carriers.truncate(1);
    let silent = UdpSocket::bind(pair.addresses[1]).expect("binds");
    silent.set_nonblocking(true).expect("a socket");
    let (start, mut packets, mut buffer) = (Instant::now(), 0, [0; 1500]);
    assert!(pair.until(|p| {
        p.carriers[0].leads_elsewhere(0, elsewhere);
        while let Ok(len) = silent.recv(&mut buffer) {
            // Of an attempt in parts, the first part counts.
            let part = Some(&buffer[..len]).filter(|d| parts::is_part(d));
            packets += u64::from(part.is_none_or(|d| d[3] >> 4 == 0));
        }
        start.elapsed() > span
    }));
    (packets, pair.carriers[0].peers[0].attempts)
}

#[test]
fn a_host_that_never_answers_is_sent_one_packet_an_attempt() {
    // Longer than QUIC's own retransmission timeout for a first packet, and than the first attempts last.
    let (packets, attempts) = sought(false, Duration::from_secs(5));
    assert!(
        packets > 10 && packets <= attempts,
        "{packets} packets, {attempts} attempts"
    );
    let (packets, attempts) = sought(true, Duration::from_secs(7));
    assert!(
        packets > 2 && packets <= attempts && attempts <= 4,
        "{packets} packets, {attempts} attempts"
    );
}

#[test]
fn a_peer_whose_path_took_whole_packets_is_dialled_in_such() {
    let mut pair = Pair::<false>::new();
    assert!(pair.connected());
    // The other host stands still, so attempts continue in parallel to the connection.
    let before = pair.carriers[0].peers[0].attempts;
    let start = Instant::now();
    while pair.carriers[0].peers[0].attempts < before + 9 {
        assert!(start.elapsed() < Duration::from_secs(20), "not dialled");
        pair.carriers[0].service().expect("goes on");
        let attempts = (pair.carriers[0].connections.0.values()).filter(|l| l.standing.attempts(0));
        for attempt in attempts {
            assert!(attempt.mtu().passes() >= START, "in parts");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn acknowledgements_are_counted_and_rare() {
    let mut pair = Pair::<false>::new();
    assert!(pair.connected());
    let datagram = [1; MAX_DATAGRAM];
    let mut buffer = [0; 1500];
    let (mut sent, mut came) = (0, 0);
    pair.until(|p| {
        while sent < 600 && p.carriers[0].ready() {
            assert_eq!(p.carriers[0].send(0, 0, &datagram).expect("goes on"), Sent::Taken);
            sent += 1;
            while p.carriers[1].receive(&mut buffer).expect("goes on").is_some() {
                came += 1;
            }
            p.carriers[1].service().expect("goes on");
        }
        let mut all = p.carriers[0].connections.0.values();
        sent == 600 && all.all(|l| l.counters.in_flight.load(Ordering::Relaxed) == 0)
    });
    let path = pair.carriers[0].path(0).expect("connected");
    // Both may have dialled, and the current connection may have changed.
    let all = pair.carriers[0].connections.0.values();
    let acked: u64 = all.map(|l| l.counters.acked.load(Ordering::Relaxed)).sum();
    assert!(acked > 600 * MAX_DATAGRAM as u64, "{acked}, {path:?}");
    assert_eq!((path.in_flight_bytes, path.lost_bytes), (0, 0), "{path:?}");
    assert!(
        path.sent_bytes >= path.acked_bytes && path.rtt > Duration::ZERO,
        "{path:?}"
    );
    let link = pair.carriers[1].connections.0.values_mut().find(|l| l.open());
    let acks = link.expect("open").conn.stats().frame_tx.acks;
    assert!(acks < 100, "{acks} acknowledgements of {came} datagrams");
}
