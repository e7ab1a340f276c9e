//! Packs messages on their way to the radio, on a thread of its own unless they are small.

use super::envelope::{Codec, Engine};
use super::judge::Judge;
use super::{Compress, PackStats, await_work, lock};
use crate::outgoing::Outgoing;
use crate::periodic::PeriodicThread;
use proto::Body;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Messages of up to this many bytes are packed at once, which is quicker than waking a thread twice.
const SMALL: usize = 4096;
/// Messages below this many bytes are not worth packing.
const LEAST: usize = 128;
/// Bytes of a message's middle that are tried first if the topic is not trusted to shrink.
const SAMPLE: usize = 64 << 10;
/// Above this rate, in bit/s, Zstandard may take longer than the airtime that it saves.
const QUICK_RADIO: u64 = 100_000_000;

static NEXT_KEY: AtomicU64 = AtomicU64::new(0);

/// A message from the packer, packed or not.
pub(crate) struct Packed {
    /// The message's topic, by [`Packing::key`].
    pub(crate) key: u64,
    pub(crate) message: proto::Message<Outgoing>,
}

struct Job {
    key: u64,
    priority: u8,
    /// `None`: the message is queued only to keep the order.
    codec: Option<Codec>,
    message: proto::Message<Outgoing>,
    track: Arc<Mutex<Track>>,
}

/// State of a topic that the radio thread and the packer thread share.
#[derive(Default)]
struct Track {
    judge: Judge,
    stats: PackStats,
}

#[derive(Default)]
struct Queues {
    jobs: VecDeque<Job>,
    done: VecDeque<Packed>,
    /// The topic whose message is being packed.
    busy: Option<u64>,
}

#[derive(Default)]
struct Shared {
    queues: Mutex<Queues>,
    work: Condvar,
}

/// The thread that packs.
pub(crate) struct Packer {
    shared: Arc<Shared>,
    _thread: PeriodicThread,
}

impl Packer {
    /// Starts the thread, which calls `wake` after each finished message.
    pub(crate) fn start(wake: impl Fn() + Send + 'static) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let own = shared.clone();
        let mut engine = Engine::default();
        let thread = PeriodicThread::start("link-pack", move || {
            if let Some(job) = own.next() {
                let message = match job.codec {
                    Some(codec) => pack(&mut engine, &job.track, codec, job.message),
                    None => as_it_is(&job.track, job.message),
                };
                let mut queues = own.lock();
                queues.busy = None;
                queues.done.push_back(Packed {
                    key: job.key,
                    message,
                });
                drop(queues);
                wake();
            }
            Some(Duration::ZERO)
        })?;
        Ok(Packer {
            shared,
            _thread: thread,
        })
    }

    /// The next finished message.
    pub(crate) fn done(&self) -> Option<Packed> {
        self.shared.lock().done.pop_front()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queues> {
        lock(&self.queues)
    }

    /// The most important waiting message, and the oldest among equals. Waits for one, but only for a limited
    /// time.
    fn next(&self) -> Option<Job> {
        let mut queues = await_work(&self.queues, &self.work, |q| q.jobs.is_empty());
        let jobs = queues.jobs.iter().enumerate();
        let (first, _) = jobs.max_by_key(|(i, j)| (j.priority, std::cmp::Reverse(*i)))?;
        let job = queues.jobs.remove(first)?;
        queues.busy = Some(job.key);
        Some(job)
    }
}

/// How one topic's messages are packed.
pub(crate) struct Packing {
    /// Distinguishes topics, and a topic from its own earlier run.
    key: u64,
    codec: Codec,
    /// Skip messages for a while after some did not shrink. Otherwise every message is tried.
    auto: bool,
    priority: u8,
    depth: usize,
    track: Arc<Mutex<Track>>,
    /// For small messages.
    engine: Engine,
}

impl Packing {
    /// Creates the state for a topic that is compressed as `compress` says, over a radio of `rate` bit/s.
    /// `None` without compression.
    pub(crate) fn new(compress: Compress, rate: u64, priority: u8, depth: u32) -> Option<Self> {
        let (codec, auto) = match compress {
            Compress::None => return None,
            Compress::Lz4 => (Codec::Lz4, false),
            Compress::Zstd => (Codec::Zstd, false),
            Compress::Auto if rate > QUICK_RADIO => (Codec::Lz4, true),
            Compress::Auto => (Codec::Zstd, true),
        };
        Some(Packing {
            key: NEXT_KEY.fetch_add(1, Ordering::Relaxed),
            codec,
            auto,
            priority,
            // One message may be in the codec while the newest waits.
            depth: depth.max(2) as usize,
            track: Arc::default(),
            engine: Engine::default(),
        })
    }

    /// Identifies the topic among the packer's messages.
    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    /// Counts so far.
    pub(crate) fn stats(&self) -> PackStats {
        lock(&self.track).stats.clone()
    }

    /// Packs a message at once, hands it to the packer (then `None`), or returns it unchanged.
    pub(crate) fn take(
        &mut self,
        packer: &Packer,
        message: proto::Message<Outgoing>,
    ) -> Option<proto::Message<Outgoing>> {
        let len = message.body.geometry().total_len() as usize;
        let mut queues = packer.shared.lock();
        let waiting = |q: &Queues| {
            let jobs = q.jobs.iter().filter(|j| j.key == self.key).count();
            jobs + usize::from(q.busy == Some(self.key)) + q.done.iter().filter(|d| d.key == self.key).count()
        };
        let in_turn = waiting(&queues) == 0;
        let tried = len >= LEAST && (!self.auto || lock(&self.track).judge.tries());
        if !tried && in_turn {
            return Some(as_it_is(&self.track, message));
        }
        if len <= SMALL && in_turn {
            drop(queues);
            return Some(pack(&mut self.engine, &self.track, self.codec, message));
        }
        // Queue behind the earlier messages, if only to keep the order.
        queues.jobs.push_back(Job {
            key: self.key,
            priority: self.priority,
            codec: tried.then_some(self.codec),
            message,
            track: self.track.clone(),
        });
        while queues.jobs.iter().filter(|j| j.key == self.key).count() > self.depth {
            let oldest = queues.jobs.iter().position(|j| j.key == self.key);
            oldest.and_then(|i| queues.jobs.remove(i));
            lock(&self.track).stats.replaced += 1;
        }
        drop(queues);
        packer.shared.work.notify_one();
        None
    }
}

/// Counts a message that is not packed.
fn as_it_is(track: &Mutex<Track>, message: proto::Message<Outgoing>) -> proto::Message<Outgoing> {
    lock(track).stats.unpacked += 1;
    message
}

/// Packs a message if that makes it sufficiently smaller.
fn pack(
    engine: &mut Engine,
    track: &Mutex<Track>,
    codec: Codec,
    message: proto::Message<Outgoing>,
) -> proto::Message<Outgoing> {
    let start = Instant::now();
    let geometry = message.body.geometry();
    let total = geometry.total_len() as usize;
    let mut copied = 0;
    // A private copy: the publisher could change shared memory while the codec reads it.
    let mut copy = |at: u32, len: usize| {
        let mut bytes = vec![0; len];
        message.body.copy_at(at, &mut bytes);
        copied += len as u64;
        bytes
    };
    let doubts = lock(track).judge.doubts();
    let sample = (doubts && total > 2 * SAMPLE).then(|| {
        let bytes = copy(((total - SAMPLE) / 2) as u32, SAMPLE);
        engine.sample(codec, &bytes)
    });
    let worth_it = sample.is_none_or(|packed| lock(track).judge.learn(SAMPLE, packed));
    let packed = worth_it.then(|| {
        let flat = copy(0, total);
        let mut rest = &flat[..];
        let lens = std::iter::once(geometry.control_len()).chain(geometry.part_lens().iter().copied());
        let pieces: Vec<&[u8]> = lens
            .map(|n| {
                let (piece, tail) = rest.split_at(n as usize);
                rest = tail;
                piece
            })
            .collect();
        engine.pack(codec, &pieces)
    });
    let mut track = lock(track);
    let smaller = packed.flatten().filter(|p| track.judge.learn(total, p.len()));
    track.stats.copied_bytes += copied;
    track.stats.time += start.elapsed();
    let Some(bytes) = smaller else {
        track.stats.unpacked += 1;
        return message;
    };
    track.stats.packed += 1;
    track.stats.original_bytes += total as u64;
    track.stats.packed_bytes += bytes.len() as u64;
    proto::Message {
        body: Outgoing::packed(bytes),
        ..message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::Time;
    use std::sync::mpsc::channel;

    fn message(n: u64, bytes: Vec<u8>) -> proto::Message<Outgoing> {
        proto::Message::new(Outgoing::made(&bytes, &[]).expect("a message"), Time(n))
    }

    fn noise(n: usize) -> Vec<u8> {
        let mut x = 3u64;
        let mut step = || {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1);
            (x >> 33) as u8
        };
        (0..n).map(|_| step()).collect()
    }

    #[test]
    fn messages_keep_their_order_and_only_what_shrinks_is_packed() {
        let (sender, woken) = channel();
        let packer = Packer::start(move || sender.send(()).unwrap_or_default()).expect("starts");
        let mut packing = Packing::new(Compress::Auto, 6_000_000, 50, 64).expect("packs");
        let mut sent = Vec::new();
        let mut came = Vec::new();
        let large = vec![5u8; 300_000];
        for n in 0..40 {
            let bytes = match n % 4 {
                0 => large.clone(),
                1 => vec![1; 2000],
                2 => vec![2; 10],
                _ => vec![3; 20_000],
            };
            sent.push(n);
            came.extend(packing.take(&packer, message(n, bytes)));
            came.extend(std::iter::from_fn(|| packer.done()).map(|d| {
                assert_eq!(d.key, packing.key());
                d.message
            }));
        }
        while came.len() < sent.len() {
            woken.recv_timeout(Duration::from_secs(60)).expect("packs on");
            came.extend(std::iter::from_fn(|| packer.done()).map(|d| d.message));
        }
        assert_eq!(came.iter().map(|m| m.stamp.0).collect::<Vec<_>>(), sent);
        assert!(came[0].body.geometry().is_packed() && came[0].body.geometry().total_len() < 5000);
        assert!(!came[2].body.geometry().is_packed(), "ten bytes are not worth it");
        let stats = packing.stats();
        assert_eq!((stats.packed, stats.unpacked, stats.replaced), (30, 10, 0));
        assert!(stats.copied_bytes >= stats.original_bytes && stats.time > Duration::ZERO);
        assert!(stats.packed_bytes * 10 < stats.original_bytes);
    }

    #[test]
    fn incompressible_topics_are_eventually_left_uncompressed() {
        let packer = Packer::start(|| {}).expect("starts");
        let mut packing = Packing::new(Compress::Auto, 6_000_000, 50, 1).expect("packs");
        let jpeg = noise(3000);
        for n in 0..200 {
            let out = packing.take(&packer, message(n, jpeg.clone())).expect("at once");
            assert!(!out.body.geometry().is_packed());
        }
        let stats = packing.stats();
        assert_eq!(stats.unpacked, 200);
        assert!(stats.copied_bytes <= 6 * 3000, "{stats:?}");
    }

    #[test]
    fn a_flood_replaces_the_oldest() {
        // A thread that does nothing.
        let packer = Packer {
            shared: Arc::default(),
            _thread: PeriodicThread::start("test", || None).expect("starts"),
        };
        let mut packing = Packing::new(Compress::Zstd, 6_000_000, 50, 2).expect("packs");
        for n in 0..50 {
            assert!(packing.take(&packer, message(n, noise(5000))).is_none());
            assert!(packer.shared.lock().jobs.len() <= 2);
        }
        assert_eq!(packing.stats().replaced, 48);
        let left: Vec<u64> = packer
            .shared
            .lock()
            .jobs
            .iter()
            .map(|j| j.message.stamp.0)
            .collect();
        assert_eq!(left, [48, 49]);
        assert!(Packing::new(Compress::None, 0, 0, 1).is_none());
    }
}
