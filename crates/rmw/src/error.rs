//! Return codes with their messages, and the argument checks that every function starts with.

use crate::abi::{self, Ret};
use crate::host;
use crate::walk::MessageError;
use std::ffi::{CStr, c_char};

/// Name of this implementation. Entities carry this pointer; other libraries may have the same text at another address.
pub(crate) const IDENTIFIER: &CStr = c"rmw_ropewalk";

/// Why a function fails: its return code and the message that `rmw_get_error_string` returns.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Ret,
    pub(crate) text: String,
}

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn error(text: impl std::fmt::Display) -> Self {
        Failure {
            code: abi::ERROR,
            text: text.to_string(),
        }
    }

    pub(crate) fn argument(text: impl std::fmt::Display) -> Self {
        Failure {
            code: abi::INVALID_ARGUMENT,
            text: text.to_string(),
        }
    }

    /// Memory for a message ran out.
    pub(crate) fn memory(text: impl std::fmt::Display) -> Self {
        Failure {
            code: abi::BAD_ALLOC,
            text: text.to_string(),
        }
    }

    pub(crate) fn unsupported(text: impl std::fmt::Display) -> Self {
        Failure {
            code: abi::UNSUPPORTED,
            text: text.to_string(),
        }
    }
}

impl From<bus::LoanError> for Failure {
    fn from(error: bus::LoanError) -> Self {
        use bus::LoanError::{FileSizeLimit, MemoryShort, System, SystemMemory, TooLarge};
        match error {
            TooLarge { .. }
            | MemoryShort { .. }
            | SystemMemory { .. }
            | FileSizeLimit { .. }
            | System { .. } => Failure::memory(error),
            other => Failure::error(other),
        }
    }
}

impl From<MessageError> for Failure {
    fn from(error: MessageError) -> Self {
        match error {
            MessageError::OutOfMemory { .. } => Failure::memory(error),
            other => Failure::error(other),
        }
    }
}

/// Runs a function of the interface. A failure sets the error message. A panic counts as a failure, since it must not
/// unwind into C.
pub(crate) fn guard(f: impl FnOnce() -> Outcome) -> Ret {
    code(std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)))
}

fn code(outcome: std::thread::Result<Outcome>) -> Ret {
    match outcome {
        Ok(Ok(())) => abi::OK,
        Ok(Err(failure)) => {
            if failure.code != abi::TIMEOUT {
                host::set_error(&failure.text);
            }
            failure.code
        }
        Err(_) => {
            host::set_error("rmw_ropewalk panicked, which is a bug: please report it");
            abi::ERROR
        }
    }
}

/// As [`guard`], for a function that returns a pointer: null on failure.
pub(crate) fn guard_ptr<T>(f: impl FnOnce() -> Outcome<*mut T>) -> *mut T {
    let mut made = std::ptr::null_mut();
    guard(|| {
        made = f()?;
        Ok(())
    });
    made
}

/// Returns the object behind an argument.
///
/// # Safety
/// The pointer is null or points to a valid object that lives for `'a`.
pub(crate) unsafe fn arg<'a, T>(pointer: *const T, name: &str) -> Outcome<&'a T> {
    // SAFETY: upheld by the caller.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::argument(format_args!("{name} argument is null")))
}

/// As [`arg`], for writing.
///
/// # Safety
/// As [`arg`], and nothing else uses the object meanwhile.
pub(crate) unsafe fn arg_mut<'a, T>(pointer: *mut T, name: &str) -> Outcome<&'a mut T> {
    // SAFETY: upheld by the caller.
    unsafe { pointer.as_mut() }.ok_or_else(|| Failure::argument(format_args!("{name} argument is null")))
}

/// Returns the text of an argument. Fails if it is not UTF-8.
///
/// # Safety
/// The pointer is null or points to a string that ends with a NUL byte and lives for `'a`.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Outcome<&'a str> {
    if pointer.is_null() {
        return Err(Failure::argument(format_args!("{name} argument is null")));
    }
    // SAFETY: upheld by the caller.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str()
        .map_err(|_| Failure::argument(format_args!("{name} argument is not UTF-8")))
}

/// Checks that an entity belongs to this implementation.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn ours(identifier: *const c_char, of: &str) -> Outcome {
    let same = std::ptr::eq(identifier, IDENTIFIER.as_ptr())
        // SAFETY: upheld by the caller.
        || !identifier.is_null() && unsafe { CStr::from_ptr(identifier) } == IDENTIFIER;
    if same {
        return Ok(());
    }
    Err(Failure {
        code: abi::INCORRECT_RMW_IMPLEMENTATION,
        text: format!("{of} does not belong to rmw_ropewalk"),
    })
}
