//! Why an experiment fails.

use super::System;
use std::path::PathBuf;

/// Why an experiment gives no result, or an incomplete one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system that was asked for by name cannot be measured.
    #[error("{system} cannot be measured: {why}")]
    Missing {
        /// The system.
        system: System,
        /// Why, with the mend.
        why: String,
    },
    /// Runs failed.
    #[error("{count} runs failed, the first: {first}")]
    Incomplete {
        /// How many.
        count: usize,
        /// What happened first.
        first: String,
    },
    /// What was asked for cannot be.
    #[error("{0}")]
    Input(String),
    /// Rows missed their targets.
    #[error("{count} rows missed their targets, the first: {first}")]
    Missed {
        /// How many.
        count: usize,
        /// Which was the first, with its numbers.
        first: String,
    },
    /// Nothing was measured.
    #[error("nothing was measured: {0}")]
    Nothing(String),
    /// The user stopped it.
    #[error("stopped before the end")]
    Stopped,
    /// A file or a folder.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The system refuses something basic.
    #[error("{doing}: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Why one run of one system gives no numbers.
#[derive(Debug)]
pub(crate) enum RunError {
    /// The user stopped it.
    Stopped,
    /// The system broke the contract, hung or died.
    Failed(String),
}

impl From<String> for RunError {
    fn from(why: String) -> Self {
        RunError::Failed(why)
    }
}
