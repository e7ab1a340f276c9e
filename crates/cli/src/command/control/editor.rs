//! Reads lines from a terminal, with completion and a history.

use super::session::{Next, Session};
use super::{actions, help, kinds};
use crate::failure::{OrFail, Outcome};
use remote::Controller;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};

/// Reads lines until `quit` or Ctrl-D.
pub(super) fn run(session: &mut Session, found: bool) -> Outcome {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .auto_add_history(true)
        .build();
    let mut editor: Editor<Words, MemHistory> =
        Editor::with_history(config, MemHistory::new()).or_job("using the terminal")?;
    editor.set_helper(Some(Words(session.controller.clone())));
    session
        .output
        .set_printer(editor.create_external_printer().or_job("using the terminal")?);
    let name = session.controller.robot_name().unwrap_or_else(|| "robot".into());
    let name = stats::text::printable(&name).into_owned();
    if found {
        crate::screen::tell!(
            "{name} at {}; `help` lists the commands, Tab completes",
            session.place
        );
    } else {
        crate::screen::tell!(
            "the robot at {} has not answered yet; still waiting for it",
            session.place
        );
    }
    loop {
        match editor.readline(&format!("{name}> ")) {
            Ok(line) => match session.execute(line.trim()) {
                Ok(Next::Line) => {}
                Ok(Next::End) => return Ok(()),
                Err(problem) => session.output.problem(line.trim(), None, &problem),
            },
            // Ctrl-C discards the line.
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(error).or_job("reading the terminal"),
        }
        // Ctrl-C ended only the running output; the session continues.
        session.signals.clear();
    }
}

/// Completes commands, kinds, actions and subsystems.
struct Words(Controller);

impl Words {
    /// Words that can follow these.
    fn candidates(&self, before: &[&str]) -> Vec<String> {
        let commands = || help::COMMANDS.iter().map(|(name, _, _)| (*name).to_owned());
        let telemetry = || kinds::TELEMETRY.iter().map(|k| kinds::short(k.name));
        let taken = || kinds::COMMANDS.iter().map(|k| kinds::short(k.name));
        match before {
            [] => commands().collect(),
            ["get" | "request" | "watch" | "listen"] => telemetry().collect(),
            ["set"] => taken().collect(),
            ["help"] => commands()
                .chain(telemetry())
                .chain(taken())
                .chain(["kinds".into()])
                .collect(),
            ["call"] => actions::names(&self.0),
            ["authority" | "take" | "release" | "hand-over"] => self.0.subsystems(),
            ["files"] => ["ls", "get"].map(String::from).into(),
            ["log"] => ["none", "fatal", "error", "warn", "info", "debug"]
                .map(String::from)
                .into(),
            ["expiry"] => ["default", "never"].map(String::from).into(),
            _ => Vec::new(),
        }
    }
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = line.get(..at).unwrap_or(line);
        let start = typed.rfind(char::is_whitespace).map_or(0, |i| i + 1);
        let (before, word) = typed.split_at(start);
        let before: Vec<&str> = before.split_whitespace().collect();
        let mut candidates = self.candidates(&before);
        candidates.retain(|c| c.starts_with(word));
        candidates.sort();
        candidates.dedup();
        let pair = |c: String| Pair {
            display: c.clone(),
            replacement: format!("{c} "),
        };
        Ok((start, candidates.into_iter().map(pair).collect()))
    }
}

impl Hinter for Words {
    type Hint = String;
}
impl Highlighter for Words {}
impl Validator for Words {}
impl Helper for Words {}

#[cfg(test)]
mod tests {
    use super::*;
    use remote::transport::{Wire, local};

    #[test]
    fn tab_completes_commands_and_kinds() {
        let (_end, connect) = local::end("rover", Wire::Own);
        let words = Words(
            Controller::builder("desk")
                .end(connect.end())
                .start()
                .expect("starts"),
        );
        let history = MemHistory::new();
        let complete = |line: &str| {
            let (start, pairs) = words
                .complete(line, line.len(), &Context::new(&history))
                .expect("completes");
            (
                start,
                pairs.into_iter().map(|p| p.replacement).collect::<Vec<_>>(),
            )
        };
        assert_eq!(complete("st"), (0, vec!["stats ".into(), "status ".into()]));
        assert_eq!(
            complete("watch cur").1,
            ["current-acceleration ", "current-pose ", "current-twist "]
        );
        assert_eq!(complete("set tw"), (4, vec!["twist ".into()]));
        assert_eq!(complete("help kin").1, ["kinds "]);
        assert!(complete("get pose x").1.is_empty() && complete("nonsense ").1.is_empty());
    }
}
