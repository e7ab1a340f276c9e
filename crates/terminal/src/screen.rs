//! The only way to standard output and standard error for text that people read.
//!
//! Text from other processes, hosts and files (names, refusals, definitions) must not control the terminal. This module
//! escapes the control characters of whatever is printed here, except line feeds and tabs ([`stats::text`]); the
//! meaning of JSON does not change. `clippy.toml` forbids printing past this module. The command's own drawing goes to
//! [`raw`] and [`draw`] (decision 273).

use stats::text::printable_lines;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, LineWriter, Write};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The file that gets the results in place of standard output.
static FILE: OnceLock<Mutex<LineWriter<File>>> = OnceLock::new();

/// A writer that makes text safe to print.
pub struct Screen<W>(W);

impl<W: Write> Write for Screen<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        self.0.write_all(printable_lines(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Where results go.
pub enum Output {
    /// Standard output.
    Standard(io::StdoutLock<'static>),
    /// The file of [`redirect`].
    File(&'static Mutex<LineWriter<File>>),
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Standard(out) => out.write(bytes),
            Output::File(out) => lock(out).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Standard(out) => out.flush(),
            Output::File(out) => lock(out).flush(),
        }
    }
}

/// Locks for one write only: a command may hold several writers at once.
fn lock(file: &Mutex<LineWriter<File>>) -> MutexGuard<'_, LineWriter<File>> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Standard output, or the file of [`redirect`].
pub fn stdout() -> Screen<Output> {
    Screen(match FILE.get() {
        Some(file) => Output::File(file),
        None => Output::Standard(raw().lock()),
    })
}

/// Writes results to this file from now on, in whole lines.
pub fn redirect(file: File) {
    let _ = FILE.set(Mutex::new(LineWriter::new(file)));
}

/// Standard error.
pub fn stderr() -> Screen<io::Stderr> {
    Screen(io::stderr())
}

/// Standard output without escaping.
#[allow(clippy::disallowed_methods, reason = "this is the way")]
pub fn raw() -> io::Stdout {
    io::stdout()
}

/// Whether colours suit an output: it is a terminal, and NO_COLOR is unset or empty (<https://no-color.org>).
pub fn may_colour(output: &impl IsTerminal) -> bool {
    output.is_terminal() && wants_colour(std::env::var_os("NO_COLOR"))
}

fn wants_colour(no_color: Option<OsString>) -> bool {
    no_color.is_none_or(|value| value.is_empty())
}

/// Writes control sequences to the terminal on standard error, for example to redraw a line; never text from others.
pub fn draw(sequence: &str) {
    let _ = io::stderr().write_all(sequence.as_bytes());
}

/// Prints a line to standard output; a closed output is no error.
pub fn line_out(line: fmt::Arguments<'_>) {
    let _ = writeln!(stdout(), "{line}");
}

/// Prints a line to standard error.
pub fn line_err(line: fmt::Arguments<'_>) {
    let _ = writeln!(stderr(), "{line}");
}

#[macro_export]
/// Like `println!`, but escapes control characters.
macro_rules! say {
    ($($format:tt)*) => { $crate::screen::line_out(format_args!($($format)*)) };
}

#[macro_export]
/// Like `eprintln!`, but escapes control characters.
macro_rules! tell {
    ($($format:tt)*) => { $crate::screen::line_err(format_args!($($format)*)) };
}

pub use crate::{say, tell};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_no_color_forbids_nothing() {
        assert!(wants_colour(None) && wants_colour(Some("".into())));
        assert!(!wants_colour(Some("0".into())));
    }

    #[test]
    fn control_characters_on_a_screen_are_escaped() {
        let mut screen = Screen(Vec::new());
        let (first, second) = ("a\u{1b}[2J", "\u{9b}31m\u{202e}\r");
        writeln!(screen, "{first}\t{second}").expect("writes");
        assert_eq!(
            String::from_utf8(screen.0).expect("text"),
            "a\\u001b[2J\t\\u009b31m\\u202e\\r\n"
        );
    }
}
