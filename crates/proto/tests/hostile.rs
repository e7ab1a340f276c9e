//! Foreign bytes and random sequences: nothing panics, grows or is delivered wrong.

use proto::fuzzing::{operations, packet};
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

#[test]
fn mutated_packets_do_no_harm() {
    let seeds = corpus("proto_packet");
    let mut rng = medium::Rng::new(5);
    for round in 0..3_000 {
        let mut d = seeds[round % seeds.len()].clone();
        for _ in 0..=rng.below(4) {
            if d.is_empty() {
                break;
            }
            let i = rng.below(d.len() as u64) as usize;
            match rng.below(4) {
                0 => d[i] ^= 1 << rng.below(8),
                1 => d[i] = [0, 0x3F, 0x40, 0x7F, 0x80, 0xBF, 0xC0, 0xFF][rng.below(8) as usize],
                2 => d.truncate(i.max(1)),
                _ => d.insert(i, rng.next_u64() as u8),
            }
        }
        packet(&d);
    }
}

#[test]
fn random_sequences_keep_every_promise() {
    for seed in 0..150 {
        let mut rng = medium::Rng::new(seed);
        let mut d: Vec<u8> = (0..600).map(|_| rng.next_u64() as u8).collect();
        // Half of them without corruption.
        d[0] = if seed % 2 == 0 { d[0] & 0x7F } else { d[0] | 0x80 };
        // Random bytes would start anew too often for anything to flow.
        for op in d.chunks_exact_mut(2).filter(|op| op[0] & 7 == 7) {
            op[1] |= if rng.chance(0.9) { 0x10 } else { 0 };
        }
        operations(&d);
    }
}

/// The corpus of relays as it is, cut, and with bytes changed.
#[test]
fn mutated_frames_of_relays_are_survived() {
    let seeds = corpus("proto_relay");
    assert!(seeds.len() >= 2);
    let mut rng = medium::Rng::new(5);
    for seed in &seeds {
        proto::fuzzing_relay::relay(seed);
        for cut in 0..seed.len() {
            proto::fuzzing_relay::relay(&seed[..cut]);
        }
        for _ in 0..1_500 {
            let mut bad = seed.clone();
            for _ in 0..1 + rng.below(4) {
                let at = rng.below(bad.len() as u64) as usize;
                bad[at] = rng.below(256) as u8;
            }
            proto::fuzzing_relay::relay(&bad);
        }
    }
}
