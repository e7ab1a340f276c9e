//! Notices when a host's keys change, so that a revocation needs no restart.

use crate::keys::{Bundle, KeysError, Stamps};
use crate::worker::Worker;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

/// How often the files' times are looked at.
const INTERVAL: Duration = Duration::from_millis(500);

/// A thread that reads keys again when they change; files block, and the radio may not.
pub(crate) struct Watch<T> {
    renewed: Receiver<T>,
    _worker: Worker,
}

impl<T: Send + 'static> Watch<T> {
    /// Starts watching `bundle`'s files, of which `make` makes what is needed.
    pub(crate) fn start(
        bundle: Bundle,
        make: impl Fn(&Bundle) -> Result<T, KeysError> + Send + 'static,
    ) -> std::io::Result<Self> {
        let (sender, renewed) = sync_channel(1);
        // Of before the bundle was read, so that no change goes unseen.
        let mut seen = bundle.stamps().clone();
        let worker = Worker::start("link-keys", move || {
            let now = Stamps::of(bundle.folder());
            if now == seen {
                return Some(INTERVAL);
            }
            match Bundle::load(bundle.folder(), bundle.host()).and_then(|b| make(&b)) {
                // While the one before was not taken: later.
                Ok(made) => {
                    if sender.try_send(made).is_err() {
                        return Some(INTERVAL);
                    }
                    tracing::info!(folder = %bundle.folder().display(), "keys read again");
                }
                // The set may be half copied; it will have changed once more when it is whole.
                Err(error) => tracing::warn!(%error, "the changed keys are not used"),
            }
            seen = now;
            Some(INTERVAL)
        })?;
        Ok(Watch {
            renewed,
            _worker: worker,
        })
    }

    /// What the changed keys give, once.
    pub(crate) fn renewed(&self) -> Option<T> {
        self.renewed.try_recv().ok()
    }
}
