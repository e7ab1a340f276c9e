//! Counts of changes, deadlines and leases.

use super::EventKind::{self, *};
use crate::abi::{CountStatus, EventCallback, QosProfile};
use crate::qos::{End, MANUAL_BY_TOPIC, limit};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// A count, and the part of it that is not reported yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) total: u64,
    pub(super) change: i64,
    pub(super) is_new: bool,
}

impl Count {
    pub(super) fn add(&mut self, n: u64) {
        if n > 0 {
            self.total += n;
            self.change += n as i64;
            self.is_new = true;
        }
    }

    pub(super) fn take_status(&mut self) -> CountStatus {
        let status = CountStatus {
            total: i32::try_from(self.total).unwrap_or(i32::MAX),
            total_change: i32::try_from(self.change).unwrap_or(i32::MAX),
        };
        (self.change, self.is_new) = (0, false);
        status
    }
}

#[derive(Default)]
pub(super) struct State {
    pub(super) matched: BTreeSet<u64>,
    pub(super) matches: Count,
    /// How many endpoints have matched and unmatched.
    pub(super) moves: u64,
    /// Change of the current count since it was last reported.
    pub(super) current_change: i64,
    /// Endpoints with incompatible policies.
    pub(super) unfit: BTreeSet<u64>,
    pub(super) incompatible_qos: Count,
    pub(super) last_policy: u32,
    pub(super) other_types: BTreeSet<u64>,
    pub(super) incompatible_type: Count,
    pub(super) lost: Count,
    /// Publishers that assert their liveliness. For the events of a publisher: the publisher itself, as [`OWN`].
    pub(super) leases: BTreeMap<u64, Lease>,
    /// How often the publisher's own lease ran out.
    pub(super) lapses: Count,
    /// Numbers of publishers that are alive and not alive, as last reported.
    pub(super) reported_alive: (i64, i64),
    pub(super) alive_is_new: bool,
    /// How often these numbers have changed.
    pub(super) alive_moves: u64,
    /// When the last message was sent or received, as far as the deadline counts.
    pub(super) last: Option<Instant>,
    pub(super) deadlines: Count,
    pub(super) callbacks: Vec<(EventKind, EventCallback, usize)>,
}

/// Key of a publisher itself among its leases.
pub(super) const OWN: u64 = 0;

/// How long a publisher that asserts its liveliness (`MANUAL_BY_TOPIC`) counts as alive.
pub(super) struct Lease {
    pub(super) period: Duration,
    pub(super) phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The publisher has never asserted itself and counts neither as alive nor as not alive.
    New,
    /// When it last asserted itself.
    Alive(Instant),
    Lapsed,
}

impl Lease {
    /// The lease of a publisher with this quality of service, if it asserts itself.
    pub(super) fn of(qos: &QosProfile) -> Option<Self> {
        let period = limit(qos.lease).filter(|_| qos.liveliness == MANUAL_BY_TOPIC)?;
        let phase = Phase::New;
        Some(Lease { period, phase })
    }

    /// When the lease runs out.
    pub(super) fn end(&self) -> Option<Instant> {
        match self.phase {
            Phase::Alive(last) => last.checked_add(self.period),
            _ => None,
        }
    }
}

/// How often each status has changed.
#[derive(Clone, Copy)]
pub(super) struct Changes {
    pub(super) matches: u64,
    pub(super) qos: u64,
    pub(super) types: u64,
    pub(super) lost: u64,
    pub(super) deadlines: u64,
    pub(super) alive: u64,
    pub(super) lapses: u64,
}

impl Changes {
    pub(super) fn of(&self, kind: EventKind) -> u64 {
        match kind {
            SubscriptionMatched | PublicationMatched => self.matches,
            LivelinessChanged => self.alive,
            RequestedQosIncompatible | OfferedQosIncompatible => self.qos,
            SubscriptionIncompatibleType | PublisherIncompatibleType => self.types,
            MessageLost => self.lost,
            RequestedDeadlineMissed | OfferedDeadlineMissed => self.deadlines,
            LivelinessLost => self.lapses,
        }
    }
}

impl State {
    pub(super) fn changes(&self) -> Changes {
        Changes {
            matches: self.moves,
            qos: self.incompatible_qos.total,
            types: self.incompatible_type.total,
            lost: self.lost.total,
            deadlines: self.deadlines.total,
            alive: self.alive_moves,
            lapses: self.lapses.total,
        }
    }

    /// How many publishers are alive, and how many are not.
    pub(super) fn alive(&self) -> (i64, i64) {
        let phase = |f: fn(&Lease) -> bool| self.leases.values().filter(|l| f(l)).count() as i64;
        let lapsed = phase(|l| l.phase == Phase::Lapsed);
        let new = phase(|l| l.phase == Phase::New);
        (self.matched.len() as i64 - lapsed - new, lapsed)
    }

    /// Counts the deadlines and leases that have passed.
    pub(super) fn count_time(&mut self, end: End, deadline: Option<Duration>, now: Instant) {
        if let (Some(period), Some(last)) = (deadline, self.last) {
            let passed = now.saturating_duration_since(last).as_nanos() / period.as_nanos().max(1);
            let missed = u64::try_from(passed).unwrap_or(u64::MAX);
            if missed > 0 {
                self.deadlines.add(missed);
                let whole = period.saturating_mul(u32::try_from(missed).unwrap_or(u32::MAX));
                self.last = Some(last.checked_add(whole).unwrap_or(now));
            }
        }
        let ended = self
            .leases
            .values_mut()
            .filter(|l| l.end().is_some_and(|e| e <= now));
        let ended = ended.map(|lease| lease.phase = Phase::Lapsed).count() as u64;
        match end {
            End::Publisher => self.lapses.add(ended),
            End::Subscription => self.alive_moved(ended),
        }
    }

    pub(super) fn alive_moved(&mut self, moves: u64) {
        self.alive_moves += moves;
        self.alive_is_new |= moves > 0;
    }
}
