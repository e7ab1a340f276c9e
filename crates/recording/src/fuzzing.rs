//! Entry points for fuzzing: arbitrary bytes must cause neither a panic nor large allocations.

use std::io::Cursor;

use crate::reader::{Limits, Recording};

/// Small, so that the fuzzer finds inputs that request much memory.
const LIMITS: Limits = Limits {
    block: 1 << 20,
    memory: 2 << 20,
    index: 1 << 20,
};

/// Reads `data` in the format of its magic to the end, and returns the number of messages. The reader's results must be
/// consistent.
pub fn recording(data: &[u8]) -> usize {
    let Ok(recording) = Recording::read(Cursor::new(data), "fuzz", LIMITS) else {
        return 0;
    };
    let mut messages = 0;
    let mut last_error = None;
    for item in recording.messages() {
        match item {
            Ok(message) => {
                assert!(message.data.len() as u64 <= LIMITS.block);
                assert!((message.channel.0 as usize) < recording.channels().len());
                messages += 1;
            }
            Err(error) => {
                assert!(error.offset() <= data.len() as u64, "{error}");
                last_error = Some(error.to_string());
            }
        }
    }
    // Reading ends with the damage found on opening.
    assert!(
        recording
            .damage()
            .is_none_or(|damage| last_error == Some(damage.to_string()))
    );
    if !recording.is_indexed() {
        // More if a damaged file defines a channel after its first messages.
        assert!(
            recording.summary().messages <= messages as u64,
            "a scan counts what can be read"
        );
    }
    messages
}

/// A ROS 1 bag; its first line is supplied if it is missing.
pub fn bag(data: &[u8]) {
    with_magic(b"#ROSBAG V2.0\n", data);
}

/// An MCAP file; its magic is supplied if it is missing.
pub fn mcap(data: &[u8]) {
    with_magic(b"\x89MCAP0\r\n", data);
}

/// A database of rosbag2; its magic is supplied if it is missing.
pub fn db3(data: &[u8]) {
    with_magic(b"SQLite format 3\0", data);
}

/// The metadata of a folder of rosbag2. The result is bounded by the length of `data`.
pub fn metadata(data: &[u8]) -> bool {
    let Ok(metadata) = crate::rosbag2::metadata::parse(&String::from_utf8_lossy(data)) else {
        return false;
    };
    assert!(metadata.files.len() <= crate::MAX_FILES.min(data.len()));
    let profiles = metadata.qos.values().map(Vec::len);
    assert!(profiles.sum::<usize>() <= data.len() && metadata.qos.len() <= data.len());
    true
}

fn with_magic(magic: &[u8], data: &[u8]) {
    if data.starts_with(magic) {
        recording(data);
    } else {
        recording(&[magic, data].concat());
    }
}
