//! Runs jobs that take too long for the radio thread: solving the equations of fountain codes.

use crate::outgoing::Outgoing;
use proto::{Job, JobDone};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// After this long without a job, freed memory returns to the system.
const IDLE: Duration = Duration::from_secs(1);

/// A thread that runs a radio's jobs one after another. The radio issues at most one job per message, and
/// bounds its messages, so no bound is needed here.
pub(crate) struct Coder {
    jobs: Option<Sender<Job<Outgoing>>>,
    done: Receiver<JobDone>,
    thread: Option<JoinHandle<()>>,
}

impl Coder {
    /// Starts the thread, which calls `wake` after each job.
    ///
    /// # Errors
    /// If no thread can start.
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

    /// Accepts a job. Never blocks.
    pub(crate) fn take(&self, job: Job<Outgoing>) {
        if let Some(jobs) = &self.jobs {
            // The thread receives as long as this lives.
            let _ = jobs.send(job);
        }
    }

    /// The result of the next finished job.
    pub(crate) fn done(&self) -> Option<JobDone> {
        self.done.try_recv().ok()
    }
}

impl Drop for Coder {
    /// Waits for the current job, and runs no others.
    fn drop(&mut self) {
        self.jobs = None;
        // No one receives the results of waiting jobs.
        self.done = channel().1;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
