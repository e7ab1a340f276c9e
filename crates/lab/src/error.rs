//! Errors of starting and using a lab.

use std::path::PathBuf;

/// Why a lab could not be started or used; each is one line that says how to fix it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// See [`crate::ScenarioError`].
    #[error(transparent)]
    Scenario(#[from] crate::ScenarioError),
    /// A lab's name becomes the name of a folder.
    #[error("'{name}' cannot be a lab's name: use 1 to 32 characters of a-z, A-Z, 0-9, '-' and '_'")]
    Name {
        /// The name given.
        name: String,
    },
    /// The folder of all labs is unusable.
    #[error("the labs' folder {path}: {problem}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is wrong, and how to fix it.
        problem: String,
    },
    /// A lab of this name is already running.
    #[error(
        "a lab named '{name}' is already running: end it with `ropewalk lab down --name {name}`, or give another --name"
    )]
    Running {
        /// The name.
        name: String,
    },
    /// No lab of this name is running.
    #[error("no lab named '{name}' is running; running: {running}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The running labs, or "none".
        running: String,
    },
    /// No lab or several labs are running, and none was named.
    #[error("{0}")]
    Which(String),
    /// The lab did not start.
    #[error("{0}")]
    Start(String),
    /// The lab refused a request, with its message.
    #[error("{0}")]
    Refused(String),
    /// The lab did not answer, or sent an invalid answer.
    #[error("the lab '{name}' does not answer ({problem}); end it with `ropewalk lab down --name {name}`")]
    Silent {
        /// The lab's name.
        name: String,
        /// What happened instead.
        problem: String,
    },
    /// A program could not be started inside.
    #[error("{0}")]
    Enter(String),
}
