//! Errors of the bus and of links, as errors of transports.

use super::frame;
use crate::transport::TransportError;
use bus::{CallError, LoanError};
use link::Failure;
use std::time::Duration;

/// The error for a frame of `len` bytes.
pub(super) fn loan(len: usize, error: LoanError) -> TransportError {
    match error {
        LoanError::TooLarge { limit, .. } => TransportError::TooLong {
            len,
            most: usize::try_from(limit).unwrap_or(usize::MAX).min(frame::MAX),
        },
        other => TransportError::NotSent(other.to_string()),
    }
}

/// The error for a call that could not be sent.
pub(super) fn send(error: CallError) -> TransportError {
    match error {
        CallError::TooMany { outstanding, .. } => TransportError::Busy(outstanding),
        other => TransportError::NotSent(other.to_string()),
    }
}

/// The error for a call with this `timeout`.
pub(super) fn call(timeout: Duration, error: CallError) -> TransportError {
    let failure = Failure::of(&error);
    match (error, failure) {
        (CallError::Timeout { .. }, _) | (_, Some(Failure::TimedOut)) => TransportError::TimedOut(timeout),
        (error @ (CallError::TooMany { .. } | CallError::NoServer { .. }), _) => send(error),
        (CallError::Rejected { text, .. }, Some(failure)) if !failure.may_be_executed() => {
            TransportError::NotSent(text)
        }
        (CallError::Rejected { text, .. }, _) => TransportError::Unreachable(text),
        (other, _) => TransportError::Unreachable(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of `docs/wire/link.md`; 0 is the server's own rejection, 99 one of a later version.
    #[test]
    fn the_reason_counts_and_not_the_text() {
        let text = || "busy: unreachable: timed out: refused: ".to_owned();
        let of = |code| call(Duration::from_secs(2), CallError::Rejected { code, text: text() });
        assert_eq!(of(1), TransportError::TimedOut(Duration::from_secs(2)));
        for code in [0, 2, 5, 7, 99] {
            assert_eq!(of(code), TransportError::Unreachable(text()), "{code}");
        }
        for code in [3, 4, 6] {
            assert_eq!(of(code), TransportError::NotSent(text()), "{code}");
        }
    }

    #[test]
    fn a_call_without_a_server_is_not_sent() {
        let none = CallError::NoServer {
            service: "/r1/remote/command".into(),
            refusal: String::new(),
        };
        let TransportError::NotSent(text) = call(Duration::ZERO, none) else {
            panic!("nobody is reached");
        };
        assert!(text.contains("/r1/remote/command"), "{text}");
    }
}
