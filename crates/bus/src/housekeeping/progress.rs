//! The handshakes in progress: their number, their deadlines and their results.

use super::handshake::{Outcome, Pending};
use super::{Core, Housekeeping, Source};
use crate::budget::Holder;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Maximum number of handshakes that peers began with one endpoint. Beyond it, the oldest handshake of the
/// holder with the most is dropped, so a peer that keeps connecting cannot lock the others out.
const MAX_PENDING: usize = 64;

impl Housekeeping {
    pub(super) fn add_pending(&mut self, pending: Pending) {
        let endpoint = pending.endpoint;
        if pending.visitor().is_some() {
            self.make_room(endpoint);
        }
        let token = self.token();
        if pending
            .socket()
            .is_some_and(|s| self.shared.epoll.add(s, token).is_ok())
        {
            self.sources.insert(token, Source::Pending(Box::new(pending)));
            self.pending.insert((endpoint, token));
        }
    }

    /// Makes room for one more handshake that a peer began.
    fn make_room(&mut self, endpoint: u64) {
        let mut visitors: BTreeMap<Holder, Vec<u64>> = BTreeMap::new();
        for (token, p) in self.pending_of(endpoint) {
            p.visitor()
                .into_iter()
                .for_each(|v| visitors.entry(v).or_default().push(token));
        }
        if visitors.values().map(Vec::len).sum::<usize>() >= MAX_PENDING
            && let Some(most) = visitors.values().max_by_key(|tokens| tokens.len())
        {
            self.forget(most[0]);
        }
    }

    /// Returns the handshakes in progress of an endpoint, oldest first.
    pub(super) fn pending_of(&self, endpoint: u64) -> impl Iterator<Item = (u64, &Pending)> {
        let tokens = self.pending.range((endpoint, 0)..=(endpoint, u64::MAX));
        tokens.filter_map(|(_, token)| match self.sources.get(token) {
            Some(Source::Pending(p)) => Some((*token, &**p)),
            _ => None,
        })
    }

    pub(super) fn shake_hands(&mut self, token: u64) {
        let Some(Source::Pending(pending)) = self.sources.get(&token) else {
            return;
        };
        let endpoint = pending.endpoint;
        // Another handshake with the same subscriber may have progressed further.
        let concurrent: Vec<u64> = self
            .pending_of(endpoint)
            .filter(|(t, p)| *t != token && p.awaits_attach())
            .filter_map(|(_, p)| p.peer_id)
            .collect();
        let Some(Source::Pending(pending)) = self.sources.get_mut(&token) else {
            return;
        };
        match pending.advance(&self.shared, &concurrent) {
            Outcome::Wait => {}
            Outcome::Done => drop(self.forget(token)),
            Outcome::Failed => self.end(token),
            Outcome::Never(peer) => {
                self.forget(token);
                if let Some(peer) = peer {
                    self.mismatch(endpoint, peer);
                }
            }
            Outcome::Subscriber {
                subscriber,
                peer,
                socket,
            } => {
                self.replace(
                    token,
                    Source::Subscriber {
                        publisher: endpoint,
                        subscriber,
                        pid: peer,
                        socket,
                    },
                );
                self.watch(token, peer);
                self.reset_backoff(endpoint);
            }
            Outcome::Publisher { connection, peer } => {
                connection.token.store(token, Ordering::Release);
                let core = match self.endpoints.get(&endpoint).map(|e| &e.core) {
                    Some(Core::Subscriber(core)) => core.upgrade(),
                    _ => None,
                };
                let source = Source::Publisher {
                    subscriber: endpoint,
                    pid: peer,
                    connection: Arc::downgrade(&connection),
                };
                self.replace(token, source);
                self.watch(token, peer);
                match core {
                    Some(core) => core.add(connection),
                    None => drop(connection),
                }
                self.reset_backoff(endpoint);
                self.handle(token);
            }
        }
    }

    /// The socket of a handshake stays in the epoll set when the handshake becomes a connection.
    pub(super) fn replace(&mut self, token: u64, source: Source) {
        if let Some(Source::Pending(p)) = self.sources.insert(token, source) {
            self.pending.remove(&(p.endpoint, token));
        }
    }

    /// Returns when a handshake must be complete.
    pub(super) fn deadline(&self, token: u64) -> Option<Instant> {
        match self.sources.get(&token) {
            Some(Source::Pending(p)) => Some(p.deadline),
            _ => None,
        }
    }
}
