//! The air ledger: what is believed to occupy the air, and whom something that is sent now would delay.

use super::Pacer;
use super::tuning::tuning;
use crate::send::Foreseen;
use crate::share::Share;
use core::time::Duration;
use stats::Time;

/// What is believed to occupy the air from now on: what this host's device still holds, and the messages that are foreseen
/// or claimed, here and elsewhere.
#[derive(Debug)]
pub(crate) struct Air {
    /// What this host's device holds.
    pub(crate) device: Pacer,
    /// What other hosts claim and announce.
    pub(crate) others: Share,
}

/// The foreseen messages that count.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whose {
    /// More important ones than this priority, of this host and of others. The next one of this host is given.
    All(u8, Option<Foreseen>),
    /// More important ones of other hosts.
    Others(u8),
    /// Those of hosts other than this one and the host of this short id.
    Third(u32),
}

impl Air {
    /// When something that takes `air` will have left the air, if it is handed over now.
    pub(crate) fn ends(&self, now: Time, air: Duration) -> Time {
        self.device.next().max(now) + air
    }

    /// The next foreseen message: it may come as early as `from`, and nothing that is still in the air then can give way.
    pub(crate) fn foreseen(&self, now: Time, whose: Whose) -> Option<Foreseen> {
        let before = |by: Duration| {
            move |f: Foreseen| Foreseen {
                from: f.from - by,
                ..f
            }
        };
        let (early, earlier) = (tuning().early, tuning().earlier);
        match whose {
            Whose::All(priority, ours) => {
                let others = self.others.foreseen(now, priority).map(before(earlier + early));
                let all = ours.map(before(early)).into_iter().chain(others);
                all.min_by_key(|f| f.from)
            }
            Whose::Others(priority) => self.others.foreseen(now, priority).map(before(earlier)),
            Whose::Third(host) => self.others.foreseen_of_others(now, host).map(before(earlier)),
        }
    }

    /// The next foreseen message, if something that is in the air until `end` would delay it.
    pub(crate) fn delays(&self, now: Time, end: Time, whose: Whose) -> Option<Foreseen> {
        self.foreseen(now, whose).filter(|f| f.from < end)
    }
}
