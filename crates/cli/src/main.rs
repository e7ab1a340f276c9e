#![forbid(unsafe_code)]
//! The `ropewalk` command.
//!
//! Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 the job failed,
//! 2 bad usage or input, 3 data was lost.

mod command;
mod complete;
mod demo;
mod figure;
mod graph;
mod habits;
mod numbers;
mod offers;
mod qos;
mod types;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use failure::Outcome;
use std::ffi::OsString;
use std::process::ExitCode;
use terminal::{failure, help, json, log, screen, signals};

/// Communication middleware for robots: zero-copy topics on one host, and priorities between hosts over a shared radio.
///
/// Processes find each other through ROPEWALK_RUNTIME_DIR (default: $XDG_RUNTIME_DIR/ropewalk, else /tmp/ropewalk-UID)
/// and ROPEWALK_DOMAIN (default: 0). A single host needs no daemon.
#[derive(Parser)]
#[command(
    name = "ropewalk",
    version,
    after_help = "Exit codes: 0 done, 1 the job failed, 2 bad usage or input, 3 data was lost.\n\
                  Set RUST_LOG=info (or debug) for more log messages."
)]
struct Cli {
    /// Write log messages as text, or as a line of JSON each.
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value_t)]
    log: log::Format,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::Options),
    Bench(command::bench::Bench),
    Plan(command::bench::Plan),
    Link(command::link::Options),
    Ros1(command::ros1::Options),
    Ros2(command::ros2::Options),
    #[command(alias = "foxglove_bridge")]
    Foxglove(command::foxglove::Options),
    Web(command::web::Options),
    Import(command::import::Options),
    Top(command::top::Options),
    Keys(command::keys::Options),
    Lab(command::lab::Options),
    #[command(alias = "rostopic")]
    Topic(command::topic::Options),
    #[command(alias = "rosservice")]
    Service(command::service::Options),
    Action(command::action::Options),
    #[command(alias = "rosnode")]
    Node(command::node::Options),
    Param(command::param::Options),
    Interface(command::interface::Options),
    Robot(command::robot::Options),
    Control(command::control::Options),
    Play(command::play::Options),
    Record(command::record::Options),
    Info(command::info::Options),
    /// Recordings, as `ros2 bag` names the commands.
    #[command(hide = true, alias = "rosbag")]
    Bag(command::bag::Options),
    #[command(alias = "rosmsg")]
    Msg(command::msg::Options),
    Gen(command::generate::Options),
    #[command(alias = "wtf")]
    Doctor(command::doctor::Options),
    Completions(help::Completions),
    Man(help::Man),
    /// One process of a lab.
    #[command(hide = true)]
    LabPart {
        arguments: Vec<String>,
    },
    /// One process of the demo.
    #[command(hide = true)]
    DemoPart {
        #[arg(long)]
        spec: String,
        #[arg(value_enum)]
        parts: Vec<demo::Part>,
    },
}

/// The command line that this program understands.
fn command() -> clap::Command {
    json::everywhere(Cli::command())
}

fn parse(words: impl IntoIterator<Item = OsString>) -> Result<clap::ArgMatches, clap::Error> {
    let command = command();
    let words = json::understood(&command, words);
    command.try_get_matches_from(words)
}

fn main() -> ExitCode {
    complete::answer();
    let matches = parse(std::env::args_os());
    let cli = matches.and_then(|m| {
        let cli = Cli::from_arg_matches(&m)?;
        Ok((cli, m))
    });
    let (cli, matches) = cli.unwrap_or_else(|error| {
        let words: Vec<_> = std::env::args_os()
            .skip(1)
            .map(|w| w.to_string_lossy().into_owned())
            .collect();
        habits::advise(error, &command(), &words).exit()
    });
    if let Err((file, error)) = json::redirect(&matches) {
        return failure::exit_code(Err(failure::Failure::input(format_args!(
            "cannot write {}: {error}",
            file.display()
        ))));
    }
    let level = if matches!(cli.command, Command::Link(_) | Command::Ros1(_)) {
        "info"
    } else {
        "warn"
    };
    log::start(level, cli.log);
    let outcome: Outcome = match cli.command {
        Command::Demo(options) => demo::run(&options),
        Command::Bench(options) => command::bench::bench(&options, cli.log),
        Command::Plan(options) => command::bench::plan(&options, cli.log),
        Command::Link(options) => command::link::run(&options),
        Command::Ros1(options) => command::ros1::run(&options),
        Command::Ros2(options) => command::ros2::run(&options),
        Command::Foxglove(options) => command::foxglove::run(&options),
        Command::Web(options) => command::web::run(&options),
        Command::Import(options) => command::import::run(&options),
        Command::Top(options) => command::top::run(&options),
        Command::Keys(options) => command::keys::run(&options),
        Command::Lab(options) => return command::lab::run(&options),
        Command::Topic(options) => command::topic::run(&options),
        Command::Service(options) => command::service::run(&options),
        Command::Action(options) => command::action::run(&options),
        Command::Node(options) => command::node::run(&options),
        Command::Param(options) => command::param::run(&options),
        Command::Interface(options) => command::interface::run(&options),
        Command::Robot(options) => command::robot::run(&options),
        Command::Control(options) => command::control::run(&options),
        Command::Play(options) => command::play::run(&options),
        Command::Record(options) => command::record::run(&options),
        Command::Info(options) => command::info::run(&options),
        Command::Bag(options) => command::bag::run(&options),
        Command::Msg(options) => command::msg::run(&options),
        Command::Gen(options) => command::generate::run(&options),
        Command::Doctor(options) => command::doctor::run(&options),
        Command::Completions(options) => options.run(command()),
        Command::Man(options) => options.run(command()),
        Command::LabPart { arguments } => return command::lab::part(&arguments),
        Command::DemoPart { spec, parts } => demo::run_parts(&spec, &parts),
    };
    failure::exit_code(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_one_that_can_be_parsed() {
        command().debug_assert();
    }

    #[test]
    fn help_fits_a_terminal() {
        let faults = documented::too_wide(command());
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    /// `bench` and `plan` are checked by the program that they start.
    #[test]
    fn every_documented_command_can_be_parsed() {
        let parse = |words: &[String]| {
            let matches = parse(words.iter().map(OsString::from))?;
            Cli::from_arg_matches(&matches).map(drop)
        };
        let faults = documented::faults(&documented::pages().expect("reads"), parse);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}
