//! Large telemetry: a random string of a given length (section 3.1 of the paper), there and back, or in one direction.

use super::over::{Name, Over};
use super::{Blocks, PartError, code, pause, say, tell};
use crate::kit::noise::Noise;
use crate::kit::part::Gate;
use prost::bytes::Bytes;
use remote::{CommandKind, Controller, Expiry, Outcome, Robot, TelemetryKind};
use stats::Time;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// A block, numbered and stamped.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Block {
    #[prost(uint64, tag = "1")]
    number: u64,
    /// Time of its creation: nanoseconds of CLOCK_MONOTONIC, which all hosts of a lab share.
    #[prost(fixed64, tag = "2")]
    stamp: u64,
    #[prost(bytes = "bytes", tag = "3")]
    data: Bytes,
}

impl Block {
    pub(super) fn new(number: u64, bytes: usize) -> Block {
        let data = random(number, bytes);
        Block {
            number,
            stamp: clock::monotonic().as_nanos(),
            data,
        }
    }
}

/// Returns incompressible bytes, the same for each number.
fn random(number: u64, bytes: usize) -> Bytes {
    let mut data = vec![0; bytes];
    Noise::new(number).fill(&mut data);
    data.into()
}

/// The telemetry kind that carries a block.
pub(super) struct Thrown;

impl TelemetryKind for Thrown {
    type Body = Block;
    const NAME: &'static str = "bench.Block";
    const V6: Option<u8> = Some(40);
    const PRIORITY: u8 = 10;
}

/// Command that asks the robot to send a block.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Asked {
    #[prost(uint64, tag = "1")]
    pub(super) number: u64,
    #[prost(uint64, tag = "2")]
    pub(super) bytes: u64,
}

pub(super) struct Tell;

impl CommandKind for Tell {
    type Body = Asked;
    const NAME: &'static str = "bench.Tell";
    const V6: Option<u8> = Some(40);
}

/// Interval of probes until the first one arrives.
const AGAIN: Duration = Duration::from_millis(250);
/// How often a wait checks whether the run is over.
const LOOK: Duration = Duration::from_millis(100);
/// Lower numbers are probes.
const FIRST: u64 = 1 << 32;

/// Received blocks, with their arrival times.
type Heard = Receiver<(Time, Block)>;

fn listen(controller: &Controller, say: Sender<(Time, Block)>) {
    controller.on::<Thrown>(0, move |block, _| {
        let _ = say.send((clock::monotonic(), block));
    });
}

/// Sends blocks and waits until each is back. Prints the round trips in ms, `UNREACHABLE` for a block that did not come
/// back in time.
pub(super) fn throw(gate: &Gate, over: &Over, blocks: &Blocks) -> Result<(), PartError> {
    let ends = over.open()?;
    let robot = Robot::builder(Name::Operator.name())
        .end(ends.robot(Name::Operator)?)
        .start()?;
    robot.tells::<Thrown>()?;
    let (sender, heard) = channel();
    let Some(_controller) = ends.found(gate, "operator", Name::Robot, |c| listen(c, sender))? else {
        return Ok(());
    };
    // Telemetry has no answer: both directions are open when a small block has come back.
    for number in 0.. {
        robot.set::<Thrown>(0, &Block::new(number, 16))?;
        match heard.recv_timeout(AGAIN) {
            Ok(_) => break,
            Err(_) if gate.stopped() => return Ok(()),
            Err(_) => {}
        }
    }
    say(&"ready")?;
    if !gate.wait_for_go() {
        return Ok(());
    }
    each(gate, blocks, |number, patience| {
        let block = Block::new(number, blocks.bytes as usize);
        let sent = clock::monotonic();
        robot.set::<Thrown>(0, &block)?;
        let came = wait_for(gate, &heard, number, sent + patience);
        Ok(came.map(|(came, back)| (came.since(sent), back.data == block.data)))
    })
}

/// Makes the robot send blocks. Prints the time of each from its stamp, in ms.
pub(super) fn catch(gate: &Gate, over: &Over, blocks: &Blocks, settle: Duration) -> Result<(), PartError> {
    let ends = over.open()?;
    let (sender, heard) = channel();
    let Some(controller) = ends.ready(gate, |c| listen(c, sender))? else {
        return Ok(());
    };
    if !pause(gate, settle) {
        return Ok(());
    }
    each(gate, blocks, |number, patience| {
        let bytes = blocks.bytes;
        let asked = controller.send_within::<Tell>(&Asked { number, bytes }, Expiry::Never);
        let came = wait_for(gate, &heard, number, clock::monotonic() + patience);
        match (came, asked.wait_for(Duration::ZERO)) {
            (Some((came, block)), _) => {
                let took = came.since(Time(block.stamp));
                Ok(Some((took, block.data == random(number, bytes as usize))))
            }
            (None, Ok(Outcome::Rejected(why))) => Err(PartError::Wrong(why)),
            (None, _) => Ok(None),
        }
    })
}

/// Calls `once` for each block, by its number, and prints the times. `once` returns the time, and whether the block was
/// correct.
fn each(
    gate: &Gate,
    blocks: &Blocks,
    mut once: impl FnMut(u64, Duration) -> Result<Option<(Duration, bool)>, PartError>,
) -> Result<(), PartError> {
    let (plan, begin) = (blocks.plan, clock::monotonic());
    let mut took = Vec::new();
    for n in 0..plan.warm_up + plan.count {
        if clock::monotonic().since(begin) > plan.budget() && n > plan.warm_up {
            break;
        }
        let ms = match once(FIRST + n, Duration::from_millis(blocks.patience_ms))? {
            Some((_, false)) => return Err(PartError::Wrong(format!("block {n} arrived changed"))),
            Some((took, true)) => took.as_secs_f64() * 1e3,
            None if gate.stopped() => return Ok(()),
            None => code::UNREACHABLE,
        };
        if n >= plan.warm_up {
            took.push(ms);
        }
    }
    tell(gate, &took)
}

/// Returns the block with a number; `None` if it does not arrive in time, or the run is over.
fn wait_for(gate: &Gate, heard: &Heard, number: u64, until: Time) -> Option<(Time, Block)> {
    loop {
        let left = until.since(clock::monotonic());
        if left.is_zero() || gate.stopped() {
            return None;
        }
        match heard.recv_timeout(left.min(LOOK)) {
            Ok(came) if came.1.number == number => return Some(came),
            // A block that was given up earlier, or a probe.
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_of_their_length_and_differ() {
        for bytes in [0, 1, 8, 1_000_003] {
            assert_eq!(random(7, bytes).len(), bytes);
        }
        assert_eq!(random(7, 64), random(7, 64));
        assert_ne!(random(7, 64), random(8, 64));
        let counts = random(1, 1 << 16).iter().fold([0u32; 256], |mut counts, b| {
            counts[usize::from(*b)] += 1;
            counts
        });
        // 256 of each on average.
        assert!(counts.iter().all(|n| (128..512).contains(n)), "{counts:?}");
    }
}
