//! Ctrl-C and similar signals.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Remembers whether the user asked this process to stop (SIGINT, SIGTERM, SIGHUP).
#[derive(Clone)]
pub struct Signals(Arc<AtomicBool>);

impl Signals {
    /// From this call on, the first of these signals is remembered instead of ending the process; a second one ends it.
    pub fn watch() -> std::io::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [
            signal_hook::consts::SIGINT,
            signal_hook::consts::SIGTERM,
            signal_hook::consts::SIGHUP,
        ] {
            signal_hook::flag::register_conditional_shutdown(signal, 1, flag.clone())?;
            signal_hook::flag::register(signal, flag.clone())?;
        }
        Ok(Signals(flag))
    }

    /// Whether a signal arrived.
    pub fn stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Forgets the signal after its effect: the next one counts as the first.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Makes the process survive SIGHUP.
pub fn outlive_hangups() {
    // If this fails, SIGHUP ends the process as by default.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::default());
}
