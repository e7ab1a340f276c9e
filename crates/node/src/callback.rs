//! A thread that hands every message of a subscriber, or every request of a server, to a function.

use bus::{Interrupt, TakeError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The thread sleeps until there is a message or it is woken to stop: an idle callback uses no processor time.
const FOREVER: Duration = Duration::MAX;

/// A running callback. Dropping it waits for the function to return and stops it.
#[derive(Debug)]
#[must_use = "dropping it stops the callback"]
pub struct Callback {
    stop: Arc<AtomicBool>,
    interrupt: Interrupt,
    thread: Option<JoinHandle<()>>,
}

impl Callback {
    /// Calls `step`, which waits at most as long as it is told or until `interrupt` is used, again and again. `name`
    /// is for the log.
    pub(crate) fn start(
        name: String,
        interrupt: Interrupt,
        mut step: impl FnMut(Duration) -> Result<(), TakeError> + Send + 'static,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let run = move || {
            while !stopped.load(Ordering::Acquire) {
                if let Err(error) = step(FOREVER) {
                    tracing::error!(%error, name, "the callback ends");
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("ropewalk-callback".into())
            .spawn(run)?;
        Ok(Callback {
            stop,
            interrupt,
            thread: Some(thread),
        })
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.interrupt.wake();
        let own = std::thread::current().id();
        // Dropped by its own function: the thread ends when the function returns.
        if let Some(thread) = self.thread.take().filter(|t| t.thread().id() != own) {
            let _ = thread.join();
        }
    }
}
