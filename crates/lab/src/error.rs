//! Why a lab could not be made or used.

use std::path::PathBuf;

/// Why a lab could not be made or used; one line each, with the mend.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// See [`crate::ScenarioError`].
    #[error(transparent)]
    Scenario(#[from] crate::ScenarioError),
    /// A lab's name becomes a folder's.
    #[error("'{name}' cannot be a lab's name: give 1 to 32 of a-z, A-Z, 0-9, '-' and '_'")]
    Name {
        /// The name given.
        name: String,
    },
    /// The folder of all labs cannot be used.
    #[error("the labs' folder {path}: {problem}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is wrong, and its mend.
        problem: String,
    },
    /// A lab of this name runs.
    #[error(
        "a lab named '{name}' runs already: end it with `ropewalk lab down --name {name}`, or give another --name"
    )]
    Running {
        /// The name.
        name: String,
    },
    /// No lab of this name runs.
    #[error("no lab named '{name}' runs; running: {running}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The labs that run, or "none".
        running: String,
    },
    /// None or several labs run, and none was named.
    #[error("{0}")]
    Which(String),
    /// The lab did not come up.
    #[error("{0}")]
    Start(String),
    /// The lab refused a request; its own words.
    #[error("{0}")]
    Refused(String),
    /// The lab did not answer, or not in its own language.
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
