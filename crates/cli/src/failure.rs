//! How a command ends badly.

use std::fmt;
use std::process::ExitCode;

/// Why a command failed, and the exit code that tells the kind.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// The job failed: exit code 1.
    pub(crate) fn job(message: impl fmt::Display) -> Self {
        Failure { code: 1, message: message.to_string() }
    }

    /// Bad usage or input: exit code 2.
    pub(crate) fn input(message: impl fmt::Display) -> Self {
        Failure { code: 2, message: message.to_string() }
    }

    /// Data was lost: exit code 3.
    pub(crate) fn lost(message: impl fmt::Display) -> Self {
        Failure { code: 3, message: message.to_string() }
    }

    /// Prints the message as one line on standard error and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        let line = self.message.split_whitespace().collect::<Vec<_>>().join(" ");
        eprintln!("ropewalk: {line}");
        ExitCode::from(self.code)
    }
}

/// What a command gives back.
pub(crate) type Outcome = Result<(), Failure>;

/// Turns an error into a [`Failure`] of one kind.
pub(crate) trait OrFail<T> {
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
