//! The control loop of the Pound paper's section VI-G: circuit and controller, each in its own process.

pub(crate) use super::circuit::PERIOD;
use super::circuit::{Circuit, control};
use super::{Gate, PeerError, STAMPED, node, say};
use crate::kit::part::{LOOK, SEQUENCE, STAMP, connect, number};
use ropewalk::{Message, Publisher, Subscriber, SubscriberOptions};
use serde_json::json;
use std::time::Duration;

/// Time between `go` and the first sample.
const BEFORE: Duration = Duration::from_millis(200);
/// Stamp, number, value.
const BYTES: usize = STAMPED + 8;

/// The same loop within one process: the answer to a sample drives the circuit from the next sample on.
pub(crate) fn simulate(samples: usize) -> Vec<f64> {
    let (mut circuit, mut input) = (Circuit::default(), 0.0);
    let sample = |_| {
        let voltage = circuit.voltage();
        circuit.pass(input);
        input = control(voltage);
        voltage
    };
    (0..samples).map(sample).collect()
}

/// Samples the circuit every period, sends the sample on `output`, and drives the circuit with the newest value
/// received on `input`.
pub(super) fn circuit(input: &str, output: &str, samples: usize) -> Result<(), PeerError> {
    let (gate, publisher, subscriber) = ends(input, output)?;
    let Some(gate) = gate else { return Ok(()) };
    say(&"ready")?;
    if !gate.wait_for_go() {
        return Ok(());
    }
    let start = clock::monotonic() + BEFORE;
    let (mut circuit, mut drive, mut newest) = (Circuit::default(), 0.0, None);
    let mut voltages = Vec::with_capacity(samples);
    for k in 0..samples as u32 {
        if !clock::sleep_until(start + PERIOD * k, clock::SPIN, || gate.stopped())? {
            return Ok(());
        }
        while let Some(message) = subscriber.take()? {
            if let Some((number, value)) = read(&message).filter(|(n, _)| newest.is_none_or(|m| *n > m)) {
                (newest, drive) = (Some(number), value);
            }
        }
        voltages.push(circuit.voltage());
        send(&publisher, k.into(), circuit.voltage())?;
        circuit.pass(drive);
    }
    say(&json!({ "values": voltages }))?;
    gate.wait_for_stop();
    Ok(())
}

/// Answers each sample at once.
pub(super) fn controller(input: &str, output: &str) -> Result<(), PeerError> {
    let (gate, publisher, subscriber) = ends(input, output)?;
    let Some(gate) = gate else { return Ok(()) };
    say(&"ready")?;
    while !gate.stopped() {
        if let Some(message) = subscriber.take_timeout(LOOK)?
            && let Some((number, voltage)) = read(&message)
        {
            send(&publisher, number, control(voltage))?;
        }
    }
    Ok(())
}

/// Opens both ends of a process and connects them; no gate if it was stopped before.
pub(super) fn ends(input: &str, output: &str) -> Result<(Option<Gate>, Publisher, Subscriber), PeerError> {
    let gate = Gate::watch()?;
    let (node, array) = node()?;
    let publisher = node.dynamic_publisher(output, &array)?;
    let options = SubscriberOptions::default().with_depth(16);
    let subscriber = node.dynamic_subscriber_with(input, &array, options)?;
    let reached = |patience| {
        let enough = publisher.wait_for_subscribers(1, patience);
        (enough, publisher.bus().subscriber_count())
    };
    let heard = |patience| {
        let enough = subscriber.wait_for_publishers(1, patience);
        (enough, subscriber.bus().publisher_count())
    };
    let connected = connect(&gate, 1, reached)? && connect(&gate, 1, heard)?;
    Ok((connected.then_some(gate), publisher, subscriber))
}

fn send(publisher: &Publisher, number: u64, value: f64) -> Result<(), PeerError> {
    let mut bytes = super::message(super::HEADER + BYTES);
    let data = &mut bytes[super::HEADER..];
    data[SEQUENCE].copy_from_slice(&number.to_le_bytes());
    data[STAMPED..].copy_from_slice(&value.to_le_bytes());
    data[STAMP].copy_from_slice(&clock::monotonic().as_nanos().to_le_bytes());
    let sent = publisher.publish_ros1(&bytes);
    sent.map(drop).map_err(|e| PeerError::Type(e.to_string()))
}

fn read(message: &Message) -> Option<(u64, f64)> {
    let bytes = message.ros1().ok()?;
    let data = bytes.get(super::HEADER..)?;
    let value = data.get(STAMPED..BYTES)?.try_into().ok()?;
    Some((number(data, SEQUENCE)?, f64::from_le_bytes(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the paper describes it: a transient of about two seconds and an overshoot of about 40 %.
    #[test]
    fn the_loop_is_the_papers() {
        let v = simulate(200);
        let last = v[199];
        assert!((last - 0.5).abs() < 0.005, "final value {last} V");
        let peak = v.iter().copied().fold(0.0, f64::max);
        assert!((0.30..0.60).contains(&(peak / last - 1.0)), "peak {peak} V");
        let settled = v
            .iter()
            .rposition(|v| (v - last).abs() > 0.02 * last)
            .expect("it moved");
        assert!((20..=150).contains(&settled), "settled after {settled} periods");
        assert_eq!(v[..2], [0.0, 0.0]);
    }
}
