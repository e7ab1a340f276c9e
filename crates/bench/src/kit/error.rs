//! Why an experiment fails.

use crate::kit::systems::System;
use std::path::PathBuf;

/// Why an experiment gives no result, or an incomplete one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system that was selected by name cannot be measured.
    #[error("{system} cannot be measured: {why}")]
    Missing {
        /// The system.
        system: System,
        /// The reason, and how to fix it.
        why: String,
    },
    /// Runs failed.
    #[error("{count} runs failed, the first: {first}")]
    Incomplete {
        /// Number of failed runs.
        count: usize,
        /// The first failure.
        first: String,
    },
    /// The options cannot be satisfied.
    #[error("{0}")]
    Input(String),
    /// Rows missed their targets.
    #[error("{count} rows missed their targets, the first: {first}")]
    Missed {
        /// Number of rows.
        count: usize,
        /// The first row, with its numbers.
        first: String,
    },
    /// Nothing was measured.
    #[error("nothing was measured: {0}")]
    Nothing(String),
    /// The user stopped it.
    #[error("stopped before the end")]
    Stopped,
    /// An error of a file or a folder.
    #[error("{path}: {source}")]
    File {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The system refuses a basic operation.
    #[error("{doing}: {source}")]
    System {
        /// The operation.
        doing: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
}

/// Why one run of one system gives no result.
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
