//! A hash of every datagram with its time, for runs that must stay the same.

use stats::Time;
use std::cell::Cell;

thread_local! {
    /// Datagrams and their hash, while this thread records them.
    static TRACE: Cell<Option<(u64, u64)>> = const { Cell::new(None) };
}

/// FNV-1a.
const BASIS: u64 = 0xCBF2_9CE4_8422_2325;
const PRIME: u64 = 0x0100_0000_01B3;

fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(hash, |h, b| (h ^ u64::from(*b)).wrapping_mul(PRIME))
}

/// A datagram went from one host to another.
pub fn went(now: Time, (from, to): (usize, usize), datagram: &[u8]) {
    TRACE.with(|trace| {
        if let Some((count, hash)) = trace.get() {
            let hash = [now.0, from as u64, to as u64, datagram.len() as u64]
                .iter()
                .fold(hash, |h, n| fnv(h, &n.to_le_bytes()));
            trace.set(Some((count + 1, fnv(hash, datagram))));
        }
    });
}

/// Number and hash of the datagrams of a run on this thread.
pub fn of<R>(run: impl FnOnce() -> R) -> (u64, u64) {
    TRACE.with(|trace| trace.set(Some((0, BASIS))));
    run();
    TRACE.with(Cell::take).unwrap_or_default()
}
