//! Ctrl-C and its kin.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Remembers whether the user asked this process to stop (SIGINT, SIGTERM, SIGHUP).
#[derive(Clone)]
pub(crate) struct Signals(Arc<AtomicBool>);

impl Signals {
    /// From now on these signals are remembered instead of ending the process; a second one ends it.
    pub(crate) fn watch() -> std::io::Result<Self> {
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

    /// Whether one came.
    pub(crate) fn stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Forgets it: what it was to stop has stopped, and the next one is the first again.
    pub(crate) fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Lets the process go on when it is sent SIGHUP.
pub(crate) fn outlive_hangups() {
    // Without it the process ends there, as it did.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::default());
}
