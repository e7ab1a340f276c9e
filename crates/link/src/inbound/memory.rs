//! Limits how much of this host's shared memory each peer's topics may hold: one budget for all of them.

use crate::blocks::{IDLE, KEPT, no_memory};
use bus::{Loan, Publisher};
use proto::{Geometry, PeerId};
use stats::{DropReason, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The publishers of peers' topics, and their reserved memory.
pub(crate) struct Memory {
    /// By peer.
    budgets: Vec<u64>,
    accounts: BTreeMap<(PeerId, u64), Account>,
    /// The sum of a peer's accounts.
    totals: BTreeMap<PeerId, u64>,
    /// Peers that are silent.
    away: BTreeSet<PeerId>,
}

struct Account {
    publisher: Arc<Publisher>,
    /// As of the last loan or sweep.
    reserved: u64,
    published: Time,
    /// Messages that its subscribers had lost at the last query.
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

    /// Adds a topic of `peer` that is published from now on.
    pub(crate) fn open(&mut self, peer: PeerId, publisher: Arc<Publisher>) {
        let account = Account {
            reserved: 0,
            published: Time::ZERO,
            lost: 0,
            publisher,
        };
        self.accounts.insert((peer, account.publisher.id()), account);
    }

    /// Removes a topic.
    pub(crate) fn close(&mut self, peer: PeerId, publisher: u64) {
        if let Some(account) = self.accounts.remove(&(peer, publisher)) {
            let total = self.totals.entry(peer).or_default();
            *total = total.saturating_sub(account.reserved);
        }
    }

    /// Number of published topics of a peer.
    pub(crate) fn topics(&self, peer: PeerId) -> usize {
        self.accounts.range((peer, 0)..=(peer, u64::MAX)).count()
    }

    /// Allocates memory for a message of a topic of `peer`.
    ///
    /// # Errors
    /// The reason for the loss, if the peer's budget has no room.
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
        loan.map_err(|error| no_memory(&publisher.topic().topic, error))
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
            // Memory that other topics keep unused serves better here.
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

    /// Updates the reserved memory of a publisher.
    fn look(&mut self, peer: PeerId, id: u64) {
        if let Some(account) = self.accounts.get_mut(&(peer, id)) {
            let now = account.publisher.reserved();
            let total = self.totals.entry(peer).or_default();
            *total = total.saturating_sub(account.reserved).saturating_add(now);
            account.reserved = now;
        }
    }

    /// Notes that a message of a topic was published.
    pub(crate) fn published(&mut self, peer: PeerId, publisher: u64, now: Time) {
        if let Some(account) = self.accounts.get_mut(&(peer, publisher)) {
            account.published = now;
        }
    }

    /// Notes whether a peer is silent.
    pub(crate) fn peer_is_away(&mut self, peer: PeerId, away: bool) {
        if away {
            self.away.insert(peer);
        } else {
            self.away.remove(&peer);
        }
    }

    /// Frees the unused memory of idle topics.
    pub(crate) fn sweep(&mut self, now: Time) {
        let idle = |((peer, id), a): (&(PeerId, u64), &Account)| {
            let kept = if self.away.contains(peer) { 0 } else { KEPT };
            (a.published + IDLE <= now && a.reserved > kept).then_some((*peer, *id))
        };
        for (peer, id) in self.accounts.iter().filter_map(idle).collect::<Vec<_>>() {
            // The unpacker reserves memory unnoticed.
            self.trim(peer, id);
        }
        let unknown = self.accounts.iter().filter(|(_, a)| a.reserved == 0);
        for (peer, id) in unknown.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.look(peer, id);
        }
    }

    /// Number of messages that a topic's subscribers lost since the last call.
    pub(crate) fn newly_lost(&mut self, peer: PeerId, publisher: u64) -> u64 {
        let Some(account) = self.accounts.get_mut(&(peer, publisher)) else {
            return 0;
        };
        let lost = account.publisher.lost();
        lost.saturating_sub(std::mem::replace(&mut account.lost, lost))
    }
}
