//! Callbacks at new messages, requests and responses, as the EventsExecutor wants them: a thread for each entity that has one waits for
//! it.

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

/// While an entity has something that nobody takes yet, how often is looked whether there is more.
const PAUSE: Duration = Duration::from_millis(1);

/// The callback of one entity.
#[derive(Default)]
pub(crate) struct Callback(Mutex<Option<Running>>);

struct Running {
    stop: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
}

impl Callback {
    /// Calls `callback` with `data` whenever the entity behind `fd` has something new, until it is set anew or ended; `look` gives,
    /// if it has something, how much was taken before.
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
                        // SAFETY: who set the callback keeps function and data valid until it is set anew, which ends this thread.
                        unsafe { callback(data as *const c_void, 1) };
                        // One call for each that is taken.
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

    /// Ends it: afterwards it is not called.
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
