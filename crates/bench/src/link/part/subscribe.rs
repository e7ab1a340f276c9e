//! The receiving process.

use super::{Flow, Gate, HEADER, PeerError, STAMPED, node, say};
use crate::kit::part::{LOOK, SEQUENCE, STAMP, connect, number};
use ropewalk::{Message, Subscriber, SubscriberOptions};
use serde_json::{Value, json};
use stats::Time;

/// Queue depth of this process, for each flow.
const DEPTH: u32 = 32;

pub(super) fn run(flows: &[Flow]) -> Result<(), PeerError> {
    let gate = Gate::watch()?;
    let (node, array) = node()?;
    let mut subscribers = Vec::new();
    for flow in flows {
        let options = SubscriberOptions::default().with_depth(DEPTH);
        subscribers.push(node.dynamic_subscriber_with(&flow.topic, &array, options)?);
    }
    for subscriber in &subscribers {
        let found = |patience| {
            let enough = subscriber.wait_for_publishers(1, patience);
            (enough, subscriber.bus().publisher_count())
        };
        if !connect(&gate, 1, found)? {
            return Ok(());
        }
    }
    say(&"ready")?;
    let logs = std::thread::scope(|scope| {
        let threads: Vec<_> = std::iter::zip(flows, &subscribers)
            .map(|(flow, subscriber)| {
                let gate = gate.clone();
                scope.spawn(move || log(flow, subscriber, &gate))
            })
            .collect();
        let results = threads
            .into_iter()
            .map(|t| t.join().unwrap_or_else(|e| std::panic::resume_unwind(e)));
        results.collect::<Result<Vec<_>, _>>()
    })?;
    let all = std::iter::zip(flows, logs).map(|(flow, log)| log.json(&flow.topic));
    say(&json!({ "received": all.collect::<Vec<_>>() }))
}

fn log(flow: &Flow, subscriber: &Subscriber, gate: &Gate) -> Result<Log, PeerError> {
    let mut log = Log::with_capacity(flow.count);
    while !gate.stopped() {
        if let Some(message) = subscriber.take_timeout(LOOK)? {
            log.note(clock::monotonic(), &message, flow.bytes - HEADER)?;
        }
    }
    Ok(log)
}

/// Arrival times of messages, in memory reserved beforehand.
pub(super) struct Log {
    sequence: Vec<u64>,
    stamp_ns: Vec<u64>,
    arrival_ns: Vec<u64>,
}

impl Log {
    pub(super) fn with_capacity(count: u64) -> Log {
        let list = || Vec::with_capacity(count as usize);
        Log {
            sequence: list(),
            stamp_ns: list(),
            arrival_ns: list(),
        }
    }

    fn note(&mut self, now: Time, message: &Message, data: usize) -> Result<(), PeerError> {
        let strange = || PeerError::Type("a message that is not of this run".into());
        if message.part_count() == 1 {
            self.keep(now, message.part(0).bytes(), data)
        } else {
            let bytes = message.ros1().map_err(|_| strange())?;
            self.keep(now, bytes.get(HEADER..).unwrap_or_default(), data)
        }
        .ok_or_else(strange)
    }

    pub(super) fn keep(&mut self, now: Time, data: &[u8], len: usize) -> Option<()> {
        let right = data.len() == len && len >= STAMPED && self.sequence.len() < self.sequence.capacity();
        let (sequence, stamp) = (number(data, SEQUENCE)?, number(data, STAMP)?);
        right.then(|| {
            self.sequence.push(sequence);
            self.stamp_ns.push(stamp);
            self.arrival_ns.push(now.as_nanos());
        })
    }

    pub(super) fn json(&self, topic: &str) -> Value {
        json!({
            "topic": topic, "sequence": self.sequence, "stamp_ns": self.stamp_ns, "arrival_ns": self.arrival_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_of_the_run_are_kept() {
        let mut log = Log::with_capacity(2);
        let mut data = vec![0; 52];
        data[..8].copy_from_slice(&5u64.to_le_bytes());
        data[8..16].copy_from_slice(&1u64.to_le_bytes());
        assert_eq!(log.keep(Time(9), &data, 52), Some(()));
        assert_eq!(log.keep(Time(9), &data, 51), None);
        assert_eq!(log.keep(Time(9), &data[..15], 15), None);
        assert_eq!(
            (&log.sequence[..], &log.stamp_ns[..], &log.arrival_ns[..]),
            (&[1][..], &[5][..], &[9][..])
        );
        assert_eq!(log.json("/a")["stamp_ns"], json!([5]));
    }
}
