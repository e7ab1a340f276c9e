//! Completion scripts for shells, and manual pages, from a program's own help.

use crate::failure::{Failure, Outcome};
use clap::{Args, Command};
use clap_complete::Shell;
use std::io::Write;
use std::path::PathBuf;

/// Print a completion script for a shell
///
/// Packages install these scripts. By hand, for example:
///
///   ropewalk completions bash \
///       > ~/.local/share/bash-completion/completions/ropewalk
///   ropewalk completions zsh > ~/.zfunc/_ropewalk
///   ropewalk completions fish > ~/.config/fish/completions/ropewalk.fish
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Completions {
    /// The shell.
    shell: Shell,
}

/// Write a manual page for each command
///
/// Writes ropewalk.1, ropewalk-topic.1, ropewalk-topic-echo.1 and so on.
/// Packages install these pages.
#[derive(Args)]
pub struct Man {
    /// The folder; it is created if it does not exist.
    folder: PathBuf,
}

impl Completions {
    /// Prints the script for a program.
    ///
    /// # Errors
    /// [`Failure`] if standard output is closed.
    pub fn run(&self, mut command: Command) -> Outcome {
        let (mut script, name) = (Vec::new(), command.get_name().to_owned());
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        let written = crate::screen::raw().write_all(&script);
        written.map_err(|e| Failure::job(format_args!("standard output: {e}")))
    }
}

impl Man {
    /// Writes the pages of a program.
    ///
    /// # Errors
    /// [`Failure`] if a file cannot be written.
    pub fn run(&self, command: Command) -> Outcome {
        let folder = &self.folder;
        let complain = |e: std::io::Error| Failure::job(format_args!("{}: {e}", folder.display()));
        std::fs::create_dir_all(folder).map_err(complain)?;
        clap_mangen::generate_to(command.disable_help_subcommand(true), folder).map_err(complain)
    }
}
