//! Log messages on standard error.

use crate::screen;
use tracing_subscriber::EnvFilter;

/// Writes log messages to standard error from now on: those of RUST_LOG, by default from `level` up.
pub fn start(level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| level.into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        // Colour codes are control characters, which the screen escapes.
        .with_ansi(false)
        .with_writer(screen::stderr)
        .with_target(false)
        .init();
}
