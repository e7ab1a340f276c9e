//! Why an endpoint was not created or a message not published.

/// Why a message was not published.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The loan belongs to another publisher.
    #[error("the loan belongs to another publisher")]
    ForeignLoan,
    /// The process was forked after the publisher was created.
    #[error("this publisher belongs to the parent process: create a new one after fork")]
    Forked,
}

/// Why a publisher or a subscriber cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// The topic's or the type's name is empty or too long.
    #[error("the {what} has {len} bytes: it must have 1 to {max}")]
    Name {
        /// Which name.
        what: &'static str,
        /// Its length in bytes.
        len: usize,
        /// The longest allowed.
        max: usize,
    },
    /// The topic's or the type's name contains characters that a terminal interprets or hides.
    #[error("the {what} {name} has control characters or invisible ones: leave them out")]
    Characters {
        /// Which name.
        what: &'static str,
        /// The name, safe to print.
        name: String,
    },
    /// An option is out of range.
    #[error("{what} is {value}: it must be from {min} to {max}")]
    Option {
        /// Which option.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The minimum.
        min: u64,
        /// The maximum.
        max: u64,
    },
    /// A system call failed.
    #[error("cannot create the endpoint ({what}): {source}")]
    System {
        /// What failed.
        what: &'static str,
        /// The system error.
        source: std::io::Error,
    },
    /// The process was forked after the bus was opened.
    #[error("this bus belongs to the parent process: open a new one after fork")]
    Forked,
}

pub(crate) fn check_option(what: &'static str, value: u64, min: u64, max: u64) -> Result<(), CreateError> {
    if (min..=max).contains(&value) {
        Ok(())
    } else {
        Err(CreateError::Option {
            what,
            value,
            min,
            max,
        })
    }
}
