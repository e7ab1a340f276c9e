//! Unpacks received messages on a thread of its own and publishes them.

use super::envelope::{Engine, Envelope, EnvelopeError, MAX_MESSAGE};
use super::{UnpackStats, await_work, lock};
use crate::periodic::PeriodicThread;
use bus::{Loan, Publisher, Stamp};
use proto::PeerId;
use stats::{DropReason, Time};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Most bytes of a peer's waiting messages, counting both their length on the air and their unpacked length.
const MAX_BYTES: usize = 2 * MAX_MESSAGE as usize;
/// Most waiting messages of a peer.
const MAX_JOBS: usize = 1024;

/// A message's state before it is published.
enum Content {
    Packed(Vec<u8>),
    /// The message is queued only to keep the order.
    Ready(Loan),
}

struct Job {
    publisher: Arc<Publisher>,
    owner: PeerId,
    content: Content,
    stamp: Stamp,
    /// Its share of `MAX_BYTES`.
    bytes: usize,
}

/// A published message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// The bus's publisher.
    pub(crate) publisher: u64,
    /// The source's time of day, and this host's.
    pub(crate) stamp: Option<Time>,
    pub(crate) at: Time,
    pub(crate) bytes: u64,
}

#[derive(Default)]
struct Queues {
    jobs: VecDeque<Job>,
    /// Bytes and messages of each peer, including the one in progress.
    held: BTreeMap<PeerId, (usize, usize)>,
    busy: Option<u64>,
    arrivals: VecDeque<Arrival>,
    stats: BTreeMap<u64, UnpackStats>,
}

#[derive(Default)]
struct Shared {
    queues: Mutex<Queues>,
    work: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queues> {
        lock(&self.queues)
    }

    /// The message that has waited longest. Waits for one, but only for a limited time.
    fn next(&self) -> Option<Job> {
        let mut queues = await_work(&self.queues, &self.work, |q| q.jobs.is_empty());
        let job = queues.jobs.pop_front()?;
        queues.busy = Some(job.publisher.id());
        Some(job)
    }
}

/// The unpacking thread. Without it, packed messages are refused.
pub(crate) struct Unpacker {
    shared: Arc<Shared>,
    _thread: PeriodicThread,
}

impl Unpacker {
    /// Starts it.
    pub(crate) fn start() -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let own = shared.clone();
        let mut engine = Engine::default();
        let thread = PeriodicThread::start("link-unpack", move || {
            if let Some(job) = own.next() {
                own.finish(&mut engine, job);
            }
            Some(Duration::ZERO)
        })?;
        Ok(Unpacker {
            shared,
            _thread: thread,
        })
    }

    /// Queues a packed message of a topic of `owner` and returns its unpacked length, which is at most
    /// `most`.
    ///
    /// # Errors
    /// The reason for the loss: the message is malformed or too large, or too much is waiting.
    pub(crate) fn packed(
        &self,
        publisher: &Arc<Publisher>,
        (owner, most): (PeerId, u32),
        bytes: Vec<u8>,
        stamp: Stamp,
    ) -> Result<u64, DropReason> {
        let original = match Envelope::open(&bytes) {
            Ok(envelope) => envelope.geometry.total_len() as usize,
            Err(error) => {
                tracing::debug!(topic = publisher.topic().topic, %error, "a packed message is refused");
                return Err(DropReason::Malformed);
            }
        };
        if original > most as usize {
            return Err(DropReason::TooLarge);
        }
        let cost = bytes.len() + original;
        self.push((publisher, owner), Content::Packed(bytes), stamp, cost)?;
        Ok(original as u64)
    }

    /// Returns whether messages of a publisher wait or are being unpacked.
    pub(crate) fn has(&self, publisher: u64) -> bool {
        let queues = self.shared.lock();
        queues.busy == Some(publisher) || queues.jobs.iter().any(|j| j.publisher.id() == publisher)
    }

    /// Queues a message that only has to be published after its topic's waiting messages. Returns it if there
    /// are none.
    ///
    /// # Errors
    /// The reason for the loss: too much is waiting.
    pub(crate) fn in_turn(
        &self,
        publisher: &Arc<Publisher>,
        owner: PeerId,
        loan: Loan,
        stamp: Stamp,
    ) -> Result<Option<Loan>, DropReason> {
        if !self.has(publisher.id()) {
            return Ok(Some(loan));
        }
        self.push((publisher, owner), Content::Ready(loan), stamp, 0)?;
        Ok(None)
    }

    fn push(
        &self,
        (publisher, owner): (&Arc<Publisher>, PeerId),
        content: Content,
        stamp: Stamp,
        bytes: usize,
    ) -> Result<(), DropReason> {
        let mut queues = self.shared.lock();
        let (held, count) = queues.held.entry(owner).or_default();
        if *held + bytes > MAX_BYTES || *count >= MAX_JOBS {
            return Err(DropReason::ReassemblyFull);
        }
        (*held, *count) = (*held + bytes, *count + 1);
        queues.jobs.push_back(Job {
            publisher: publisher.clone(),
            owner,
            content,
            stamp,
            bytes,
        });
        drop(queues);
        self.shared.work.notify_one();
        Ok(())
    }

    /// The messages published since the last call.
    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        self.shared.lock().arrivals.drain(..).collect()
    }

    /// The counts of a publisher, if any of its messages was packed.
    pub(crate) fn stats(&self, publisher: u64) -> Option<UnpackStats> {
        self.shared.lock().stats.get(&publisher).cloned()
    }

    /// Forgets a publisher that has ended.
    pub(crate) fn forget(&self, publisher: u64) {
        self.shared.lock().stats.remove(&publisher);
    }
}

impl Shared {
    fn finish(&self, engine: &mut Engine, job: Job) {
        let (publisher, stamp) = (&job.publisher, job.stamp);
        let on_air = match &job.content {
            Content::Packed(bytes) => Some(bytes.len() as u64),
            Content::Ready(_) => None,
        };
        let outcome = match job.content {
            Content::Packed(bytes) => unpacked(engine, publisher, &bytes),
            Content::Ready(loan) => Ok((loan, 0)),
        };
        let published = outcome.and_then(|(loan, bytes)| {
            publisher
                .publish(loan, stamp)
                .map(|_| bytes)
                .map_err(|e| e.to_string())
        });
        let mut queues = self.lock();
        queues.busy = None;
        let (held, count) = queues.held.entry(job.owner).or_default();
        (*held, *count) = (held.saturating_sub(job.bytes), count.saturating_sub(1));
        match (&published, on_air) {
            (Ok(bytes), Some(packed)) => {
                let stats = queues.stats.entry(publisher.id()).or_default();
                stats.unpacked += 1;
                stats.packed_bytes += packed;
                stats.original_bytes += bytes;
                // Nothing reads them while the daemon is stopping.
                queues.arrivals.truncate(MAX_JOBS);
                queues.arrivals.push_back(Arrival {
                    publisher: publisher.id(),
                    stamp: stamp.time,
                    at: clock::realtime(),
                    bytes: *bytes,
                });
            }
            (Ok(_), None) => {}
            (Err(error), _) => {
                static LOST: clock::Quiet = clock::Quiet::new();
                if let Some(more) = LOST.lets() {
                    let topic = &publisher.topic().topic;
                    tracing::warn!(topic, error, more, "a packed message from the radio is lost");
                }
                queues.stats.entry(publisher.id()).or_default().failed += 1;
            }
        }
    }
}

/// Unpacks directly into a loaned block.
fn unpacked(engine: &mut Engine, publisher: &Publisher, bytes: &[u8]) -> Result<(Loan, u64), String> {
    let envelope = Envelope::open(bytes).map_err(|e: EnvelopeError| e.to_string())?;
    let geometry = envelope.geometry;
    let parts: Vec<usize> = geometry.part_lens().iter().map(|n| *n as usize).collect();
    let loan = publisher.loan(geometry.control_len() as usize, &parts);
    let mut loan = loan.map_err(|e| e.to_string())?;
    let (control, places) = loan.split_mut();
    envelope
        .unpack(engine, std::iter::once(control).chain(places))
        .map_err(|e| e.to_string())?;
    Ok((loan, geometry.total_len().into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bus::{Bus, BusConfig, PublisherOptions, TopicType};

    #[test]
    fn messages_waiting_to_be_unpacked_are_bounded_per_peer() {
        let dir = tempfile::tempdir().expect("a folder");
        let bus = Bus::open(BusConfig::new(dir.path().join("bus"))).expect("a bus");
        let topic = TopicType {
            topic: "/t".into(),
            type_name: "t/T".into(),
            type_hash: [0; 16],
            flavour: Default::default(),
            definition: "".into(),
        };
        let publisher = Arc::new(
            bus.publisher(topic, PublisherOptions::default())
                .expect("a publisher"),
        );
        let unpacker = Unpacker::start().expect("a thread");
        let push = |owner, bytes| {
            let content = Content::Packed(Vec::new());
            unpacker.push((&publisher, PeerId(owner)), content, Stamp::default(), bytes)
        };
        unpacker.shared.lock().held.insert(PeerId(0), (MAX_BYTES - 10, 0));
        unpacker.shared.lock().held.insert(PeerId(1), (0, MAX_JOBS));
        assert_eq!(push(0, 11), Err(DropReason::ReassemblyFull));
        assert_eq!(push(0, 10), Ok(()));
        assert_eq!(push(1, 0), Err(DropReason::ReassemblyFull));
        assert_eq!(push(2, MAX_BYTES), Ok(()));
    }
}
