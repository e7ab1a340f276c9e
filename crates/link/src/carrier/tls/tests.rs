use super::*;
use crate::carrier::conformance::{Rig, conformance};
use crate::carrier::team::pair::{self, Kind, team_suite};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, Ordering};

type Pair = pair::Pair<TlsKind>;

conformance!(conforms, Pair);
team_suite!(TlsKind);

struct TlsKind;

impl Kind for TlsKind {
    type Carrier = TlsCarrier;

    fn free() -> SocketAddr {
        // A port that the system does not assign to clients, here or in another test program.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mut ports = std::iter::repeat_with(|| {
            let number = std::process::id().wrapping_mul(61) + NEXT.fetch_add(1, Ordering::Relaxed);
            20_000 + (number % 12_000) as u16
        });
        let free = ports.find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok());
        free.and_then(|s| s.local_addr().ok()).expect("a port")
    }

    fn bind(own: SocketAddr, peers: Vec<TeamPeer>, bundle: Bundle) -> TlsCarrier {
        TlsCarrier::bind(own, peers, bundle).expect("binds")
    }

    fn local(carrier: &TlsCarrier) -> SocketAddr {
        carrier.local()
    }

    fn connected(carrier: &TlsCarrier) -> bool {
        carrier.connected(0)
    }

    fn intrude(to: SocketAddr, bytes: &[u8]) {
        let mut attacker = TcpStream::connect(to).expect("connects");
        attacker.write_all(bytes).expect("sends");
    }
}

/// Number of connections of unknown hosts.
fn unknown_connections(carrier: &TlsCarrier) -> usize {
    let unknown = carrier.connections.values().filter(|c| c.standing.peer.is_none());
    unknown.count()
}

/// The answer to an unknown host's bytes until its connection is closed.
fn answer(pair: &mut Pair, mut attacker: TcpStream) -> Vec<u8> {
    attacker.set_nonblocking(true).expect("a socket");
    let mut came = Vec::new();
    assert!(
        pair.until(|_| match attacker.read_to_end(&mut came) {
            Ok(_) => true,
            Err(e) => e.kind() != std::io::ErrorKind::WouldBlock,
        }),
        "it stays"
    );
    came
}

#[test]
fn unadmitted_connections_get_no_answer() {
    let mut pair = Pair::new();
    assert!(pair.connected());
    let token = pair.carriers[0].tls.admission.make();
    let mut wrong = token;
    wrong[3] ^= 1;
    for (bytes, why) in [
        (&b""[..], "it says nothing"),
        (&token[..15], "half a token"),
        (&wrong[..], "a wrong token"),
        (b"GET / HTTP/1.1\r\nHost: robot\r\n\r\n", "another protocol"),
    ] {
        let mut attacker = TcpStream::connect(pair.addresses[0]).expect("connects");
        attacker.write_all(bytes).expect("sends");
        assert!(answer(&mut pair, attacker).is_empty(), "{why}");
    }
    // A host that overheard a token meets TLS, which answers with an alert.
    let mut attacker = TcpStream::connect(pair.addresses[0]).expect("connects");
    attacker
        .write_all(&[&token[..], b"no TLS, but long enough for a record"].concat())
        .expect("sends");
    let alert = answer(&mut pair, attacker);
    assert_eq!(alert.first(), Some(&21), "an alert, not {alert:?}");
    assert!(pair.carriers[0].refused() >= 5);
    assert!(
        pair.until(|p| unknown_connections(&p.carriers[0]) == 0),
        "one stays"
    );
}

#[test]
fn a_replayed_admission_token_is_refused() {
    let mut pair = Pair::new();
    assert!(pair.connected());
    let token = pair.carriers[0].tls.admission.make();
    for first in [true, false] {
        let mut attacker = TcpStream::connect(pair.addresses[0]).expect("connects");
        let bytes = [&token[..], b"no TLS, but long enough for a record"].concat();
        attacker.write_all(&bytes).expect("sends");
        assert_eq!(
            answer(&mut pair, attacker).is_empty(),
            !first,
            "TLS answers only the first"
        );
    }
}

#[test]
fn connections_without_admission_yield_to_admitted_ones() {
    let mut pair = Pair::new();
    // Neither of the two waits for these.
    let connect = || TcpStream::connect(pair.addresses[0]).expect("connects");
    let silent: Vec<_> = (0..300).map(|_| connect()).collect();
    let start = Instant::now();
    assert!(pair.connected(), "the pair is kept out");
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "by connections without a token, until they end"
    );
    drop(silent);
}

#[test]
fn many_silent_clients_are_bounded_and_disconnected() {
    let mut pair = Pair::new();
    assert!(pair.connected());
    let (mut sockets, mut most) = (Vec::new(), 0);
    for _ in 0..200 {
        sockets.push(TcpStream::connect(pair.addresses[0]).expect("connects"));
        let mut buffer = vec![0; MOST];
        pair.carriers[0].receive(&mut buffer).expect("goes on");
        most = most.max(unknown_connections(&pair.carriers[0]));
    }
    assert!(most <= 128, "{most} connections");
    assert!(
        pair.until(|p| unknown_connections(&p.carriers[0]) == 0 && p.carriers[0].refused() >= 200),
        "{} of them stay",
        unknown_connections(&pair.carriers[0])
    );
    assert!(pair.connected(), "the pair suffers");
}

#[test]
fn listening_resumes_after_descriptors_run_out() {
    let mut pair = Pair::new();
    let gone = std::io::Error::from(std::io::ErrorKind::OutOfMemory);
    let start = Instant::now();
    for c in &mut pair.carriers {
        c.stop_listening(&gone, start);
    }
    let mut attacker = TcpStream::connect(pair.addresses[0]).expect("is queued by the system");
    attacker.write_all(b"anyone?").expect("sends");
    assert!(!pair.carriers[0].look(start).expect("goes on"), "no wake-up");
    assert!(pair.connected(), "it listens again");
    assert!(start.elapsed() >= Duration::from_secs(1));
}

#[test]
fn a_peer_that_sends_no_frames_is_dropped() {
    let mut pair = Pair::new();
    assert!(pair.connected());
    let number = pair.carriers[1].current(0, Instant::now()).expect("connected");
    let connection = pair.carriers[1].connections.get_mut(&number).expect("it");
    connection.put_unframed(&[0xff; 40]);
    pair.carriers[1].unsent.push(number);
    let before = pair.carriers[0].refused();
    assert!(pair.until(|p| p.carriers[0].refused() > before), "not noticed");
    assert!(pair.connected(), "it comes back");
}

#[test]
fn a_peer_that_reads_nothing_holds_up_nobody_else() {
    let mut pair = Pair::new();
    pair.add_host("third");
    let address = TlsKind::free();
    let third = TeamPeer {
        name: "third".into(),
        address,
    };
    pair.carriers.clear();
    let base = pair.open_as("base", pair.addresses[0], vec![pair.peer(1), third]);
    let robot = pair.open(1);
    let third = pair.open_as("third", address, vec![pair.peer(0)]);
    pair.carriers = vec![base, robot, third];
    assert!(pair.until(|p| p.carriers[0].connected(0) && p.carriers[0].connected(1)));
    let mut third = pair.carriers.pop().expect("it");
    // More than two sockets hold.
    let datagram = [7; MAX_DATAGRAM * JOINED];
    let (mut sent, mut lost) = (0, 0);
    assert!(
        pair.until(|p| {
            while p.carriers[0].ready() && lost < 100 {
                match p.carriers[0].send(1, 0, &datagram).expect("goes on") {
                    Sent::Taken => sent += 1,
                    Sent::Lost => lost += 1,
                    Sent::NotReady => panic!("it was ready"),
                }
                p.carriers[0].flush().expect("goes on");
            }
            lost >= 100
        }),
        "{sent} taken, {lost} lost"
    );
    let (mut buffer, mut came) = (vec![0; MOST], false);
    assert!(
        pair.until(|p| {
            if p.carriers[0].ready() {
                p.carriers[0].send(0, 0, b"robot").expect("goes on");
                p.carriers[0].flush().expect("goes on");
            }
            came |= p.carriers[1].receive(&mut buffer).expect("goes on").is_some();
            came
        }),
        "the other one waits"
    );
    // Accepted datagrams arrive once it reads again.
    let mut came = 0;
    assert!(
        pair.until(|_| {
            while third.receive(&mut buffer).expect("goes on").is_some() {
                came += 1;
            }
            third.service().expect("goes on");
            came >= sent
        }),
        "{came} of {sent}"
    );
}

#[test]
fn a_taken_port_is_an_error_that_names_it() {
    let pair = Pair::new();
    let error = TlsCarrier::bind(pair.addresses[0], vec![], pair.bundle("base"))
        .err()
        .expect("is taken");
    assert!(
        error.to_string().contains(&pair.addresses[0].to_string()),
        "{error}"
    );
}
