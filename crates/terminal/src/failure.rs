//! Errors of commands, and their exit codes.

use std::fmt;
use std::process::ExitCode;

/// Why a command failed, and the exit code for the kind of failure.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// The job failed: exit code 1.
    pub fn job(message: impl fmt::Display) -> Self {
        Failure {
            code: 1,
            message: message.to_string(),
        }
    }

    /// Bad usage or input: exit code 2.
    pub fn input(message: impl fmt::Display) -> Self {
        Failure {
            code: 2,
            message: message.to_string(),
        }
    }

    /// Data was lost: exit code 3.
    pub fn lost(message: impl fmt::Display) -> Self {
        Failure {
            code: 3,
            message: message.to_string(),
        }
    }

    /// Whether the user's input caused the failure.
    pub fn is_bad_input(&self) -> bool {
        self.code == 2
    }

    /// Prints the message as one line on standard error and returns the exit code.
    pub fn report(&self) -> ExitCode {
        crate::screen::tell!("ropewalk: {self}");
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Failure {
    /// On one line, even if a library's message has several.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.message.split_whitespace().collect::<Vec<_>>().join(" ");
        f.write_str(&stats::text::printable(&line))
    }
}

/// Result of a command.
pub type Outcome = Result<(), Failure>;

/// Returns the exit code of a finished command, and reports its failure.
pub fn exit_code(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Turns an error into a [`Failure`] of one kind.
pub trait OrFail<T> {
    /// The job failed: exit code 1.
    fn or_job(self, doing: &str) -> Result<T, Failure>;
    /// Bad usage or input: exit code 2.
    fn or_input(self) -> Result<T, Failure>;
}

impl<T, E: fmt::Display> OrFail<T> for Result<T, E> {
    fn or_job(self, doing: &str) -> Result<T, Failure> {
        self.map_err(|e| Failure::job(format_args!("{doing}: {e}")))
    }

    fn or_input(self) -> Result<T, Failure> {
        self.map_err(Failure::input)
    }
}
