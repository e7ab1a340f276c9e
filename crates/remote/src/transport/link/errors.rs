//! Errors of the bus and of links, as errors of transports.

use super::frame;
use crate::transport::TransportError;
use bus::{CallError, LoanError};
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
    match error {
        CallError::Timeout { .. } => TransportError::TimedOut(timeout),
        CallError::TooMany { .. } | CallError::NoServer { .. } => send(error),
        CallError::Rejected { text } => rejected(timeout, text),
        other => TransportError::Unreachable(other.to_string()),
    }
}

/// Parses a link's text for errors that the bus has no variant for (`docs/guide/link.md`, Services).
fn rejected(timeout: Duration, text: String) -> TransportError {
    if let Some(why) = text.strip_prefix("unreachable: ") {
        return TransportError::Unreachable(why.to_owned());
    }
    if text.starts_with("timed out: ") {
        return TransportError::TimedOut(timeout);
    }
    if let Some(rest) = text.strip_prefix("busy: ") {
        let open = rest.split(' ').next().and_then(|n| n.parse().ok());
        return open.map_or(TransportError::NotSent(text), TransportError::Busy);
    }
    if text.starts_with("refused: ") || text.starts_with("nobody serves ") {
        return TransportError::NotSent(text);
    }
    TransportError::Unreachable(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_a_link_is_understood() {
        let of = |text: &str| call(Duration::from_secs(2), CallError::Rejected { text: text.into() });
        let unreachable = |text: &str| TransportError::Unreachable(text.into());
        assert_eq!(
            of("unreachable: the link is lost"),
            unreachable("the link is lost")
        );
        assert_eq!(
            of("timed out: base has not answered"),
            TransportError::TimedOut(Duration::from_secs(2))
        );
        assert_eq!(of("busy: 16 calls are open"), TransportError::Busy(16));
        let not_sent = |text: &str| TransportError::NotSent(text.into());
        for text in [
            "busy: many",
            "refused: see `allow`",
            "nobody serves /a on base now",
        ] {
            assert_eq!(of(text), not_sent(text));
        }
        assert_eq!(of("out of reach"), unreachable("out of reach"));
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
