//! The airtime owed to less important topics under a minimum share.

use super::topic::SendTopic;
use crate::body::Body;
use core::time::Duration;

/// One minimum share of the air that this host sends on.
///
/// While a message of the share's topics waits, the airtime of others adds its part to the debt, and the topics' own
/// airtime is subtracted. While the debt is positive, these topics go first. In the long run they get exactly their
/// share; idle time earns nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Quota {
    share: f64,
    /// In nanoseconds; `None` while nothing waits.
    owed: Option<f64>,
}

impl Quota {
    pub(crate) fn new(share: f64) -> Self {
        Quota { share, owed: None }
    }

    pub(crate) fn set(&mut self, share: f64) {
        *self = Quota::new(share);
    }

    pub(crate) fn is_due(&self) -> bool {
        self.owed.is_some_and(|n| n > 0.0)
    }

    /// Records spent airtime. `waits`: something waits that the share is for; `own`: the airtime was its own.
    fn spent(&mut self, airtime: Duration, waits: bool, own: bool) {
        if self.share <= 0.0 || !(waits || own) {
            self.owed = None;
            return;
        }
        let ns = airtime.as_nanos() as f64;
        let rest = (1.0 - self.share) * ns;
        let owed = self.owed.get_or_insert(-rest);
        *owed += if own { -rest } else { self.share * ns };
        // A large fragment of others does not justify more than one of its own.
        *owed = owed.clamp(-2.0 * ns / self.share.max(0.01), ns);
    }
}

/// Accounts for the airtime that topic `served` took: in its own share and the others', and in that of everything less
/// important than the most important topic waiting.
pub(crate) fn account<B: Body>(
    below: &mut Quota,
    topics: &mut [SendTopic<B>],
    served: usize,
    airtime: Duration,
) {
    let Some(priority) = topics.get(served).map(|t| t.config.priority) else {
        return;
    };
    let waits = |t: &SendTopic<B>| t.is_backlogged() && t.announcer.accepted() == Some(true);
    let others = || topics.iter().filter(|t| waits(t));
    let less = others().any(|t| t.config.priority < priority);
    let more = others().any(|t| t.config.priority > priority);
    below.spent(airtime, less || more, more);
    for (i, t) in topics.iter_mut().enumerate().filter(|(_, t)| t.quota.share > 0.0) {
        let waits = t.is_backlogged() && t.announcer.accepted() == Some(true);
        t.quota.spent(airtime, waits, i == served);
    }
}
