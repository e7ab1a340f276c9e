//! Blocks of this host's memory for incoming messages, and the endpoints they belong to.

use bus::Loan;
use proto::Geometry;
use stats::DropReason;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A topic without publications, or a service without messages, frees its unused memory after this long,
pub(crate) const IDLE: Duration = Duration::from_secs(2);
/// but keeps this many bytes, so that an occasional small message costs no system call.
pub(crate) const KEPT: u64 = 128 << 10;

/// Writes `bytes` at flat offset `offset` of a message.
pub(crate) fn fill(loan: &mut Loan, geometry: &Geometry, offset: u32, bytes: &[u8]) {
    let mut rest = bytes;
    for (part, at, len) in geometry.pieces(offset, bytes.len() as u32) {
        let (piece, tail) = rest.split_at(len as usize);
        let target = match part {
            0 => loan.control_mut(),
            n => loan.part_mut(n - 1),
        };
        target[at as usize..][..piece.len()].copy_from_slice(piece);
        rest = tail;
    }
}

/// Why a message of a topic or a service is lost if no block is available for it.
pub(crate) fn no_memory(name: &str, error: bus::LoanError) -> DropReason {
    static LOST: clock::Quiet = clock::Quiet::new();
    if let Some(more) = LOST.lets() {
        tracing::warn!(name, %error, more, "lost a message from the radio");
    }
    match error {
        bus::LoanError::TooLarge { .. } | bus::LoanError::TooManyParts { .. } => DropReason::TooLarge,
        _ => DropReason::ReceiverMemory,
    }
}

/// The ids of this daemon's own publishers on the bus, which are not sources, and of its servers, which are
/// not services of this host.
#[derive(Clone, Default)]
pub(crate) struct Ids(Arc<Mutex<BTreeSet<u64>>>);

impl Ids {
    fn all(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn insert(&self, id: u64) {
        self.all().insert(id);
    }

    pub(crate) fn remove(&self, id: u64) {
        self.all().remove(&id);
    }

    pub(crate) fn contains(&self, id: u64) -> bool {
        self.all().contains(&id)
    }
}
