//! Compression of messages where it pays: a thread next to the radio thread packs, and a thread on the
//! receiver unpacks.
//!
//! A packed message crosses the air as one run of bytes, the envelope (`docs/wire/link.md`), which states its
//! codec and shape. An incompressible message is sent unchanged, and the sender soon stops
//! trying (decision 101).

pub(crate) mod envelope;
mod judge;
mod packer;
mod unpacker;

pub(crate) use packer::{Packer, Packing};
pub(crate) use unpacker::Unpacker;

use serde::{Deserialize, Serialize, Serializer};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often an idle thread checks whether to end.
const PATIENCE: Duration = Duration::from_millis(250);

/// How a topic's messages are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compress {
    /// Not at all.
    #[default]
    None,
    /// Where it pays: with Zstandard, or with LZ4 on radios above 100 Mbit/s, and not while samples do not
    /// shrink.
    Auto,
    /// With LZ4: faster, but less compression.
    Lz4,
    /// With Zstandard at its fastest level.
    Zstd,
}

fn seconds<S: Serializer>(d: &Duration, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_f64(d.as_secs_f64())
}

/// Packing counts of a topic.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PackStats {
    /// Messages sent packed.
    pub packed: u64,
    /// Messages sent unchanged, since they or a sample did not shrink.
    pub unpacked: u64,
    /// Messages replaced by a newer one before they were packed.
    pub replaced: u64,
    /// Original bytes of the packed messages.
    pub original_bytes: u64,
    /// Their bytes on the air.
    pub packed_bytes: u64,
    /// Bytes copied from blocks for packing, including samples: its cost in addition to time.
    pub copied_bytes: u64,
    /// Time spent, on a thread next to the radio thread except for small messages.
    #[serde(rename = "time_s", serialize_with = "seconds")]
    pub time: Duration,
}

/// Unpacking counts of a topic.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UnpackStats {
    /// Messages that arrived packed and were published.
    pub unpacked: u64,
    /// Messages that could not be unpacked or published. The link's count of delivered messages includes
    /// them.
    pub failed: u64,
    /// Bytes of the messages on the air.
    pub packed_bytes: u64,
    /// Their bytes unpacked.
    pub original_bytes: u64,
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks. If there is no work, waits for some, but only for a limited time.
fn await_work<'a, T>(
    queues: &'a Mutex<T>,
    work: &Condvar,
    is_idle: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'a, T> {
    let waited = work.wait_timeout_while(lock(queues), PATIENCE, is_idle);
    waited.unwrap_or_else(PoisonError::into_inner).0
}
