//! Return codes with their message, and the checks that every function begins with.

use crate::abi::{self, Ret};
use crate::host;
use crate::walk::MessageError;
use std::ffi::{CStr, c_char};

/// The name of this implementation; entities carry the pointer, others may have the same text.
pub(crate) const IDENTIFIER: &CStr = c"rmw_ropewalk";

/// Why a function fails: its return code and the message that `rmw_get_error_string` gives.
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

    /// There is no memory for a message.
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

/// Runs a function of the interface: a failure sets the error message, and a panic, which must not reach C, is one.
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
            host::set_error("rmw_ropewalk panicked, which is a fault in it: please report it");
            abi::ERROR
        }
    }
}

/// As [`guard`], of a function that gives a pointer; null on failure.
pub(crate) fn guard_ptr<T>(f: impl FnOnce() -> Outcome<*mut T>) -> *mut T {
    let mut made = std::ptr::null_mut();
    guard(|| {
        made = f()?;
        Ok(())
    });
    made
}

/// The object behind an argument.
///
/// # Safety
/// The pointer is null or points to a valid object that lives as long as `'a` says.
pub(crate) unsafe fn arg<'a, T>(pointer: *const T, name: &str) -> Outcome<&'a T> {
    // SAFETY: of the caller.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::argument(format_args!("{name} argument is null")))
}

/// As [`arg`], to be written.
///
/// # Safety
/// As [`arg`], and nobody else uses it meanwhile.
pub(crate) unsafe fn arg_mut<'a, T>(pointer: *mut T, name: &str) -> Outcome<&'a mut T> {
    // SAFETY: of the caller.
    unsafe { pointer.as_mut() }.ok_or_else(|| Failure::argument(format_args!("{name} argument is null")))
}

/// The text of an argument; one that is not UTF-8 is refused.
///
/// # Safety
/// The pointer is null or points to a text that ends with a zero and lives as long as `'a` says.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Outcome<&'a str> {
    if pointer.is_null() {
        return Err(Failure::argument(format_args!("{name} argument is null")));
    }
    // SAFETY: of the caller.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str()
        .map_err(|_| Failure::argument(format_args!("{name} argument is not UTF-8")))
}

/// Whether an entity is this implementation's.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn ours(identifier: *const c_char, of: &str) -> Outcome {
    let same = std::ptr::eq(identifier, IDENTIFIER.as_ptr())
        // SAFETY: of the caller.
        || !identifier.is_null() && unsafe { CStr::from_ptr(identifier) } == IDENTIFIER;
    if same {
        return Ok(());
    }
    Err(Failure {
        code: abi::INCORRECT_RMW_IMPLEMENTATION,
        text: format!("{of} is not of rmw_ropewalk"),
    })
}
