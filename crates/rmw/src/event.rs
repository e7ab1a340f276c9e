//! Events of publishers and subscriptions: matches, incompatible policies and types, lost messages, missed deadlines.

use crate::abi::QosProfile;
use crate::abi::{
    CountStatus, EventCallback, IncompatibleQosStatus, LivelinessChangedStatus, MatchedStatus,
    MessageLostStatus, Ret, RmwEvent, RmwPublisher, RmwSubscription,
};
use crate::error::{Failure, IDENTIFIER, Outcome, arg, arg_mut, guard, ours};
use crate::graph::lock;
use crate::graph::record::Endpoint;
use crate::qos::{End, limit};
use crate::signal::Signal;
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
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
    /// What `rmw_event_type_t` numbers: from 1 on, and from 0 on in Jazzy.
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

/// A count, and what of it was not told yet.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    total: u64,
    change: i64,
    is_new: bool,
}

impl Count {
    fn add(&mut self, n: u64) {
        if n > 0 {
            self.total += n;
            self.change += n as i64;
            self.is_new = true;
        }
    }

    fn told(&mut self) -> CountStatus {
        let status = CountStatus {
            total: i32::try_from(self.total).unwrap_or(i32::MAX),
            total_change: i32::try_from(self.change).unwrap_or(i32::MAX),
        };
        (self.change, self.is_new) = (0, false);
        status
    }
}

/// The events of one publisher or subscription.
pub(crate) struct Events {
    end: End,
    qos: QosProfile,
    signal: OnceLock<Signal>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    matched: BTreeSet<u64>,
    matches: Count,
    /// How many have come and gone.
    moves: u64,
    /// What of the current count was not told.
    current_change: i64,
    /// Endpoints that do not fit, and that are of another type.
    unfit: BTreeSet<u64>,
    incompatible_qos: Count,
    last_policy: u32,
    other_types: BTreeSet<u64>,
    incompatible_type: Count,
    lost: Count,
    alive_change: i64,
    alive_is_new: bool,
    /// When the last message went or came, as far as a deadline counts.
    last: Option<Instant>,
    deadlines: Count,
    callbacks: Vec<(EventKind, EventCallback, usize)>,
}

/// How often each status has changed.
#[derive(Clone, Copy)]
struct Changes {
    matches: u64,
    qos: u64,
    types: u64,
    lost: u64,
    deadlines: u64,
}

impl Changes {
    fn of(&self, kind: EventKind) -> u64 {
        match kind {
            SubscriptionMatched | PublicationMatched | LivelinessChanged => self.matches,
            RequestedQosIncompatible | OfferedQosIncompatible => self.qos,
            SubscriptionIncompatibleType | PublisherIncompatibleType => self.types,
            MessageLost => self.lost,
            RequestedDeadlineMissed | OfferedDeadlineMissed => self.deadlines,
            LivelinessLost => 0,
        }
    }
}

impl State {
    fn changes(&self) -> Changes {
        Changes {
            matches: self.moves,
            qos: self.incompatible_qos.total,
            types: self.incompatible_type.total,
            lost: self.lost.total,
            deadlines: self.deadlines.total,
        }
    }
}

impl Events {
    pub(crate) fn new(end: End, qos: QosProfile) -> Self {
        Events {
            end,
            qos,
            signal: OnceLock::new(),
            state: Mutex::default(),
        }
    }

    /// Takes over which endpoints match, and which others do not fit, as `look` finds them. Threads look one after the other: none takes
    /// over what it saw before another.
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
        state.alive_change += came as i64 - went as i64;
        state.alive_is_new |= came + went > 0;
        state.matched = matched;
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

    /// So many more messages have been lost.
    pub(crate) fn lost(&self, more: u64) {
        let mut state = lock(&self.state);
        let before = state.changes();
        state.lost.add(more);
        self.ring(state, before);
    }

    /// A message went or came.
    pub(crate) fn passed(&self) {
        if limit(self.qos.deadline).is_some() {
            let mut state = lock(&self.state);
            self.count_deadlines(&mut state, Instant::now());
            state.last = Some(Instant::now());
        }
    }

    /// When the next deadline passes, if it is watched.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let period = limit(self.qos.deadline)?;
        lock(&self.state).last?.checked_add(period)
    }

    fn count_deadlines(&self, state: &mut State, now: Instant) {
        let (Some(period), Some(last)) = (limit(self.qos.deadline), state.last) else {
            return;
        };
        let passed = now.saturating_duration_since(last).as_nanos() / period.as_nanos().max(1);
        let missed = u64::try_from(passed).unwrap_or(u64::MAX);
        if missed > 0 {
            state.deadlines.add(missed);
            let whole = period.saturating_mul(u32::try_from(missed).unwrap_or(u32::MAX));
            state.last = Some(last.checked_add(whole).unwrap_or(now));
        }
    }

    fn is_new(state: &State, kind: EventKind) -> bool {
        match kind {
            SubscriptionMatched | PublicationMatched => state.matches.is_new,
            RequestedQosIncompatible | OfferedQosIncompatible => state.incompatible_qos.is_new,
            SubscriptionIncompatibleType | PublisherIncompatibleType => state.incompatible_type.is_new,
            MessageLost => state.lost.is_new,
            RequestedDeadlineMissed | OfferedDeadlineMissed => state.deadlines.is_new,
            LivelinessChanged => state.alive_is_new,
            LivelinessLost => false,
        }
    }

    /// Whether an event has something to tell.
    pub(crate) fn is_ready(&self, kind: EventKind) -> bool {
        let mut state = lock(&self.state);
        self.count_deadlines(&mut state, Instant::now());
        Self::is_new(&state, kind)
    }

    /// Wakes threads that wait for an event with news, and runs the callbacks of what has changed since `before`.
    fn ring(&self, state: MutexGuard<'_, State>, before: Changes) {
        if let Some(signal) = self.signal.get()
            && ALL
                .into_iter()
                .any(|k| k.end() == self.end && Self::is_new(&state, k))
        {
            signal.set();
        }
        let (now, callbacks) = (state.changes(), state.callbacks.clone());
        // They may ask for what has happened.
        drop(state);
        for (kind, callback, data) in callbacks {
            if let (true, Some(callback)) = (now.of(kind) != before.of(kind), callback) {
                // SAFETY: the caller of `rmw_event_set_callback` keeps function and data valid until it is set anew.
                unsafe { callback(data as *const c_void, 1) };
            }
        }
    }

    /// What is readable while there is something to tell.
    pub(crate) fn signal(&self) -> Option<&Signal> {
        self.signal.get()
    }

    fn watch(&self) -> Outcome {
        if self.signal.get().is_none() {
            let _ = self.signal.set(Signal::new().map_err(Failure::error)?);
        }
        let mut state = lock(&self.state);
        state.last.get_or_insert_with(Instant::now);
        Ok(())
    }

    /// Writes what an event has to tell.
    ///
    /// # Safety
    /// `info` points to the status of this kind.
    unsafe fn tell(&self, kind: EventKind, info: *mut c_void) {
        let mut state = lock(&self.state);
        self.count_deadlines(&mut state, Instant::now());
        let state = &mut *state;
        let small = |n: i64| n.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        // SAFETY: of the caller: each is the status that rmw/events_statuses has for the kind.
        unsafe {
            match kind {
                SubscriptionMatched | PublicationMatched => {
                    info.cast::<MatchedStatus>().write(MatchedStatus {
                        total: state.matches.total as usize,
                        total_change: state.matches.change.max(0) as usize,
                        current: state.matched.len(),
                        current_change: small(state.current_change),
                    });
                    state.matches.told();
                    state.current_change = 0;
                }
                RequestedQosIncompatible | OfferedQosIncompatible => {
                    let counts = state.incompatible_qos.told();
                    info.cast::<IncompatibleQosStatus>().write(IncompatibleQosStatus {
                        total: counts.total,
                        total_change: counts.total_change,
                        last_policy: state.last_policy,
                    });
                }
                MessageLost => {
                    let counts = state.lost.told();
                    info.cast::<MessageLostStatus>().write(MessageLostStatus {
                        total: counts.total as usize,
                        total_change: counts.total_change as usize,
                    });
                }
                SubscriptionIncompatibleType | PublisherIncompatibleType => {
                    info.cast::<CountStatus>().write(state.incompatible_type.told());
                }
                RequestedDeadlineMissed | OfferedDeadlineMissed => {
                    info.cast::<CountStatus>().write(state.deadlines.told());
                }
                LivelinessLost => info.cast::<CountStatus>().write(CountStatus {
                    total: 0,
                    total_change: 0,
                }),
                LivelinessChanged => {
                    info.cast::<LivelinessChangedStatus>()
                        .write(LivelinessChangedStatus {
                            alive: small(state.matched.len() as i64),
                            not_alive: 0,
                            alive_change: small(state.alive_change),
                            not_alive_change: 0,
                        });
                    (state.alive_change, state.alive_is_new) = (0, false);
                }
            }
        }
        let quiet = !ALL
            .into_iter()
            .any(|k| k.end() == self.end && Self::is_new(state, k));
        if let Some(signal) = self.signal.get().filter(|_| quiet) {
            signal.take();
        }
    }
}

/// What an `rmw_event_t` leads to: the events of its entity, which outlives it (`rmw_event_fini` is not this library's).
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) events: &'a Events,
    pub(crate) kind: EventKind,
}

/// Begins an event of an entity's.
fn init(event: *mut RmwEvent, end: End, code: u32, events: &Arc<Events>) -> Outcome {
    // SAFETY: of the callers below.
    let event = unsafe { arg_mut(event, "rmw_event")? };
    if !event.implementation.is_null() {
        return Err(Failure::argument("rmw_event is in use already"));
    }
    let kind = EventKind::from_code(code).filter(|k| k.end() == end);
    if kind.is_none() {
        return Err(Failure::unsupported(format_args!(
            "event {code} is none of this entity's"
        )));
    }
    events.watch()?;
    event.implementation = IDENTIFIER.as_ptr();
    event.data = Arc::as_ptr(events).cast_mut().cast();
    event.kind = code;
    Ok(())
}

/// # Safety
/// As rmw/event.h says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_publisher_event_init(
    event: *mut RmwEvent,
    publisher: *const RmwPublisher,
    kind: u32,
) -> Ret {
    guard(|| {
        // SAFETY: of the caller.
        let publisher = unsafe { crate::publisher::of(publisher)? };
        init(event, End::Publisher, kind, &publisher.matching.events)?;
        publisher.watch();
        Ok(())
    })
}

/// # Safety
/// As rmw/event.h says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_subscription_event_init(
    event: *mut RmwEvent,
    subscription: *const RmwSubscription,
    kind: u32,
) -> Ret {
    guard(|| {
        // SAFETY: of the caller.
        let subscription = unsafe { crate::subscription::of(subscription)? };
        init(event, End::Subscription, kind, &subscription.matching.events)?;
        subscription.watch();
        Ok(())
    })
}

/// # Safety
/// The pointer is null or points to an event.
pub(crate) unsafe fn source<'a>(event: *const RmwEvent) -> Outcome<Source<'a>> {
    // SAFETY: of the caller; identifiers live for ever.
    let event = unsafe { arg(event, "event")? };
    if event.implementation.is_null() {
        return Err(Failure::argument("event is not initialized"));
    }
    // SAFETY: likewise.
    unsafe { ours(event.implementation, "event")? };
    let kind = EventKind::from_code(event.kind).ok_or_else(|| Failure::argument("event has no kind"))?;
    // SAFETY: `data` is the entity's events while the entity lives, which the caller destroys after its events.
    let events = unsafe { arg(event.data.cast::<Events>(), "event")? };
    Ok(Source { events, kind })
}

/// # Safety
/// As rmw/event.h says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_take_event(
    event: *const RmwEvent,
    info: *mut c_void,
    taken: *mut bool,
) -> Ret {
    guard(|| {
        // SAFETY: of the caller.
        let (source, taken) = unsafe { (source(event)?, arg_mut(taken, "taken")?) };
        if info.is_null() {
            return Err(Failure::argument("event_info argument is null"));
        }
        // SAFETY: the caller's status is that of the event's kind.
        unsafe { source.events.tell(source.kind, info) };
        *taken = true;
        Ok(())
    })
}

/// # Safety
/// As rmw/event.h says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_event_set_callback(
    event: *mut RmwEvent,
    callback: EventCallback,
    data: *const c_void,
) -> Ret {
    guard(|| {
        // SAFETY: of the caller.
        let source = unsafe { source(event)? };
        let mut state = lock(&source.events.state);
        state.callbacks.retain(|(kind, ..)| *kind != source.kind);
        if callback.is_some() {
            state.callbacks.push((source.kind, callback, data as usize));
            if Events::is_new(&state, source.kind)
                && let Some(callback) = callback
            {
                drop(state);
                // SAFETY: of the caller.
                unsafe { callback(data, 1) };
            }
        }
        Ok(())
    })
}

/// Whether an event can be had (`rmw_event_type_is_supported`).
#[unsafe(no_mangle)]
pub(crate) extern "C" fn rmw_event_type_is_supported(kind: u32) -> bool {
    EventKind::from_code(kind).is_some()
}

/// How long a wait for events may last before a deadline has to be looked at.
pub(crate) fn until_deadline(source: Source<'_>, now: Instant) -> Option<Duration> {
    let timed = matches!(source.kind, RequestedDeadlineMissed | OfferedDeadlineMissed);
    let next = timed.then(|| source.events.next_deadline()).flatten()?;
    Some(next.saturating_duration_since(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::sample;

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
