//! What a writer knows of a reader that it is matched with.

use crate::account::{Account, Charge};
use crate::config::Pace;
use crate::send::{JOB, Target};
use std::sync::Arc;

/// A matched reader.
#[derive(Debug)]
pub(crate) struct ReaderProxy {
    pub(crate) reliable: bool,
    pub(crate) target: Target,
    pub(crate) pace: Pace,
    /// The first sample that it is given; what was written before is not for it.
    pub(super) start: i64,
    /// It has all up to here.
    pub(super) acked: i64,
    /// Counts of its last ACKNACK and NACK_FRAG.
    pub(super) count: Option<u32>,
    pub(super) fragment_count: Option<u32>,
    account: Arc<Account>,
    _charge: Charge,
}

/// What a match costs the remote participant, beside its event.
pub(crate) const PROXY: usize = 768;

impl ReaderProxy {
    pub(crate) fn new(
        reliable: bool,
        target: Target,
        pace: Pace,
        account: Arc<Account>,
        charge: Charge,
    ) -> Self {
        ReaderProxy {
            reliable,
            target,
            pace,
            start: 0,
            acked: 0,
            count: None,
            fragment_count: None,
            account,
            _charge: charge,
        }
    }

    /// Whether it lacks samples up to `last`.
    pub(super) fn lacks(&self, last: i64) -> bool {
        self.reliable && self.acked < last
    }

    /// The room that a sample takes which waits for it.
    pub(super) fn job(&self) -> Option<Charge> {
        self.account.take(JOB)
    }
}
