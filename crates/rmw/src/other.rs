//! Functions that report what this implementation lacks, and small ones.

use crate::abi::{Ret, RmwPublisher, RmwSubscription, UNSUPPORTED};
use crate::error::{Failure, guard};
use crate::host::set_error;
use crate::{publisher, subscription};
use std::ffi::c_void;

fn unsupported(what: &str) -> Ret {
    set_error(&format!("rmw_ropewalk has no {what}"));
    UNSUPPORTED
}

/// `rmw_feature_supported`: a message's info has both sequence numbers.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn rmw_feature_supported(feature: u32) -> bool {
    feature < 2
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_init_publisher_allocation(
    _: *const c_void,
    _: *const c_void,
    _: *mut c_void,
) -> Ret {
    unsupported("allocations in advance")
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_fini_publisher_allocation(_: *mut c_void) -> Ret {
    unsupported("allocations in advance")
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_init_subscription_allocation(
    _: *const c_void,
    _: *const c_void,
    _: *mut c_void,
) -> Ret {
    unsupported("allocations in advance")
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_fini_subscription_allocation(_: *mut c_void) -> Ret {
    unsupported("allocations in advance")
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_get_serialized_message_size(
    _: *const c_void,
    _: *const c_void,
    _: *mut usize,
) -> Ret {
    unsupported("sizes of serialized messages in advance")
}

/// # Safety
/// As documented in rmw/get_network_flow_endpoints.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_publisher_get_network_flow_endpoints(
    handle: *const RmwPublisher,
    _: *mut c_void,
    _: *mut c_void,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        unsafe { publisher::of(handle)? };
        Err(Failure::unsupported("the bus has no network flows"))
    })
}

/// # Safety
/// As documented in rmw/get_network_flow_endpoints.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_subscription_get_network_flow_endpoints(
    handle: *const RmwSubscription,
    _: *mut c_void,
    _: *mut c_void,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        unsafe { subscription::of(handle)? };
        Err(Failure::unsupported("the bus has no network flows"))
    })
}

/// Sets the minimum severity to log (`rmw_set_log_severity`). Has no effect: this library logs through `tracing`, and
/// its host decides whether to subscribe.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn rmw_set_log_severity(_: i32) -> Ret {
    crate::abi::OK
}
