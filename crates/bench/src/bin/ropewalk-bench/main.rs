#![forbid(unsafe_code)]
//! The program behind `ropewalk bench` and `ropewalk plan`.
//!
//! Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 the job failed,
//! 2 bad usage or input.

mod experiments;
mod plan;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;
use terminal::{failure, help, json, log, screen, signals};

/// Benchmark Ropewalk on this machine, next to other middleware
///
/// Labs, links and bridges are processes of `ropewalk`, which has to be next to this program.
#[derive(Parser)]
#[command(
    name = "ropewalk-bench",
    version,
    after_help = "Exit codes: 0 done, 1 the job failed, 2 bad usage or input."
)]
struct Cli {
    /// Write log messages as text, or as a line of JSON each.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    log: log::Format,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Experiment(Box<experiments::What>),
    Plan(analysis::plan::Options),
    #[command(hide = true)]
    Completions(help::Completions),
    #[command(hide = true)]
    Man(help::Man),
}

fn main() -> ExitCode {
    let words = json::understood(&Cli::command(), std::env::args_os());
    let cli = Cli::try_parse_from(words).unwrap_or_else(|error| help::without_far_suggestions(error).exit());
    log::start("warn", cli.log);
    failure::exit_code(match cli.command {
        Command::Experiment(what) => experiments::run(&what),
        Command::Plan(options) => plan::run(&options),
        Command::Completions(options) => options.run(Cli::command()),
        Command::Man(options) => options.run(Cli::command()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_can_be_parsed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_fits_a_terminal() {
        let faults = documented::too_wide(Cli::command());
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn every_documented_command_can_be_parsed() {
        fn parse(words: &[String]) -> Result<(), clap::Error> {
            let ours: &[String] = match words.get(1).map(String::as_str) {
                Some("bench") => &words[1..],
                Some("plan") => words,
                _ => return Ok(()),
            };
            Cli::try_parse_from(ours)?;
            // `bench agent HOSTS -- EXPERIMENT` starts that experiment.
            let started = ours.iter().position(|word| word == "--");
            started.map_or(Ok(()), |at| Cli::try_parse_from(&ours[at..]).map(drop))
        }
        let faults = documented::faults(&documented::pages().expect("reads"), parse);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}
