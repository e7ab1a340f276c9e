//! The node that sends.

use super::message::Template;
use super::{PeerError, Send, named, node, say};
use crate::kit::part::{Gate, sleep_until};
use crate::scale::raw::{self, Row};
use ropewalk::{Publisher, Subscriber, SubscriberOptions, WaitSet};
use serde_json::json;
use stats::Time;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Time between `go` and the start.
const BEFORE: Duration = Duration::from_millis(200);
/// A number that no message has: an answer to it shows that the path is open.
const PROBE: u32 = u32::MAX;
/// Interval of probes: the first, and the longest.
const PROBES: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(1)];
/// How often it checks whether all messages are back.
const LOOK: Duration = Duration::from_millis(5);
const LONG: Duration = Duration::from_secs(3600);

pub(super) fn run(options: &Send) -> Result<(), PeerError> {
    let gate = Gate::watch()?;
    let node = node()?;
    let template = Template::new(options.common.bytes)?;
    let publisher = node.dynamic_publisher(&options.publish, &template.schema)?;
    let wait_set = node.wait_set()?;
    let queue = SubscriberOptions::default()
        .with_depth(options.common.queue)
        .with_wait_set(&wait_set);
    let answers = options.answers.iter();
    let answers = answers.map(|topic| node.dynamic_subscriber_with(topic, &template.schema, queue.clone()));
    let answers = answers.collect::<Result<Vec<_>, _>>()?;
    if !reach(&publisher, &template, &answers, &wait_set, &gate)? {
        return Ok(());
    }
    say(&"ready")?;
    if !gate.wait_for_go() {
        return Ok(());
    }
    let log = Arc::new(State::default());
    let (state, due) = (log.clone(), options.messages as usize * answers.len());
    let numbers = template.numbers;
    let wake = wait_set.interrupt();
    let until_stop = gate.clone();
    let receiver = std::thread::spawn(move || {
        let received = receive(&answers, &wait_set, numbers, due, &state);
        // Its usage is read while it runs.
        until_stop.wait_for_stop();
        received
    });
    let sent = send(options, &publisher, &template, &gate)?;
    let patience = clock::monotonic() + Duration::from_millis(options.linger_ms);
    while log.back.load(Ordering::Relaxed) < due as u64 && clock::monotonic() < patience && !gate.stopped() {
        std::thread::sleep(LOOK);
    }
    log.closed.store(true, Ordering::Release);
    wake.wake();
    say(&"closed")?;
    // Writing would take a processor from nodes that still send.
    gate.wait_for_stop();
    let received = receiver.join().unwrap_or_else(|e| std::panic::resume_unwind(e))?;
    let each = options.answers.len();
    let rows = received.iter().enumerate().take(sent.stamps.len() * each);
    let row = |(id, at): (usize, &u64)| Row {
        id: id as u64,
        sent_ns: sent.stamps[id / each],
        recv_ns: (*at > 0).then_some(*at),
    };
    raw::write(&options.log, rows.map(row))
        .map_err(|e| std::io::Error::new(e.kind(), format!("{}: {e}", options.log.display())))?;
    let back = log.back.load(Ordering::Relaxed);
    say(
        &json!({ "sent": sent.stamps.len(), "refused": sent.refused, "returned": back, "drops": named(&publisher.stats().drops) }),
    )
}

/// State shared by the two threads.
#[derive(Default)]
struct State {
    back: AtomicU64,
    closed: AtomicBool,
}

struct Sent {
    stamps: Vec<u64>,
    refused: u64,
}

/// Sends probes until every echo has answered; returns false if it was stopped first.
fn reach(
    publisher: &Publisher,
    template: &Template,
    answers: &[Subscriber],
    wait_set: &WaitSet,
    gate: &Gate,
) -> Result<bool, PeerError> {
    let mut heard = vec![false; answers.len()];
    let mut pause = PROBES[0];
    while !gate.stopped() {
        template.send(publisher, PROBE, || {})?;
        let until = clock::monotonic() + pause;
        loop {
            for (answer, heard) in answers.iter().zip(&mut heard) {
                while answer.take()?.is_some() {
                    *heard = true;
                }
            }
            if heard.iter().all(|h| *h) {
                return Ok(true);
            }
            let left = until.since(clock::monotonic());
            if left.is_zero() {
                break;
            }
            wait_set.wait(left)?;
        }
        pause = (pause * 2).min(PROBES[1]);
    }
    Ok(false)
}

/// Sends on an absolute schedule; late messages are sent at once.
fn send(options: &Send, publisher: &Publisher, template: &Template, gate: &Gate) -> Result<Sent, PeerError> {
    let mut sent = Sent {
        stamps: Vec::with_capacity(options.messages as usize),
        refused: 0,
    };
    let start = clock::monotonic() + BEFORE + Duration::from_micros(options.offset_us);
    let due = |i: u32| start + Duration::from_nanos((f64::from(i) * 1e9 / options.hz) as u64);
    for i in 0..options.messages {
        let due = due(i);
        if clock::monotonic() < due {
            sleep_until(due)?;
        }
        if gate.stopped() {
            break;
        }
        let mut stamp = Time::ZERO;
        let went = template.send(publisher, i, || stamp = clock::monotonic())?;
        sent.refused += u64::from(!went);
        sent.stamps.push(stamp.as_nanos());
    }
    Ok(sent)
}

/// Logs the arrival of each answer, until the log closes.
fn receive(
    answers: &[Subscriber],
    wait_set: &WaitSet,
    numbers: super::message::Numbers,
    due: usize,
    state: &State,
) -> Result<Vec<u64>, PeerError> {
    let mut at = vec![0; due];
    while !state.closed.load(Ordering::Acquire) {
        let mut idle = true;
        for (which, answer) in answers.iter().enumerate() {
            let Some(message) = answer.take()? else {
                continue;
            };
            idle = false;
            let now = clock::monotonic().as_nanos();
            let number = numbers.of(message.control());
            // Probes are answered late, too.
            let place = number.and_then(|n| at.get_mut(n as usize * answers.len() + which));
            if let Some(place) = place.filter(|at| **at == 0) {
                *place = now;
                state.back.fetch_add(1, Ordering::Relaxed);
            }
        }
        if idle {
            wait_set.wait(LONG)?;
        }
    }
    Ok(at)
}
