//! Completion scripts for shells, and manual pages, from a program's own help.

use crate::failure::{Failure, Outcome};
use clap::error::{ContextKind, ContextValue};
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
///
/// These complete commands and options. To complete topics, services, actions,
/// nodes and types as well, put this into ~/.bashrc (zsh: COMPLETE=zsh):
///
///   source <(COMPLETE=bash ropewalk)
///
/// and for fish, into ~/.config/fish/config.fish:
///
///   COMPLETE=fish ropewalk | source
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

/// Without a suggestion that is unlike the unknown word: the parser takes `--json` for a misspelt `--seconds`.
pub fn without_far_suggestions(mut error: clap::Error) -> clap::Error {
    let pairs = [
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
    ];
    for (unknown, suggested) in pairs {
        let Some(ContextValue::String(word)) = error.get(unknown) else {
            continue;
        };
        let word = word
            .split(['=', ' '])
            .next()
            .unwrap_or(word)
            .trim_start_matches('-');
        let is_near = |name: &String| schema::nearest(word, [name.trim_start_matches('-')]).is_some();
        let is_far = match error.get(suggested) {
            Some(ContextValue::String(name)) => !is_near(name),
            Some(ContextValue::Strings(names)) => !names.iter().any(is_near),
            _ => false,
        };
        if is_far {
            error.remove(suggested);
            // Made of the suggestion.
            error.remove(ContextKind::Usage);
        }
    }
    error
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
