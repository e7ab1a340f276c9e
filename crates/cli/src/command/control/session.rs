//! Runs the lines of a session one after the other.

use super::output::Output;
use super::{actions, files, help, joystick, kinds, line, moving, reading};
use crate::signals::Signals;
use remote::controller::Connection;
use remote::{Controller, Expiry, telemetry};
use serde_json::{Value, json};
use std::time::Duration;

/// How long a request waits for its answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// Longest time until a signal is noticed.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// A robot and the connection to it.
pub(super) struct Session {
    pub(super) controller: Controller,
    pub(super) output: Output,
    pub(super) signals: Signals,
    /// Address of the robot.
    pub(super) place: String,
    pub(super) interactive: bool,
    pub(super) expiry: Expiry,
}

/// What to do after a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Line,
    End,
}

/// Why a line did not succeed.
#[derive(Debug)]
pub(super) enum Problem {
    /// The line is invalid; the text shows the correct form.
    Usage(String),
    /// The robot refused the command, or did not answer.
    Failed { text: String, fields: Value },
}

impl Problem {
    pub(super) fn failed(text: impl std::fmt::Display) -> Self {
        let text = text.to_string();
        let fields = json!({ "error": text });
        Problem::Failed { text, fields }
    }
}

pub(super) type Done = Result<(), Problem>;

/// Returns the error of an invalid line.
pub(super) fn usage<T>(text: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Usage(text.into()))
}

impl Session {
    pub(super) fn new(
        controller: Controller,
        output: Output,
        signals: Signals,
        place: String,
        interactive: bool,
    ) -> Self {
        let session = Session {
            controller,
            output,
            signals,
            place,
            interactive,
            expiry: Expiry::Default,
        };
        session.hear();
        session
    }

    /// Subscribes to the messages that arrive without a request: the robot's log, its questions, and whether it is
    /// reachable. Nothing else uses the air.
    fn hear(&self) {
        let out = self.output.clone();
        self.controller.on_connection(move |connection| {
            let word = match connection {
                Connection::Found => "found",
                Connection::Lost => "lost",
            };
            out.event("robot", word, json!({ "what": word }));
        });
        let out = self.output.clone();
        self.controller.on::<telemetry::LogMessage>(0, move |message, _| {
            let level = remote::types::LogLevel::try_from(message.level as i32);
            let level = level.map_or("custom", |level| level.as_str_name()).to_lowercase();
            let text = format!("{level}: {}", message.message);
            out.event(
                "log",
                &text,
                json!({ "level": level, "message": message.message }),
            );
        });
        let out = self.output.clone();
        self.controller
            .on::<telemetry::PermissionRequest>(0, move |request, _| {
                let (uid, what) = (&request.requestuid, &request.description);
                let text = format!("{what} (answer with: set permission {uid} yes, or no)");
                out.event(
                    "permission",
                    &text,
                    json!({ "request": uid, "description": what }),
                );
            });
    }

    /// Stops reporting events.
    pub(super) fn end(&self) {
        self.controller.on_connection(|_| {});
    }

    /// Executes a line and prints its result; the caller prints a failure.
    pub(super) fn execute(&mut self, line: &str) -> Result<Next, Problem> {
        let Some((command, words, tail)) = line::cut(line) else {
            return Ok(Next::Line);
        };
        let rest = words.as_slice();
        match command {
            "help" | "?" => help::help(self, line, rest)?,
            "status" => self.status(line)?,
            "get" => reading::get(self, line, rest)?,
            "request" => reading::request(self, line, rest)?,
            "watch" => reading::watch(self, line, rest)?,
            "listen" => reading::listen(self, line, rest)?,
            "set" => moving::set(self, line, tail)?,
            "call" => actions::call(self, line, rest)?,
            "authority" => moving::authority(self, line, rest)?,
            "take" => moving::take(self, line, rest)?,
            "release" => moving::release(self, line, rest)?,
            "hand-over" => moving::hand_over(self, line, rest)?,
            "files" => files::files(self, line, rest)?,
            "log" => self.log(line, rest)?,
            "stats" => reading::stats(self, line)?,
            "expiry" => self.set_expiry(line, rest)?,
            "joystick" => joystick::run(self, line, rest)?,
            "sleep" => self.sleep(line, rest)?,
            "quit" | "exit" => return Ok(Next::End),
            other => {
                return usage(format!(
                    "unknown command {other:?}{}; `help` lists the commands",
                    help::like_command(other)
                ));
            }
        }
        Ok(Next::Line)
    }

    fn status(&self, line: &str) -> Done {
        let controller = &self.controller;
        let name = controller.robot_name();
        let rtt = controller.round_trip().map(|rtt| rtt.as_secs_f64() * 1e3);
        let found = controller.is_found();
        // Robots of version 6 cannot list their kinds, which is not the same as having none.
        let known = |names: Vec<String>| controller.knows_kinds().then_some(names);
        let (commands, telemetry) = (
            known(controller.robot_commands()),
            known(controller.robot_telemetry()),
        );
        let count = |names: &Option<Vec<String>>, of: &str| match names {
            Some(names) => format!("{} kinds of {of}", names.len()),
            None => format!("? (the robot has not listed its {of})"),
        };
        let mut rights = Vec::new();
        let mut holders = Vec::new();
        for subsystem in controller.subsystems() {
            let Ok(right) = controller.right(&subsystem) else {
                break;
            };
            rights.push(moving::right_json(&right));
            holders.push(format!("{subsystem}: {}", moving::holder(&right)));
        }
        let text = format!(
            "robot       {} at {}\nstate       {}\nround trip  {}\nexpiry      {}\nmay move    {}\ncommands    {}\n\
             telemetry   {}\nthis is     {:x}",
            name.as_deref().unwrap_or("?"),
            self.place,
            if found { "found" } else { "lost" },
            rtt.map_or("?".into(), |ms| format!("{ms:.2} ms")),
            self.expiry_text(),
            if holders.is_empty() {
                "?".into()
            } else {
                holders.join(", ")
            },
            count(&commands, "commands"),
            count(&telemetry, "telemetry"),
            controller.id(),
        );
        let fields = json!({ "robot": name, "place": self.place, "found": found, "round_trip_ms": rtt,
            "expiry": self.expiry_text(), "rights": rights, "commands": commands,
            "telemetry": telemetry, "controller_id": format!("{:x}", controller.id()) });
        self.output.result(line, &text, fields);
        Ok(())
    }

    fn expiry_text(&self) -> String {
        match self.expiry {
            Expiry::Default => "default (twice the round trip, at least 200 ms)".into(),
            Expiry::After(time) => format!("{} ms", time.as_secs_f64() * 1e3),
            Expiry::Never => "never".into(),
        }
    }

    fn set_expiry(&mut self, line: &str, words: &[&str]) -> Done {
        let set = line::expiry(words).map_err(Problem::Usage)?;
        self.expiry = set.unwrap_or(self.expiry);
        let text = self.expiry_text();
        self.output.result(
            line,
            &format!("command expiry: {text}"),
            json!({ "expiry": text }),
        );
        Ok(())
    }

    fn log(&self, line: &str, words: &[&str]) -> Done {
        const LEVELS: [&str; 6] = ["none", "fatal", "error", "warn", "info", "debug"];
        let [word] = words else {
            return usage(format!("log LEVEL: {}", LEVELS.join(", ")));
        };
        let by_name = LEVELS.iter().position(|level| level == word);
        let Some(level) = by_name.or_else(|| word.parse().ok().filter(|n| *n < LEVELS.len())) else {
            return usage(format!("{word:?} is not a level: {}", LEVELS.join(", ")));
        };
        self.controller
            .set_log_level(level as u32)
            .map_err(Problem::failed)?;
        let text = format!("the robot's log is shown up to level {}", LEVELS[level]);
        self.output.result(line, &text, json!({ "level": LEVELS[level] }));
        Ok(())
    }

    fn sleep(&self, line: &str, words: &[&str]) -> Done {
        let time = match words {
            [seconds] => line::seconds(seconds),
            _ => None,
        };
        let Some(time) = time else {
            return usage("sleep SECONDS, at most a day");
        };
        let until = std::time::Instant::now() + time;
        while !self.signals.stopped() {
            let left = until.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(TICK));
        }
        self.output.result(line, "", json!({}));
        Ok(())
    }
}

/// Parses kind and channel; the channel is a number, or a name that the robot gave it.
pub(super) fn kind_and_channel<'a>(
    session: &Session,
    words: &[&'a str],
) -> Result<(&'static kinds::Telemetry, u8, Vec<&'a str>), Problem> {
    let [name, rest @ ..] = words else {
        return usage("which kind? `help kinds` lists all");
    };
    let kind = kinds::telemetry_named(name).map_err(Problem::Usage)?;
    match rest {
        [channel, rest @ ..] if !channel.starts_with('-') => {
            let named = (kind.channels)(&session.controller);
            let found = channel.parse().ok();
            let found = found.or_else(|| {
                named
                    .iter()
                    .find(|(_, name)| name == channel)
                    .map(|(number, _)| *number)
            });
            let names: Vec<_> = named
                .iter()
                .map(|(number, name)| format!("{number} {name}"))
                .collect();
            match found {
                Some(channel) => Ok((kind, channel, rest.to_vec())),
                None => usage(format!(
                    "{channel:?} is not a channel of {}: give a number from 0 to 255{}",
                    kinds::short(kind.name),
                    if names.is_empty() {
                        String::new()
                    } else {
                        format!(", or a name ({})", names.join(", "))
                    }
                )),
            }
        }
        rest => Ok((kind, 0, rest.to_vec())),
    }
}
