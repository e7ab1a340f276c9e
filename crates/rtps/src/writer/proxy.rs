//! A writer's knowledge of a matched reader.

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
    /// First sample that it receives; it does not want earlier ones.
    pub(super) start: i64,
    /// It has all samples up to this one.
    pub(super) acked: i64,
    /// Counts of its last ACKNACK and NACK_FRAG.
    pub(super) count: Option<u32>,
    pub(super) fragment_count: Option<u32>,
    account: Arc<Account>,
    _charge: Charge,
}

/// Memory of a match that is charged to the remote participant, in addition to its event.
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

    /// Charges the memory of a queued sample.
    pub(super) fn job(&self) -> Option<Charge> {
        self.account.take(JOB)
    }
}
