//! Says what a command waits for, if that takes long.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// After this long, a command says what it waits for.
pub(super) const SILENCE: Duration = Duration::from_secs(5);

/// Lasts as long as the command waits.
pub(super) struct Waiting {
    _end: Sender<()>,
}

impl Waiting {
    /// `what`: such as "a server of /brake".
    pub(super) fn on(what: String) -> Waiting {
        let (end, ended) = channel();
        // Without the thread, nothing is said.
        let _ = std::thread::Builder::new().name("waiting".into()).spawn(move || {
            if ended.recv_timeout(SILENCE) == Err(RecvTimeoutError::Timeout) {
                crate::screen::tell!("still waiting for {what}");
            }
        });
        Waiting { _end: end }
    }
}
