//! Guard conditions: one thread sets them to end another thread's wait.

use crate::abi::{Ret, RmwContext, RmwGuardCondition};
use crate::context;
use crate::error::{Failure, IDENTIFIER, Outcome, arg, guard, guard_ptr, ours};
use crate::graph::Listener;
use crate::signal::Signal;
use std::sync::Arc;

/// State of a guard condition.
#[derive(Debug)]
pub(crate) struct Guard {
    pub(crate) signal: Signal,
}

impl Guard {
    pub(crate) fn new() -> Outcome<Arc<Guard>> {
        let signal = Signal::new().map_err(Failure::error)?;
        Ok(Arc::new(Guard { signal }))
    }

    /// Returns the handle that callers use. [`discard`] frees it.
    pub(crate) fn handle(self: Arc<Self>, context: *mut RmwContext) -> Box<RmwGuardCondition> {
        Box::new(RmwGuardCondition {
            implementation: IDENTIFIER.as_ptr(),
            data: Arc::into_raw(self).cast_mut().cast(),
            context,
        })
    }
}

/// Frees a handle.
pub(crate) fn discard(handle: RmwGuardCondition) {
    // SAFETY: made by `Guard::handle` with `Arc::into_raw`.
    drop(unsafe { Arc::from_raw(handle.data.cast::<Guard>()) });
}

/// The graph guard condition of a node.
impl Listener for Guard {
    fn graph_changed(&self) -> bool {
        self.signal.set();
        true
    }
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_create_guard_condition(
    context: *mut RmwContext,
) -> *mut RmwGuardCondition {
    guard_ptr(|| {
        // SAFETY: upheld by the caller.
        unsafe { context::of(context)? };
        Ok(Box::into_raw(Guard::new()?.handle(context)))
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_destroy_guard_condition(condition: *mut RmwGuardCondition) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller; identifiers live forever.
        unsafe {
            ours(
                arg(condition, "guard_condition")?.implementation,
                "guard_condition",
            )?
        };
        // SAFETY: made by `rmw_create_guard_condition`, and the caller no longer uses it.
        discard(*unsafe { Box::from_raw(condition) });
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_trigger_guard_condition(condition: *const RmwGuardCondition) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller; identifiers live forever.
        let condition = unsafe { arg(condition, "guard_condition")? };
        // SAFETY: likewise.
        unsafe { ours(condition.implementation, "guard_condition")? };
        // SAFETY: this library owns `data` while the condition lives.
        unsafe { arg(condition.data.cast::<Guard>(), "guard_condition")? }
            .signal
            .set();
        Ok(())
    })
}
