//! The sending process.

use super::{Flow, Gate, HEADER, PeerError, STAMPED, message, node, say};
use crate::kit::part::connect;
use bus::LoanError;
use ropewalk::{Publisher, Schema};
use serde_json::json;
use stats::Time;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Time between `go` and the first message.
const BEFORE: Duration = Duration::from_millis(200);
/// Flows with a shorter period are released without spinning.
const QUICK_US: u64 = 1_000;

pub(super) fn run(flows: &[Flow], ticks: Option<&Path>) -> Result<(), PeerError> {
    let gate = Gate::watch()?;
    let (node, array) = node()?;
    let mut sources = Vec::new();
    for flow in flows {
        let publisher = node.dynamic_publisher(&flow.topic, &array)?;
        sources.push(Source::new(flow, publisher, &array)?);
    }
    for source in &sources {
        let taken = |patience| {
            let enough = source.publisher.wait_for_subscribers(1, patience);
            (enough, source.publisher.bus().subscriber_count())
        };
        if !connect(&gate, 1, taken)? {
            return Ok(());
        }
    }
    let ticks = match ticks {
        Some(program) => Some(Ticks::start(program, flows)?),
        None => None,
    };
    say(&"ready")?;
    if !gate.wait_for_go() {
        return Ok(());
    }
    match ticks {
        Some(ticks) => ticks.release(&mut sources, &gate)?,
        None => periodic(&mut sources, &gate)?,
    }
    let published = |s: &Source| json!({ "topic": s.flow.topic, "sent": s.sent });
    let all: Vec<_> = sources.iter().map(published).collect();
    say(&json!({ "published": all }))?;
    gate.wait_for_stop();
    Ok(())
}

/// One thread per flow, on an absolute schedule.
fn periodic(sources: &mut [Source], gate: &Gate) -> Result<(), PeerError> {
    let start = clock::monotonic() + BEFORE;
    let one = |source: &mut Source| {
        let (offset, period) = (source.flow.offset_us, source.flow.period_us);
        // Such a fast flow is there to saturate; spinning for it would take a processor from its receivers.
        let spin = if period < QUICK_US {
            Duration::ZERO
        } else {
            clock::SPIN
        };
        while source.sent < source.flow.count {
            let due = start + Duration::from_micros(offset + source.sent * period);
            if !clock::sleep_until(due, spin, || gate.stopped())? {
                break;
            }
            source.send(None)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = sources.iter_mut().map(|s| scope.spawn(move || one(s))).collect();
        let mut joined = threads
            .into_iter()
            .map(|t| t.join().unwrap_or_else(|e| std::panic::resume_unwind(e)));
        joined.try_for_each(|sent| sent)
    })
}

/// A program of roscpp whose timers release messages (`peers/flow tick`). It inherits this process's scheduling.
struct Ticks {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Ticks {
    /// Starts it, and waits until it is ready.
    fn start(program: &Path, flows: &[Flow]) -> Result<Ticks, PeerError> {
        let mut command = Command::new(program);
        command.args(["tick", "--system", "tcpros", "--source", "roscpp"]);
        for f in flows {
            let flow = format!(
                "{},{},{},{},{}",
                f.topic, f.bytes, f.period_us, f.offset_us, f.count
            );
            command.args(["--flow", &flow]);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let said = child.stdout.take();
        let mut said = BufReader::new(said.ok_or_else(|| PeerError::Type("it has no output".into()))?);
        let mut line = String::new();
        said.by_ref().take(64).read_line(&mut line)?;
        if line != "ready\n" {
            return Err(PeerError::Type(format!("{} printed {line:?}", program.display())));
        }
        Ok(Ticks { child, said })
    }

    /// Sends a message whenever its flow's timer fires.
    fn release(mut self, sources: &mut [Source], gate: &Gate) -> Result<(), PeerError> {
        let mut input = self.child.stdin.take();
        if let Some(input) = &mut input {
            writeln!(input, "go")?;
        }
        // One thread reads and publishes: between a timer's callback and the message there is only a pipe.
        while sources.iter().any(|s| s.sent < s.flow.count) && !gate.stopped() {
            let mut record = [0; 16];
            self.said.read_exact(&mut record)?;
            let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| record[at + i]));
            let source = sources
                .get_mut(word(0) as usize)
                .filter(|s| s.sent < s.flow.count);
            let source = source.ok_or_else(|| PeerError::Type("a tick for an unknown flow".into()))?;
            source.send(Some(Time(word(8))))?;
        }
        // It ends with its input.
        drop(input);
        self.child.wait()?;
        Ok(())
    }
}

/// One flow's publisher, and its next message.
pub(super) struct Source {
    pub(super) flow: Flow,
    publisher: Publisher,
    /// The message in ROS 1's form.
    bytes: Vec<u8>,
    /// Its control part if the data is a data part: then the data is written directly into the block.
    control: Option<Vec<u8>>,
    pub(super) sent: u64,
}

impl Source {
    pub(super) fn new(flow: &Flow, publisher: Publisher, array: &Schema) -> Result<Source, PeerError> {
        let complain = |e| PeerError::Type(format!("std_msgs/UInt8MultiArray: {e}"));
        let bytes = message(flow.bytes);
        let split = array.split_ros1(&bytes).map_err(complain)?;
        let mut control = vec![0; split.control_len()];
        split.write_control(&mut control).map_err(complain)?;
        Ok(Source {
            control: (split.part_count() == 1).then_some(control),
            flow: flow.clone(),
            publisher,
            bytes,
            sent: 0,
        })
    }

    /// Writes, stamps and publishes the next message. The stamp is the current time, or that of the release.
    pub(super) fn send(&mut self, released: Option<Time>) -> Result<(), PeerError> {
        let number = self.sent;
        let fill = |data: &mut [u8]| {
            data[STAMPED..].fill(number as u8);
            data[8..STAMPED].copy_from_slice(&number.to_le_bytes());
            let stamp = released.unwrap_or_else(clock::monotonic);
            data[..8].copy_from_slice(&stamp.as_nanos().to_le_bytes());
        };
        let result = match &self.control {
            Some(control) => {
                let loan = self.publisher.loan(control.len(), &[self.bytes.len() - HEADER]);
                loan.map_err(PeerError::from).and_then(|mut loan| {
                    loan.control_mut().copy_from_slice(control);
                    fill(loan.part_mut(0));
                    self.publisher.publish(loan)?;
                    Ok(())
                })
            }
            None => {
                fill(&mut self.bytes[HEADER..]);
                let sent = self.publisher.publish_ros1(&self.bytes);
                sent.map(drop).map_err(|e| PeerError::Type(e.to_string()))
            }
        };
        self.sent += 1;
        match result {
            // The message would also be lost later.
            Err(PeerError::Loan(LoanError::MemoryShort { .. })) => Ok(()),
            result => result,
        }
    }
}
