//! A thread that hands every message of a subscriber to a function.

use crate::{Message, Subscriber};
use bus::TakeError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long dropping a [`Callback`] may take at most beyond the function's own time.
const STOP_CHECK: Duration = Duration::from_millis(50);
/// Pause while the function keeps as many messages as may be held.
const HOLD_OFF: Duration = Duration::from_millis(1);

/// A running callback. Dropping it waits for the function to return and stops it.
#[derive(Debug)]
#[must_use = "dropping it stops the callback"]
pub struct Callback {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Callback {
    pub(crate) fn start(
        subscriber: Subscriber,
        mut f: impl FnMut(Message) + Send + 'static,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let run = move || {
            while !stopped.load(Ordering::Acquire) {
                match subscriber.take_timeout(STOP_CHECK) {
                    Ok(Some(message)) => f(message),
                    Ok(None) => {}
                    Err(TakeError::HoldLimit { .. }) => std::thread::sleep(HOLD_OFF),
                    Err(error) => {
                        tracing::error!(%error, topic = subscriber.topic(), "the callback ends");
                        return;
                    }
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("ropewalk-callback".into())
            .spawn(run)?;
        Ok(Callback {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let own = std::thread::current().id();
        // Dropped by its own function: the thread ends when the function returns.
        if let Some(thread) = self.thread.take().filter(|t| t.thread().id() != own) {
            let _ = thread.join();
        }
    }
}
