//! `ropewalk man`: the help of every command as manual pages.

use crate::failure::{Failure, Outcome};
use clap::{Args, Command};
use std::path::PathBuf;

/// Write a manual page for each command
///
/// Writes ropewalk.1, ropewalk-topic.1, ropewalk-topic-echo.1 and so on. Packages install these pages.
#[derive(Args)]
pub(crate) struct Options {
    /// The folder; it is made if it does not exist.
    folder: PathBuf,
}

pub(crate) fn run(options: &Options, command: Command) -> Outcome {
    let folder = &options.folder;
    let complain = |e: std::io::Error| Failure::job(format!("{}: {e}", folder.display()));
    std::fs::create_dir_all(folder).map_err(complain)?;
    clap_mangen::generate_to(command.disable_help_subcommand(true), folder).map_err(complain)?;
    Ok(())
}
