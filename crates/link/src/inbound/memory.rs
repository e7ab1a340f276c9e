//! What each peer's topics may hold of this host's shared memory: one budget for all of them.

use bus::{Loan, Publisher};
use proto::{Geometry, PeerId};
use stats::{DropReason, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// A topic of which nothing was published for so long gives back what it does not use, as does a service of which nothing came,
pub(crate) const IDLE: Duration = Duration::from_secs(2);
/// but for so much, with which a seldom small message costs no system call.
pub(crate) const KEPT: u64 = 128 << 10;

/// The publishers of peers' topics, and what they have reserved.
pub(crate) struct Memory {
    /// By peer.
    budgets: Vec<u64>,
    accounts: BTreeMap<(PeerId, u64), Account>,
    /// Of all accounts of a peer.
    totals: BTreeMap<PeerId, u64>,
    /// Those that cannot be heard.
    away: BTreeSet<PeerId>,
}

struct Account {
    publisher: Arc<Publisher>,
    /// As of the last loan or sweep.
    reserved: u64,
    published: Time,
    /// What its subscribers had lost when that was asked last.
    lost: u64,
}

impl Memory {
    pub(crate) fn new(budgets: Vec<u64>) -> Self {
        Memory {
            budgets,
            accounts: BTreeMap::new(),
            totals: BTreeMap::new(),
            away: BTreeSet::new(),
        }
    }

    /// A topic of `peer` is published from now on.
    pub(crate) fn open(&mut self, peer: PeerId, publisher: Arc<Publisher>) {
        let account = Account {
            reserved: 0,
            published: Time::ZERO,
            lost: 0,
            publisher,
        };
        self.accounts.insert((peer, account.publisher.id()), account);
    }

    /// It is no more.
    pub(crate) fn close(&mut self, peer: PeerId, publisher: u64) {
        if let Some(account) = self.accounts.remove(&(peer, publisher)) {
            let total = self.totals.entry(peer).or_default();
            *total = total.saturating_sub(account.reserved);
        }
    }

    /// How many topics of a peer are published.
    pub(crate) fn topics(&self, peer: PeerId) -> usize {
        self.accounts.range((peer, 0)..=(peer, u64::MAX)).count()
    }

    /// Memory for a message of a topic of `peer`.
    ///
    /// # Errors
    /// The reason under which it is lost, if there is none within the peer's budget.
    pub(crate) fn loan(
        &mut self,
        peer: PeerId,
        publisher: &Publisher,
        geometry: &Geometry,
    ) -> Result<Loan, DropReason> {
        let wanted = u64::from(geometry.total_len());
        self.limit(peer, publisher, wanted);
        let parts: Vec<usize> = geometry.part_lens().iter().map(|n| *n as usize).collect();
        let loan = publisher.loan(geometry.control_len() as usize, &parts);
        self.look(peer, publisher.id());
        loan.map_err(|error| super::no_memory(&publisher.topic().topic, error))
    }

    /// Lets a publisher reserve what the peer's other topics leave of its budget.
    pub(crate) fn limit(&mut self, peer: PeerId, publisher: &Publisher, wanted: u64) {
        let own = self
            .accounts
            .get(&(peer, publisher.id()))
            .map_or(0, |a| a.reserved);
        let budget = self.budgets.get(peer.0 as usize).copied().unwrap_or_default();
        let room = |m: &Self| {
            let total = m.totals.get(&peer).copied().unwrap_or_default();
            budget.saturating_sub(total.saturating_sub(own))
        };
        if room(self) < own.saturating_add(wanted) {
            // What others keep and do not use is better used here.
            let others = self.accounts.range((peer, 0)..=(peer, u64::MAX));
            let others: Vec<u64> = others.map(|((_, id), _)| *id).collect();
            for id in others.into_iter().filter(|id| *id != publisher.id()) {
                self.trim(peer, id);
            }
        }
        publisher.limit_memory(room(self));
    }

    fn trim(&mut self, peer: PeerId, id: u64) {
        if let Some(account) = self.accounts.get(&(peer, id)).filter(|a| a.reserved > 0) {
            account.publisher.trim();
            self.look(peer, id);
        }
    }

    /// Learns what a publisher has reserved.
    fn look(&mut self, peer: PeerId, id: u64) {
        if let Some(account) = self.accounts.get_mut(&(peer, id)) {
            let now = account.publisher.reserved();
            let total = self.totals.entry(peer).or_default();
            *total = total.saturating_sub(account.reserved).saturating_add(now);
            account.reserved = now;
        }
    }

    /// A message of a topic was published.
    pub(crate) fn published(&mut self, peer: PeerId, publisher: u64, now: Time) {
        if let Some(account) = self.accounts.get_mut(&(peer, publisher)) {
            account.published = now;
        }
    }

    /// A peer can be heard, or not any more.
    pub(crate) fn peer_is_away(&mut self, peer: PeerId, away: bool) {
        if away {
            self.away.insert(peer);
        } else {
            self.away.remove(&peer);
        }
    }

    /// Takes back what idle topics do not use.
    pub(crate) fn sweep(&mut self, now: Time) {
        let idle = |((peer, id), a): (&(PeerId, u64), &Account)| {
            let kept = if self.away.contains(peer) { 0 } else { KEPT };
            (a.published + IDLE <= now && a.reserved > kept).then_some((*peer, *id))
        };
        for (peer, id) in self.accounts.iter().filter_map(idle).collect::<Vec<_>>() {
            // The unpacker reserves without this knowing.
            self.trim(peer, id);
        }
        let unknown = self.accounts.iter().filter(|(_, a)| a.reserved == 0);
        for (peer, id) in unknown.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.look(peer, id);
        }
    }

    /// What a topic's subscribers lost since this was asked last.
    pub(crate) fn newly_lost(&mut self, peer: PeerId, publisher: u64) -> u64 {
        let Some(account) = self.accounts.get_mut(&(peer, publisher)) else {
            return 0;
        };
        let lost = account.publisher.lost();
        lost.saturating_sub(std::mem::replace(&mut account.lost, lost))
    }
}
