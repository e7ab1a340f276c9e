//! The base's bus → statistics, and a check that received messages equal the recorded ones.

use super::part::{REPORT_INTERVAL, Wishes, report};
use super::protocol::{Arrived, Part, Report, Spec};
use crate::failure::{OrFail, Outcome};
use bus::SubscriberOptions;
use recording::Recording;
use ropewalk::{Message, Node, Subscriber};
use sha2::{Digest, Sha256};
use stats::{Drops, Flow, Time};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Messages that may wait for comparison. The measurement blocks beyond this number, so it is generous.
const TO_COMPARE: usize = 256;
/// Time span of "recent" values in the live view.
const RECENT: Duration = Duration::from_secs(1);

type Hash = [u8; 32];

pub(crate) fn run(spec: &Spec, node: &Node, wishes: &Wishes) -> Outcome {
    let recording = Recording::open(&spec.recording).or_input()?;
    let wait_set = node.wait_set().or_job("subscribing")?;
    let mut topics = Vec::new();
    for channel in recording
        .channels()
        .iter()
        .filter(|c| spec.topics.contains_key(&c.topic))
    {
        if topics.iter().any(|t: &Topic| t.name == channel.topic) {
            continue;
        }
        let schema = crate::types::needed(channel)?;
        let options = SubscriberOptions::default()
            .with_depth(128)
            .with_max_held(TO_COMPARE as u32 + 32)
            .with_wait_set(&wait_set);
        let subscriber = node
            .dynamic_subscriber_with(&channel.topic, &schema, options)
            .or_job("subscribing")?;
        topics.push(Topic::new(channel.topic.clone(), subscriber));
    }
    let recorded = Recorded::read(spec, &recording, &topics)?;
    let counts: Vec<Compared> = topics.iter().map(|_| Compared::default()).collect();
    let (sender, receiver) = sync_channel(TO_COMPARE);
    std::thread::scope(|scope| {
        scope.spawn(|| compare(recorded, receiver, &counts));
        // After the other thread was created, which would inherit the scheduling.
        let scheduling = clock::realtime_thread(10);
        report(&Report::Ready {
            part: Part::Subscriber,
            scheduling: scheduling.to_string(),
        });
        measure(&mut topics, &wait_set, sender, &counts, wishes)
    })?;
    report(&Report::Received {
        topics: arrived(&mut topics, &counts),
    });
    Ok(())
}

fn measure(
    topics: &mut [Topic],
    wait_set: &bus::WaitSet,
    compare: SyncSender<(usize, Message)>,
    counts: &[Compared],
    wishes: &Wishes,
) -> Outcome {
    let mut next_report = clock::monotonic();
    while !wishes.stop.load(Ordering::Relaxed) {
        wait_set
            .wait(Duration::from_millis(50))
            .or_job("waiting for messages")?;
        for (i, topic) in topics.iter_mut().enumerate() {
            while let Some(message) = topic.subscriber.take().or_job("taking a message")? {
                let now = clock::realtime();
                let bytes = message.ros1_len().or_job("a message from the link")? as u64;
                topic.flow.received(message.stamp(), now, bytes);
                topic.recent.received(message.stamp(), now, bytes);
                // The receiver stops only when this thread does.
                let _ = compare.send((i, message));
            }
        }
        if clock::monotonic() >= next_report {
            report(&Report::Received {
                topics: arrived(topics, counts),
            });
            next_report = clock::monotonic() + REPORT_INTERVAL;
        }
    }
    Ok(())
}

struct Topic {
    name: String,
    subscriber: Subscriber,
    flow: Flow,
    recent: Flow,
    recent_since: Time,
    last_second: Flow,
}

impl Topic {
    fn new(name: String, subscriber: Subscriber) -> Self {
        let (flow, recent, last_second) = (Flow::new(), Flow::new(), Flow::new());
        Topic {
            name,
            subscriber,
            flow,
            recent,
            recent_since: clock::monotonic(),
            last_second,
        }
    }
}

/// Comparison state of one topic.
#[derive(Default)]
struct Compared {
    equal: AtomicU64,
    unequal: AtomicU64,
}

fn arrived(topics: &mut [Topic], counts: &[Compared]) -> BTreeMap<String, Arrived> {
    let now = clock::monotonic();
    let entries = topics.iter_mut().zip(counts).map(|(t, counts)| {
        if now.since(t.recent_since) >= RECENT {
            t.last_second = std::mem::take(&mut t.recent);
            t.recent_since = now;
        }
        let recent = t.last_second.metrics(0, &Drops::default());
        let (equal, unequal) = (
            counts.equal.load(Ordering::Acquire),
            counts.unequal.load(Ordering::Acquire),
        );
        let arrived = Arrived {
            metrics: t.flow.metrics(0, &Drops::default()),
            recent_hz: t.last_second.rate_hz(),
            recent_delay_ms: recent.delay_ms.mean,
            recent_jitter_ms: recent.added_jitter_ms.std,
            equal,
            unequal,
            unchecked: t.flow.count().saturating_sub(equal + unequal),
            drops: t.subscriber.stats().drops,
            cumulative: t.flow.delay().cumulative(),
        };
        (t.name.clone(), arrived)
    });
    entries.collect()
}

/// Hashes of the recording's messages, by topic, in order.
struct Recorded(Vec<VecDeque<Hash>>);

impl Recorded {
    fn read(spec: &Spec, recording: &Recording, topics: &[Topic]) -> Result<Self, crate::failure::Failure> {
        let mut hashes = vec![VecDeque::new(); topics.len()];
        let mut first = None;
        for message in recording.messages() {
            let message = message.or_input()?;
            let first = *first.get_or_insert(message.log_time);
            if message.log_time.since(first).as_secs_f64() > spec.seconds {
                break;
            }
            let topic = &recording.channel(message.channel).topic;
            if let Some(i) = topics.iter().position(|t| t.name == *topic) {
                hashes[i].push_back(Sha256::digest(&message.data).into());
            }
        }
        Ok(Recorded(hashes))
    }
}

/// Compares the ROS 1 bytes of received messages with the recording: each message has to be one that was recorded after
/// the previous one. A separate real-time thread measures; this one may block.
fn compare(recorded: Recorded, messages: Receiver<(usize, Message)>, counts: &[Compared]) {
    let Recorded(mut hashes) = recorded;
    for (i, message) in messages {
        let hash: Option<Hash> = message.ros1().ok().map(|bytes| Sha256::digest(&bytes).into());
        let at = hashes[i].iter().position(|h| Some(*h) == hash);
        match at {
            Some(at) => {
                hashes[i].drain(..=at);
                counts[i].equal.fetch_add(1, Ordering::AcqRel);
            }
            None => {
                counts[i].unequal.fetch_add(1, Ordering::AcqRel);
            }
        }
    }
}
