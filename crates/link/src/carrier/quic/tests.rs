use super::*;
use crate::carrier::conformance::{Rig, conformance};
use crate::keys::Team;
use std::net::UdpSocket;

const DAY: Duration = Duration::from_secs(86_400);

conformance!(conforms, Pair<false>);
conformance!(conforms_on_a_wire, Pair<true>);

fn free() -> SocketAddr {
    let any: SocketAddr = "127.0.0.1:0".parse().expect("address");
    UdpSocket::bind(any).and_then(|s| s.local_addr()).expect("a port")
}

/// Two hosts of one team.
struct Pair<const WIRE: bool> {
    folder: tempfile::TempDir,
    team: Team,
    carriers: Vec<QuicCarrier>,
    addresses: [SocketAddr; 2],
}

const NAMES: [&str; 2] = ["base", "robot"];

impl<const WIRE: bool> Pair<WIRE> {
    fn open(&self, which: usize) -> QuicCarrier {
        let folder = self.folder.path().join("team/hosts").join(NAMES[which]);
        let bundle = Bundle::load(&folder, NAMES[which]).expect("loads");
        let peer = TeamPeer {
            name: NAMES[1 - which].into(),
            address: self.addresses[1 - which],
        };
        let config = QuicConfig {
            wire: WIRE,
            joins: WIRE,
            ..QuicConfig::new(self.addresses[which], vec![peer])
        };
        QuicCarrier::bind(config, bundle).expect("binds")
    }

    /// Lets both work until `done`; false if it does not come true.
    fn until(&mut self, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let start = Instant::now();
        let mut buffer = [0; 1500];
        while start.elapsed() < Duration::from_secs(20) {
            if done(self) {
                return true;
            }
            for c in &mut self.carriers {
                while c.receive(&mut buffer).expect("goes on").is_some() {}
                c.service().expect("goes on");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }

    fn connected(&mut self) -> bool {
        self.until(|p| p.carriers.iter().all(|c| c.connected(0)))
    }
}

impl<const WIRE: bool> Rig for Pair<WIRE> {
    type Carrier = QuicCarrier;

    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let team = Team::create(&folder.path().join("team"), "rovers").expect("makes");
        for name in NAMES {
            team.add_host(name, DAY).expect("makes");
        }
        let mut pair = Pair {
            folder,
            team,
            carriers: Vec::new(),
            addresses: [free(), free()],
        };
        pair.carriers = vec![pair.open(0), pair.open(1)];
        pair
    }

    fn carrier(&mut self, which: usize) -> &mut QuicCarrier {
        &mut self.carriers[which]
    }

    fn restart(&mut self) {
        drop(self.carriers.pop());
        self.carriers.push(self.open(1));
    }

    fn readdress(&mut self) -> bool {
        self.carriers[0].rebind(free()).expect("binds");
        true
    }

    fn intrude(&mut self, bytes: &[u8]) {
        let stranger = UdpSocket::bind(free()).expect("binds");
        stranger.send_to(bytes, self.carriers[0].local()).expect("sends");
    }
}

#[test]
fn a_server_may_move_too() {
    let mut pair = Pair::<false>::new();
    assert!(pair.connected());
    // Whichever of the two accepted the connection: each moves once.
    for which in [0, 1] {
        pair.carriers[which].rebind(free()).expect("binds");
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

#[test]
fn a_host_that_never_answers_is_sent_one_packet_an_attempt() {
    let mut pair = Pair::<false>::new();
    pair.carriers.truncate(1);
    let silent = UdpSocket::bind(pair.addresses[1]).expect("binds");
    silent.set_nonblocking(true).expect("a socket");
    let (start, mut packets, mut buffer) = (Instant::now(), 0, [0; 1500]);
    // Longer than QUIC would wait before it repeats a packet by itself, and than the first attempts live.
    assert!(pair.until(|_| {
        packets += std::iter::from_fn(|| silent.recv(&mut buffer).ok()).count() as u64;
        start.elapsed() > Duration::from_secs(5)
    }));
    let attempts = pair.carriers[0].peers[0].attempts;
    assert!(
        packets > 2 && packets <= attempts,
        "{packets} packets, {attempts} attempts"
    );
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
        sent == 600 && p.carriers[0].path(0).is_some_and(|p| p.in_flight_bytes == 0)
    });
    let path = pair.carriers[0].path(0).expect("connected");
    assert!(path.acked_bytes > 600 * MAX_DATAGRAM as u64, "{path:?}");
    assert_eq!((path.in_flight_bytes, path.lost_bytes), (0, 0), "{path:?}");
    assert!(
        path.sent_bytes >= path.acked_bytes && path.rtt > Duration::ZERO,
        "{path:?}"
    );
    let link = pair.carriers[1].connections.0.values_mut().find(|l| l.open());
    let acks = link.expect("open").conn.stats().frame_tx.acks;
    assert!(acks < 100, "{acks} acknowledgements of {came} datagrams");
}

#[test]
fn revocation_closes_what_is_open_and_keeps_it_closed() {
    let mut pair = Pair::<false>::new();
    assert!(pair.connected());
    pair.team.revoke("robot").expect("revokes");
    assert!(pair.until(|p| !p.carriers[0].connected(0)), "still connected");
    // Long enough for many attempts.
    let start = Instant::now();
    let tries = pair.until(|p| p.carriers[0].connected(0) || start.elapsed() > Duration::from_secs(3));
    assert!(tries && !pair.carriers[0].connected(0), "it came back");
}

#[test]
fn a_host_of_the_team_that_is_no_peer_is_refused() {
    let mut pair = Pair::<false>::new();
    pair.team.add_host("guest", DAY).expect("makes");
    let bundle = Bundle::load(&pair.folder.path().join("team/hosts/guest"), "guest").expect("loads");
    let peer = TeamPeer {
        name: "base".into(),
        address: pair.addresses[0],
    };
    let guest = QuicCarrier::bind(QuicConfig::new(free(), vec![peer]), bundle).expect("binds");
    pair.carriers[1] = guest;
    let mut most = 0;
    let start = Instant::now();
    pair.until(|p| {
        most = most.max(p.carriers[0].refused());
        assert!(!p.carriers[0].connected(0));
        most > 0 || start.elapsed() > Duration::from_secs(10)
    });
    assert!(most > 0, "never refused");
}

#[test]
fn a_connection_is_to_the_host_that_was_named() {
    // The address of base is answered by robot's other self.
    let mut pair = Pair::<false>::new();
    pair.team.add_host("other", DAY).expect("makes");
    pair.carriers.clear();
    let bundle = Bundle::load(&pair.folder.path().join("team/hosts/other"), "other").expect("loads");
    let robot = TeamPeer {
        name: "robot".into(),
        address: pair.addresses[1],
    };
    let other = QuicCarrier::bind(QuicConfig::new(pair.addresses[0], vec![robot]), bundle).expect("binds");
    let robot = pair.open(1);
    pair.carriers = vec![other, robot];
    let start = Instant::now();
    assert!(pair.until(|p| {
        assert!(!p.carriers[1].connected(0), "by whoever sits at its address");
        start.elapsed() > Duration::from_secs(2)
    }));
}
