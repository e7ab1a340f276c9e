//! The receiving process.

use super::{As, Common, Subscribe, node, schedule, typed};
use crate::kit::part::{Gate, PeerError, SEQUENCE, STAMP, number, say};
use ropewalk::SubscriberOptions;
use serde_json::json;
use std::time::Duration;

pub(super) fn run(options: &Subscribe) -> Result<(), PeerError> {
    let Common { warmup, messages, .. } = options.common;
    let gate = Gate::watch()?;
    let (node, image) = node()?;
    let queue = options.depth.map_or_else(SubscriberOptions::default, |depth| {
        SubscriberOptions::default().with_depth(depth)
    });
    let subscriber = node.dynamic_subscriber_with(&options.common.topic, &image, queue)?;
    let work = Duration::from_micros(options.work_us);
    let mut log = Log::new(warmup, messages);
    let interrupt = subscriber.bus().interrupt();
    let stop = gate.clone();
    std::thread::spawn(move || {
        stop.wait_for_stop();
        interrupt.wake();
    });
    say(&"ready")?;
    schedule(&options.common)?;
    while !gate.stopped() {
        let last = if options.spin {
            let Some(message) = subscriber.bus().take_busy()? else {
                std::hint::spin_loop();
                continue;
            };
            log.note(clock::monotonic().as_nanos(), message.part(0).bytes())
        } else {
            let Some(message) = subscriber.take_timeout(Duration::MAX)? else {
                continue;
            };
            match options.common.system {
                As::Ropewalk => log.note(clock::monotonic().as_nanos(), message.part(0).bytes()),
                As::RopewalkTyped => {
                    let image = typed::read(&message)?;
                    log.note(clock::monotonic().as_nanos(), &image.data)
                }
            }
        };
        if last {
            say(&"done")?;
        }
        if !work.is_zero() {
            std::thread::sleep(work);
        }
    }
    say(&json!({ "received": log.sequence.len(), "latency_ns": log.latency_ns, "sequence": log.sequence }))
}

/// The received messages, in memory reserved beforehand.
struct Log {
    warmup: u64,
    last: u64,
    latency_ns: Vec<u64>,
    sequence: Vec<u64>,
}

impl Log {
    fn new(warmup: u32, messages: u32) -> Self {
        let (warmup, messages) = (u64::from(warmup), messages as usize);
        Log {
            warmup,
            last: (warmup + messages as u64).saturating_sub(1),
            latency_ns: Vec::with_capacity(messages),
            sequence: Vec::with_capacity(messages),
        }
    }

    /// Records a message. Returns whether it was the last one.
    fn note(&mut self, now: u64, payload: &[u8]) -> bool {
        let (Some(stamp), Some(sequence)) = (number(payload, STAMP), number(payload, SEQUENCE)) else {
            return false;
        };
        if sequence >= self.warmup && self.sequence.len() < self.sequence.capacity() {
            self.latency_ns.push(now.saturating_sub(stamp));
            self.sequence.push(sequence);
        }
        sequence == self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_leaves_the_warm_up_out_and_knows_the_last() {
        let payload = |sequence: u64| {
            let mut p = vec![0; 16];
            p[STAMP].copy_from_slice(&1_000u64.to_le_bytes());
            p[SEQUENCE].copy_from_slice(&sequence.to_le_bytes());
            p
        };
        let mut log = Log::new(2, 3);
        assert!(!log.note(1_500, &payload(1)));
        assert!(!log.note(1_700, &payload(2)));
        assert!(!log.note(1_800, b"short"));
        assert!(log.note(1_900, &payload(4)));
        assert_eq!((log.sequence, log.latency_ns), (vec![2, 4], vec![700, 900]));
    }
}
