//! The handshakes in progress: how many, how long, and what becomes of them.

use super::handshake::{Outcome, Pending};
use super::{Core, House, Source};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Handshakes in progress for one endpoint; the oldest goes first.
const MAX_PENDING: usize = 64;
impl House {
    pub(super) fn add_pending(&mut self, pending: Pending) {
        let endpoint = pending.endpoint;
        let count = self.pending_of(endpoint).count();
        let oldest = self.pending_of(endpoint).map(|(token, _)| token).next();
        if let Some(oldest) = oldest.filter(|_| count >= MAX_PENDING) {
            self.forget(oldest);
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

    /// The handshakes in progress of an endpoint, oldest first.
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
        // Another handshake with the same subscriber may be further on.
        let rivals: Vec<u64> = self
            .pending_of(endpoint)
            .filter(|(t, p)| *t != token && p.awaits_attach())
            .filter_map(|(_, p)| p.peer_id)
            .collect();
        let Some(Source::Pending(pending)) = self.sources.get_mut(&token) else {
            return;
        };
        match pending.advance(&self.shared, &rivals) {
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

    /// The socket of a handshake stays in the set when the handshake becomes a connection.
    pub(super) fn replace(&mut self, token: u64, source: Source) {
        if let Some(Source::Pending(p)) = self.sources.insert(token, source) {
            self.pending.remove(&(p.endpoint, token));
        }
    }

    /// When a handshake must be over.
    pub(super) fn deadline(&self, token: u64) -> Option<Instant> {
        match self.sources.get(&token) {
            Some(Source::Pending(p)) => Some(p.deadline),
            _ => None,
        }
    }
}
