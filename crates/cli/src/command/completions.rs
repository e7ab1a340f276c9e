//! `ropewalk completions`: what a shell needs to complete commands and options.

use crate::failure::{Failure, Outcome};
use clap::{Args, Command};
use clap_complete::Shell;

/// Print a completion script for a shell
///
/// Packages install these scripts. By hand, for example:
///
///   ropewalk completions bash > ~/.local/share/bash-completion/completions/ropewalk
///   ropewalk completions zsh > ~/.zfunc/_ropewalk
///   ropewalk completions fish > ~/.config/fish/completions/ropewalk.fish
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    /// The shell.
    shell: Shell,
}

pub(crate) fn run(options: &Options, mut command: Command) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command, "ropewalk", &mut script);
    std::io::Write::write_all(&mut std::io::stdout(), &script)
        .map_err(|e| Failure::job(format!("standard output: {e}")))
}
