//! Wait sets: one wait over subscriptions, guard conditions, services, clients and events.
//!
//! Each entity has a descriptor that is readable while the entity has something. A wait first checks all entities,
//! which also arms each descriptor for the next item, and sleeps on the descriptors only if no entity has anything.

use crate::abi::{Entities, Ret, RmwContext, RmwEvent, RmwTime, RmwWaitSet, TIMEOUT};
use crate::client::{self, Client};
use crate::context;
use crate::error::{Failure, IDENTIFIER, Outcome, arg, guard, guard_ptr, ours};
use crate::event::{self, Source};
use crate::guard::Guard;
use crate::qos;
use crate::service::{self, Service};
use crate::subscription::{self, Subscription};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::ffi::c_void;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_create_wait_set(context: *mut RmwContext, _: usize) -> *mut RmwWaitSet {
    guard_ptr(|| {
        // SAFETY: upheld by the caller.
        unsafe { context::of(context)? };
        Ok(Box::into_raw(Box::new(RmwWaitSet {
            implementation: IDENTIFIER.as_ptr(),
            guard_conditions: std::ptr::null_mut(),
            data: std::ptr::null_mut(),
        })))
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_destroy_wait_set(wait_set: *mut RmwWaitSet) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller; identifiers live forever.
        unsafe { ours(arg(wait_set, "wait_set")?.implementation, "wait_set")? };
        // SAFETY: made by `rmw_create_wait_set`, and the caller no longer uses it.
        drop(unsafe { Box::from_raw(wait_set) });
        Ok(())
    })
}

/// An entity to wait for.
#[derive(Clone, Copy)]
enum Entity<'a> {
    Subscription(&'a Subscription),
    Guard(&'a Guard),
    Service(&'a Service),
    Client(&'a Client),
    Event(Source<'a>),
}

impl Entity<'_> {
    /// Whether the entity has something. If not, its descriptor becomes readable when it does.
    fn is_ready(&self) -> Outcome<bool> {
        match self {
            Entity::Subscription(s) => s.rearm(),
            Entity::Guard(g) => Ok(g.signal.is_set()),
            Entity::Service(s) => s.rearm(),
            Entity::Client(c) => c.rearm(),
            Entity::Event(source) => Ok(source.events.is_ready(source.kind)),
        }
    }

    fn fd(&self) -> Option<PollFd<'_>> {
        let fd = match self {
            Entity::Subscription(s) => s.as_fd(),
            Entity::Guard(g) => g.signal.as_fd(),
            Entity::Service(s) => s.as_fd(),
            Entity::Client(c) => c.as_fd(),
            Entity::Event(source) => source.events.signal(source.kind)?.as_fd(),
        };
        Some(PollFd::from_borrowed_fd(fd, PollFlags::IN))
    }
}

/// Returns the entities of one kind, each with its position in the array.
///
/// # Safety
/// `all` is null or describes an array with that many entities of this kind.
unsafe fn gather<'a>(
    all: *mut Entities,
    entity: unsafe fn(*mut c_void) -> Outcome<Entity<'a>>,
    out: &mut Vec<(*mut *mut c_void, Entity<'a>)>,
) -> Outcome {
    // SAFETY: upheld by the caller.
    let Some(all) = (unsafe { all.as_ref() }) else {
        return Ok(());
    };
    for i in 0..all.count {
        // SAFETY: the array has `count` elements.
        let place = unsafe { all.entities.add(i) };
        // SAFETY: likewise.
        let data = unsafe { place.read() };
        if !data.is_null() {
            // SAFETY: upheld by the caller.
            out.push((place, unsafe { entity(data)? }));
        }
    }
    Ok(())
}

/// # Safety
/// `data` belongs to an entity of the kind that its array names, and lives during the wait.
unsafe fn of_subscription<'a>(data: *mut c_void) -> Outcome<Entity<'a>> {
    // SAFETY: upheld by the caller.
    let handle = unsafe { arg(data.cast::<subscription::Handle>(), "subscription")? };
    Ok(Entity::Subscription(&handle.0))
}

/// # Safety
/// As [`of_subscription`].
unsafe fn guard_condition<'a>(data: *mut c_void) -> Outcome<Entity<'a>> {
    // SAFETY: upheld by the caller.
    Ok(Entity::Guard(unsafe { arg(data.cast(), "guard condition")? }))
}

/// # Safety
/// As [`of_subscription`].
unsafe fn of_service<'a>(data: *mut c_void) -> Outcome<Entity<'a>> {
    // SAFETY: upheld by the caller.
    let handle = unsafe { arg(data.cast::<service::Handle>(), "service")? };
    Ok(Entity::Service(&handle.0))
}

/// # Safety
/// As [`of_subscription`].
unsafe fn of_client<'a>(data: *mut c_void) -> Outcome<Entity<'a>> {
    // SAFETY: upheld by the caller.
    let handle = unsafe { arg(data.cast::<client::Handle>(), "client")? };
    Ok(Entity::Client(&handle.0))
}

/// # Safety
/// `data` is an event.
unsafe fn of_event<'a>(data: *mut c_void) -> Outcome<Entity<'a>> {
    // SAFETY: upheld by the caller.
    Ok(Entity::Event(unsafe { event::source(data.cast::<RmwEvent>())? }))
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_wait(
    subscriptions: *mut Entities,
    guard_conditions: *mut Entities,
    services: *mut Entities,
    clients: *mut Entities,
    events: *mut Entities,
    wait_set: *mut RmwWaitSet,
    timeout: *const RmwTime,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller; identifiers live forever.
        unsafe { ours(arg(wait_set, "wait_set")?.implementation, "wait_set")? };
        let mut all = Vec::new();
        // SAFETY: upheld by the caller: each array has the kind that its argument names.
        unsafe {
            gather(subscriptions, of_subscription, &mut all)?;
            gather(guard_conditions, guard_condition, &mut all)?;
            gather(services, of_service, &mut all)?;
            gather(clients, of_client, &mut all)?;
            gather(events, of_event, &mut all)?;
        }
        // SAFETY: upheld by the caller.
        let timeout = unsafe { timeout.as_ref() };
        let timeout = timeout.map(|t| match (t.sec, t.nsec) {
            (0, 0) => Duration::ZERO,
            _ => Duration::from_nanos(qos::nanos(*t)),
        });
        let deadline = timeout.and_then(|t| Instant::now().checked_add(t));
        let ready = wait(&all, deadline)?;
        let any = ready.contains(&true);
        for ((place, entity), ready) in all.iter().zip(ready) {
            let ready = match entity {
                // The caller of the wait has seen it.
                Entity::Guard(guard) if ready => guard.signal.take(),
                _ => ready,
            };
            if !ready {
                // SAFETY: `gather` found this element in the caller's array.
                unsafe { place.write(std::ptr::null_mut()) };
            }
        }
        if any {
            return Ok(());
        }
        Err(Failure {
            code: TIMEOUT,
            text: String::new(),
        })
    })
}

/// Waits until an entity has something or the deadline passes. Returns for each entity whether it has something.
fn wait(all: &[(*mut *mut c_void, Entity<'_>)], deadline: Option<Instant>) -> Outcome<Vec<bool>> {
    let mut fds: Vec<PollFd<'_>> = Vec::new();
    let mut expecting = None;
    loop {
        let mut ready: Vec<bool> = all.iter().map(|(_, e)| e.is_ready()).collect::<Outcome<_>>()?;
        let now = Instant::now();
        if let Some(i) = expecting
            && !ready.contains(&true)
        {
            ready[i] = true;
        }
        if ready.contains(&true) || deadline.is_some_and(|d| d <= now) {
            return Ok(ready);
        }
        if fds.is_empty() {
            fds.extend(all.iter().filter_map(|(_, e)| e.fd()));
        }
        let left = deadline.map(|d| {
            let d = d - now;
            Timespec::try_from(d).unwrap_or(Timespec {
                tv_sec: i64::MAX,
                tv_nsec: 0,
            })
        });
        match rustix::event::poll(&mut fds, left.as_ref()) {
            Ok(1) => expecting = woken(all, &fds),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Failure::error(format_args!("waiting: {error}"))),
        }
    }
}

/// An entity has something after a sleep: if it is a subscription, prefetch what taking its message needs. Returns the
/// subscription's position if its message is still being filled.
///
/// The wait then ends as if the message had come. Taking it fails, as rmw allows, but by the time the message comes, the
/// code of the node, of rcl and of this library has just run and is in the processor's caches (decision 049).
fn woken(all: &[(*mut *mut c_void, Entity<'_>)], fds: &[PollFd<'_>]) -> Option<usize> {
    let with_fd = all.iter().enumerate().filter(|(_, (_, e))| e.fd().is_some());
    let ((i, (_, entity)), _) = with_fd.zip(fds).find(|(_, fd)| !fd.revents().is_empty())?;
    match entity {
        Entity::Subscription(subscription) => subscription.woken().then_some(i),
        _ => None,
    }
}
