//! `ropewalk bench` and `ropewalk plan`: a program of its own, which most users never need.

use crate::failure::{Failure, Outcome};
use clap::Args;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;
use terminal::log::Format;

const PROGRAM: &str = "ropewalk-bench";

/// Benchmark Ropewalk on this machine, next to other middleware
///
/// Starts the program ropewalk-bench; `ropewalk bench --help` lists its experiments.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Bench {
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "EXPERIMENT"
    )]
    arguments: Vec<OsString>,
}

/// Predict whether a system fits its radio and machine before it is built
///
/// Starts the program ropewalk-bench; `ropewalk plan --help` describes the file.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Plan {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "SYSTEM")]
    arguments: Vec<OsString>,
}

pub(crate) fn bench(options: &Bench, log: Format) -> Outcome {
    exec("ropewalk bench", options.arguments.clone(), log)
}

pub(crate) fn plan(options: &Plan, log: Format) -> Outcome {
    let mut words = options.arguments.clone();
    words.insert(0, "plan".into());
    exec("ropewalk", words, log)
}

/// Replaces this process by the program next to this one, or on the PATH. `name` is how its help calls it.
fn exec(name: &str, mut words: Vec<OsString>, log: Format) -> Outcome {
    if log == Format::Json {
        words.insert(0, "--log=json".into());
    }
    let next_to_this = std::env::current_exe()
        .ok()
        .map(|own| own.with_file_name(PROGRAM));
    let program = next_to_this
        .filter(|p| p.is_file())
        .unwrap_or_else(|| PROGRAM.into());
    let error = Command::new(&program).arg0(name).args(words).exec();
    Err(Failure::job(format_args!(
        "{}: {error}: install {PROGRAM} (`cargo install ropewalk-bench`, or `cargo build -p ropewalk-bench` next to this program)",
        program.display()
    )))
}
