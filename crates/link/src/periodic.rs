//! A thread next to the radio thread, for work that blocks.

use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A thread that repeats a task until it is dropped. Dropping waits for the current round.
pub(crate) struct PeriodicThread {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl PeriodicThread {
    /// Calls `round` at once, and again after each pause that it returns, until it returns `None`.
    ///
    /// # Errors
    /// If no thread can start.
    pub(crate) fn start(
        name: &str,
        mut round: impl FnMut() -> Option<Duration> + Send + 'static,
    ) -> std::io::Result<Self> {
        let (stop, stopped) = sync_channel(1);
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
            while let Some(pause) = round() {
                if !matches!(stopped.recv_timeout(pause), Err(RecvTimeoutError::Timeout)) {
                    return;
                }
            }
        })?;
        Ok(PeriodicThread {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for PeriodicThread {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn it_goes_round_until_it_is_dropped_or_says_so() {
        let (sender, rounds) = channel();
        let thread = PeriodicThread::start("test", move || {
            sender.send(()).expect("somebody counts");
            Some(Duration::ZERO)
        });
        for _ in 0..3 {
            rounds.recv().expect("a round");
        }
        drop(thread.expect("starts"));
        // The thread is gone, and its sender with it, so this ends.
        rounds.iter().for_each(drop);
        let (sender, rounds) = channel();
        let thread = PeriodicThread::start("test", move || {
            let _ = sender.send(());
            None
        });
        assert_eq!(rounds.iter().count(), 1);
        drop(thread);
    }
}
