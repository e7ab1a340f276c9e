//! Does what takes too long for the radio's thread: solves the equations of fountains.

use crate::outgoing::Outgoing;
use proto::{Job, JobDone};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// After so long without a job, memory that was freed goes back to the system.
const IDLE: Duration = Duration::from_secs(1);

/// A thread that does a radio's jobs one after the other. The radio hands out no more of them than it has messages, which it
/// bounds, so nothing does here.
pub(crate) struct Coder {
    jobs: Option<Sender<Job<Outgoing>>>,
    done: Receiver<JobDone>,
    thread: Option<JoinHandle<()>>,
}

impl Coder {
    /// Starts it; `wake` is called after each job.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn start(wake: impl Fn() + Send + 'static) -> std::io::Result<Self> {
        let (jobs, to_do) = channel::<Job<Outgoing>>();
        let (results, done) = channel();
        let thread = std::thread::Builder::new().name("link-code".into());
        let thread = thread.spawn(move || {
            let mut next = to_do.recv().ok();
            while let Some(job) = next {
                if results.send(job.run()).is_err() {
                    return;
                }
                wake();
                next = to_do.recv_timeout(IDLE).ok().or_else(|| {
                    // The equations of a long message leave holes all over the heap.
                    bus::return_free_memory();
                    to_do.recv().ok()
                });
            }
        })?;
        Ok(Coder {
            jobs: Some(jobs),
            done,
            thread: Some(thread),
        })
    }

    /// Takes a job. Never blocks.
    pub(crate) fn take(&self, job: Job<Outgoing>) {
        if let Some(jobs) = &self.jobs {
            // The thread hears as long as this lives.
            let _ = jobs.send(job);
        }
    }

    /// What came of the next job that is done.
    pub(crate) fn done(&self) -> Option<JobDone> {
        self.done.try_recv().ok()
    }
}

impl Drop for Coder {
    /// Waits for the job under way, and does no more.
    fn drop(&mut self) {
        self.jobs = None;
        // Nobody hears of those that wait.
        self.done = channel().1;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
