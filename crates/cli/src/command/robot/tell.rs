//! Prints what the simulated robot does.

use serde_json::{Value, json};
use std::io::Write;
use std::time::Instant;

/// Prints events to standard output: text for people, or one JSON object per line.
pub(super) struct Teller {
    json: bool,
    start: Instant,
}

impl Teller {
    pub(super) fn new(json: bool) -> Self {
        Teller {
            json,
            start: Instant::now(),
        }
    }

    /// `event` names the kind, for programs, which also get the `fields`.
    pub(super) fn tell(&self, event: &str, text: &str, fields: Value) {
        let at = self.start.elapsed().as_secs_f64();
        let mut out = crate::screen::stdout();
        // A closed output does not stop the robot.
        let _ = if self.json {
            let mut line = json!({ "time_s": (at * 1e3).round() / 1e3, "event": event, "text": text });
            if let (Some(line), Value::Object(fields)) = (line.as_object_mut(), fields) {
                line.extend(fields);
            }
            writeln!(out, "{line}")
        } else {
            writeln!(out, "{at:9.3} s  {text}")
        };
        let _ = out.flush();
    }
}
