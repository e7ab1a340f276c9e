//! What became of a command.

use std::fmt;

/// Bytes of a reason that are sent.
const LONGEST: usize = 400;

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Carried out, or taken into the queue of whoever carries it out.
    Executed,
    /// Not carried out: nobody handles it, it is malformed, its handler refused, or the right to move is another's. With the reason, for
    /// people.
    Rejected(String),
    /// Not carried out and never will be: it was too old when it came, or a newer one of its kind came before it.
    Expired(String),
    /// The robot's word on it did not come in time.
    Unreachable {
        /// Whether the robot may have carried it out all the same. It does not begin to any more once the expiry is over.
        maybe_executed: bool,
        /// What was heard last: the transport's words.
        reason: String,
    },
}

impl Outcome {
    /// Whether it was carried out for sure.
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

/// Why a handler does not carry a command out, for people. Made of any text: `Err("the battery is low".into())`.
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
