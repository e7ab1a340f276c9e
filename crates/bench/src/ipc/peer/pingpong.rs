//! Round trips between two processes that never sleep.

use super::publish::Source;
use super::{Common, node, schedule};
use crate::kit::part::{Gate, PeerError, SEQUENCE, connect, number, say};
use ropewalk::{Publisher, Subscriber};
use serde_json::json;

/// Checks the gate once in this many empty polls.
const POLLS: u32 = 4096;

pub(super) fn ping(options: &Common) -> Result<(), PeerError> {
    let gate = Gate::watch()?;
    let Some((there, back)) = open(options, &gate, "ping", "pong")? else {
        return Ok(());
    };
    let source = Source::new(&there, options.size as usize)?;
    say(&"ready")?;
    schedule(options)?;
    if !gate.wait_for_go() {
        return Ok(());
    }
    let mut round_trip_ns = Vec::with_capacity(options.messages as usize);
    for i in 0..u64::from(options.warmup) + u64::from(options.messages) {
        let sent = source.send(i)?;
        while echo(&back, &gate)? != Some(i) {
            if gate.stopped() {
                return Ok(());
            }
        }
        if i >= u64::from(options.warmup) {
            round_trip_ns.push(clock::monotonic().since(sent.stamp).as_nanos() as u64);
        }
    }
    say(&json!({ "round_trip_ns": round_trip_ns }))?;
    gate.wait_for_stop();
    Ok(())
}

pub(super) fn pong(options: &Common) -> Result<(), PeerError> {
    let gate = Gate::watch()?;
    let Some((there, back)) = open(options, &gate, "pong", "ping")? else {
        return Ok(());
    };
    let source = Source::new(&there, options.size as usize)?;
    say(&"ready")?;
    schedule(options)?;
    while let Some(i) = echo(&back, &gate)? {
        source.answer(i)?;
    }
    Ok(())
}

/// Opens both directions and connects them; `None` if the run is already over.
fn open(
    options: &Common,
    gate: &Gate,
    out: &str,
    back: &str,
) -> Result<Option<(Publisher, Subscriber)>, PeerError> {
    let (node, image) = node()?;
    let publisher = node.dynamic_publisher(&format!("{}/{out}", options.topic), &image)?;
    let subscriber = node.dynamic_subscriber(&format!("{}/{back}", options.topic), &image)?;
    let other = |patience| {
        let both = publisher.wait_for_subscribers(1, patience) && subscriber.wait_for_publishers(1, patience);
        (both, publisher.bus().subscriber_count())
    };
    Ok(connect(gate, 1, other)?.then_some((publisher, subscriber)))
}

/// Polls for the next message and returns its number; `None` if the run is over.
fn echo(subscriber: &Subscriber, gate: &Gate) -> Result<Option<u64>, PeerError> {
    loop {
        for _ in 0..POLLS {
            if let Some(message) = subscriber.bus().take_busy()? {
                return Ok(number(message.part(0).bytes(), SEQUENCE));
            }
        }
        if gate.stopped() {
            return Ok(None);
        }
    }
}
