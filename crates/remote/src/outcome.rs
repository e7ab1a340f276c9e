//! The outcome of a command.

use std::fmt;

/// Maximum bytes of a reason on the wire.
const LONGEST: usize = 400;

/// The outcome of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Executed, or put into the queue of the program that executes it.
    Executed,
    /// Not executed: it has no handler, is malformed, its handler refused it, or another controller holds the right
    /// to move. Holds the reason, for people.
    Rejected(String),
    /// Not executed, and never will be: it was too old when it arrived, or a newer one of its kind arrived first.
    Expired(String),
    /// The robot's answer did not arrive in time.
    Unreachable {
        /// Whether the robot may have executed it all the same. The robot does not start to execute it after the
        /// expiry.
        maybe_executed: bool,
        /// The last known reason, as the transport gives it.
        reason: String,
    },
}

impl Outcome {
    /// Returns whether it was certainly executed.
    pub fn is_executed(&self) -> bool {
        *self == Outcome::Executed
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Executed => f.write_str("executed"),
            Outcome::Rejected(reason) => write!(f, "rejected: {reason}"),
            Outcome::Expired(reason) => write!(f, "expired: {reason}"),
            Outcome::Unreachable {
                maybe_executed: true,
                reason,
            } => {
                write!(f, "unreachable, maybe executed: {reason}")
            }
            Outcome::Unreachable {
                maybe_executed: false,
                reason,
            } => write!(f, "unreachable: {reason}"),
        }
    }
}

/// Why a handler does not execute a command, for people. Convert any text: `Err("the battery is low".into())`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection(String);

impl<T: Into<String>> From<T> for Rejection {
    fn from(reason: T) -> Self {
        let mut reason = reason.into();
        if reason.len() > LONGEST {
            let end = (0..=LONGEST)
                .rev()
                .find(|n| reason.is_char_boundary(*n))
                .unwrap_or(0);
            reason.truncate(end);
        }
        Rejection(reason)
    }
}

impl Rejection {
    pub(crate) fn into_reason(self) -> String {
        self.0
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
