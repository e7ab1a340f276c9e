//! The file, written by a thread of its own: whoever takes messages never waits for the disk.

use super::queue::{Item, Popped, Queue};
use recording::{ChannelId, WriteError, Writer};
use stats::{DropReason, Drops};
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A chunk is closed, and so safe from a crash of this process, if nothing came for so long.
const IDLE: Duration = Duration::from_secs(1);

/// The file's thread, as those see it who feed it.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) queue: Arc<Queue>,
    progress: Arc<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    /// Messages in chunks that the system has.
    safe: AtomicU64,
    end: Mutex<End>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct End {
    /// The file is finished, or no more can be written.
    done: bool,
    error: Option<String>,
    /// Messages that the file did not take.
    lost: Drops,
}

/// How far it came.
#[derive(Debug)]
pub(super) struct Written {
    /// Messages in the file.
    pub(super) messages: u64,
    /// What of the others is known.
    pub(super) lost: Drops,
    /// Whether the file has its index.
    pub(super) finished: bool,
    /// Why no more could be written.
    pub(super) error: Option<String>,
}

impl Disk {
    /// Starts the threads: one that writes what is queued, at most `budget` bytes, and one that has it put on the disk
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
                // Now, so that the end says whether it is on the disk.
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

    /// Whether no more can be written.
    pub(super) fn has_ended(&self) -> bool {
        self.progress.lock().done
    }

    /// Messages that are in the file, whatever becomes of this process.
    pub(super) fn messages(&self) -> u64 {
        self.progress.safe.load(Ordering::Acquire)
    }

    /// Nothing more comes: waits until all is written, asking now and then whether that is still wanted.
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

/// Writes until the queue ends. What the file refuses for itself costs that alone.
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

/// Has the system put on the disk what it was given, at each interval in which there was something.
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

/// What cannot be synced, such as a pipe, need not be.
fn put_on_disk(file: &File) -> std::io::Result<()> {
    use std::io::ErrorKind::{InvalidInput, Unsupported};
    match file.sync_data() {
        Err(error) if matches!(error.kind(), InvalidInput | Unsupported) => Ok(()),
        result => result,
    }
}
