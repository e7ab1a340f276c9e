//! The live table.

use super::System;
use super::protocol::Spec;
use super::run::State;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};
use terminal::table::{Align, Table};

/// Shows a run while it lasts: redrawn in place on a terminal, printed at intervals elsewhere. Uses standard error,
/// since standard output is for the result.
pub(crate) struct View {
    system: System,
    terminal: bool,
    drawn: usize,
    next: Instant,
}

impl View {
    pub(crate) fn new(system: System) -> Self {
        View {
            system,
            terminal: std::io::stderr().is_terminal(),
            drawn: 0,
            next: Instant::now(),
        }
    }

    /// Shows the state, if it is due.
    pub(crate) fn show(&mut self, spec: &Spec, state: &State, elapsed: Duration) {
        if Instant::now() >= self.next {
            let every = if self.terminal { 250 } else { 5000 };
            self.next = Instant::now() + Duration::from_millis(every);
            if self.terminal || elapsed > Duration::from_secs(4) {
                self.draw(spec, state, elapsed);
            }
        }
    }

    /// Shows the final state.
    pub(crate) fn end(&mut self, spec: &Spec, state: &State, elapsed: Duration) {
        if self.terminal {
            self.draw(spec, state, elapsed);
        }
        self.drawn = 0;
    }

    /// Prints a line above the table.
    pub(crate) fn note(&mut self, text: &str) {
        self.erase();
        crate::screen::tell!("{}: {text}", self.system.name());
        self.next = Instant::now();
    }

    fn erase(&mut self) {
        if self.terminal && self.drawn > 0 {
            crate::screen::draw(&format!("\x1b[{}A\x1b[J", self.drawn));
        }
        self.drawn = 0;
    }

    fn draw(&mut self, spec: &Spec, state: &State, elapsed: Duration) {
        let mut table = Table::new(&[
            ("topic", Align::Left),
            ("priority", Align::Right),
            ("rate Hz", Align::Right),
            ("jitter ms", Align::Right),
            ("delay ms", Align::Right),
            ("delivered", Align::Right),
            ("lost", Align::Left),
        ]);
        for (topic, plan) in &spec.topics {
            let metrics = state.metrics(topic);
            let recent = state.arrived.get(topic).cloned().unwrap_or_default();
            table.row([
                topic.clone(),
                if spec.fifo {
                    "-".into()
                } else {
                    plan.priority.to_string()
                },
                format!("{:.1}", recent.recent_hz),
                format!("{:.2}", recent.recent_jitter_ms),
                format!("{:.2}", recent.recent_delay_ms),
                format!("{}/{}", metrics.received, metrics.sent),
                metrics.drops.to_string(),
            ]);
        }
        self.erase();
        let head = format!(
            "{}: {:.0} of {:.0} s, air {:.0} % busy",
            self.system.name(),
            elapsed.as_secs_f64().min(spec.seconds),
            spec.seconds,
            state.radio.air_percent
        );
        let mut lines = vec![head];
        lines.extend(table.lines());
        self.drawn = lines.len();
        let _ = writeln!(crate::screen::stderr(), "{}", lines.join("\n"));
    }
}
