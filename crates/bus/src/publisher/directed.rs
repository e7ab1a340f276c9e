//! Messages to a single subscriber: the requests and replies of services.

use super::{CreateError, PublishError, Publisher, PublisherOptions};
use crate::block::{CORRELATION, Label, Plan};
use crate::bus::Bus;
use crate::loan::{Loan, LoanError};
use crate::ring::Memory;
use crate::sys;
use crate::topic::TopicType;
use crate::waitset::Waiter;
use stats::DropReason;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The purpose of a publisher.
#[derive(Debug)]
pub(super) enum Purpose {
    /// Messages to all subscribers.
    Topic,
    /// Requests or replies, each to one subscriber.
    Service {
        /// Its identity, from which its partner's follows.
        id: u64,
        /// Rung when subscribers connect or disconnect.
        observer: Option<Arc<Waiter>>,
    },
}

/// The result of sending a message to one subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Directed {
    /// It is in the subscriber's queue.
    Queued,
    /// The subscriber is not connected.
    Absent,
    /// It does not fit.
    Refused(DropReason),
}

impl Publisher {
    /// Creates a publisher of a service's requests or replies. No message that it queued is ever dropped to
    /// make room.
    pub(crate) fn of_service(
        bus: &Bus,
        topic: TopicType,
        options: PublisherOptions,
        id: u64,
        observer: Option<Arc<Waiter>>,
    ) -> Result<Self, CreateError> {
        Self::with(bus, topic, options, Purpose::Service { id, observer })
    }

    /// Like [`Publisher::loan`], with room for a correlation header.
    pub(crate) fn loan_correlated(&self, control_len: usize, part_lens: &[usize]) -> Result<Loan, LoanError> {
        self.reserve(control_len, part_lens, Plan::correlated, &|| true)
    }

    /// Queues a message from [`Publisher::loan_correlated`] to subscriber `to` alone, and wakes it if it
    /// sleeps. Never blocks. `origin`: the original source, if it is not this publisher.
    pub(crate) fn publish_to(
        &self,
        to: u64,
        mut loan: Loan,
        correlation: &[u8; CORRELATION],
        origin: Option<u64>,
    ) -> Result<Directed, PublishError> {
        let core = &self.core;
        if core.birth.is_foreign() {
            return Err(PublishError::Forked);
        }
        if !loan.belongs_to(core) || !loan.correlate(correlation) {
            return Err(PublishError::ForeignLoan);
        }
        let mut guard = core.lock();
        let state = &mut *guard;
        let now = sys::monotonic_ns();
        let stamp = state.clock.realtime(now);
        state.sequence += 1;
        let block = loan.seal(Label {
            sequence: state.sequence,
            stamp,
            origin: origin.unwrap_or(core.id),
        });
        let at = state.pool.locate(block);
        let outcome = match state.attached.iter_mut().find(|a| a.id == to) {
            None => Directed::Absent,
            Some(a) => match a.offer_or_refuse(&mut state.pool, block, at, now) {
                Err(DropReason::NoPeer) => Directed::Absent,
                Err(reason) => Directed::Refused(reason),
                Ok(()) => {
                    <[AtomicU64] as Memory>::fence();
                    if a.must_ring() {
                        a.bell.ring();
                    }
                    Directed::Queued
                }
            },
        };
        state.clock.prepare(now);
        if state.remove_hostile() {
            core.changed.notify_all();
        }
        state.pool.unshare(block);
        Ok(outcome)
    }

    /// Returns the first ready subscriber, in the order of connecting, that `accepts` returns true for.
    pub(crate) fn find_subscriber(&self, mut accepts: impl FnMut(u64) -> bool) -> Option<u64> {
        let state = self.core.lock();
        let mut ready = state.attached.iter().filter(|a| a.ready && !a.is_closing());
        ready.find(|a| accepts(a.id)).map(|a| a.id)
    }

    /// Blocks until subscriber `id` is connected. Returns false if `timeout` passes first.
    pub(crate) fn wait_for_subscriber(&self, id: u64, timeout: Duration) -> bool {
        let core = &self.core;
        let absent = |s: &mut super::State| !s.attached.iter().any(|a| a.id == id);
        match core.changed.wait_timeout_while(core.lock(), timeout, absent) {
            Ok((_, waited)) => !waited.timed_out(),
            Err(poisoned) => !poisoned.into_inner().1.timed_out(),
        }
    }

    /// Whether this is a forked child of the process that created the publisher.
    pub(crate) fn is_foreign(&self) -> bool {
        self.core.birth.is_foreign()
    }
}
