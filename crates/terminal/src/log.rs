//! Log messages on standard error.

use crate::screen;
use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// How log messages are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A line of text for each.
    #[default]
    Text,
    /// A JSON object on a line for each.
    Json,
}

/// Writes log messages to standard error from now on: those of RUST_LOG, by default from `level` up.
pub fn start(level: &str, format: Format) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| level.into());
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // Colour codes are control characters, which the screen escapes.
        .with_ansi(false)
        .with_writer(screen::stderr)
        .with_target(false);
    match format {
        Format::Text => log.init(),
        Format::Json => {
            let log = log.json().flatten_event(true);
            log.with_current_span(false).with_span_list(false).init();
        }
    }
}
