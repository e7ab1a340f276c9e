//! Output for the user: results and events.

use super::session::Problem;
use rustyline::ExternalPrinter;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// Prints results to standard output. Cheap to clone.
#[derive(Clone)]
pub(super) struct Output {
    pub(super) json: bool,
    /// Prints above the line that is being edited.
    printer: Arc<Mutex<Option<Box<dyn ExternalPrinter + Send>>>>,
}

impl Output {
    pub(super) fn new(json: bool) -> Self {
        Output {
            json,
            printer: Arc::default(),
        }
    }

    pub(super) fn set_printer(&self, printer: impl ExternalPrinter + Send + 'static) {
        *self.printer.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(printer));
    }

    /// Prints a result: text for people, fields for programs.
    pub(super) fn result(&self, line: &str, text: &str, fields: Value) {
        if self.json {
            let mut object = json!({ "line": line, "ok": true });
            extend(&mut object, fields);
            print(&object.to_string());
        } else if !text.is_empty() {
            print(text);
        }
    }

    /// Prints a failed line: a command's outcome as a result, an invalid line as an error.
    pub(super) fn problem(&self, line: &str, number: Option<usize>, problem: &Problem) {
        let (text, fields) = match problem {
            Problem::Usage(error) => (error, json!({ "error": error })),
            Problem::Failed { text, fields } => (text, fields.clone()),
        };
        if self.json {
            let mut object = json!({ "line": line, "ok": false });
            extend(&mut object, fields);
            return print(&object.to_string());
        }
        match (problem, number) {
            (Problem::Failed { .. }, _) => print(text),
            (Problem::Usage(_), Some(number)) => crate::screen::tell!("line {number}: {text}"),
            (Problem::Usage(_), None) => crate::screen::tell!("{text}"),
        }
    }

    /// Prints an event that no line asked for.
    pub(super) fn event(&self, event: &str, text: &str, fields: Value) {
        let line = if self.json {
            let mut object = json!({ "event": event });
            extend(&mut object, fields);
            object.to_string()
        } else {
            format!("[{event}] {text}")
        };
        let mut printer = self.printer.lock().unwrap_or_else(PoisonError::into_inner);
        match printer.as_mut() {
            Some(printer) => drop(printer.print(format!("{}\n", stats::text::printable_lines(&line)))),
            None => print(&line),
        }
    }
}

fn extend(object: &mut Value, fields: Value) {
    if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
        object.extend(fields);
    }
}

fn print(text: &str) {
    let mut out = crate::screen::stdout();
    // The reader may be gone; the exit code still reports the outcome.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}
