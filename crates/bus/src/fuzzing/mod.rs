//! Entry points of the fuzz targets, also run as tests on seeds. Nothing here may panic on any input.

mod operations;

use crate::block::{FIXED, Header, Range, table_entry, table_is_inside};
use crate::frame::Frame;
pub use operations::operations;

/// A frame as another process may send it.
pub fn handshake(data: &[u8]) {
    if let Ok(frame) = Frame::decode(data) {
        assert_eq!(frame.encode(), data, "a frame has one encoding");
    }
}

/// A block's header as a hostile publisher may write it. The first eight bytes are the block's length.
pub fn header(data: &[u8]) {
    let Some((len, bytes)) = data.split_first_chunk() else {
        return;
    };
    let block = u64::from_le_bytes(*len);
    let Some(header) = bytes.first_chunk().and_then(|fixed| Header::parse(fixed, block)) else {
        return;
    };
    let is_inside = |range: Range| {
        range
            .offset
            .checked_add(range.len)
            .is_some_and(|end| end <= block)
    };
    assert!(is_inside(header.control));
    let Some(table) = bytes.get(FIXED..FIXED + header.table_len()) else {
        return;
    };
    if table_is_inside(table, block) {
        assert!((0..header.parts).all(|i| table_entry(table, i).is_some_and(is_inside)));
    }
}

/// Number of mutants that a test uses: `PACKETS` if set, otherwise `count`.
#[cfg(test)]
pub(crate) fn mutants(count: u64) -> u64 {
    if cfg!(miri) {
        return 200;
    }
    std::env::var("PACKETS").map_or(count, |n| n.parse().expect("PACKETS is a number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Replays the seeds and past findings of a fuzz target.
    fn replay(target: &str, run: fn(&[u8])) {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fuzz/corpus")
            .join(target);
        let mut count = 0;
        for entry in std::fs::read_dir(&dir).unwrap_or_else(|e| panic!("{dir:?}: {e}")) {
            run(&std::fs::read(entry.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count > 0, "{dir:?} is empty");
    }

    #[test]
    fn corpora() {
        replay("bus_handshake", handshake);
        replay("bus_header", header);
        replay("bus_operations", operations);
    }

    /// `OPERATIONS` sets the number; `make fuzz-short` uses a million. This is one test for all runs, because
    /// it counts descriptors.
    #[test]
    fn random_operations_agree_with_the_model() {
        let mut seed = 0x5EED_u64;
        let mut random = || {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (seed >> 33) as u8
        };
        let total =
            std::env::var("OPERATIONS").map_or(60_000, |n| n.parse().expect("OPERATIONS is a number"));
        let mut done = 0;
        let mut round = 0;
        while done < total {
            // Every other run has no lies.
            let lies = round % 2 == 1;
            let data: Vec<u8> = (0..2_000)
                .map(|i| match random() {
                    op if i % 2 == 0 && !lies && op % 16 == 15 => 0,
                    byte => byte,
                })
                .collect();
            operations(&data);
            done += data.len() / 2;
            round += 1;
        }
        println!("{done} operations in {round} runs");
    }
}
