//! Notices changes of a host's keys, so that a revocation needs no restart.

use crate::keys::{Bundle, KeysError, Stamps};
use crate::periodic::PeriodicThread;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

/// Interval at which to check the files' times.
const INTERVAL: Duration = Duration::from_millis(500);

/// A thread that reads keys again when they change. Files block, and the radio thread must not.
pub(crate) struct Watch<T> {
    renewed: Receiver<T>,
    _thread: PeriodicThread,
}

impl<T: Send + 'static> Watch<T> {
    /// Starts to watch `bundle`'s files. `make` converts a loaded bundle.
    pub(crate) fn start(
        bundle: Bundle,
        make: impl Fn(&Bundle) -> Result<T, KeysError> + Send + 'static,
    ) -> std::io::Result<Self> {
        let (sender, renewed) = sync_channel(1);
        // From before the bundle was read, so that no change is missed.
        let mut seen = bundle.stamps().clone();
        let thread = PeriodicThread::start("link-keys", move || {
            let now = Stamps::of(bundle.folder());
            if now == seen {
                return Some(INTERVAL);
            }
            match Bundle::load(bundle.folder(), bundle.host()).and_then(|b| make(&b)) {
                // If the previous result is not taken yet, try again later.
                Ok(made) => {
                    if sender.try_send(made).is_err() {
                        return Some(INTERVAL);
                    }
                    tracing::info!(folder = %bundle.folder().display(), "reloaded the keys");
                }
                // The set may be half copied. It changes once more when it is complete.
                Err(error) => tracing::warn!(%error, "cannot use the changed keys"),
            }
            seen = now;
            Some(INTERVAL)
        })?;
        Ok(Watch {
            renewed,
            _thread: thread,
        })
    }

    /// The result for changed keys, returned once.
    pub(crate) fn renewed(&self) -> Option<T> {
        self.renewed.try_recv().ok()
    }
}
