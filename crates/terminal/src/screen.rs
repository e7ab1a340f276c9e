//! The only way to standard output and standard error for text that people read.
//!
//! Text from other processes, hosts and files (names, refusals, definitions) must not control the terminal. This module
//! escapes the control characters of whatever is printed here, except line feeds and tabs ([`stats::text`]); the
//! meaning of JSON does not change. `clippy.toml` forbids printing past this module. The command's own drawing goes to
//! [`raw`] and [`draw`] (decision 273).

use stats::text::printable_lines;
use std::fmt;
use std::io::{self, Write};

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

/// Standard output.
pub fn stdout() -> Screen<io::StdoutLock<'static>> {
    Screen(raw().lock())
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
