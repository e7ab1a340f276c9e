//! Errors as the exceptions of `ropewalk/_errors.py`, which also derive from the corresponding Python
//! exceptions.

use pyo3::prelude::*;
use pyo3::types::PyType;
use remote::controller::{FileError, RequestError};
use remote::transport::TransportError;
use ropewalk::{CallError, NodeError, PublishError, RespondError};
use std::fmt::Display;
use std::io::ErrorKind;

/// Returns the exception called `class`, with a text that names the remedy.
pub(crate) fn raise(class: &str, text: impl Display) -> PyErr {
    Python::attach(|py| {
        let made = py.import("ropewalk._errors").and_then(|m| m.getattr(class));
        match made.and_then(|c| Ok(c.cast_into::<PyType>()?)) {
            Ok(class) => PyErr::from_type(class, (text.to_string(),)),
            Err(error) => error,
        }
    })
}

/// Errors that map to one exception class each.
pub(crate) trait OrRaise<T> {
    /// Returns the value, or the exception for the error.
    fn or_raise(self) -> PyResult<T>;
}

macro_rules! classes {
    ($($error:ty => |$e:ident| $class:expr;)*) => {$(
        impl<T> OrRaise<T> for Result<T, $error> {
            fn or_raise(self) -> PyResult<T> {
                self.map_err(|$e| raise($class, &$e))
            }
        }
    )*};
}

classes! {
    ropewalk::DefinitionError => |e| "TypeUnknown";
    ropewalk::CodecError => |e| "ContentError";
    NodeError => |e| match &e {
        NodeError::Name(_) | NodeError::Config(_) => "BadName",
        NodeError::Open(bus::OpenError::Forked) => "Forked",
        NodeError::Create { source: bus::CreateError::Forked, .. } => "Forked",
        NodeError::Create { source: bus::CreateError::System { .. }, .. } => "SystemFault",
        NodeError::Create { .. } => "BadName",
        NodeError::Definition { .. } | NodeError::Sum { .. } => "TypeUnknown",
        NodeError::NoPublisher { .. } | NodeError::NoServer { .. } => "NoPeer",
        _ => "SystemFault",
    };
    bus::LoanError => |e| loan(&e);
    bus::PublishError => |e| publish(&e);
    bus::TakeError => |e| take(&e);
    CallError => |e| match &e {
        CallError::Request(PublishError::Loan(e)) => loan(e),
        CallError::Call(e) => call(e),
        _ => "ContentError",
    };
    bus::CallError => |e| call(&e);
    RespondError => |e| match &e {
        RespondError::Bus(e) => respond(e),
        _ => "ContentError",
    };
    bus::RespondError => |e| respond(&e);
    TransportError => |e| match &e {
        TransportError::Malformed { .. } | TransportError::TooLong { .. } => "ContentError",
        TransportError::Setup(_) => "BadName",
        _ => "SystemFault",
    };
    RequestError => |e| request(&e);
    FileError => |e| match &e {
        FileError::Request(e) => request(e),
        FileError::Io { error, .. } if error.kind() == ErrorKind::InvalidInput => "BadName",
        FileError::Io { .. } => "SystemFault",
        _ => "ContentError",
    };
}

fn request(error: &RequestError) -> &'static str {
    match error {
        RequestError::Rejected(_) => "Rejected",
        RequestError::Unreachable(_) => "CallTimeout",
        _ => "ContentError",
    }
}

fn loan(error: &bus::LoanError) -> &'static str {
    match error {
        bus::LoanError::TooManyParts { .. } | bus::LoanError::ControlTooLong { .. } => "ContentError",
        bus::LoanError::System { .. } => "SystemFault",
        bus::LoanError::Forked => "Forked",
        _ => "MemoryShort",
    }
}

fn publish(error: &bus::PublishError) -> &'static str {
    match error {
        bus::PublishError::Forked => "Forked",
        _ => "ContentError",
    }
}

fn take(error: &bus::TakeError) -> &'static str {
    match error {
        bus::TakeError::HoldLimit { .. } => "HoldLimit",
        bus::TakeError::Forked => "Forked",
        _ => "SystemFault",
    }
}

fn call(error: &bus::CallError) -> &'static str {
    match error {
        bus::CallError::NoServer { .. } => "NoPeer",
        bus::CallError::Timeout { .. } => "CallTimeout",
        bus::CallError::ServerDied { .. } => "PeerDied",
        bus::CallError::Rejected { .. } => "Rejected",
        bus::CallError::Dropped { .. } | bus::CallError::TooMany { .. } => "NoRoom",
        bus::CallError::HoldLimit { .. } => "HoldLimit",
        bus::CallError::Publish(e) => publish(e),
        bus::CallError::Wait(e) => take(e),
        _ => "SystemFault",
    }
}

fn respond(error: &bus::RespondError) -> &'static str {
    match error {
        bus::RespondError::ClientGone => "PeerDied",
        bus::RespondError::Expired => "CallTimeout",
        bus::RespondError::Refused { .. } => "NoRoom",
        bus::RespondError::Loan(e) => loan(e),
        bus::RespondError::Publish(e) => publish(e),
        _ => "ContentError",
    }
}
