//! Thousands of damaged files: no panic, bounded memory. Runs in a separate process with a limited address space, so
//! that an allocation of what a length field asks for would end it.

use recording::fuzzing;

use crate::support::{BAGS, MCAPS, fixture, root};

/// In addition to the sound ones; see make_fixtures.py and make_rosbag2.py.
const ODD: [&str; 7] = [
    "cdr.mcap",
    "odd/damaged_chunk.mcap",
    "odd/wrong_span.mcap",
    "odd/short_message.bag",
    "rosbag2/old/old_0.db3",
    "rosbag2/sqlite3/sqlite3.db3",
    "rosbag2/sqlite3_message/sqlite3_message.db3",
];
const ROUNDS: u64 = 1_200;
const CHILD: &str = "ROPEWALK_MUTATION_CHILD";
/// Room for the test binary, zstd's largest window (128 MiB) and the limits, not for a 4 GiB lie.
const ADDRESS_SPACE: u64 = 1 << 30;

#[test]
fn mutated_files_never_panic_nor_take_much_memory() {
    if std::env::var_os(CHILD).is_some() {
        return mutate();
    }
    let output = std::process::Command::new(std::env::current_exe().expect("this test"))
        .args([
            "--exact",
            "mutation::mutated_files_never_panic_nor_take_much_memory",
            "--nocapture",
        ])
        .env(CHILD, "1")
        .env("RUST_TEST_THREADS", "1")
        .output()
        .expect("starts");
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{}\n{stdout}\n{stderr}", output.status);
    assert!(stdout.contains("mutations survived"), "{stdout}");
}

fn mutate() {
    let limit = rustix::process::Rlimit {
        current: Some(ADDRESS_SPACE),
        maximum: Some(ADDRESS_SPACE),
    };
    rustix::process::setrlimit(rustix::process::Resource::As, limit).expect("a limit");
    let mut random = Random(7);
    let mut messages = 0;
    let mut count = 0;
    for name in BAGS.iter().chain(&MCAPS).chain(&ODD) {
        let original = fixture(name);
        for _ in 0..ROUNDS {
            let mutated = random.mutate(&original);
            messages += fuzzing::recording(&mutated);
            count += 1;
        }
    }
    // Most mutations leave most messages readable: the reader does not give up at once.
    assert!(messages > count * 10, "{messages} messages of {count} files");
    let (mut read, mut texts) = (0, 0);
    for name in ["mcap", "mcap_file", "split", "old"] {
        let original = fixture(&format!("rosbag2/{name}/metadata.yaml"));
        for _ in 0..ROUNDS {
            read += u64::from(fuzzing::metadata(&random.mutate(&original)));
            texts += 1;
        }
    }
    assert!(read > texts / 10, "{read} of {texts} texts were read");
    println!("{count} mutations survived, {messages} messages");
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn mutate(&mut self, original: &[u8]) -> Vec<u8> {
        let mut bytes = original.to_vec();
        for _ in 0..=self.below(4) {
            // Mutations of the bag header's padding are pointless.
            let at = loop {
                let at = 8 + self.below(bytes.len() - 9);
                if bytes[at] != b' ' || self.below(50) == 0 {
                    break at;
                }
            };
            let length = (1 + self.below(16)).min(bytes.len() - at);
            match self.below(6) {
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = self.next() as u8,
                // Lengths are 4 or 8 bytes: huge, nearly huge, zero.
                2 => {
                    let value = [u64::MAX, 0, 1 << 31, u64::MAX >> 1, 0xffff_fff0][self.below(5)];
                    let width = [4, 8][self.below(2)].min(bytes.len() - at);
                    bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
                }
                3 => drop(bytes.drain(at..at + length)),
                4 => {
                    let copy = bytes[at..at + length].to_vec();
                    let to = 8 + self.below(bytes.len() - 8);
                    bytes.splice(to..to, copy);
                }
                _ => bytes.truncate(at.max(64)),
            }
            if bytes.len() < 64 {
                break;
            }
        }
        bytes
    }
}

#[test]
fn corpora_replay() {
    for (target, run) in [
        ("bag", fuzzing::bag as fn(&[u8])),
        ("mcap", fuzzing::mcap),
        ("db3", fuzzing::db3),
        ("rosbag2_metadata", |text| {
            fuzzing::metadata(text);
        }),
    ] {
        let folder = root().join("fuzz/corpus").join(target);
        let files: Vec<_> = std::fs::read_dir(&folder).expect("a corpus").flatten().collect();
        assert!(files.len() >= 4, "{}", folder.display());
        for file in files {
            run(&std::fs::read(file.path()).expect("readable"));
        }
    }
}
