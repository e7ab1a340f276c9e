//! Callbacks on new messages, requests and responses, as the EventsExecutor needs them. Each entity with a callback has
//! a thread that waits for them.

use crate::abi::EventCallback;
use crate::error::{Failure, Outcome};
use crate::graph::lock;
use crate::signal::Signal;
use rustix::event::{PollFd, PollFlags};
use std::ffi::c_void;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Interval at which the thread checks for more while the entity holds something that nobody has taken yet.
const PAUSE: Duration = Duration::from_millis(1);

/// The callback of one entity.
#[derive(Default)]
pub(crate) struct Callback(Mutex<Option<Running>>);

struct Running {
    stop: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
}

impl Callback {
    /// Calls `callback` with `data` whenever the entity behind `fd` has something new, until the callback is replaced
    /// or ended. `look` returns how much was taken so far if the entity has something, else `None`.
    pub(crate) fn set<E: AsFd + Send + Sync + 'static>(
        &self,
        callback: EventCallback,
        data: *const c_void,
        entity: Arc<E>,
        look: impl Fn() -> Option<u64> + Send + 'static,
    ) -> Outcome {
        self.end();
        let Some(callback) = callback else {
            return Ok(());
        };
        let stop = Arc::new(Signal::new().map_err(Failure::error)?);
        let (stopped, data) = (stop.clone(), data as usize);
        let thread = std::thread::Builder::new()
            .name("rmw-callback".into())
            .spawn(move || {
                while !stopped.is_set() {
                    if let Some(taken) = look() {
                        // SAFETY: the caller keeps function and data valid until it replaces the callback, which ends
                        // this thread.
                        unsafe { callback(data as *const c_void, 1) };
                        // Call once for each item taken.
                        while look() == Some(taken) && !stopped.is_set() {
                            std::thread::sleep(PAUSE);
                        }
                        continue;
                    }
                    let mut fds = [
                        PollFd::new(&*entity, PollFlags::IN),
                        PollFd::new(&*stopped, PollFlags::IN),
                    ];
                    let _ = rustix::event::poll(&mut fds, None);
                }
            });
        *lock(&self.0) = Some(Running {
            stop,
            thread: Some(thread.map_err(Failure::error)?),
        });
        Ok(())
    }

    /// Ends the callback: it is not called afterwards.
    pub(crate) fn end(&self) {
        let running = lock(&self.0).take();
        if let Some(mut running) = running {
            running.stop.set();
            let own = std::thread::current().id();
            let thread = running.thread.take().filter(|t| t.thread().id() != own);
            let _ = thread.map(JoinHandle::join);
        }
    }
}
