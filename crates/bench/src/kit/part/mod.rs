//! What the processes of an experiment share: commands on standard input, lines on standard output, and payloads.

mod gate;

pub(crate) use gate::Gate;

use ropewalk::Schema;
use rustix::thread::ClockId;
use rustix::time::Timespec;
use stats::Time;
use std::io::Write;
use std::time::Duration;

/// How long a peer waits for others to connect before it gives up.
const CONNECT: Duration = Duration::from_secs(30);
/// How often a waiting thread checks whether it should stop.
pub(crate) const LOOK: Duration = Duration::from_millis(100);
/// Position of the stamp in the payload: nanoseconds of CLOCK_MONOTONIC, u64 little-endian.
pub(crate) const STAMP: std::ops::Range<usize> = 0..8;
/// Position of the sequence number, u64 little-endian, from 0.
pub(crate) const SEQUENCE: std::ops::Range<usize> = 8..16;

/// Why a peer gives up; the text says how to fix it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// An error of the bus.
    #[error(transparent)]
    Node(#[from] ropewalk::NodeError),
    /// The peers did not connect.
    #[error(
        "only {connected} of {wanted} peers connected within {}: check that they run",
        seconds(CONNECT)
    )]
    Alone {
        /// Peers that are connected.
        connected: usize,
        /// Peers to wait for.
        wanted: usize,
    },
    /// Real-time scheduling is not permitted.
    #[error("SCHED_FIFO {priority} is not permitted: run as root, or raise the limit rtprio (ulimit -r)")]
    Fifo {
        /// The requested priority.
        priority: u8,
    },
    /// A standard type differs from what this program expects.
    #[error("{0}")]
    Type(String),
    /// Taking a message failed.
    #[error(transparent)]
    Take(#[from] bus::TakeError),
    /// Publishing failed.
    #[error(transparent)]
    Publish(#[from] bus::PublishError),
    /// A message is not an image.
    #[error(transparent)]
    Field(#[from] ropewalk::typed::FieldError),
    /// Reserving memory failed where nothing may be refused.
    #[error(transparent)]
    Loan(#[from] bus::LoanError),
    /// A service cannot be created.
    #[error(transparent)]
    Create(#[from] bus::CreateError),
    /// A call failed.
    #[error(transparent)]
    Call(#[from] bus::CallError),
    /// A reply does not belong to the request.
    #[error("the reply to request {0} answers another request: give each cell its own --topic")]
    Echo(u64),
    /// Standard output is closed, or waiting failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl From<ropewalk::typed::TypedError> for PeerError {
    fn from(error: ropewalk::typed::TypedError) -> Self {
        match error {
            ropewalk::typed::TypedError::Loan(error) => PeerError::Loan(error),
            other => PeerError::Type(format!("sensor_msgs/Image: {other}")),
        }
    }
}

fn seconds(d: Duration) -> String {
    format!("{} s", d.as_secs())
}

/// Prints one line of the contract.
pub(crate) fn say(line: &impl std::fmt::Display) -> Result<(), PeerError> {
    Ok(print(line)?)
}

/// Prints one line and flushes it.
pub(crate) fn print(line: &impl std::fmt::Display) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Waits until `connected` returns `n` peers, or until the run is over (false).
pub(crate) fn connect(
    gate: &Gate,
    n: usize,
    connected: impl Fn(Duration) -> (bool, usize),
) -> Result<bool, PeerError> {
    let deadline = clock::monotonic() + CONNECT;
    loop {
        let (enough, count) = connected(LOOK);
        if enough {
            return Ok(true);
        }
        if gate.stopped() {
            return Ok(false);
        }
        if clock::monotonic() > deadline {
            return Err(PeerError::Alone {
                connected: count,
                wanted: n,
            });
        }
    }
}

/// Returns a number of a payload; `None` if the payload is too short.
pub(crate) fn number(payload: &[u8], range: std::ops::Range<usize>) -> Option<u64> {
    Some(u64::from_le_bytes(payload.get(range)?.try_into().ok()?))
}

/// The control part of an image with `height` rows of `step` bytes of data, which become data part 0.
pub(crate) fn control_part(
    image: &Schema,
    height: usize,
    width: usize,
    encoding: &str,
    step: usize,
) -> Result<Vec<u8>, PeerError> {
    let size = height * step;
    let complain = |e: &dyn std::fmt::Display| PeerError::Type(format!("sensor_msgs/Image: {e}"));
    let text = |out: &mut Vec<u8>, s: &str| {
        out.extend((s.len() as u32).to_le_bytes());
        out.extend(s.as_bytes());
    };
    // seq, stamp, frame_id, height, width, encoding, is_bigendian, step, data
    let mut head = vec![0; 12];
    text(&mut head, "camera");
    head.extend((height as u32).to_le_bytes());
    head.extend((width as u32).to_le_bytes());
    text(&mut head, encoding);
    head.push(0);
    head.extend((step as u32).to_le_bytes());
    head.extend((size as u32).to_le_bytes());
    // Zeroed pages that are never written take no memory.
    let mut bytes = vec![0; head.len() + size];
    bytes[..head.len()].copy_from_slice(&head);
    let split = image.split_ros1(&bytes).map_err(|e| complain(&e))?;
    if split.sizes().part_lens != [size] {
        return Err(PeerError::Type(format!(
            "sensor_msgs/Image: {size} bytes of data do not become one data part"
        )));
    }
    let mut control = vec![0; split.sizes().control_len];
    split.write_control(&mut control).map_err(|e| complain(&e))?;
    Ok(control)
}

/// Sleeps as the contract requires; clock::sleep_until would wake ten times a second.
pub(crate) fn sleep_until(until: Time) -> std::io::Result<()> {
    let until = Timespec {
        tv_sec: (until.as_nanos() / 1_000_000_000) as i64,
        tv_nsec: (until.as_nanos() % 1_000_000_000) as i64,
    };
    loop {
        match rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &until) {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}
