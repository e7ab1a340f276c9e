//! Why calls fail, and the error texts for their callers.

use super::header::Outcome;
use bus::CallError;
use serde::Serialize;
use stats::DropReason;

/// Why a call has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Failure {
    /// The server answered with an error of its own.
    Rejected,
    /// There was no answer in time.
    TimedOut,
    /// The peer was lost, or there is no path to it.
    Unreachable,
    /// The peer does not permit this host to call.
    Refused,
    /// Too many calls were open.
    Busy,
    /// The server died before it answered. It may have executed the request.
    ServerDied,
    /// The service had no server left when the request arrived.
    Unserved,
    /// The request or the reply could not be sent or received; the caller's error says why.
    Dropped,
}

impl Failure {
    /// The failures that links name to callers, with their numbers in rejections (`docs/wire/link.md`).
    const NUMBERED: [(Failure, u16); 7] = [
        (Failure::TimedOut, 1),
        (Failure::Unreachable, 2),
        (Failure::Refused, 3),
        (Failure::Busy, 4),
        (Failure::ServerDied, 5),
        (Failure::Unserved, 6),
        (Failure::Dropped, 7),
    ];

    /// Why a link rejected a call; [`Failure::Rejected`] if the server did. `None` for other errors of the bus.
    pub fn of(error: &CallError) -> Option<Failure> {
        let CallError::Rejected { code, .. } = error else {
            return None;
        };
        let named = Self::NUMBERED.iter().find(|(_, number)| number == code);
        Some(named.map_or(Failure::Rejected, |(failure, _)| *failure))
    }

    /// The error of a call that failed in this way, with a text that says why.
    pub(crate) fn rejection(self, text: String) -> CallError {
        let code = self.code();
        CallError::Rejected { code, text }
    }

    /// Its number in rejections.
    pub(crate) fn code(self) -> u16 {
        let numbered = Self::NUMBERED.iter().find(|(failure, _)| *failure == self);
        numbered.map_or(0, |(_, number)| *number)
    }

    /// Whether the server may have executed the request.
    pub fn may_be_executed(self) -> bool {
        !matches!(self, Failure::Refused | Failure::Busy | Failure::Unserved)
    }
}

impl From<Failure> for Outcome {
    /// The outcome that the caller's host receives for a call that failed here.
    fn from(failure: Failure) -> Outcome {
        match failure {
            Failure::Rejected | Failure::Refused => Outcome::Rejected,
            Failure::ServerDied => Outcome::Died,
            Failure::Unserved => Outcome::Unserved,
            Failure::TimedOut => Outcome::TimedOut,
            Failure::Busy => Outcome::Busy,
            Failure::Unreachable | Failure::Dropped => Outcome::Failed,
        }
    }
}

/// Why a call of this host has no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    pub(crate) failure: Failure,
    /// The error text for the caller.
    pub(crate) text: String,
    /// The number of open calls of the service, if this host's limits refused the request.
    pub(crate) open: Option<usize>,
}

impl Failed {
    pub(super) fn new((failure, text): (Failure, String)) -> Self {
        Failed {
            failure,
            text,
            open: None,
        }
    }
}

/// Error text for a caller whose peer is lost.
pub(super) fn lost_link(peer: &str) -> String {
    format!("the link to {peer} is lost; {peer} may have executed the request")
}

/// Failure and error text for a request to `peer` that the radio gave up or the peer refused.
pub(super) fn lost_request(
    reason: DropReason,
    is_refused: bool,
    peer: &str,
    name: &str,
) -> (Failure, String) {
    match reason {
        DropReason::Unannounced if is_refused => (
            Failure::Refused,
            format!(
                "{peer} does not permit this host to call {name}: add it to `allow: call` in the configuration of {peer}"
            ),
        ),
        DropReason::Expired => (
            Failure::TimedOut,
            format!("{peer} has not answered in time; it may still execute the request"),
        ),
        DropReason::Unannounced => (Failure::Unserved, format!("{name} is not served on {peer}")),
        DropReason::NoPeer | DropReason::PeerLost => (
            Failure::Unreachable,
            format!("{peer} does not answer over the link, or has restarted"),
        ),
        DropReason::TooLarge => (
            Failure::Dropped,
            "the request is too large for the link: raise `radio.queue_bytes` of both ends".into(),
        ),
        DropReason::ReceiverMemory => (Failure::Dropped, format!("{peer} has no memory for the request")),
        other => (
            Failure::Dropped,
            format!(
                "the link has dropped the request ({}): call again later",
                other.name()
            ),
        ),
    }
}

/// Failure and error text for an end without an answer, with `text` from the server's host.
pub(super) fn outcome_text(outcome: Outcome, text: String, peer: &str, name: &str) -> (Failure, String) {
    match outcome {
        Outcome::Rejected => (Failure::Rejected, text),
        Outcome::Died => (
            Failure::ServerDied,
            format!(
                "the server of {name} on {peer} died before it answered: repeat the call if that is safe"
            ),
        ),
        Outcome::Unserved => (Failure::Unserved, format!("{name} is no longer served on {peer}")),
        Outcome::Busy => (Failure::Busy, format!("{peer}: {text}")),
        Outcome::TimedOut => (Failure::TimedOut, format!("{peer}: {text}")),
        Outcome::Failed | Outcome::Answered => (Failure::Dropped, text),
    }
}

/// Error text for a caller whose reply is lost.
pub(super) fn lost_response(reason: DropReason) -> &'static str {
    match reason {
        DropReason::TooLarge => {
            "the server answered, but the reply is too large for the link: raise `radio.queue_bytes` of both ends"
        }
        DropReason::ReceiverMemory => "the server answered, but this host has no memory for the reply",
        _ => {
            "the server answered, but the link dropped the reply: raise the service's priority or call again later"
        }
    }
}
