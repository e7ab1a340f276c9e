//! Messages that are forwarded while they are still arriving.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The rest never arrives.
const NEVER: u64 = u64::MAX;

/// Progress of a message that a relay forwards while it is still arriving, in bytes from its start. The relay that fills
/// its memory and the body that is sent from there hold a handle each. The bytes themselves are kept elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Arriving(Arc<AtomicU64>);

// A relay receives and sends on one thread; the counter is atomic only so that bodies are `Send`.
impl Arriving {
    /// Number of bytes available from the start; at least the message's length once it is complete. `None`: the rest
    /// will never arrive.
    pub fn ready(&self) -> Option<u32> {
        match self.0.load(Ordering::Relaxed) {
            NEVER => None,
            n => Some(u32::try_from(n).unwrap_or(u32::MAX)),
        }
    }

    /// The first `ready` bytes are available.
    pub(crate) fn grow(&self, ready: u32) {
        self.0.fetch_max(ready.into(), Ordering::Relaxed);
    }

    /// All bytes are available.
    pub(crate) fn complete(&self) {
        self.grow(u32::MAX);
    }

    /// The rest never arrives.
    pub(crate) fn fail(&self) {
        self.0.store(NEVER, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrived_bytes_stay_and_a_failed_message_does_not_return() {
        let a = Arriving::default();
        let other = a.clone();
        assert_eq!(other.ready(), Some(0));
        a.grow(7);
        a.grow(3);
        assert_eq!(other.ready(), Some(7));
        a.complete();
        assert_eq!(other.ready(), Some(u32::MAX));
        a.fail();
        a.grow(9);
        assert_eq!(other.ready(), None);
    }
}
