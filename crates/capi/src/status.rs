//! The status that every function returns, and its text.

use remote::controller::{FileError, RequestError};
use remote::transport::TransportError;
use ropewalk::{CallError, NameError, NodeError, PublishError, RespondError};
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of a call.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// Nothing arrived in time, or the wait was interrupted. Not an error: the error message stays unchanged.
    Empty = 1,
    /// An argument is NULL, a bad name, out of range, or belongs to something else.
    InvalidArgument = 2,
    /// A type is unknown, its definition is wrong, or it is not the expected one.
    Type = 3,
    /// The content of a message does not have its type.
    Content = 4,
    /// Memory is short: the publisher's limit, or the system's.
    Memory = 5,
    /// The limit of held messages is reached.
    HoldLimit = 6,
    /// Nobody publishes the topic or serves the service.
    NoPeer = 7,
    /// A call was not answered in time.
    Timeout = 8,
    /// The server ended before it answered, or the client is gone.
    PeerDied = 9,
    /// The server answered with an error of its own, or the robot refused the request.
    Rejected = 10,
    /// A queue has no room.
    NoRoom = 11,
    /// The buffer is too small; the required length was written.
    BufferTooSmall = 12,
    /// The handle belongs to the parent process.
    Forked = 13,
    /// The operating system refused.
    System = 14,
    /// A bug in Ropewalk; the handles involved may only be freed.
    Panic = 15,
}

impl Status {
    /// Whether something arrived in time.
    pub(crate) fn of(came: bool) -> Self {
        if came { Status::Ok } else { Status::Empty }
    }
}

/// Returns the text of the last failed call of this thread; empty if none has failed. Valid until the next
/// failed call of this thread. Never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn ropewalk_error_message() -> *const c_char {
    let last = LAST.try_with(|last| last.try_borrow().map_or(c"".as_ptr(), |text| text.as_ptr()));
    last.unwrap_or(c"".as_ptr())
}

/// Returns the name of a status, such as `hold limit`. Never NULL; valid forever.
#[unsafe(no_mangle)]
pub extern "C" fn ropewalk_status_name(status: u32) -> *const c_char {
    const NAMES: [&std::ffi::CStr; 16] = [
        c"ok",
        c"empty",
        c"invalid argument",
        c"type",
        c"content",
        c"memory",
        c"hold limit",
        c"no peer",
        c"timeout",
        c"peer died",
        c"rejected",
        c"no room",
        c"buffer too small",
        c"forked",
        c"system",
        c"panic",
    ];
    NAMES.get(status as usize).unwrap_or(&c"unknown").as_ptr()
}

/// Returns the version of the library, such as `0.1.0`. Never NULL; valid forever.
#[unsafe(no_mangle)]
pub extern "C" fn ropewalk_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    status: Status,
    text: String,
}

impl Failure {
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Self {
        let text = text.into();
        Failure { status, text }
    }
}

/// Runs the body of a function: catches panics and records failures.
pub(crate) fn guard(body: impl FnOnce() -> Result<Status, Failure>) -> Status {
    // At worst a panic leaves poisoned locks in an object, which are taken over anyway; the header tells
    // callers to free such handles and do nothing else with them.
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(status)) => return status,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let text = format!("a bug in ropewalk: {}", panic_message(&*panic));
            // A payload may itself panic when it is dropped.
            std::mem::forget(panic);
            Failure::new(Status::Panic, text)
        }
    };
    let text: Vec<u8> = failure
        .text
        .into_bytes()
        .into_iter()
        .filter(|b| *b != 0)
        .collect();
    let text = CString::new(text).unwrap_or_default();
    // A thread that is ending, or a caller that holds the text in a signal handler, gets none.
    let _ = LAST.try_with(|last| last.try_borrow_mut().map(|mut last| *last = text));
    failure.status
}

/// Like [`guard`], for a function that frees.
pub(crate) fn free(body: impl FnOnce()) {
    guard(|| {
        body();
        Ok(Status::Ok)
    });
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("it panicked")
}

/// Errors that map to one status each.
macro_rules! failures {
    ($($error:ty => |$e:ident| $status:expr;)*) => {$(
        impl From<$error> for Failure {
            fn from($e: $error) -> Self {
                let status = $status;
                Failure::new(status, $e.to_string())
            }
        }
    )*};
}

failures! {
    NameError => |e| Status::InvalidArgument;
    ropewalk::DefinitionError => |e| Status::Type;
    ropewalk::CodecError => |e| Status::Content;
    NodeError => |e| match &e {
        NodeError::Name(_) | NodeError::Config(_) => Status::InvalidArgument,
        NodeError::Open(bus::OpenError::Forked) => Status::Forked,
        NodeError::Create { source: bus::CreateError::Forked, .. } => Status::Forked,
        NodeError::Create { source: bus::CreateError::System { .. }, .. } => Status::System,
        NodeError::Create { .. } => Status::InvalidArgument,
        NodeError::Definition { .. } | NodeError::Sum { .. } => Status::Type,
        NodeError::NoPublisher { .. } | NodeError::NoServer { .. } => Status::NoPeer,
        _ => Status::System,
    };
    bus::OpenError => |e| match &e {
        bus::OpenError::Forked => Status::Forked,
        _ => Status::System,
    };
    bus::LoanError => |e| loan(&e);
    bus::PublishError => |e| publish(&e);
    PublishError => |e| content(&e);
    bus::TakeError => |e| take(&e);
    CallError => |e| match &e {
        CallError::Request(e) => content(e),
        CallError::Call(e) => call(e),
        _ => Status::Content,
    };
    bus::CallError => |e| call(&e);
    RespondError => |e| match &e {
        RespondError::Content(e) => content(e),
        RespondError::Bus(e) => respond(e),
        _ => Status::System,
    };
    bus::RespondError => |e| respond(&e);
    remote::transport::TransportError => |e| match &e {
        TransportError::Malformed { .. } => Status::Content,
        TransportError::Setup(_) | TransportError::TooLong { .. } => Status::InvalidArgument,
        _ => Status::System,
    };
    RequestError => |e| match &e {
        RequestError::Rejected(_) => Status::Rejected,
        RequestError::Unreachable(_) => Status::Timeout,
        _ => Status::Content,
    };
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        let status = match &error {
            FileError::Io { error, .. } if error.kind() == ErrorKind::InvalidInput => Status::InvalidArgument,
            FileError::Io { .. } => Status::System,
            FileError::Request(e) => Failure::from(e.clone()).status,
            _ => Status::Content,
        };
        Failure::new(status, error.to_string())
    }
}

fn loan(error: &bus::LoanError) -> Status {
    match error {
        bus::LoanError::TooManyParts { .. } | bus::LoanError::ControlTooLong { .. } => {
            Status::InvalidArgument
        }
        bus::LoanError::System { .. } => Status::System,
        bus::LoanError::Forked => Status::Forked,
        _ => Status::Memory,
    }
}

fn publish(error: &bus::PublishError) -> Status {
    match error {
        bus::PublishError::Forked => Status::Forked,
        _ => Status::InvalidArgument,
    }
}

fn content(error: &PublishError) -> Status {
    match error {
        PublishError::Loan(e) => loan(e),
        PublishError::Bus(e) => publish(e),
        _ => Status::Content,
    }
}

fn take(error: &bus::TakeError) -> Status {
    match error {
        bus::TakeError::HoldLimit { .. } => Status::HoldLimit,
        bus::TakeError::Forked => Status::Forked,
        _ => Status::System,
    }
}

fn call(error: &bus::CallError) -> Status {
    match error {
        bus::CallError::NoServer { .. } => Status::NoPeer,
        bus::CallError::Timeout { .. } => Status::Timeout,
        bus::CallError::ServerDied { .. } => Status::PeerDied,
        bus::CallError::Rejected { .. } => Status::Rejected,
        bus::CallError::Dropped { .. } | bus::CallError::TooMany { .. } => Status::NoRoom,
        bus::CallError::HoldLimit { .. } => Status::HoldLimit,
        bus::CallError::Publish(e) => publish(e),
        bus::CallError::Wait(e) => take(e),
        _ => Status::System,
    }
}

fn respond(error: &bus::RespondError) -> Status {
    match error {
        bus::RespondError::ClientGone => Status::PeerDied,
        bus::RespondError::Expired => Status::Timeout,
        bus::RespondError::Refused { .. } => Status::NoRoom,
        bus::RespondError::Loan(e) => loan(e),
        bus::RespondError::Publish(e) => publish(e),
        _ => Status::InvalidArgument,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn message() -> String {
        let text = ropewalk_error_message();
        // SAFETY: never NULL, and no call fails in the meantime.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }

    #[test]
    fn a_panic_becomes_a_status_and_its_text() {
        assert_eq!(guard(|| panic!("seven {}", 7)), Status::Panic);
        assert_eq!(message(), "a bug in ropewalk: seven 7");
        assert_eq!(guard(|| Ok(Status::Empty)), Status::Empty);
        assert_eq!(message(), "a bug in ropewalk: seven 7");
    }

    #[test]
    fn texts_are_each_threads_own() {
        guard(|| Err(Failure::new(Status::Type, "mine \0.")));
        let other = std::thread::spawn(message);
        assert_eq!(other.join().expect("no panic"), "");
        assert_eq!(message(), "mine .");
    }
}
