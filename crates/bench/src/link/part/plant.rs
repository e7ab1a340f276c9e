//! The RLC circuit of the Pound paper's section VI-G, and its controller, each a process.

use super::{Gate, PeerError, STAMPED, node, say};
use crate::ipc::peer::{LOOK, SEQUENCE, STAMP, connect, number};
use ropewalk::{Message, Publisher, Subscriber, SubscriberOptions};
use serde_json::json;
use std::time::Duration;

/// Farad, henry, ohm, volt, and the controller's gain.
const C: f64 = 0.1;
const L: f64 = 0.1;
const R: f64 = 1.0;
const STEP: f64 = 1.0;
const GAIN: f64 = 1.0;
/// Sampling period.
pub(crate) const PERIOD: Duration = Duration::from_millis(20);
/// The circuit is computed in steps of this share of a period.
const FINE: u32 = 200;
/// Between `go` and the first sample.
const BEFORE: Duration = Duration::from_millis(200);
/// Stamp, number, value.
const BYTES: usize = STAMPED + 8;

/// A series circuit of resistor, coil and capacitor, driven by a voltage that is held between two samples.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Circuit {
    current: f64,
    voltage: f64,
}

impl Circuit {
    /// Lets a period pass with `input` volts; gives the capacitor's voltage. Runge and Kutta's fourth order: the error
    /// is far below what is measured.
    fn pass(&mut self, input: f64) -> f64 {
        let h = PERIOD.as_secs_f64() / f64::from(FINE);
        let slope = |i: f64, v: f64| ((input - R * i - v) / L, i / C);
        for _ in 0..FINE {
            let (i, v) = (self.current, self.voltage);
            let a = slope(i, v);
            let b = slope(i + h / 2.0 * a.0, v + h / 2.0 * a.1);
            let c = slope(i + h / 2.0 * b.0, v + h / 2.0 * b.1);
            let d = slope(i + h * c.0, v + h * c.1);
            self.current += h / 6.0 * (a.0 + 2.0 * b.0 + 2.0 * c.0 + d.0);
            self.voltage += h / 6.0 * (a.1 + 2.0 * b.1 + 2.0 * c.1 + d.1);
        }
        self.voltage
    }
}

/// What the controller answers to a voltage.
fn control(voltage: f64) -> f64 {
    GAIN * (STEP - voltage)
}

/// The same loop within one process: what is answered to a sample drives the circuit from the next on.
pub(crate) fn simulate(samples: usize) -> Vec<f64> {
    let (mut circuit, mut input) = (Circuit::default(), 0.0);
    let sample = |_| {
        let voltage = circuit.voltage;
        circuit.pass(input);
        input = control(voltage);
        voltage
    };
    (0..samples).map(sample).collect()
}

/// Samples the circuit every period, sends the sample on `output`, and drives it with the newest that came on `input`.
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
        voltages.push(circuit.voltage);
        send(&publisher, k.into(), circuit.voltage)?;
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

/// Both ends of a process, connected; no gate if it was stopped before.
pub(super) fn ends(input: &str, output: &str) -> Result<(Option<Gate>, Publisher, Subscriber), PeerError> {
    let gate = Gate::watch()?;
    let (node, array) = node()?;
    let publisher = node.publisher(output, &array)?;
    let options = SubscriberOptions::default().with_depth(16);
    let subscriber = node.subscriber_with(input, &array, options)?;
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

    /// As the paper tells of it: a transient of about two seconds and an overshoot of about 40 %.
    #[test]
    fn the_loop_is_the_papers() {
        let v = simulate(200);
        let last = v[199];
        assert!((last - 0.5).abs() < 0.005, "it ends at {last} V");
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
