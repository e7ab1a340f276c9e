//! Mutated bytes at every parser of input from unknown hosts, from peers, and from files of others: nothing
//! panics, and the promises of each target hold. `PACKETS` sets the number for each; `make fuzz-packets`
//! takes ten million.
//!
//! The same targets are in `fuzz/` for libFuzzer, which needs a nightly toolchain.

mod tap;

use link::fuzzing as link_parsers;
use link::keys::Team;
use proto::fuzzing::{Chance, Victim, honest_packets};
use std::path::Path;
use std::time::{Duration, Instant};
use tap::{Tap, drain, free, open, until};

/// Number of inputs after which a long-lived target is recreated.
const LIFE: u64 = 256;
/// Longest piece of an input of the relay's target.
const PIECE: usize = 127;

fn packets() -> u64 {
    std::env::var("PACKETS").map_or(4_000, |n| n.parse().expect("PACKETS is a number"))
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let entries = std::fs::read_dir(folder.join(target)).unwrap_or_else(|e| panic!("{target}: {e}"));
    let mut files: Vec<_> = entries.map(|e| e.expect("an entry").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{target} has no corpus");
    let read = |f: &std::path::PathBuf| std::fs::read(f).expect("reads");
    files.iter().map(read).collect()
}

/// Runs `one` on this many mutants of `seeds`, and prints how long that took.
fn run(target: &str, seeds: &[Vec<u8>], mut one: impl FnMut(&[u8])) {
    let begun = Instant::now();
    let mut chance = Chance(0x0F00_D5EE);
    for _ in 0..packets() {
        one(&chance.mutant(seeds));
    }
    println!(
        "{target}: {} mutants of {} seeds in {:.1} s",
        packets(),
        seeds.len(),
        begun.elapsed().as_secs_f64()
    );
}

/// Cuts each seed at every place, replays it, and runs mutants.
fn parser(target: &str, one: fn(&[u8])) {
    let seeds = corpus(target);
    for seed in &seeds {
        (0..=seed.len()).for_each(|n| one(&seed[..n]));
    }
    run(target, &seeds, one);
}

/// The same for a parser of text: bytes that are not text are replaced by characters that mean something to
/// it.
fn text_parser(target: &str, alphabet: &'static [u8], one: fn(&[u8])) {
    let seeds = corpus(target);
    for seed in &seeds {
        (0..=seed.len()).for_each(|n| one(&seed[..n]));
    }
    run(target, &seeds, |data| {
        let readable = |b: &u8| match b {
            0x0A | 0x20..0x7F => *b,
            b => alphabet[usize::from(*b) % alphabet.len()],
        };
        one(&data.iter().map(readable).collect::<Vec<u8>>());
    });
}

#[test]
fn frames_behind_a_handshake() {
    let mut seeds = corpus("proto_packet");
    seeds.iter().for_each(|s| proto::fuzzing::packet(s));
    seeds.extend(honest_packets());
    let (mut victim, mut left) = (Victim::new(), LIFE);
    run("proto_packet", &seeds, |data| {
        victim.packet(data);
        left -= 1;
        if left == 0 {
            left = LIFE;
            std::mem::take(&mut victim).aftermath();
        }
    });
    victim.aftermath();
}

#[test]
fn frames_for_a_relay() {
    let seeds = corpus("proto_relay");
    for seed in &seeds {
        (0..=seed.len()).for_each(|n| proto::fuzzing_relay::relay(&seed[..n]));
    }
    // An input is a sequence of pieces, each the frames of a datagram.
    let mut pieces = Vec::new();
    for seed in &seeds {
        let mut rest = &seed[..];
        while let Some((head, tail)) = rest.split_first() {
            let (piece, tail) = tail.split_at(usize::from(head >> 1).min(tail.len()));
            pieces.push(piece.to_vec());
            rest = tail;
        }
    }
    pieces.extend(
        corpus("proto_packet")
            .into_iter()
            .filter_map(|s| Some(s.get(1..)?.to_vec())),
    );
    let (mut input, mut row, mut i) = (Vec::new(), 0, 0u8);
    run("proto_relay", &pieces, |piece| {
        if row == 0 {
            // The flow of a good peer comes first, so that there is something to relay.
            input = seeds[usize::from(i) % seeds.len()].clone();
        }
        let piece = &piece[..piece.len().min(PIECE)];
        i = i.wrapping_add(1);
        input.push((piece.len() as u8) << 1 | (i & 1));
        input.extend_from_slice(piece);
        row = (row + 1) % 64;
        if row == 0 {
            proto::fuzzing_relay::relay(&input);
        }
    });
}

#[test]
fn sequences_of_two_radios() {
    let seeds = corpus("proto_operations");
    seeds.iter().for_each(|s| proto::fuzzing::operations(s));
    // For this target a packet is an operation; a sequence has this many.
    const ROW: u64 = 600;
    let begun = Instant::now();
    let mut chance = Chance(7);
    for row in 0..packets().div_ceil(ROW) {
        let mut d: Vec<u8> = (0..2 * ROW).map(|_| chance.below(256) as u8).collect();
        // Every fourth one without corruption. Random bytes would restart too often for anything to flow.
        d[0] = if row % 4 == 0 { d[0] & 0x7F } else { d[0] | 0x80 };
        for op in d.chunks_exact_mut(2).filter(|op| op[0] & 7 == 7) {
            op[1] |= if chance.below(10) > 0 { 0x10 } else { 0 };
        }
        proto::fuzzing::operations(&d);
    }
    println!(
        "proto_operations: {} operations in {:.1} s",
        packets(),
        begun.elapsed().as_secs_f64()
    );
}

#[test]
fn envelopes() {
    parser("link_envelope", link_parsers::envelope);
}

#[test]
fn sealed_messages() {
    parser("link_sealed", link_parsers::sealed);
}

#[test]
fn nodes() {
    parser("link_nodes", link_parsers::nodes);
}

#[test]
fn calls() {
    parser("link_call", link_parsers::call);
}

#[test]
fn pieces() {
    parser("link_pieces", link_parsers::pieces);
}

#[test]
fn parts() {
    parser("link_parts", link_parsers::parts);
}

#[test]
fn streams() {
    parser("link_stream", link_parsers::stream);
}

#[test]
fn lines() {
    parser("serial_line", link_parsers::serial_line);
}

#[test]
fn ledgers() {
    text_parser("keys_ledger", b" \n0f9-_.revokdz", link_parsers::ledger);
}

#[test]
fn configurations() {
    text_parser("link_config", b" \n:-{}[]&*!'\"09azM,#|>%@", link_parsers::config);
}

#[test]
fn changes() {
    text_parser("link_change", b"\n=0919.-+%eEinfNmsuHz", link_parsers::change);
}

#[test]
fn transforms() {
    parser("link_transforms", link_parsers::transforms);
}

#[test]
fn a_daemon_behind_its_carrier() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::Builder::new()
        .prefix("rwf")
        .tempdir()
        .expect("a folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).expect("sets");
    let bus = bus::Bus::open(bus::BusConfig::new(folder.path())).expect("opens");
    let honest = honest_packets();
    let mut gateway = link_parsers::Gateway::new(bus.clone());
    honest.iter().for_each(|d| gateway.packet(d));
    let delivered = gateway.delivered();
    assert!(
        delivered > 20,
        "{delivered} of the honest frames' messages are delivered"
    );
    let mut left = 16 * LIFE;
    run("link_gateway", &honest, |data| {
        gateway.packet(data);
        left -= 1;
        if left == 0 {
            left = 16 * LIFE;
            gateway = link_parsers::Gateway::new(bus.clone());
        }
    });
}

/// QUIC packets before authentication, and within a connection: all packets of two carriers, mutated.
#[test]
fn packets_of_unknown_hosts() {
    let folder = tempfile::tempdir().expect("a folder");
    let team = Team::create(&folder.path().join("team"), "rovers").expect("makes");
    for name in ["base", "robot"] {
        team.add_host(name, Duration::from_secs(86_400)).expect("makes");
    }
    let carriers = [free(), free()];
    let tap = Tap::new(carriers);
    let mut talk = Talk {
        base: open(folder.path(), "base", carriers[0], ("robot", tap.address(1))),
        robot: open(folder.path(), "robot", carriers[1], ("base", tap.address(0))),
        tap,
        came: 0,
    };
    until(
        || {
            talk.turn();
            talk.came >= 200
        },
        "never connected",
    );
    let seeds = std::mem::take(&mut talk.tap.seen).concat();
    // From the peer's address, as far as addresses show.
    let attacker = talk.tap.sockets[1].try_clone().expect("a socket");
    let mut n = 0u32;
    run("link_quic", &seeds, |data| {
        let _ = attacker.send_to(&data[..data.len().min(1_500)], carriers[0]);
        n += 1;
        if n.is_multiple_of(32) {
            talk.hear();
        }
        if n.is_multiple_of(1_024) {
            talk.turn();
            talk.tap.seen = Default::default();
        }
    });
    // The true peer still gets through after all that.
    talk.came = 0;
    until(
        || {
            talk.turn();
            talk.came >= 200
        },
        "the peer is lost",
    );
}

/// Two carriers that talk through a tap.
struct Talk {
    tap: Tap,
    base: link::QuicCarrier,
    robot: link::QuicCarrier,
    came: u64,
}

impl Talk {
    /// The robot sends a datagram, if it can, and everything is carried.
    fn turn(&mut self) {
        use link::Carrier;
        self.tap.relay();
        self.hear();
        drain(&mut self.robot);
        if self.robot.connected(0) && self.robot.ready() {
            self.robot.send(0, 0, &[7; 60]).expect("goes on");
        }
    }

    /// The base receives what arrived.
    fn hear(&mut self) {
        for datagram in drain(&mut self.base) {
            assert_eq!(datagram, [7; 60], "a forged datagram arrived");
            self.came += 1;
        }
        let held = self.base.connections();
        assert!(held <= 72, "{held} connections");
    }
}
