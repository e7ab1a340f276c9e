//! Results that are not known yet.

use crate::sync::lock;
use crate::transport::{Class, ControllerEnd};
use ropewalk::guard::{Guard, Panicked};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// Result of a request in progress. Wait for it with or without a limit, await it as a future, or drop it: the request
/// continues all the same.
pub struct Pending<T> {
    promise: Arc<Promise<T>>,
    /// The end that brings the answer, where this thread may receive it itself.
    way: Option<(Weak<dyn ControllerEnd>, Class)>,
}

pub(crate) struct Promise<T> {
    state: Mutex<State<T>>,
    ready: Condvar,
}

enum State<T> {
    Waits(Option<Waker>, Option<Receiving>),
    Ready(T),
    Taken,
}

/// A thread that waits on the transport, and has to be woken when the result arrives another way.
struct Receiving {
    thread: ThreadId,
    end: Arc<dyn ControllerEnd>,
    class: Class,
}

impl<T> Pending<T> {
    pub(crate) fn new() -> (Self, Arc<Promise<T>>) {
        let promise = Arc::new(Promise {
            state: Mutex::new(State::Waits(None, None)),
            ready: Condvar::new(),
        });
        let pending = Pending {
            promise: promise.clone(),
            way: None,
        };
        (pending, promise)
    }

    /// The answer comes over this transport, with the answers to requests of this class.
    pub(crate) fn over(self, end: &Arc<dyn ControllerEnd>, class: Class) -> Self {
        Pending {
            way: Some((Arc::downgrade(end), class)),
            ..self
        }
    }

    /// Blocks until the result is known. Do not wait on a transport's thread, in a handler or a callback: that thread
    /// may be the one that brings the answer. The waiting thread may receive messages itself, so that it gets the
    /// answer without delay; it then also calls callbacks for other messages.
    pub fn wait(self) -> T {
        self.receive(Duration::MAX);
        let mut state = lock(&self.promise.state);
        loop {
            if let Some(value) = state.take() {
                return value;
            }
            state = self
                .promise
                .ready
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn receive(&self, timeout: Duration) {
        let Some((end, class)) = self.way.as_ref().and_then(|(e, c)| Some((e.upgrade()?, *c))) else {
            return;
        };
        if timeout.is_zero() || !self.receives(Some(end.clone()), class) {
            return;
        }
        end.receive(class, timeout, &|| self.is_ready());
        self.receives(None, class);
    }

    /// Records whether this thread waits on the transport. Returns false if the result is already known.
    fn receives(&self, end: Option<Arc<dyn ControllerEnd>>, class: Class) -> bool {
        match &mut *lock(&self.promise.state) {
            State::Waits(_, receiving) => {
                let thread = std::thread::current().id();
                *receiving = end.map(|end| Receiving { thread, end, class });
                true
            }
            _ => false,
        }
    }

    /// As [`Pending::wait`], for at most `timeout`.
    ///
    /// # Errors
    /// The `Pending` itself, if the result is not known by then.
    pub fn wait_for(self, timeout: Duration) -> Result<T, Self> {
        let until = Instant::now().checked_add(timeout);
        self.receive(timeout);
        let mut state = lock(&self.promise.state);
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
                .promise
                .ready
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Calls `f` with the result as soon as it is known: now, or on the thread that provides it; there, `f` has to
    /// return soon.
    pub fn then(self, f: impl FnOnce(T) + Send + 'static)
    where
        T: Send + 'static,
    {
        Arc::new(Then(Mutex::new(Some((self, Box::new(f)))))).look();
    }

    /// Returns whether the result is known, so that waiting returns at once.
    pub fn is_ready(&self) -> bool {
        matches!(*lock(&self.promise.state), State::Ready(_))
    }
}

/// A result that is not known yet, with the function to call.
struct Then<T>(Mutex<Option<(Pending<T>, Called<T>)>>);

type Called<T> = Box<dyn FnOnce(T) + Send>;

impl<T: Send + 'static> Then<T> {
    fn look(self: Arc<Self>) {
        let waker = Waker::from(self.clone());
        let known = {
            let mut waiting = lock(&self.0);
            let Some((pending, _)) = &mut *waiting else { return };
            match Pin::new(pending).poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(value) => waiting.take().map(|(_, f)| (f, value)),
                Poll::Pending => None,
            }
        };
        if let Some((f, value)) = known {
            // This thread may be needed by others.
            let mut guard = Guard::new("Pending::then");
            let _ = guard.run(|| f(value)).map_err(Panicked::forget);
        }
    }
}

impl<T: Send + 'static> Wake for Then<T> {
    fn wake(self: Arc<Self>) {
        self.look();
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
    /// Sets the result; later results are ignored.
    pub(crate) fn keep(&self, value: T) {
        let mut state = lock(&self.state);
        if let State::Waits(waker, receiving) = &mut *state {
            let (waker, receiving) = (waker.take(), receiving.take());
            *state = State::Ready(value);
            drop(state);
            self.ready.notify_all();
            if let Some(r) = receiving.filter(|r| r.thread != std::thread::current().id()) {
                r.end.wake(r.class);
            }
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
        let mut state = lock(&self.promise.state);
        if let Some(value) = state.take() {
            return Poll::Ready(value);
        }
        match &mut *state {
            State::Waits(waker, _) => *waker = Some(context.waker().clone()),
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
    use crate::transport::{ControllerSink, Done, Listen, TransportError, Wire};
    use std::sync::atomic::{AtomicU32, Ordering};

    struct Woken(AtomicU32);

    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A transport that delivers nothing: a receiver waits until it is woken.
    #[derive(Default)]
    struct Silent(Mutex<bool>, Condvar);

    impl ControllerEnd for Silent {
        fn wire(&self) -> Wire {
            Wire::Own
        }
        fn start(&self, _: Arc<dyn ControllerSink>) -> Result<(), TransportError> {
            Ok(())
        }
        fn request(&self, _: Class, _: &[u8], _: Duration, _: Done) {}
        fn receive(&self, _: Class, _: Duration, over: &dyn Fn() -> bool) {
            let woken = self.1.wait_while(lock(&self.0), |woken| !*woken);
            assert!(*woken.expect("no panic") && over());
        }
        fn wake(&self, _: Class) {
            *lock(&self.0) = true;
            self.1.notify_all();
        }
        fn listen(&self, _: Listen<'_>) {}
        fn stop(&self) {}
        fn describe(&self) -> String {
            "silent".into()
        }
    }

    #[test]
    fn a_wait_ends_when_another_thread_has_the_result() {
        let end: Arc<dyn ControllerEnd> = Arc::new(Silent::default());
        let (pending, promise) = Pending::new();
        let pending = pending.over(&end, Class::Command);
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            promise.keep(7);
        });
        assert_eq!(pending.wait(), 7);
        thread.join().expect("no panic");
        // A known result is not waited for, and a timeout of zero does not wait.
        let silent: Arc<dyn ControllerEnd> = Arc::new(Silent::default());
        let (pending, promise) = Pending::new();
        let pending = pending.over(&silent, Class::Command);
        let pending = pending.wait_for(Duration::ZERO).expect_err("not yet");
        promise.keep(8);
        assert_eq!(pending.wait(), 8);
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

        let seen = Arc::new(AtomicU32::new(0));
        let store_into = |seen: &Arc<AtomicU32>| {
            let seen = seen.clone();
            move |value| seen.store(value, Ordering::Relaxed)
        };
        let (pending, promise) = Pending::new();
        pending.then(store_into(&seen));
        assert_eq!(seen.load(Ordering::Relaxed), 0);
        promise.keep(4);
        assert_eq!(seen.load(Ordering::Relaxed), 4);
        let (pending, promise) = Pending::new();
        promise.keep(5);
        pending.then(store_into(&seen));
        assert_eq!(seen.load(Ordering::Relaxed), 5);
    }
}
