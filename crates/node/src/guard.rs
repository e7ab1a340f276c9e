//! Limits the effect of a callback's panic to its own message or request.
//!
//! Callbacks in all languages follow one rule: the failure is logged and counted, and the next message
//! follows. An option ends the callback instead.

use stats::{Seldom, Time};
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Log interval for a callback that keeps failing.
pub const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// How to run a callback.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallbackOptions {
    end_on_error: bool,
}

impl CallbackOptions {
    /// Sets whether a panic ends the callback. By default it is logged and counted, and the next message
    /// follows.
    pub fn with_end_on_error(mut self, end: bool) -> Self {
        self.end_on_error = end;
        self
    }

    pub(crate) fn ends_on_error(self) -> bool {
        self.end_on_error
    }
}

/// Runs a user's function so that its panics do not propagate, and counts them.
#[derive(Debug)]
pub struct Guard {
    what: String,
    errors: Arc<AtomicU64>,
    log_limit: Seldom,
    start: Instant,
}

/// A function panicked.
pub struct Panicked(Box<dyn Any + Send>);

impl Guard {
    /// Creates a guard for the function that the log calls `what`.
    pub fn new(what: impl Into<String>) -> Self {
        Guard {
            what: what.into(),
            errors: Arc::default(),
            log_limit: Seldom::every(LOG_INTERVAL),
            start: Instant::now(),
        }
    }

    /// Counts panics in `errors`, which others may count in too.
    pub fn counting(mut self, errors: Arc<AtomicU64>) -> Self {
        self.errors = errors;
        self
    }

    /// Runs `f`.
    ///
    /// # Errors
    /// [`Panicked`]; changes that `f` was making to its captures may then be incomplete.
    pub fn run<T>(&mut self, f: impl FnOnce() -> T) -> Result<T, Panicked> {
        catch(f).inspect_err(|panicked| {
            let errors = self.errors.fetch_add(1, Ordering::Relaxed) + 1;
            let since = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            if self.log_limit.lets(Time(since)).is_some() {
                tracing::error!(callback = self.what, error = %panicked, errors, "a callback panicked");
            }
        })
    }
}

/// Runs `f`, for callers that count and log panics elsewhere.
///
/// # Errors
/// [`Panicked`]
pub fn catch<T>(f: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(f)).map_err(Panicked)
}

impl Panicked {
    /// Resumes the panic in this thread.
    pub fn resume(self) -> ! {
        std::panic::resume_unwind(self.0)
    }

    /// Stops the panic here.
    pub fn forget(self) {
        // Its payload may panic when it is dropped.
        std::mem::forget(self.0);
    }
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.downcast_ref::<&str>().copied();
        let text = text.or_else(|| self.0.downcast_ref::<String>().map(String::as_str));
        f.write_str(text.unwrap_or("it panicked without a message"))
    }
}

impl fmt::Debug for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Panicked({self})")
    }
}
