//! A thread that passes every message of a subscriber, or every request of a server, to a function (decision 200).

use crate::guard::{CallbackOptions, Guard, Panicked};
use bus::{Interrupt, TakeError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The thread sleeps until a message arrives or it is woken to stop, so an idle callback uses no processor
/// time.
const FOREVER: Duration = Duration::MAX;

/// A running callback. Dropping it stops the callback and waits for the function to return.
///
/// If the function panics, only the message that it was processing is lost: the panic is logged and counted,
/// and the next message follows ([`CallbackOptions::with_end_on_error`] ends the callback instead).
#[derive(Debug)]
#[must_use = "dropping it stops the callback"]
pub struct Callback {
    state: Arc<State>,
    interrupt: Interrupt,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct State {
    stop: AtomicBool,
    ended: AtomicBool,
    errors: Arc<AtomicU64>,
}

impl Callback {
    /// Calls `step` repeatedly. `step` waits at most the given time, or until `interrupt` is used. `name` is
    /// for the log.
    pub(crate) fn start(
        name: String,
        interrupt: Interrupt,
        options: CallbackOptions,
        mut step: impl FnMut(Duration, &mut Guard) -> Result<Result<(), Panicked>, TakeError> + Send + 'static,
    ) -> std::io::Result<Self> {
        let state = Arc::new(State::default());
        let shared = state.clone();
        let run = move || {
            let mut guard = Guard::new(name.clone()).counting(shared.errors.clone());
            while !shared.stop.load(Ordering::Acquire) {
                match step(FOREVER, &mut guard) {
                    Ok(Ok(())) => {}
                    Ok(Err(panicked)) => {
                        panicked.forget();
                        if options.ends_on_error() {
                            tracing::error!(name, "the callback ends");
                            break;
                        }
                    }
                    Err(error) => {
                        tracing::error!(%error, name, "the callback ends");
                        break;
                    }
                }
            }
            shared.ended.store(true, Ordering::Release);
        };
        let thread = std::thread::Builder::new()
            .name("ropewalk-callback".into())
            .spawn(run)?;
        Ok(Callback {
            state,
            interrupt,
            thread: Some(thread),
        })
    }

    /// Number of panics of the function.
    pub fn errors(&self) -> u64 {
        self.state.errors.load(Ordering::Relaxed)
    }

    /// Whether the function still receives messages: false once an error has ended the callback.
    pub fn is_running(&self) -> bool {
        !self.state.ended.load(Ordering::Acquire)
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::Release);
        self.interrupt.wake();
        let own = std::thread::current().id();
        // Dropped by its own function: the thread ends when the function returns.
        if let Some(thread) = self.thread.take().filter(|t| t.thread().id() != own) {
            let _ = thread.join();
        }
    }
}
