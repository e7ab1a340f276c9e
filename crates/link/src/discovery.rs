//! Finds out of which type a topic is, from whoever publishes it.

use bus::{Bus, TopicType};
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the bus is asked for topics that nobody published yet.
const INTERVAL: Duration = Duration::from_millis(200);
/// How long silent endpoints may hold up one round.
const PATIENCE: Duration = Duration::from_millis(500);

/// A thread that looks for publishers of the wanted topics; asking the bus blocks, and the radio may not.
pub(crate) struct Discovery {
    found: Receiver<TopicType>,
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Discovery {
    /// Starts looking; `wake` is called after each find.
    pub(crate) fn start(
        bus: Bus,
        wanted: BTreeSet<String>,
        wake: impl Fn() + Send + 'static,
    ) -> std::io::Result<Self> {
        let (sender, found) = sync_channel(wanted.len());
        let (stop, stopped) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("link-discovery".into())
            .spawn(move || {
                let mut wanted = wanted;
                while !wanted.is_empty() {
                    for info in bus.topics(PATIENCE).unwrap_or_default() {
                        if !info.publishers.is_empty() && wanted.remove(&info.topic.topic) {
                            if sender.send(info.topic).is_err() {
                                return;
                            }
                            wake();
                        }
                    }
                    if !matches!(
                        stopped.recv_timeout(INTERVAL),
                        Err(std::sync::mpsc::RecvTimeoutError::Timeout)
                    ) {
                        return;
                    }
                }
            })?;
        Ok(Discovery {
            found,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// The next topic that was found.
    pub(crate) fn next(&self) -> Option<TopicType> {
        self.found.try_recv().ok()
    }
}

impl Drop for Discovery {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
