//! Events of publishers and subscriptions: matches, incompatible policies and types, lost messages, missed deadlines,
//! liveliness.

mod api;
mod state;

pub(crate) use api::{Source, source};

use crate::abi::QosProfile;
use crate::abi::{
    CountStatus, IncompatibleQosStatus, LivelinessChangedStatus, MatchedStatus, MessageLostStatus,
};
use crate::error::{Failure, Outcome};
use crate::graph::lock;
use crate::graph::record::Endpoint;
use crate::qos::{End, limit};
use crate::signal::Signal;
use state::{Changes, Lease, OWN, Phase, State};
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

/// `rmw_event_type_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    LivelinessChanged,
    RequestedDeadlineMissed,
    RequestedQosIncompatible,
    MessageLost,
    SubscriptionIncompatibleType,
    SubscriptionMatched,
    LivelinessLost,
    OfferedDeadlineMissed,
    OfferedQosIncompatible,
    PublisherIncompatibleType,
    PublicationMatched,
}

use EventKind::*;

const ALL: [EventKind; 11] = [
    LivelinessChanged,
    RequestedDeadlineMissed,
    RequestedQosIncompatible,
    MessageLost,
    SubscriptionIncompatibleType,
    SubscriptionMatched,
    LivelinessLost,
    OfferedDeadlineMissed,
    OfferedQosIncompatible,
    PublisherIncompatibleType,
    PublicationMatched,
];

impl EventKind {
    /// Converts a number of `rmw_event_type_t`. They start at 1, and at 0 in Jazzy.
    fn from_code(code: u32) -> Option<Self> {
        let first = u32::from(cfg!(not(feature = "jazzy")));
        let place = usize::try_from(code.checked_sub(first)?).ok()?;
        ALL.get(place).copied()
    }

    fn end(self) -> End {
        match self {
            LivelinessLost
            | OfferedDeadlineMissed
            | OfferedQosIncompatible
            | PublisherIncompatibleType
            | PublicationMatched => End::Publisher,
            _ => End::Subscription,
        }
    }
}

/// The events of one publisher or subscription.
pub(crate) struct Events {
    end: End,
    qos: QosProfile,
    /// One for each kind that is watched. A thread that waits for one kind must not wake for another, which nobody may
    /// ever take.
    signals: [OnceLock<Signal>; ALL.len()],
    state: Mutex<State>,
}

impl Events {
    pub(crate) fn new(end: End, qos: QosProfile) -> Self {
        let own = Lease::of(&qos).filter(|_| end == End::Publisher);
        let state = State {
            leases: own.map(|lease| (OWN, lease)).into_iter().collect(),
            ..State::default()
        };
        Events {
            end,
            qos,
            signals: Default::default(),
            state: Mutex::new(state),
        }
    }

    /// Stores which endpoints match and which others do not fit, as `look` finds them. Calls are serialized, `look`
    /// included, so an older view never overwrites a newer one.
    pub(crate) fn update(&self, type_name: &str, look: impl FnOnce() -> (BTreeSet<u64>, Vec<Endpoint>)) {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        let (matched, others) = look();
        let came = matched.difference(&state.matched).count() as u64;
        let went = state.matched.difference(&matched).count() as u64;
        let before = state.changes();
        state.matches.add(came);
        state.matches.is_new |= went > 0;
        state.moves += came + went;
        state.current_change += came as i64 - went as i64;
        let alive = state.alive();
        state.matched = matched;
        if self.end == End::Subscription {
            let matched = &state.matched;
            state.leases.retain(|id, _| matched.contains(id));
            for other in others.iter().filter(|o| matched.contains(&o.id)) {
                if let Some(lease) = Lease::of(&(&other.qos).into()) {
                    state.leases.entry(other.id).or_insert(lease);
                }
            }
            // As in Fast DDS, the end of a publisher that was not alive raises no event.
            let moved = u64::from(state.alive().0 != alive.0);
            state.alive_moved(moved);
        }
        let there: BTreeSet<u64> = others.iter().map(|e| e.id).collect();
        state.unfit.retain(|id| there.contains(id));
        state.other_types.retain(|id| there.contains(id));
        for other in &others {
            if other.type_name != type_name {
                state
                    .incompatible_type
                    .add(u64::from(state.other_types.insert(other.id)));
                continue;
            }
            if let Some(policy) = self.qos.mismatch(self.end, &(&other.qos).into())
                && state.unfit.insert(other.id)
            {
                state.incompatible_qos.add(1);
                state.last_policy = policy;
            }
        }
        self.ring(guard, before);
    }

    /// Counts more lost messages.
    pub(crate) fn lost(&self, more: u64) {
        let mut state = lock(&self.state);
        let before = state.changes();
        state.lost.add(more);
        self.ring(state, before);
    }

    /// Records that a message was sent, or received from this publisher. Returns true if the graph's thread must check
    /// the time again.
    pub(crate) fn passed(&self, publisher: Option<u64>) -> bool {
        self.heard(publisher, limit(self.qos.deadline))
    }

    /// Records that a publisher asserts itself. Returns the same as [`passed`](Self::passed).
    pub(crate) fn asserted(&self, publisher: Option<u64>) -> bool {
        self.heard(publisher, None)
    }

    /// `begins` is the deadline period that starts again, if any.
    fn heard(&self, publisher: Option<u64>, begins: Option<Duration>) -> bool {
        let mut state = lock(&self.state);
        if begins.is_none() && state.leases.is_empty() {
            return false;
        }
        let (now, before) = (Instant::now(), state.changes());
        state.count_time(self.end, limit(self.qos.deadline), now);
        if begins.is_some() {
            state.last = Some(now);
        }
        let woke = self.alive_at(&mut state, publisher.unwrap_or(OWN), now);
        self.ring(state, before);
        woke
    }

    /// Returns true if the publisher was not alive before.
    fn alive_at(&self, state: &mut State, id: u64, now: Instant) -> bool {
        let Some(lease) = state.leases.get_mut(&id) else {
            return false;
        };
        let before = std::mem::replace(&mut lease.phase, Phase::Alive(now));
        let woke = !matches!(before, Phase::Alive(_));
        if self.end == End::Subscription {
            state.alive_moved(u64::from(woke));
        }
        woke
    }

    /// Counts what has expired by `now`. Returns when something expires next.
    pub(crate) fn tick(&self, now: Instant) -> Option<Instant> {
        let deadline = limit(self.qos.deadline);
        let mut state = lock(&self.state);
        if deadline.is_none() && state.leases.is_empty() {
            return None;
        }
        let before = state.changes();
        state.count_time(self.end, deadline, now);
        let next = deadline
            .zip(state.last)
            .and_then(|(period, last)| last.checked_add(period));
        let leases = state.leases.values().filter_map(Lease::end);
        let next = leases.chain(next).min();
        self.ring(state, before);
        next
    }

    fn is_new(state: &State, kind: EventKind) -> bool {
        match kind {
            SubscriptionMatched | PublicationMatched => state.matches.is_new,
            RequestedQosIncompatible | OfferedQosIncompatible => state.incompatible_qos.is_new,
            SubscriptionIncompatibleType | PublisherIncompatibleType => state.incompatible_type.is_new,
            MessageLost => state.lost.is_new,
            RequestedDeadlineMissed | OfferedDeadlineMissed => state.deadlines.is_new,
            LivelinessChanged => state.alive_is_new,
            LivelinessLost => state.lapses.is_new,
        }
    }

    /// Whether an event has something to report.
    pub(crate) fn is_ready(&self, kind: EventKind) -> bool {
        self.tick(Instant::now());
        Self::is_new(&lock(&self.state), kind)
    }

    /// Wakes threads that wait for an event with news, and runs the callbacks of statuses that have changed since
    /// `before`.
    fn ring(&self, state: MutexGuard<'_, State>, before: Changes) {
        for (kind, signal) in ALL.into_iter().zip(&self.signals) {
            if let Some(signal) = signal.get().filter(|_| Self::is_new(&state, kind)) {
                signal.set();
            }
        }
        let (now, callbacks) = (state.changes(), state.callbacks.clone());
        // The callbacks may query the events.
        drop(state);
        for (kind, callback, data) in callbacks {
            if let (true, Some(callback)) = (now.of(kind) != before.of(kind), callback) {
                // SAFETY: the caller of `rmw_event_set_callback` keeps function and data valid until it replaces the
                // callback.
                unsafe { callback(data as *const c_void, 1) };
            }
        }
    }

    fn place(&self, kind: EventKind) -> Option<&OnceLock<Signal>> {
        let mut places = ALL.into_iter().zip(&self.signals);
        places.find(|(k, _)| *k == kind).map(|(_, signal)| signal)
    }

    /// The signal that is readable while a watched event has something to report.
    pub(crate) fn signal(&self, kind: EventKind) -> Option<&Signal> {
        self.place(kind)?.get()
    }

    fn watch(&self, kind: EventKind) -> Outcome {
        let mut state = lock(&self.state);
        if let Some(place) = self.place(kind).filter(|p| p.get().is_none()) {
            let signal = Signal::new().map_err(Failure::error)?;
            if Self::is_new(&state, kind) {
                signal.set();
            }
            let _ = place.set(signal);
        }
        state.last.get_or_insert_with(Instant::now);
        Ok(())
    }

    /// Writes the status of an event.
    ///
    /// # Safety
    /// `info` points to the status type of this kind.
    unsafe fn write_status(&self, kind: EventKind, info: *mut c_void) {
        self.tick(Instant::now());
        let mut state = lock(&self.state);
        let state = &mut *state;
        let small = |n: i64| n.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        // SAFETY: upheld by the caller: each is the kind's status type in rmw/events_statuses.
        unsafe {
            match kind {
                SubscriptionMatched | PublicationMatched => {
                    info.cast::<MatchedStatus>().write(MatchedStatus {
                        total: state.matches.total as usize,
                        total_change: state.matches.change.max(0) as usize,
                        current: state.matched.len(),
                        current_change: small(state.current_change),
                    });
                    state.matches.take_status();
                    state.current_change = 0;
                }
                RequestedQosIncompatible | OfferedQosIncompatible => {
                    let counts = state.incompatible_qos.take_status();
                    info.cast::<IncompatibleQosStatus>().write(IncompatibleQosStatus {
                        total: counts.total,
                        total_change: counts.total_change,
                        last_policy: state.last_policy,
                    });
                }
                MessageLost => {
                    let counts = state.lost.take_status();
                    info.cast::<MessageLostStatus>().write(MessageLostStatus {
                        total: counts.total as usize,
                        total_change: counts.total_change as usize,
                    });
                }
                SubscriptionIncompatibleType | PublisherIncompatibleType => {
                    info.cast::<CountStatus>()
                        .write(state.incompatible_type.take_status());
                }
                RequestedDeadlineMissed | OfferedDeadlineMissed => {
                    info.cast::<CountStatus>().write(state.deadlines.take_status());
                }
                LivelinessLost => info.cast::<CountStatus>().write(state.lapses.take_status()),
                LivelinessChanged => {
                    let ((alive, lapsed), before) = (state.alive(), state.reported_alive);
                    info.cast::<LivelinessChangedStatus>()
                        .write(LivelinessChangedStatus {
                            alive: small(alive),
                            not_alive: small(lapsed),
                            alive_change: small(alive - before.0),
                            not_alive_change: small(lapsed - before.1),
                        });
                    (state.reported_alive, state.alive_is_new) = ((alive, lapsed), false);
                }
            }
        }
        if let Some(signal) = self.signal(kind) {
            signal.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::sample;

    #[test]
    fn an_event_is_signalled_only_to_those_waiting_for_its_kind() {
        let events = Events::new(End::Subscription, sample());
        events.watch(MessageLost).unwrap();
        let is_set = |kind| events.signal(kind).map(Signal::is_set);
        // Nobody waits for this event or takes it.
        events.update("t", || (BTreeSet::from([1]), Vec::new()));
        assert!(events.is_ready(SubscriptionMatched));
        assert_eq!(
            (is_set(MessageLost), is_set(SubscriptionMatched)),
            (Some(false), None)
        );
        // A thread that starts to wait later finds it.
        events.watch(SubscriptionMatched).unwrap();
        events.lost(1);
        assert_eq!(
            (is_set(MessageLost), is_set(SubscriptionMatched)),
            (Some(true), Some(true))
        );
        let mut status = MessageLostStatus {
            total: 0,
            total_change: 0,
        };
        // SAFETY: the status type of this kind.
        unsafe { events.write_status(MessageLost, (&raw mut status).cast()) };
        assert_eq!(
            (is_set(MessageLost), is_set(SubscriptionMatched)),
            (Some(false), Some(true))
        );
        assert_eq!((status.total, status.total_change), (1, 1));
    }

    #[test]
    fn no_thread_takes_over_what_it_saw_before_another() {
        let events = Events::new(End::Subscription, sample());
        let there = Mutex::new(BTreeSet::new());
        for id in 0..2000 {
            let look = || (lock(&there).clone(), Vec::new());
            std::thread::scope(|threads| {
                threads.spawn(|| events.update("t", look));
                threads.spawn(|| {
                    lock(&there).insert(id);
                    events.update("t", look);
                });
            });
            assert_eq!(lock(&events.state).matched, *lock(&there));
        }
    }
}
