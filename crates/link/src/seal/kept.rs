//! Messages that a topic of this host keeps for hosts without keys: before the first agreement, or after a
//! restart lost them.

use crate::outgoing::Outgoing;
use proto::{Body, Message, Reliability, Sealing};
use stats::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// How long messages wait for a host's key if they have no expiry of their own. Once there is a way, an
/// agreement takes a few round trips.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most bytes that a topic keeps.
const MAX_BYTES: u64 = 16 << 20;

struct Waiting {
    number: u64,
    message: Message<Outgoing>,
    /// The hosts for which it could not be sealed.
    missing: u64,
    until: Time,
}

/// The messages of a topic of this host over relays.
pub(super) struct Kept {
    pub(super) context: [u8; 32],
    pub(super) to: Vec<u64>,
    waiting: VecDeque<Waiting>,
    /// Messages whose waiting time ended.
    pub(super) lost: u64,
    /// Hosts for which relays carried a message, or should have.
    far: u64,
    /// Hosts for which a message was sealed under their present keys.
    pub(super) sealed: u64,
    latched: bool,
}

impl Kept {
    pub(super) fn new(context: [u8; 32], to: &[u64], latched: bool) -> Self {
        Kept {
            context,
            to: to.to_vec(),
            waiting: VecDeque::new(),
            far: 0,
            sealed: 0,
            lost: 0,
            latched,
        }
    }

    /// Records a message for relays that cannot be sealed for `missing`. Returns whether it is kept for
    /// these.
    pub(super) fn offered(
        &mut self,
        now: Time,
        of: &Sealing<'_>,
        message: &Message<Outgoing>,
        missing: u64,
    ) -> bool {
        self.far |= of.to & !of.own;
        let a = of.announcement;
        let waits = matches!(a.reliability, Reliability::Reliable | Reliability::Bulk);
        if !(self.latched || waits && missing != 0) {
            return false;
        }
        match self.waiting.iter_mut().find(|w| w.number == of.number) {
            Some(w) => w.missing |= missing,
            None => self.waiting.push_back(Waiting {
                number: of.number,
                message: message.clone(),
                missing,
                until: message.expires.unwrap_or(now + PATIENCE),
            }),
        }
        let (latched, before) = (self.latched, self.waiting.len());
        self.waiting.retain(|w| latched || now < w.until);
        let bytes = |w: &Waiting| u64::from(w.message.body.geometry().total_len());
        let mut all: u64 = self.waiting.iter().map(bytes).sum();
        while self.waiting.len() > a.depth.max(1) as usize || all > MAX_BYTES {
            let Some(oldest) = self.waiting.pop_front() else {
                break;
            };
            all -= bytes(&oldest);
        }
        if !latched {
            self.lost += (before - self.waiting.len()) as u64;
        }
        self.waiting.iter().any(|w| w.number == of.number)
    }

    /// The messages to offer again to the host `bit`, to which there is a way, and which has keys; `anew` if
    /// these are new.
    pub(super) fn again(&mut self, now: Time, bit: u64, anew: bool) -> Vec<Message<Outgoing>> {
        if anew {
            self.sealed &= !bit;
        }
        let (latched, all) = (self.latched, self.latched && anew && self.far & bit != 0);
        let due = |w: &&mut Waiting| all || (w.missing & bit != 0 && (latched || now < w.until));
        let due: Vec<_> = (self.waiting.iter_mut())
            .filter(due)
            .map(|w| {
                w.missing &= !bit;
                Message {
                    route: None,
                    ..w.message.clone()
                }
            })
            .collect();
        let over = |w: &Waiting| !latched && now >= w.until && w.missing != 0;
        self.lost += self.waiting.iter().filter(|w| over(w)).count() as u64;
        self.waiting
            .retain(|w| latched || (w.missing != 0 && now < w.until));
        due
    }

    /// The message with this stamp is no longer needed.
    pub(super) fn end(&mut self, stamp: Time) {
        self.waiting.retain(|w| w.message.stamp != stamp);
    }
}
