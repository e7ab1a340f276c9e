//! The functions of rmw/rmw.h for subscriptions.

use super::{Choice, Handle, Subscription, of};
use crate::abi::introspection::MessageTypeSupport;
use crate::abi::{
    Allocator, ContentFilterOptions, EventCallback, MessageInfo, MessageInfoSequence, MessageSequence,
    QosProfile, Ret, RmwNode, RmwSubscription, RmwSubscriptionOptions, SerializedMessage,
};
use crate::callback::Callback;
use crate::error::{Failure, IDENTIFIER, Outcome, arg, arg_mut, guard, guard_ptr, text};
use crate::filter::Filter;
use crate::graph::lock;
use crate::graph::record::{Endpoint, Kind};
use crate::loans::{self, Owned, Taken};
use crate::matching::Matching;
use crate::node::{self, c_text, drop_c_text};
use crate::publisher::{FLOWS_REQUIRED, resolve, topic_name};
use crate::qos::{self, End};
use crate::serial;
use crate::typesupport::Type;
use bus::SubscriberOptions;
use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_create_subscription(
    node: *const RmwNode,
    type_support: *const MessageTypeSupport,
    topic: *const c_char,
    profile: *const QosProfile,
    options: *const RmwSubscriptionOptions,
) -> *mut RmwSubscription {
    guard_ptr(|| {
        // SAFETY: upheld by the caller.
        let node = unsafe { node::of(node)? };
        // SAFETY: likewise.
        unsafe { arg(type_support, "type_supports")? };
        // SAFETY: likewise.
        let (profile, options) = unsafe {
            (
                arg(profile, "qos_policies")?,
                arg(options, "subscription_options")?,
            )
        };
        // SAFETY: likewise.
        let topic = unsafe { topic_name(topic, profile, "topic_name")? };
        if options.unique_flow == FLOWS_REQUIRED {
            return Err(Failure::unsupported(
                "the bus has no network flows that could be unique",
            ));
        }
        let profile = resolve(&node.context, topic, profile, End::Subscription)?;
        // SAFETY: type supports are valid while their library is loaded.
        let ty = unsafe { Type::of_subscription(type_support) }.map_err(Failure::error)?;
        // SAFETY: upheld by the caller.
        let filter = match unsafe { options.content_filter.as_ref() } {
            // SAFETY: likewise.
            Some(options) => unsafe { asked(&ty, options)? },
            None => None,
        };
        let queue = SubscriberOptions::default()
            .with_depth(profile.queue())
            .with_early_wake(loans::are_on())
            .with_history(match profile.durability {
                qos::TRANSIENT_LOCAL => profile.queue(),
                _ => 0,
            });
        let bus = node
            .context
            .node
            .dynamic_subscriber_with(topic, ty.schema(), queue);
        let bus = bus.map_err(Failure::error)?;
        loans::fetch_when_woken(bus.bus());
        let own = Endpoint {
            kind: Kind::Subscription,
            name: topic.to_owned(),
            type_name: ty.schema().ros2_name(),
            type_hash: ty.hash().parts(),
            id: bus.bus().id(),
            qos: (&profile).into(),
        };
        let subscription = Subscription {
            matching: Matching::new(node, End::Subscription, own, profile),
            bus,
            ty,
            loans: Taken::default(),
            owned: Owned::default(),
            ignores_own: options.ignore_local_publications,
            publishers: Mutex::default(),
            taken: AtomicU64::new(0),
            choice: Mutex::new(Choice {
                filter: filter.map(Arc::new),
                next: None,
            }),
            callback: Callback::default(),
        };
        let is_cft_enabled = lock(&subscription.choice).filter.is_some();
        let can_loan_messages = subscription.ty.plan().can_make();
        Ok(Box::into_raw(Box::new(RmwSubscription {
            implementation: IDENTIFIER.as_ptr(),
            data: Box::into_raw(Box::new(Handle(Arc::new(subscription)))).cast(),
            topic_name: c_text(topic),
            options: RmwSubscriptionOptions {
                // It belongs to the caller and may end before this subscription.
                content_filter: std::ptr::null_mut(),
                ..*options
            },
            can_loan_messages,
            is_cft_enabled,
        })))
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_destroy_subscription(
    node: *mut RmwNode,
    subscription: *mut RmwSubscription,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        unsafe {
            node::of(node)?;
            of(subscription)?;
        }
        // SAFETY: made by `rmw_create_subscription`, and the caller no longer uses it.
        let inner = unsafe {
            let handle = Box::from_raw(subscription);
            drop_c_text(handle.topic_name);
            Box::from_raw(handle.data.cast::<Handle>())
        };
        inner.0.callback.end();
        inner.0.matching.end();
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_subscription_count_matched_publishers(
    subscription: *const RmwSubscription,
    count: *mut usize,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (subscription, count) = unsafe { (of(subscription)?, arg_mut(count, "publisher_count")?) };
        *count = 0;
        let matches = |id| subscription.matching.matches(id);
        let bus = subscription.bus.bus();
        bus.each_publisher(|id| *count += usize::from(matches(id)));
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_subscription_get_actual_qos(
    subscription: *const RmwSubscription,
    profile: *mut QosProfile,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (subscription, profile) = unsafe { (of(subscription)?, arg_mut(profile, "qos")?) };
        *profile = *subscription.matching.qos();
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_subscription_set_content_filter(
    subscription: *mut RmwSubscription,
    options: *const ContentFilterOptions,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (inner, options) = unsafe { (of(subscription)?, arg(options, "options")?) };
        // SAFETY: likewise.
        let filter = unsafe { asked(&inner.ty, options)? };
        let enabled = filter.is_some();
        inner.set_filter(filter);
        // SAFETY: `of` checked the pointer, and the caller does not share it meanwhile.
        unsafe { (*subscription).is_cft_enabled = enabled };
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_subscription_get_content_filter(
    subscription: *const RmwSubscription,
    allocator: *mut Allocator,
    options: *mut ContentFilterOptions,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (inner, allocator, options) = unsafe {
            (
                of(subscription)?,
                arg(allocator, "allocator")?,
                arg_mut(options, "options")?,
            )
        };
        let filter = lock(&inner.choice).filter.clone();
        let filter = filter.ok_or_else(|| Failure::error("this subscription has no content filter"))?;
        let expression = allocator.text(&filter.expression)?;
        if let Err(failure) = options.parameters.fill(allocator, &filter.parameters) {
            // SAFETY: made above.
            unsafe { allocator.free(expression) };
            return Err(failure);
        }
        options.expression = expression;
        Ok(())
    })
}

/// Returns the next message and its info, if any. `taken` is false until the caller has read the message.
///
/// # Safety
/// The arguments are null or as rmw/rmw.h documents them.
pub(crate) unsafe fn take_any(
    subscription: *const RmwSubscription,
    taken: *mut bool,
    info: Option<*mut MessageInfo>,
) -> Outcome<Option<ropewalk::Message>> {
    // SAFETY: upheld by the caller.
    let (subscription, taken) = unsafe { (of(subscription)?, arg_mut(taken, "taken")?) };
    let info = match info {
        // SAFETY: likewise.
        Some(info) => Some(unsafe { arg_mut(info, "message_info")? }),
        None => None,
    };
    *taken = false;
    let from = subscription.take()?;
    if let (Some(info), Some(from)) = (info, &from) {
        *info = subscription.info(from);
    }
    Ok(from)
}

/// # Safety
/// The arguments are null or as rmw/rmw.h documents them.
unsafe fn take(
    subscription: *const RmwSubscription,
    message: *mut c_void,
    taken: *mut bool,
    info: Option<*mut MessageInfo>,
) -> Outcome {
    if message.is_null() {
        return Err(Failure::argument("ros_message argument is null"));
    }
    // SAFETY: upheld by the caller, for everything below: the message has the subscription's type and is initialised.
    unsafe {
        let Some(from) = take_any(subscription, taken, info)? else {
            return Ok(());
        };
        of(subscription)?.read(from, message)?;
        taken.write(true);
    }
    Ok(())
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_take(
    subscription: *const RmwSubscription,
    message: *mut c_void,
    taken: *mut bool,
    _: *mut c_void,
) -> Ret {
    // SAFETY: upheld by the caller.
    guard(|| unsafe { take(subscription, message, taken, None) })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_take_with_info(
    subscription: *const RmwSubscription,
    message: *mut c_void,
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
pub(crate) unsafe extern "C" fn rmw_take_sequence(
    subscription: *const RmwSubscription,
    count: usize,
    messages: *mut MessageSequence,
    infos: *mut MessageInfoSequence,
    taken: *mut usize,
    _: *mut c_void,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let inner = unsafe { of(subscription)? };
        // SAFETY: likewise.
        let (messages, infos, taken) = unsafe {
            (
                arg_mut(messages, "message_sequence")?,
                arg_mut(infos, "message_info_sequence")?,
                arg_mut(taken, "taken")?,
            )
        };
        if count == 0 {
            return Err(Failure::argument("count cannot be 0"));
        }
        if count > messages.capacity || count > infos.capacity {
            return Err(Failure::argument(
                "the sequences have too little capacity for this many messages",
            ));
        }
        let mut n = 0;
        while n < count {
            let Some(from) = inner.take()? else { break };
            // SAFETY: both sequences have `capacity` elements, and the messages are initialised.
            unsafe {
                infos.data.add(n).write(inner.info(&from));
                inner.read(from, messages.data.add(n).read())?;
            }
            n += 1;
        }
        (messages.size, infos.size, *taken) = (n, n, n);
        Ok(())
    })
}

/// # Safety
/// The arguments are null or as rmw/rmw.h documents them.
unsafe fn take_serialized(
    subscription: *const RmwSubscription,
    message: *mut SerializedMessage,
    taken: *mut bool,
    info: Option<*mut MessageInfo>,
) -> Outcome {
    // SAFETY: upheld by the caller, for everything below.
    unsafe {
        let message = arg_mut(message, "serialized_message")?;
        let Some(from) = take_any(subscription, taken, info)? else {
            return Ok(());
        };
        serial::store(message, &from.cdr().map_err(Failure::error)?)?;
        taken.write(true);
    }
    Ok(())
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_take_serialized_message(
    subscription: *const RmwSubscription,
    message: *mut SerializedMessage,
    taken: *mut bool,
    _: *mut c_void,
) -> Ret {
    // SAFETY: upheld by the caller.
    guard(|| unsafe { take_serialized(subscription, message, taken, None) })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_take_serialized_message_with_info(
    subscription: *const RmwSubscription,
    message: *mut SerializedMessage,
    taken: *mut bool,
    info: *mut MessageInfo,
    _: *mut c_void,
) -> Ret {
    // SAFETY: upheld by the caller.
    guard(|| unsafe { take_serialized(subscription, message, taken, Some(info)) })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_subscription_set_on_new_message_callback(
    subscription: *mut RmwSubscription,
    callback: EventCallback,
    data: *const c_void,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let inner = unsafe { of(subscription)? };
        let waiting = inner.clone();
        let look = move || {
            let ready = waiting.rearm().unwrap_or(false);
            ready.then(|| waiting.taken.load(Ordering::Relaxed))
        };
        let fd = inner.clone();
        inner.callback.set(callback, data, fd, look)
    })
}

/// Returns the filter that the options request, if any.
///
/// # Safety
/// The options hold a string and an array of strings, or null.
unsafe fn asked(ty: &Type, options: &ContentFilterOptions) -> Outcome<Option<Filter>> {
    if options.expression.is_null() {
        return Err(Failure::argument("the content filter has no expression"));
    }
    // SAFETY: upheld by the caller.
    let expression = unsafe { text(options.expression, "filter_expression")? };
    // As in implementations of DDS, an empty expression ends filtering.
    if expression.is_empty() {
        return Ok(None);
    }
    let parameters = &options.parameters;
    let parameters = (0..parameters.size).map(|i| {
        // SAFETY: the array has `size` elements.
        let parameter = unsafe { parameters.data.add(i).read() };
        // SAFETY: upheld by the caller.
        unsafe { text(parameter, "expression_parameters") }.map(str::to_owned)
    });
    let parameters = parameters.collect::<Outcome<_>>()?;
    Filter::new(ty.schema(), expression, parameters)
        .map(Some)
        .map_err(Failure::argument)
}
