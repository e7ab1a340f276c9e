//! `ropewalk action send_goal`.

use super::actionlib::{self, Actionlib};
use super::goal::{Done, Event, Goal};
use super::{names, ros2};
use crate::command::optional_type::Content;
use crate::failure::{Failure, OrFail, Outcome};
use crate::numbers;
use crate::signals::Signals;
use clap::Args;
use ropewalk::Node;
use schema::{Show, Value};
use serde_json::json;
use std::io::Write;
use std::time::{Duration, Instant};

/// Send a goal and wait for its result; Ctrl-C cancels the goal
///
///   ropewalk action send_goal /fibonacci '{order: 5}'
///   ropewalk action send_goal /fibonacci \
///     example_interfaces/action/Fibonacci '{order: 5}' --feedback
///
/// The exit code is 0 if the goal succeeded, else 1.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Options {
    /// The action.
    action: String,
    #[command(flatten)]
    goal: Content,
    /// Print feedback as it arrives.
    #[arg(short, long)]
    feedback: bool,
    /// Wait this many seconds for the server, and for it to accept the goal.
    #[arg(short, long, default_value_t = 10.0, value_parser = numbers::seconds)]
    timeout: f64,
    /// Print lines of JSON.
    #[arg(long)]
    json: bool,
    /// Show arrays in full.
    #[arg(long)]
    full: bool,
}

/// How long a cancelled goal may take to end.
const ENDING: Duration = Duration::from_secs(10);
/// Interval at which the result is polled.
const INTERVAL: Duration = Duration::from_millis(20);

pub(super) fn run(node: &Node, options: &Options) -> Outcome {
    let signals = Signals::watch().or_job("watching signals")?;
    let action = format!("/{}", options.action.trim_start_matches('/'));
    let timeout = Duration::from_secs_f64(options.timeout);
    let mut goal: Box<dyn Goal> = if is_ros1(node, &action, timeout)? {
        let server = Actionlib::find(node, &action, options.feedback, timeout)?;
        server.send(options.goal.yaml(&action, &server.type_name())?)?;
        Box::new(server)
    } else {
        let server = ros2::Server::find(node, &action, options.feedback, timeout)?;
        let text = options.goal.yaml(&action, &server.type_name())?.to_owned();
        let sent = server.send(&text)?;
        Box::new(sent.ok_or_else(|| Failure::job(format_args!("the server of {action} rejects the goal")))?)
    };
    let mut printer = Printer {
        options,
        out: crate::screen::stdout(),
    };
    printer.sent(&goal.id())?;
    let done = follow(goal.as_mut(), &signals, |value| printer.feedback(value))?;
    printer.done(&done)?;
    match (done.status, &*done.text) {
        ("SUCCEEDED", _) => Ok(()),
        (status, "") => Err(Failure::job(format_args!("the goal ended {status}"))),
        (status, text) => Err(Failure::job(format_args!("the goal ended {status}: {text}"))),
    }
}

/// Returns whether the action is of ROS 1, as soon as it has a server.
fn is_ros1(node: &Node, action: &str, timeout: Duration) -> Result<bool, Failure> {
    let end = Instant::now() + timeout;
    let service = format!("{action}{}", names::SEND_GOAL);
    loop {
        let services = node.services().or_input()?;
        if services
            .iter()
            .any(|s| s.service.service == service && !s.servers.is_empty())
        {
            return Ok(false);
        }
        if actionlib::is_served(node, action)? {
            return Ok(true);
        }
        if Instant::now() >= end {
            let served = services.iter().filter(|s| !s.servers.is_empty());
            let known = served.filter_map(|s| s.service.service.strip_suffix(names::SEND_GOAL));
            let near = schema::did_you_mean(schema::nearest(action, known));
            return Err(Failure::input(format_args!(
                "no server of the action {action} within {timeout:?}{near}; `ropewalk action list` lists the actions"
            )));
        }
        std::thread::sleep(Duration::from_millis(100).min(timeout));
    }
}

/// Prints feedback until the goal ends; a signal cancels the goal.
fn follow(
    goal: &mut dyn Goal,
    signals: &Signals,
    mut feedback: impl FnMut(&Value) -> Outcome,
) -> Result<Done, Failure> {
    let mut cancelled = None;
    loop {
        match goal.next(INTERVAL)? {
            Some(Event::Feedback(value)) => feedback(&value)?,
            Some(Event::Done(done)) => return Ok(done),
            None => {}
        }
        if signals.stopped() && cancelled.is_none() {
            crate::screen::tell!("cancelling the goal");
            goal.cancel()?;
            cancelled = Some(Instant::now());
        }
        if cancelled.is_some_and(|at| at.elapsed() > ENDING) {
            return Err(Failure::job(
                "the server did not cancel the goal when asked to, and continues with it",
            ));
        }
    }
}

struct Printer<'a, W> {
    options: &'a Options,
    out: W,
}

impl<W: Write> Printer<'_, W> {
    fn show(&self) -> Show {
        if self.options.full { Show::ALL } else { Show::SHORT }
    }

    fn sent(&mut self, id: &str) -> Outcome {
        let line = match self.options.json {
            true => json!({ "goal_id": id }).to_string(),
            false => format!("Goal sent with ID: {id}\n"),
        };
        writeln!(self.out, "{line}")
            .and_then(|()| self.out.flush())
            .or_job("writing")
    }

    fn feedback(&mut self, value: &Value) -> Outcome {
        let line = match self.options.json {
            true => json!({ "feedback": value.to_json(self.show()) }).to_string(),
            false => format!("Feedback:\n{}", indented(value, self.show())),
        };
        writeln!(self.out, "{line}")
            .and_then(|()| self.out.flush())
            .or_job("writing")
    }

    fn done(&mut self, done: &Done) -> Outcome {
        let line = match self.options.json {
            true => json!({ "status": done.status, "text": done.text, "result": done.result.to_json(self.show()) })
                .to_string(),
            false => format!(
                "Result:\n{}\nGoal finished with status: {}",
                indented(&done.result, self.show()),
                done.status
            ),
        };
        writeln!(self.out, "{line}").or_job("writing")
    }
}

fn indented(value: &Value, show: Show) -> String {
    value
        .to_yaml(show)
        .lines()
        .map(|line| format!("    {line}\n"))
        .collect()
}
