//! Commands and their answers.

use super::plant::ends;
use super::{HEADER, PeerError, message, say};
use crate::kit::part::{LOOK, SEQUENCE, number};
use ropewalk::{Message, Publisher, Subscriber};
use serde_json::json;
use stats::Time;
use std::time::Duration;

/// Size of a command and of its answer on ROS 1's wire.
const BYTES: usize = 64;
/// Time between `go` and the first command.
const BEFORE: Duration = Duration::from_millis(200);

/// Schedule and number of commands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) count: u64,
    pub(super) period: Duration,
    /// How long to wait for the last answers.
    pub(super) linger: Duration,
}

/// Sends commands on `output`, and reports the time until each answer arrived on `input`, in ms; -1 if none arrived.
pub(super) fn command(input: &str, output: &str, plan: Plan) -> Result<(), PeerError> {
    let (gate, publisher, subscriber) = ends(input, output)?;
    let Some(gate) = gate else { return Ok(()) };
    say(&"ready")?;
    if !gate.wait_for_go() {
        return Ok(());
    }
    let start = clock::monotonic() + BEFORE;
    let mut sent: Vec<Time> = Vec::with_capacity(plan.count as usize);
    let mut took: Vec<Option<Duration>> = vec![None; plan.count as usize];
    let end = start + plan.period * plan.count as u32 + plan.linger;
    while !gate.stopped() && clock::monotonic() < end && took.iter().any(Option::is_none) {
        let next = sent.len() as u64;
        let due = if next < plan.count {
            start + plan.period * next as u32
        } else {
            end
        };
        let now = clock::monotonic();
        if next < plan.count && now >= due {
            sent.push(now);
            send(&publisher, next)?;
        }
        answers(&subscriber, due.since(now).min(LOOK), &sent, &mut took)?;
    }
    let ms = |t: &Option<Duration>| t.map_or(-1.0, |t| t.as_secs_f64() * 1e3);
    say(&json!({ "values": took.iter().map(ms).collect::<Vec<_>>() }))?;
    gate.wait_for_stop();
    Ok(())
}

/// Records the answers that arrive within `patience`.
fn answers(
    subscriber: &Subscriber,
    patience: Duration,
    sent: &[Time],
    took: &mut [Option<Duration>],
) -> Result<(), PeerError> {
    let mut message = subscriber.take_timeout(patience)?;
    while let Some(answer) = message {
        let now = clock::monotonic();
        let place = read(&answer).map(|n| n as usize).filter(|n| *n < sent.len());
        if let Some(n) = place {
            took[n].get_or_insert(now.since(sent[n]));
        }
        message = subscriber.take()?;
    }
    Ok(())
}

/// Answers each command at once.
pub(super) fn answer(input: &str, output: &str) -> Result<(), PeerError> {
    let (gate, publisher, subscriber) = ends(input, output)?;
    let Some(gate) = gate else { return Ok(()) };
    say(&"ready")?;
    while !gate.stopped() {
        if let Some(command) = subscriber.take_timeout(LOOK)?
            && let Some(number) = read(&command)
        {
            send(&publisher, number)?;
        }
    }
    Ok(())
}

fn send(publisher: &Publisher, number: u64) -> Result<(), PeerError> {
    let mut bytes = message(BYTES);
    bytes[HEADER..][SEQUENCE].copy_from_slice(&number.to_le_bytes());
    let sent = publisher.publish_ros1(&bytes);
    sent.map(drop).map_err(|e| PeerError::Type(e.to_string()))
}

fn read(message: &Message) -> Option<u64> {
    number(message.ros1().ok()?.get(HEADER..)?, SEQUENCE)
}
