//! Serialized messages: CDR.

use crate::abi::introspection::MessageTypeSupport;
use crate::abi::{Ret, SerializedMessage};
use crate::error::{Failure, Outcome, arg, arg_mut, guard};
use crate::typesupport::Type;
use std::ffi::c_void;

/// Writes bytes into a buffer, and grows it as needed.
pub(crate) fn store(message: &mut SerializedMessage, bytes: &[u8]) -> Outcome {
    if message.capacity < bytes.len() {
        let Some(reallocate) = message.allocator.reallocate else {
            return Err(Failure::argument("serialized_message has no valid allocator"));
        };
        // SAFETY: the buffer comes from this allocator, or is null.
        let grown = unsafe { reallocate(message.buffer.cast(), bytes.len(), message.allocator.state) };
        if grown.is_null() {
            return Err(Failure::memory(format_args!(
                "no memory for {} serialized bytes",
                bytes.len()
            )));
        }
        (message.buffer, message.capacity) = (grown.cast(), bytes.len());
    }
    // SAFETY: the buffer has room for all bytes, and only the caller uses it.
    unsafe {
        message
            .buffer
            .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
    };
    message.length = bytes.len();
    Ok(())
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_serialize(
    message: *const c_void,
    type_support: *const MessageTypeSupport,
    serialized: *mut SerializedMessage,
) -> Ret {
    guard(|| {
        if message.is_null() {
            return Err(Failure::argument("ros_message argument is null"));
        }
        // SAFETY: upheld by the caller.
        let serialized = unsafe {
            arg(type_support, "type_support")?;
            arg_mut(serialized, "serialized_message")?
        };
        // SAFETY: type supports are valid while their library is loaded.
        let ty = unsafe { Type::cached(type_support) }.map_err(Failure::error)?;
        // SAFETY: the caller's message has this type.
        let bytes = unsafe { ty.serialize(message) }.map_err(Failure::error)?;
        store(serialized, &bytes)
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_deserialize(
    serialized: *const SerializedMessage,
    type_support: *const MessageTypeSupport,
    message: *mut c_void,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let serialized = unsafe {
            arg(type_support, "type_support")?;
            arg(serialized, "serialized_message")?
        };
        if message.is_null() || serialized.buffer.is_null() {
            return Err(Failure::argument("ros_message or the buffer is null"));
        }
        // SAFETY: type supports are valid while their library is loaded.
        let ty = unsafe { Type::cached(type_support) }.map_err(Failure::error)?;
        // SAFETY: the buffer has that many bytes.
        let bytes = unsafe { std::slice::from_raw_parts(serialized.buffer, serialized.length) };
        // SAFETY: the caller's message has this type and is initialised.
        unsafe { ty.deserialize(bytes, message) }.map_err(Failure::error)
    })
}
