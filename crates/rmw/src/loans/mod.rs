//! Loaned messages. In those of subscriptions, bulk arrays stay where the publisher wrote them, so none of them is
//! copied (`taken`). Those of publishers are created and ended here (`lent`).
//!
//! Any type can be loaned. A message that a subscription loans is read-only: rclcpp loans only if
//! `ROS_DISABLE_LOANED_MESSAGES=0` is set, and then callbacks must take `const T &`.

mod lent;
mod owned;
mod taken;

pub(crate) use lent::Lent;
pub(crate) use owned::Owned;
pub(crate) use taken::Taken;

use crate::abi::introspection::MessageTypeSupport;
use crate::abi::{MessageInfo, Ret, RmwPublisher, RmwSubscription};
use crate::error::{Failure, Outcome, arg, arg_mut, guard};
use crate::typesupport::Type;
use crate::walk::Instance;
use crate::{publisher, subscription};
use std::ffi::c_void;

/// Maximum number of messages whose blocks nodes hold, out of the 16 that the bus lets a subscriber hold per publisher.
/// Further messages are copied.
pub(crate) const MAX_IN_PLACE: usize = 12;

fn make(ty: &Type) -> Outcome<Instance> {
    // SAFETY: rcl keeps the type support's library loaded while an entity of the type, or a loan of it, lives.
    unsafe { ty.plan().make() }
        .ok_or_else(|| Failure::memory(format_args!("no memory for a {}", ty.schema().ros2_name())))
}

/// Whether nodes of this process take messages on loan, as rcl decides it. They then wake early, since they want low
/// latency (decision 049).
pub(crate) fn are_on() -> bool {
    std::env::var_os("ROS_DISABLE_LOANED_MESSAGES").is_some_and(|value| value == "0")
}

/// Prefetches the code between wake-up and callback, which is not in the processor's caches after a sleep (decision
/// 049).
pub(crate) fn fetch_when_woken(subscriber: &bus::Subscriber) {
    /// Approximate length of the common path, in bytes.
    const LEN: usize = 2048;
    crate::subscription::Subscription::fetch_when_woken(subscriber);
    subscriber.fetch_when_woken(take as *const u8, LEN);
    let (start, len) = Type::code();
    subscriber.fetch_when_woken(start, len);
}

/// Error for a message that is not on loan.
fn unknown(message: *mut c_void) -> Failure {
    match message.is_null() {
        true => Failure::argument("loaned_message argument is null"),
        false => Failure::error("this message is not on loan here, or was returned already"),
    }
}

/// Checks the place for a loan. It must hold null, since a message in it would be lost.
///
/// # Safety
/// `place` is null or points to a pointer that belongs to the caller.
unsafe fn empty<'a>(place: *mut *mut c_void, name: &str) -> Outcome<&'a mut *mut c_void> {
    // SAFETY: upheld by the caller.
    let place = unsafe { arg_mut(place, name)? };
    if !place.is_null() {
        return Err(Failure::argument(format_args!(
            "{name} must hold null, not a message"
        )));
    }
    Ok(place)
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_borrow_loaned_message(
    publisher: *const RmwPublisher,
    type_support: *const MessageTypeSupport,
    message: *mut *mut c_void,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let publisher = unsafe { publisher::of(publisher)? };
        // SAFETY: likewise.
        let message = unsafe {
            arg(type_support, "type_support")?;
            empty(message, "ros_message")?
        };
        // SAFETY: type supports are valid while their library is loaded.
        if !unsafe { publisher.ty.is_of(type_support) } {
            return Err(Failure::argument(format_args!(
                "type_support differs from the publisher's, whose type is {}",
                publisher.ty.schema().ros2_name()
            )));
        }
        *message = publisher.lent.lend(&publisher.ty, publisher.bus())?;
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_return_loaned_message_from_publisher(
    publisher: *const RmwPublisher,
    message: *mut c_void,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        unsafe { publisher::of(publisher)? }
            .lent
            .take_back(message)
            .map(drop)
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_publish_loaned_message(
    publisher: *const RmwPublisher,
    message: *mut c_void,
    _: *mut c_void,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let publisher = unsafe { publisher::of(publisher)? };
        let mut loan = publisher.lent.take_back(message)?;
        match publisher.lent.written(&publisher.ty, &mut loan)? {
            Some(block) => publisher.publish_block(block),
            // SAFETY: the message was made with the publisher's type, and the caller gives it up.
            None => unsafe { publisher.publish_message(loan.message()) },
        }
    })
}

/// # Safety
/// The arguments are null or as rmw/rmw.h documents them.
unsafe fn take(
    subscription: *const RmwSubscription,
    message: *mut *mut c_void,
    taken: *mut bool,
    info: Option<*mut MessageInfo>,
) -> Outcome {
    // SAFETY: upheld by the caller.
    let subscription = unsafe { subscription::of(subscription)? };
    // SAFETY: likewise.
    let (message, taken) = unsafe { (empty(message, "loaned_message")?, arg_mut(taken, "taken")?) };
    let info = match info {
        // SAFETY: likewise.
        Some(info) => Some(unsafe { arg_mut(info, "message_info")? }),
        None => None,
    };
    *taken = false;
    let Some(from) = subscription.take()? else {
        return Ok(());
    };
    if let Some(info) = info {
        *info = subscription.info(&from);
    }
    *message = subscription.lend(from)?;
    *taken = true;
    Ok(())
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_take_loaned_message(
    subscription: *const RmwSubscription,
    message: *mut *mut c_void,
    taken: *mut bool,
    _: *mut c_void,
) -> Ret {
    // SAFETY: upheld by the caller.
    guard(|| unsafe { take(subscription, message, taken, None) })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_take_loaned_message_with_info(
    subscription: *const RmwSubscription,
    message: *mut *mut c_void,
    taken: *mut bool,
    info: *mut MessageInfo,
    _: *mut c_void,
) -> Ret {
    // SAFETY: upheld by the caller.
    guard(|| unsafe { take(subscription, message, taken, Some(info)) })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_return_loaned_message_from_subscription(
    subscription: *const RmwSubscription,
    message: *mut c_void,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        unsafe { subscription::of(subscription)? }
            .loans
            .take_back(message)
    })
}
