//! Writes the file in a separate thread, so that the thread that takes messages never waits for the disk.

use super::queue::{Item, Popped, Queue};
use recording::{ChannelId, WriteError, Writer};
use stats::{DropReason, Drops};
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time without a message after which a chunk is closed, and so survives a crash of this process.
const IDLE: Duration = Duration::from_secs(1);

/// Handle of the file's threads.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) queue: Arc<Queue>,
    progress: Arc<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    /// Messages in chunks handed to the operating system.
    safe: AtomicU64,
    end: Mutex<End>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct End {
    /// The file is finished, or writing failed.
    done: bool,
    error: Option<String>,
    /// Messages that the file refused.
    lost: Drops,
}

/// Result of writing.
#[derive(Debug)]
pub(super) struct Written {
    /// Messages in the file.
    pub(super) messages: u64,
    /// Known losses.
    pub(super) lost: Drops,
    /// Whether the file has its index.
    pub(super) finished: bool,
    /// Why writing failed.
    pub(super) error: Option<String>,
}

impl Disk {
    /// Starts two threads: one writes the queue, which holds at most `budget` bytes; the other syncs the file to disk
    /// every `sync`.
    pub(super) fn start(writer: Writer, budget: u64, sync: Option<Duration>) -> std::io::Result<Disk> {
        let disk = Disk {
            queue: Arc::new(Queue::new(budget)),
            progress: Arc::default(),
        };
        let (queue, progress) = (disk.queue.clone(), disk.progress.clone());
        let (file, syncing) = (writer.handle()?, writer.handle()?);
        let (ends, stop) = channel::<()>();
        if let Some(interval) = sync {
            let progress = progress.clone();
            let thread = std::thread::Builder::new().name("sync".into());
            thread.spawn(move || sync_regularly(&syncing, &progress, interval, &stop))?;
        }
        let thread = std::thread::Builder::new().name("disk".into());
        thread.spawn(move || {
            let mut lost = Drops::default();
            let error = match write(&queue, writer, &progress, &mut lost) {
                // Sync before the end is reported, so that the report says whether the data is on the disk.
                Ok(()) => put_on_disk(&file).err().map(|e| format!("syncing: {e}")),
                Err(error) => Some(error.to_string()),
            };
            drop(ends);
            let mut end = progress.lock();
            *end = End {
                done: true,
                error,
                lost,
            };
            progress.ended.notify_all();
        })?;
        Ok(disk)
    }

    /// Whether writing has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.progress.lock().done
    }

    /// Messages that are in the file even if this process crashes.
    pub(super) fn messages(&self) -> u64 {
        self.progress.safe.load(Ordering::Acquire)
    }

    /// Closes the queue and waits until all is written, for as long as `wanted` returns true.
    pub(super) fn finish(&self, mut wanted: impl FnMut() -> bool) -> Written {
        const SLICE: Duration = Duration::from_millis(20);
        self.queue.close();
        let mut end = self.progress.lock();
        while !end.done && wanted() {
            let waited = self.progress.ended.wait_timeout(end, SLICE);
            end = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Written {
            messages: self.messages(),
            lost: end.lost.clone(),
            finished: end.done && end.error.is_none(),
            error: end.error.clone(),
        }
    }
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, End> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes until the queue ends. A message that the file refuses is lost alone.
fn write(queue: &Queue, mut writer: Writer, progress: &Progress, lost: &mut Drops) -> Result<(), WriteError> {
    let mut channels: Vec<Option<ChannelId>> = Vec::new();
    let mut written = 0u64;
    loop {
        match queue.pop(IDLE) {
            Popped::Item(Item::Channel { channel, instead }) => {
                let added = match writer.add_channel(&channel) {
                    Ok(id) => Some(id),
                    Err(error @ WriteError::Io { .. }) => return Err(error),
                    Err(error) => {
                        let known = instead.and_then(|i| channels.get(i).copied().flatten());
                        if known.is_none() {
                            crate::screen::tell!("{}: left out: {error}", channel.topic);
                        }
                        known
                    }
                };
                channels.push(added);
            }
            Popped::Item(Item::Message {
                channel,
                log_time,
                publish_time,
                data,
            }) => {
                let Some(id) = channels.get(channel).copied().flatten() else {
                    lost.add(DropReason::Unwritten, 1);
                    continue;
                };
                match writer.write(id, log_time, publish_time, &data) {
                    Ok(()) => written += 1,
                    Err(WriteError::TooLarge { .. }) => lost.add(DropReason::TooLarge, 1),
                    Err(error) => return Err(error),
                }
            }
            Popped::Idle if writer.pending() > 0 => writer.flush()?,
            Popped::Idle => {}
            Popped::End => break,
        }
        let safe = written - writer.pending();
        progress.safe.store(safe, Ordering::Release);
    }
    writer.finish()?;
    progress.safe.store(written, Ordering::Release);
    Ok(())
}

/// Syncs the file at each interval in which data was written.
fn sync_regularly(file: &File, progress: &Progress, interval: Duration, stop: &Receiver<()>) {
    let mut synced = 0;
    while let Err(RecvTimeoutError::Timeout) = stop.recv_timeout(interval) {
        let safe = progress.safe.load(Ordering::Acquire);
        if safe == synced {
            continue;
        }
        match put_on_disk(file) {
            Ok(()) => synced = safe,
            Err(error) => {
                crate::screen::tell!("cannot sync the file: {error}");
                return;
            }
        }
    }
}

/// A file that cannot be synced, such as a pipe, is no error.
fn put_on_disk(file: &File) -> std::io::Result<()> {
    use std::io::ErrorKind::{InvalidInput, Unsupported};
    match file.sync_data() {
        Err(error) if matches!(error.kind(), InvalidInput | Unsupported) => Ok(()),
        result => result,
    }
}
