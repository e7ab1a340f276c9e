//! Foreign bytes and random sequences: nothing panics, grows or is delivered wrong.

use proto::fuzzing::{Chance, operations, packet};
use std::path::PathBuf;

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let dir: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../fuzz/corpus", target]
        .iter()
        .collect();
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .expect("the corpus")
        .map(|f| f.expect("a file").path())
        .collect();
    files.sort();
    files
        .iter()
        .map(|f| std::fs::read(f).expect("a readable file"))
        .collect()
}

#[test]
fn the_corpora_replay() {
    let packets = corpus("proto_packet");
    let sequences = corpus("proto_operations");
    assert!(packets.len() >= 5 && sequences.len() >= 4);
    packets.iter().for_each(|d| packet(d));
    sequences.iter().for_each(|d| operations(d));
}

/// Many more of them, and of every other parser of the link, are in `crates/link/tests/hostile_hosts/parsers.rs`.
#[test]
fn mutated_packets_do_no_harm() {
    let seeds = corpus("proto_packet");
    let mut chance = Chance(5);
    for _ in 0..2_000 {
        packet(&chance.mutant(&seeds));
    }
}

#[test]
fn random_sequences_keep_every_promise() {
    (0..150).for_each(|seed| operations(&sequence(seed)));
}

fn sequence(seed: u64) -> Vec<u8> {
    let mut rng = medium::Rng::new(seed);
    let mut d: Vec<u8> = (0..600).map(|_| rng.next_u64() as u8).collect();
    // Half of them without corruption.
    d[0] = if seed.is_multiple_of(2) {
        d[0] & 0x7F
    } else {
        d[0] | 0x80
    };
    // Random bytes would restart ends too often for anything to flow.
    for op in d.chunks_exact_mut(2).filter(|op| op[0] & 7 == 7) {
        op[1] |= if rng.chance(0.9) { 0x10 } else { 0 };
    }
    d
}
