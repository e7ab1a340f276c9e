//! A thread that hands every message of a subscriber to a function.

use crate::{Message, Subscriber};
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
    pub(crate) fn start(
        subscriber: Subscriber,
        mut f: impl FnMut(Message) + Send + 'static,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let interrupt = subscriber.interrupt();
        let run = move || {
            while !stopped.load(Ordering::Acquire) {
                let taken = match subscriber.take_timeout(FOREVER) {
                    // The function keeps as many messages as may be held.
                    Err(TakeError::HoldLimit { .. }) => subscriber.bus().wait_takeable(FOREVER).map(|_| None),
                    other => other,
                };
                match taken {
                    Ok(Some(message)) => f(message),
                    Ok(None) => {}
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
