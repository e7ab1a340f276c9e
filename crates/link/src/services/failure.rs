//! Why calls fail.

use bus::CallError;
use serde::Serialize;

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
