//! Messages made smaller where that pays: packed on a thread beside the radio's, and unpacked on one there.
//!
//! A packed message crosses the air as one run of bytes, the envelope (`docs/wire/link.md`), which says how it was
//! packed and what shape it had. What does not shrink goes as it is, and soon is not even tried.

pub(crate) mod envelope;
mod judge;
mod packer;
mod unpacker;

pub(crate) use packer::{Packer, Packing};
pub(crate) use unpacker::Unpacker;

use serde::{Deserialize, Serialize, Serializer};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a thread without work looks whether it is to end.
const PATIENCE: Duration = Duration::from_millis(250);

/// How a topic's messages are made smaller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compress {
    /// Not at all.
    #[default]
    None,
    /// Where it pays: by Zstandard, on radios above 100 Mbit/s by LZ4, and not while samples do not shrink.
    Auto,
    /// By LZ4: quick, and smaller by less.
    Lz4,
    /// By Zstandard at its quickest level.
    Zstd,
}

fn seconds<S: Serializer>(d: &Duration, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_f64(d.as_secs_f64())
}

/// What packing did for a topic.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PackStats {
    /// Messages that went packed.
    pub packed: u64,
    /// Messages that went as they are, since they or a sample did not shrink.
    pub unpacked: u64,
    /// Messages that a newer one replaced before they were packed.
    pub replaced: u64,
    /// Bytes of the packed messages before.
    pub original_bytes: u64,
    /// Their bytes on the air.
    pub packed_bytes: u64,
    /// Bytes copied from blocks for it, samples included: what it costs beside time.
    pub copied_bytes: u64,
    /// Time that it took, on a thread beside the radio's unless messages are small.
    #[serde(rename = "time_s", serialize_with = "seconds")]
    pub time: Duration,
}

/// What unpacking did for a topic.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UnpackStats {
    /// Messages that came packed and were published.
    pub unpacked: u64,
    /// Messages that could not be unpacked or published. They are among those that the link delivered.
    pub failed: u64,
    /// Bytes of the messages on the air.
    pub packed_bytes: u64,
    /// Their bytes unpacked.
    pub original_bytes: u64,
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks; if there is no work, waits for some, but not for ever.
fn await_work<'a, T>(
    queues: &'a Mutex<T>,
    work: &Condvar,
    is_idle: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'a, T> {
    let waited = work.wait_timeout_while(lock(queues), PATIENCE, is_idle);
    waited.unwrap_or_else(PoisonError::into_inner).0
}
