//! Thousands of damaged inputs: no panic, no hang, and accepted inputs round-trip (the entry points of
//! `schema::fuzzing` assert that).

use schema::{Flavour, Registry, Value, fuzzing};
use std::path::Path;

/// A small seeded generator (splitmix64), so that a failure is reproducible.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

fn mutate(bytes: &mut Vec<u8>, rng: &mut Rng) {
    for _ in 0..=rng.below(3) {
        let at = rng.below(bytes.len());
        match rng.below(6) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << rng.below(8),
            1 if !bytes.is_empty() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][rng.below(5)],
            2 => bytes.truncate(at),
            3 => bytes.insert(at, rng.next() as u8),
            4 if bytes.len() > at + 4 => {
                let word = [0, 1, 255, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, u32::MAX][rng.below(7)];
                bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
            }
            _ => {
                let (from, len) = (rng.below(bytes.len()), rng.below(8));
                let piece: Vec<u8> = bytes.iter().skip(from).take(len).copied().collect();
                bytes.splice(at..at, piece);
            }
        }
    }
}

fn run(name: &str, seeds: &[Vec<u8>], rounds: usize, target: fn(&[u8])) {
    let mut rng = Rng(name.len() as u64);
    for seed in seeds {
        target(seed);
        for _ in 0..rounds {
            let mut bytes = seed.clone();
            mutate(&mut bytes, &mut rng);
            target(&bytes);
        }
    }
}

/// The seeds of the fuzz target `name`: one file each.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(name);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.expect("readable").path())
        .collect();
    files.sort();
    assert!(files.len() >= 2, "{name} has seeds");
    files
        .iter()
        .map(|f| std::fs::read(f).expect("readable"))
        .collect()
}

#[test]
fn definitions() {
    let mut seeds = corpus("schema_msg_text");
    for flavour in [Flavour::Ros1, Flavour::Ros2] {
        for name in ["sensor_msgs/PointCloud2", "visualization_msgs/MarkerArray"] {
            let text = Registry::new(flavour).schema(name).expect("known").definition();
            seeds.push([&[u8::from(flavour == Flavour::Ros2)], text.as_bytes()].concat());
        }
    }
    run("definitions", &seeds, 400, fuzzing::msg_text);
}

#[test]
fn ros1_messages() {
    run("ros1", &corpus("schema_ros1"), 3000, fuzzing::ros1_split);
}

#[test]
fn cdr_messages() {
    run("cdr", &corpus("schema_cdr"), 3000, fuzzing::cdr_split);
}

#[test]
fn control_and_data_parts() {
    run("parts", &corpus("schema_join"), 3000, fuzzing::join);
}

#[test]
fn yaml() {
    run("yaml", &corpus("schema_yaml"), 500, fuzzing::yaml);
}

/// A few bytes never cause a large allocation: 12 bytes that claim 2^31 empty elements are refused.
#[test]
fn empty_elements_are_bounded() {
    let mut registry = Registry::new(Flavour::Ros1);
    registry
        .add_message("t/T", "std_msgs/Empty[] a\nstd_msgs/Empty[] b")
        .expect("parses");
    let schema = registry.schema("t/T").expect("compiles");
    let bytes = |a: u32, b: u32| [a.to_le_bytes(), b.to_le_bytes()].concat();
    for (a, b, good) in [
        (0, 0, true),
        (4000, 96, true),
        (4000, 97, false),
        (0x7fff_ffff, 0, false),
        (u32::MAX, 0, false),
    ] {
        let bytes = bytes(a, b);
        assert_eq!(schema.split_ros1(&bytes).is_ok(), good, "{a} {b}");
        assert_eq!(schema.decode_ros1(&bytes).is_ok(), good, "{a} {b}");
        assert_eq!(schema.join_cdr(&bytes, &[]).is_ok(), good, "{a} {b}");
    }
    match schema.decode_ros1(&bytes(2, 0)).expect("valid").get("a") {
        Ok(Value::List(list)) => assert_eq!(list.len(), 2),
        other => panic!("{other:?}"),
    }
}
