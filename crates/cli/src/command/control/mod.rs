//! `ropewalk control`: commands a robot from a terminal or a script.

mod actions;
mod body;
mod editor;
mod files;
mod help;
mod joystick;
mod kinds;
mod line;
mod moving;
mod output;
mod reading;
mod session;
mod shorthand;

use super::transport::ControllerEnds;
use crate::command::waiting::Waiting;
use crate::failure::{Failure, OrFail, Outcome};
use crate::signals::Signals;
use clap::Args;
use output::Output;
use remote::Controller;
use session::{Next, Problem, Session};
use std::io::{BufRead, IsTerminal};
use std::time::Duration;

/// Longest line of a script, in bytes.
const LONGEST_LINE: u64 = 1 << 20;

/// Command a robot and show its telemetry, interactively or from a script on standard input.
///
/// Each command prints its outcome (executed, rejected with a reason, expired, or unreachable) and how long it took.
/// Lines that start with # are comments. A script continues after a failed line. The exit code is 0 if all lines
/// succeeded, 1 if a command failed, 2 if the first failure was an invalid line.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ropewalk control rover                        # type `help`; Tab completes\n  \
    ropewalk control tcp://127.0.0.1:7010         # over ZeroMQ\n  \
    echo 'get pose' | ropewalk control rover --json\n  \
    ropewalk control rover <<'END'\n    \
    set go-to 2 0\n    \
    watch pose -n 3\n    \
    call headlights on\n    \
    set twist {\"linear\": {\"x\": 0.5}}\n  \
    END")]
pub(crate) struct Options {
    /// The robot's name on this host's bus (with its namespace, if a link gives it one), or its ZeroMQ address.
    robot: String,
    #[command(flatten)]
    ends: ControllerEnds,
    /// Name of this controller, shown to the robot and to its other controllers.
    #[arg(long, default_value = "control")]
    name: String,
    /// Wait this many seconds for the robot before the first line.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = crate::numbers::seconds)]
    wait: f64,
    /// Stop at the first line of a script that fails.
    #[arg(long)]
    stop_on_failure: bool,
    /// Print one JSON object per line: outcomes, values, and events.
    #[arg(long)]
    json: bool,
}

/// Failed lines of a script.
#[derive(Default)]
struct Failures {
    lines: usize,
    failed: usize,
    first: Option<(usize, bool)>,
}

/// Runs until the end of the input, `quit`, or a signal.
pub(crate) fn run(options: &Options) -> Outcome {
    let signals = Signals::watch().or_job("watching for signals")?;
    let end = options.ends.open(&options.robot)?;
    let place = end.describe();
    let controller = Controller::builder(&options.name).end(end).start().or_input()?;
    let output = Output::new(options.json);
    let interactive = std::io::stdin().is_terminal();
    let mut session = Session::new(controller.clone(), output, signals, place, interactive);
    let waiting = Waiting::on(format!("the robot {}", options.robot));
    let found = controller.wait_until_found(Duration::from_secs_f64(options.wait));
    drop(waiting);
    let outcome = match (interactive, found) {
        (true, _) => editor::run(&mut session, found),
        (false, true) => script(&mut session, options.stop_on_failure),
        (false, false) => Err(Failure::job(format_args!(
            "{} did not answer within {} s; {}",
            options.robot,
            options.wait,
            hint_for(&options.robot, options.ends.has_keys())
        ))),
    };
    session.end();
    controller.stop();
    outcome
}

/// What may keep a robot from answering, over the bus or at a ZeroMQ address.
fn hint_for(robot: &str, has_keys: bool) -> &'static str {
    if robot.contains("://") && !has_keys {
        "does a robot listen there, and without keys (--insecure there, too)?"
    } else if robot.contains("://") {
        "does a robot listen there, and does each end know the other's key (--key and --robot-key here, --key and \
         --allow there)?"
    } else {
        "is `ropewalk robot sim` (or the robot's own program) running in this ROPEWALK_DOMAIN, and does the link carry it?"
    }
}

fn script(session: &mut Session, stop: bool) -> Outcome {
    let mut input = std::io::stdin().lock();
    let mut failures = Failures::default();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let mut bounded = std::io::Read::take(&mut input, LONGEST_LINE);
        let read = bounded
            .read_until(b'\n', &mut line)
            .or_job("reading standard input")?;
        if read == 0 {
            break;
        }
        if read as u64 == LONGEST_LINE {
            return Err(Failure::input(format_args!(
                "line {number} is longer than {LONGEST_LINE} B"
            )));
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        failures.lines += 1;
        match session.execute(text) {
            Ok(Next::Line) => {}
            Ok(Next::End) => break,
            Err(problem) => {
                session.output.problem(text, Some(number), &problem);
                failures.failed += 1;
                let usage = matches!(problem, Problem::Usage(_));
                failures.first.get_or_insert((number, usage));
                if stop {
                    break;
                }
            }
        }
        if session.signals.stopped() {
            return Err(Failure::job("interrupted"));
        }
    }
    let Failures { lines, failed, first } = failures;
    let text = |line| format!("{failed} of {lines} lines failed, the first is line {line}");
    match first {
        None => Ok(()),
        Some((line, true)) => Err(Failure::input(text(line))),
        Some((line, false)) => Err(Failure::job(text(line))),
    }
}
