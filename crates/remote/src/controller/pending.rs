//! What is not known yet.

use crate::sync::lock;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// What becomes of a request that is under way. Wait for it with or without a limit, await it as a future, or drop it: the request
/// goes on all the same.
pub struct Pending<T>(Arc<Promise<T>>);

pub(crate) struct Promise<T> {
    state: Mutex<State<T>>,
    ready: Condvar,
}

enum State<T> {
    Waits(Option<Waker>),
    Ready(T),
    Taken,
}

impl<T> Pending<T> {
    pub(crate) fn new() -> (Self, Arc<Promise<T>>) {
        let promise = Arc::new(Promise {
            state: Mutex::new(State::Waits(None)),
            ready: Condvar::new(),
        });
        (Pending(promise.clone()), promise)
    }

    /// Blocks until it is known. Do not wait on a transport's thread, in a handler or a callback: it may be the one that brings the answer.
    pub fn wait(self) -> T {
        let mut state = lock(&self.0.state);
        loop {
            if let Some(value) = state.take() {
                return value;
            }
            state = self.0.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// As [`Pending::wait`], for at most `timeout`.
    ///
    /// # Errors
    /// Itself, if it is not known by then.
    pub fn wait_for(self, timeout: Duration) -> Result<T, Self> {
        let until = Instant::now().checked_add(timeout);
        let mut state = lock(&self.0.state);
        loop {
            if let Some(value) = state.take() {
                return Ok(value);
            }
            let left = until.map_or(Duration::MAX, |u| u.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                drop(state);
                return Err(self);
            }
            state = self
                .0
                .ready
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Whether it is known, so that waiting returns at once.
    pub fn is_ready(&self) -> bool {
        matches!(*lock(&self.0.state), State::Ready(_))
    }
}

impl<T> State<T> {
    fn take(&mut self) -> Option<T> {
        match std::mem::replace(self, State::Taken) {
            State::Ready(value) => Some(value),
            other => {
                *self = other;
                None
            }
        }
    }
}

impl<T> Promise<T> {
    /// Makes it known; what comes after the first is nothing.
    pub(crate) fn keep(&self, value: T) {
        let mut state = lock(&self.state);
        if let State::Waits(waker) = &mut *state {
            let waker = waker.take();
            *state = State::Ready(value);
            drop(state);
            self.ready.notify_all();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl<T> Future for Pending<T> {
    type Output = T;

    /// # Panics
    /// If it is polled again after it was ready, as futures may.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = lock(&self.0.state);
        if let Some(value) = state.take() {
            return Poll::Ready(value);
        }
        match &mut *state {
            State::Waits(waker) => *waker = Some(context.waker().clone()),
            _ => panic!("polled after it was ready"),
        }
        Poll::Pending
    }
}

impl<T> std::fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_ready() {
            "Pending(ready)"
        } else {
            "Pending"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    struct Woken(AtomicU32);

    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn waited_for_awaited_or_dropped() {
        let (pending, promise) = Pending::new();
        let pending = pending.wait_for(Duration::from_millis(1)).expect_err("not yet");
        promise.keep(1);
        promise.keep(2);
        assert!(pending.is_ready());
        assert_eq!(pending.wait(), 1);

        let (mut pending, promise) = Pending::new();
        let woken = Arc::new(Woken(AtomicU32::new(0)));
        let waker = woken.clone().into();
        let mut context = Context::from_waker(&waker);
        assert!(Pin::new(&mut pending).poll(&mut context).is_pending());
        promise.keep(3);
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert_eq!(Pin::new(&mut pending).poll(&mut context), Poll::Ready(3));

        let (pending, promise) = Pending::new();
        drop(pending);
        promise.keep(());
    }
}
