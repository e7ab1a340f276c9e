//! The functions of rmw/event.h.

use super::EventKind::{self, LivelinessChanged};
use super::Events;
use crate::abi::{EventCallback, Ret, RmwEvent, RmwPublisher, RmwSubscription};
use crate::error::{Failure, IDENTIFIER, Outcome, arg, arg_mut, guard, ours};
use crate::graph::lock;
use crate::qos::End;
use std::ffi::c_void;
use std::sync::Arc;

/// The object that an `rmw_event_t` refers to: the events of its entity, which outlives the event (`rmw_event_fini` is
/// not part of this library).
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) events: &'a Events,
    pub(crate) kind: EventKind,
}

/// Initializes an event of an entity.
fn init(event: *mut RmwEvent, end: End, code: u32, events: &Arc<Events>) -> Outcome {
    // SAFETY: upheld by the callers below.
    let event = unsafe { arg_mut(event, "rmw_event")? };
    if !event.implementation.is_null() {
        return Err(Failure::argument("rmw_event is in use already"));
    }
    let kind = EventKind::from_code(code).filter(|k| k.end() == end);
    let Some(kind) = kind else {
        return Err(Failure::unsupported(format_args!(
            "this entity has no event {code}"
        )));
    };
    events.watch(kind)?;
    event.implementation = IDENTIFIER.as_ptr();
    event.data = Arc::as_ptr(events).cast_mut().cast();
    event.kind = code;
    Ok(())
}

/// # Safety
/// As documented in rmw/event.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_publisher_event_init(
    event: *mut RmwEvent,
    publisher: *const RmwPublisher,
    kind: u32,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let publisher = unsafe { crate::publisher::of(publisher)? };
        init(event, End::Publisher, kind, &publisher.matching.events)?;
        publisher.watch();
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/event.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_subscription_event_init(
    event: *mut RmwEvent,
    subscription: *const RmwSubscription,
    kind: u32,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let subscription = unsafe { crate::subscription::of(subscription)? };
        init(event, End::Subscription, kind, &subscription.matching.events)?;
        if EventKind::from_code(kind) == Some(LivelinessChanged) {
            subscription.matching.graph().watch_assertions();
        }
        subscription.watch();
        Ok(())
    })
}

/// # Safety
/// The pointer is null or points to an event.
pub(crate) unsafe fn source<'a>(event: *const RmwEvent) -> Outcome<Source<'a>> {
    // SAFETY: upheld by the caller; identifiers live forever.
    let event = unsafe { arg(event, "event")? };
    if event.implementation.is_null() {
        return Err(Failure::argument("event is not initialized"));
    }
    // SAFETY: likewise.
    unsafe { ours(event.implementation, "event")? };
    let kind = EventKind::from_code(event.kind).ok_or_else(|| Failure::argument("event has no kind"))?;
    // SAFETY: `data` points to the entity's events while the entity lives, and the caller destroys the entity after its
    // events.
    let events = unsafe { arg(event.data.cast::<Events>(), "event")? };
    Ok(Source { events, kind })
}

/// # Safety
/// As documented in rmw/event.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_take_event(
    event: *const RmwEvent,
    info: *mut c_void,
    taken: *mut bool,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (source, taken) = unsafe { (source(event)?, arg_mut(taken, "taken")?) };
        if info.is_null() {
            return Err(Failure::argument("event_info argument is null"));
        }
        // SAFETY: the caller's status has the type of the event's kind.
        unsafe { source.events.write_status(source.kind, info) };
        *taken = true;
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/event.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_event_set_callback(
    event: *mut RmwEvent,
    callback: EventCallback,
    data: *const c_void,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let source = unsafe { source(event)? };
        let mut state = lock(&source.events.state);
        state.callbacks.retain(|(kind, ..)| *kind != source.kind);
        if callback.is_some() {
            state.callbacks.push((source.kind, callback, data as usize));
            if Events::is_new(&state, source.kind)
                && let Some(callback) = callback
            {
                drop(state);
                // SAFETY: upheld by the caller.
                unsafe { callback(data, 1) };
            }
        }
        Ok(())
    })
}

/// Whether this event is supported (`rmw_event_type_is_supported`).
#[unsafe(no_mangle)]
pub(crate) extern "C" fn rmw_event_type_is_supported(kind: u32) -> bool {
    EventKind::from_code(kind).is_some()
}
