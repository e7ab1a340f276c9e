//! Attacks by unknown hosts on a QUIC carrier: floods, half-open handshakes, replays, reflections.
//!
//! One test, alone in its process, since it measures the process's memory, threads and descriptors.

mod tap;

use link::keys::{ADMISSION_SECRET, Team};
use link::{Carrier, QuicCarrier, unauthenticated};
use noq_proto::{ClientConfig, Connection, DatagramEvent, Endpoint, EndpointConfig, FourTuple};
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tap::{Tap, drain, free, open, until};

const DAY: Duration = Duration::from_secs(86_400);

/// Resident memory in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("reads");
    let pages: u64 = text
        .split(' ')
        .nth(1)
        .and_then(|n| n.parse().ok())
        .expect("a number");
    pages * 4096
}

fn count(what: &str) -> usize {
    std::fs::read_dir(format!("/proc/self/{what}"))
        .expect("reads")
        .count()
}

fn replays_and_reflections(folder: &Path) {
    let carriers = [free(), free()];
    let mut tap = Tap::new(carriers);
    let mut base = open(folder, "base", carriers[0], ("robot", tap.address(1)));
    let mut robot = open(folder, "robot", carriers[1], ("base", tap.address(0)));
    let mut came = Vec::new();
    for life in 0..2u8 {
        if life == 1 {
            drop(robot);
            robot = open(folder, "robot", carriers[1], ("base", tap.address(0)));
            came.clear();
        }
        until(
            || {
                tap.relay();
                drain(&mut base);
                drain(&mut robot);
                base.connected(0) && robot.connected(0)
            },
            "never connected",
        );
        if life == 0 {
            tap.seen = [Vec::new(), Vec::new()];
        }
        for i in 0..50u8 {
            until(|| robot.ready(), "never ready");
            robot.send(0, 0, &[life, i, 7, 7]).expect("goes on");
            tap.relay();
            came.extend(drain(&mut base));
        }
        until(
            || {
                tap.relay();
                drain(&mut robot);
                came.extend(drain(&mut base));
                came.len() >= 50
            },
            "something is missing",
        );
        // Replays every packet ever sent to base, and reflects those that base sent: in the first life within
        // the connection, in the second with packets of the previous life.
        let refused = base.refused();
        for packet in tap.seen[0].iter().chain(&tap.seen[1]) {
            tap.sockets[1].send_to(packet, carriers[0]).expect("sends");
            came.extend(drain(&mut base));
        }
        for _ in 0..50 {
            came.extend(drain(&mut base));
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(came.iter().all(|d| d[0] == life), "of another life");
        assert_eq!(
            came.len(),
            50,
            "something arrived twice (refused {refused} to {})",
            base.refused()
        );
    }
}

/// A QUIC client without a certificate, with or without the admission secret.
struct Attacker {
    endpoint: Endpoint,
    config: ClientConfig,
    socket: UdpSocket,
    open: Vec<(noq_proto::ConnectionHandle, Connection)>,
    target: SocketAddr,
}

impl Attacker {
    fn new(target: SocketAddr, admission_secret: Option<[u8; 32]>) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("binds");
        socket.set_nonblocking(true).expect("sets");
        Attacker {
            endpoint: Endpoint::new(Arc::new(EndpointConfig::default()), None, false),
            config: unauthenticated::client(admission_secret),
            socket,
            open: Vec::new(),
            target,
        }
    }

    fn flush(&mut self) {
        let mut packet = Vec::new();
        for (_, c) in &mut self.open {
            while c
                .poll_transmit(Instant::now(), NonZeroUsize::MIN, &mut packet)
                .is_some()
            {
                let _ = self.socket.send_to(&packet, self.target);
                packet.clear();
            }
        }
    }

    /// Starts a handshake and forgets it: it sends only the first packet.
    fn half_open(&mut self) {
        let (handle, conn) = self
            .endpoint
            .connect(Instant::now(), self.config.clone(), self.target, "base")
            .expect("connects");
        self.open.push((handle, conn));
        self.flush();
        self.open.clear();
        self.endpoint
            .handle_event(handle, noq_proto::EndpointEvent::drained());
    }

    /// Starts a handshake and continues as far as possible.
    fn begin(&mut self) {
        let begun = self
            .endpoint
            .connect(Instant::now(), self.config.clone(), self.target, "base");
        self.open.push(begun.expect("connects"));
        self.flush();
    }

    /// Receives answers, and returns their bytes.
    fn answers(&mut self) -> usize {
        let mut buffer = [0; 2000];
        let mut bytes = 0;
        while let Ok((n, from)) = self.socket.recv_from(&mut buffer) {
            bytes += n;
            let event = self.endpoint.handle(
                Instant::now(),
                FourTuple::from_remote(from),
                None,
                buffer[..n].into(),
                &mut Vec::new(),
            );
            if let Some(DatagramEvent::ConnectionEvent(handle, event)) = event
                && let Some((_, c)) = self.open.iter_mut().find(|(h, _)| *h == handle)
            {
                c.handle_event(event);
            }
        }
        self.flush();
        bytes
    }
}

/// Round trips of the connected pair while `meanwhile` runs; its best effort in half a second.
fn exchange(base: &mut QuicCarrier, robot: &mut QuicCarrier, mut meanwhile: impl FnMut()) -> usize {
    let start = Instant::now();
    let mut came = 0;
    while start.elapsed() < Duration::from_millis(500) {
        if robot.ready() {
            robot.send(0, 100, &[1; 1000]).expect("goes on");
        }
        meanwhile();
        came += drain(base).len();
        drain(robot);
    }
    came
}

fn floods(folder: &Path) {
    let carriers = [free(), free()];
    let mut base = open(folder, "base", carriers[0], ("robot", carriers[1]));
    let mut robot = open(folder, "robot", carriers[1], ("base", carriers[0]));
    until(
        || {
            drain(&mut base);
            drain(&mut robot);
            base.connected(0) && robot.connected(0)
        },
        "never connected",
    );
    let quiet = exchange(&mut base, &mut robot, || {});
    let text = std::fs::read_to_string(folder.join("team").join(ADMISSION_SECRET)).expect("reads");
    let admission_secret = unauthenticated::admission_secret(&text).expect("hex");
    for (name, secret) in [
        ("without the secret", None),
        ("with the secret", Some(admission_secret)),
    ] {
        let before = (resident(), base.connections());
        // 50 addresses, 200 handshakes each.
        let mut attackers: Vec<_> = (0..50).map(|_| Attacker::new(carriers[0], secret)).collect();
        let mut answered = 0;
        for _ in 0..200 {
            for a in &mut attackers {
                a.half_open();
                drain(&mut base);
                answered += a.answers();
            }
            drain(&mut robot);
        }
        let grown = resident().saturating_sub(before.0);
        println!(
            "10,000 half-open {name}: {grown} bytes more (attackers included), {} connections, {answered} bytes of answers",
            base.connections()
        );
        // The pair's own connections: it dials in parallel to a silent connection.
        assert!(
            base.connections() <= before.1 + 11,
            "{name}: {} connections",
            base.connections()
        );
        assert!(grown < 8 << 20, "{name}: {grown} bytes");
        assert!(
            secret.is_some() || answered == 0,
            "unknown hosts got {answered} bytes of answers"
        );
    }
    // Clients that answer the Retry get as far as TLS, a few at a time.
    let before = resident();
    let mut most = 0;
    let mut attackers: Vec<_> = (0..50)
        .map(|_| Attacker::new(carriers[0], Some(admission_secret)))
        .collect();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(3) {
        for a in &mut attackers {
            if a.open.len() < 20 {
                a.begin();
            }
            a.answers();
            drain(&mut base);
            most = most.max(base.connections());
        }
        drain(&mut robot);
    }
    println!(
        "1,000 that continue: at most {most} connections, {} bytes more (attackers included)",
        resident().saturating_sub(before)
    );
    assert!(most <= 64 + 8, "{most} connections");
    assert!(robot.connected(0) && base.connected(0));
    // Garbage of all lengths, and first packets of wrong sizes.
    let socket = UdpSocket::bind("127.0.0.1:0").expect("binds");
    let mut state = 1u64;
    let mut garbage = [0; 2000];
    let during = exchange(&mut base, &mut robot, || {
        for b in &mut garbage {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            *b = (state >> 56) as u8;
        }
        if state & 1 == 0 {
            garbage[..6].copy_from_slice(&[0xc3, 0, 0, 0, 1, 16]);
        }
        socket
            .send_to(&garbage[..(state >> 40) as usize % 1800], carriers[0])
            .expect("sends");
    });
    println!("datagrams of the pair in 0.5 s: {quiet} alone, {during} with garbage");
    assert!(during > 0);
    assert!(robot.connected(0) && base.connected(0));
    socket.set_nonblocking(true).expect("sets");
    assert!(socket.recv_from(&mut garbage).is_err(), "garbage was answered");
}

#[test]
fn unknown_hosts_get_nothing_and_cost_little() {
    let folder = tempfile::tempdir().expect("a folder");
    let team = Team::create(&folder.path().join("team"), "rovers").expect("makes");
    for name in ["base", "robot"] {
        team.add_host(name, DAY).expect("makes");
    }
    let before = (count("fd"), count("task"));
    replays_and_reflections(folder.path());
    floods(folder.path());
    assert_eq!(
        (count("fd"), count("task")),
        before,
        "descriptors or threads are left"
    );
}
