use std::io::Cursor;
use std::path::PathBuf;

use recording::{Limits, Message, ReadError, Recording};

pub(crate) const BAGS: [&str; 3] = ["none.bag", "bz2.bag", "lz4.bag"];
/// These contain the same messages as the bags.
pub(crate) const MCAPS: [&str; 5] = [
    "none.mcap",
    "lz4.mcap",
    "zstd.mcap",
    "unchunked.mcap",
    "no_summary.mcap",
];

pub(crate) type InMemory = Recording<Cursor<Vec<u8>>>;

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn vectors() -> PathBuf {
    root().join("tests/vectors/recording")
}

pub(crate) fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(vectors().join(name)).expect("a fixture in tests/vectors/recording")
}

pub(crate) fn open(bytes: Vec<u8>) -> Result<InMemory, recording::OpenError> {
    Recording::read(Cursor::new(bytes), "memory", Limits::default())
}

/// Readable messages and errors, each in order.
pub(crate) fn read(recording: &InMemory) -> (Vec<Message>, Vec<ReadError>) {
    let mut messages = Vec::new();
    let mut errors = Vec::new();
    for item in recording.messages() {
        match item {
            Ok(message) => {
                messages.push(message);
            }
            Err(error) => errors.push(error),
        }
    }
    (messages, errors)
}

/// A line of expected.txt for each message.
pub(crate) fn listing<R: std::io::Read + std::io::Seek>(
    recording: &Recording<R>,
    messages: &[Message],
) -> String {
    let line = |message: &Message| {
        let topic = &recording.channel(message.channel).topic;
        let crc = crc32fast::hash(&message.data);
        format!(
            "{topic} {} {} {crc:08x}\n",
            message.log_time.0,
            message.data.len()
        )
    };
    messages.iter().map(line).collect()
}

pub(crate) fn expected() -> String {
    String::from_utf8(fixture("expected.txt")).expect("text")
}

/// Replaces the only `from` with `to`, which has the same length.
pub(crate) fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len());
    let places: Vec<usize> = (0..bytes.len().saturating_sub(from.len() - 1))
        .filter(|&at| bytes[at..].starts_with(from))
        .collect();
    assert!(!places.is_empty(), "{from:?} occurs");
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
}
