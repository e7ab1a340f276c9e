//! ZeroMQ: Ropewalk's own wire between its own ends, encrypted with CURVE or within a host, and version 6 for peers of
//! other vendors.
//!
//! A robot has one address on the own wire ([`ZmqRobot::own`]) and two on version 6 ([`ZmqRobot::plain_v6`]): requests,
//! and telemetry. A controller opens a connection for each class of requests and one for telemetry, so that neither a
//! file nor an image delays a command. Nothing is bound where other hosts can reach it unless its user gave keys or
//! said `insecure`.
//!
//! Each end has one thread that owns its sockets and calls its sink; version 6's telemetry has another. Nothing is
//! polled periodically. `docs/wire/remote-zmq.md` describes the bytes (decision 175).
//!
//! ```
//! use remote::transport::zmq::{AllowedKeys, KeyPair, ZmqController, ZmqRobot};
//!
//! let (robot_key, base_key) = (KeyPair::generate()?, KeyPair::generate()?);
//! let allowed = AllowedKeys::new().with("base", base_key.public());
//! let robot_is = robot_key.public();
//! let robot = ZmqRobot::own("tcp://0.0.0.0:7010").curve(robot_key, allowed).open()?;
//! let controller = ZmqController::own("tcp://robot.example:7010").curve(base_key, robot_is).open()?;
//! # let _ = (robot, controller);
//! # Ok::<(), remote::transport::TransportError>(())
//! ```

mod address;
mod backlog;
mod controller;
mod doors;
mod envelope;
mod keys;
mod lane;
mod listeners;
mod order;
mod publisher;
mod robot;
mod settings;
mod wake;
mod ways;
mod z85;
mod zap;
mod zmtp;

pub use controller::{MAX_REQUESTS, ZmqController, ZmqControllerOptions};
pub use keys::{AllowedKeys, KeyPair, PublicKey};
pub use robot::{MAX_UNANSWERED, ZmqRobot, ZmqRobotOptions, ZmqRobotStatistics};
pub use settings::ZmqSettings;

use self::address::Address;
use self::wake::Wake;
use super::{TransportError, Wire};
use ::zmq::Socket;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Maximum bytes of a request; ZeroMQ closes the connection of a peer that sends more.
pub const MAX_REQUEST: usize = 4 << 20;
/// Maximum bytes of a telemetry frame.
pub const MAX_TELEMETRY: usize = 64 << 20;
/// Maximum bytes of an answer on Ropewalk's own wire.
pub const MAX_ANSWER: usize = 64 << 20;
/// Maximum bytes of an answer of version 6, where files come whole.
pub const MAX_ANSWER_V6: usize = 257 << 20;

/// Maximum overhead of the envelope on Ropewalk's own wire.
const ENVELOPE: usize = 32;
/// How long data in transit may take when an end stops, here and in ZeroMQ.
const LINGER: Duration = Duration::from_millis(100);

/// The addresses where an end binds or connects: for requests, and on version 6 for telemetry.
struct Places {
    requests: Address,
    telemetry: Option<Address>,
}

impl Places {
    fn parse(wire: Wire, requests: &str, telemetry: &str) -> Result<Self, TransportError> {
        let telemetry = match wire {
            Wire::Own => None,
            Wire::V6 => Some(Address::parse(telemetry)?),
        };
        Ok(Places {
            requests: Address::parse(requests)?,
            telemetry,
        })
    }

    fn all(&self) -> impl Iterator<Item = &Address> {
        [Some(&self.requests), self.telemetry.as_ref()]
            .into_iter()
            .flatten()
    }
}

/// Checks whether keys can be used.
fn check_keys(wire: Wire) -> Result<(), TransportError> {
    if wire == Wire::V6 {
        let text = "version 6 does not support CURVE: remove the keys, or use Ropewalk's own wire format";
        return Err(TransportError::Setup(text.into()));
    }
    keys::check_curve()
}

fn wake() -> Result<Wake, TransportError> {
    Wake::new().map_err(|error| TransportError::Setup(format!("cannot create an eventfd: {error}")))
}

/// Runs a user's callback. If it panics, only its own request or frame is lost. Returns whether it did not panic.
fn guarded(callback: impl FnOnce()) -> bool {
    let result = catch_unwind(AssertUnwindSafe(callback));
    if result.is_err() {
        tracing::error!("a callback of the transport's user panicked");
    }
    result.is_ok()
}

/// Limits of an end.
struct Limits {
    request: usize,
    answer: usize,
    /// Messages that ZeroMQ keeps for one connection, in either direction.
    requests_waiting: i32,
    answers_waiting: i32,
    /// Bytes of answers that wait for the thread, beyond the first.
    given_bytes: usize,
}

impl Limits {
    fn of(wire: Wire) -> Self {
        match wire {
            Wire::Own => Limits {
                request: MAX_REQUEST + ENVELOPE,
                answer: MAX_ANSWER,
                requests_waiting: 8,
                answers_waiting: 1024,
                given_bytes: MAX_ANSWER,
            },
            // Anyone can send requests here, also for whole files: few answers wait for a controller that does not read
            // them.
            Wire::V6 => Limits {
                request: MAX_REQUEST,
                answer: MAX_ANSWER_V6,
                requests_waiting: 16,
                answers_waiting: 4,
                given_bytes: MAX_ANSWER_V6,
            },
        }
    }

    fn telemetry_fits(&self, len: usize) -> Result<(), TransportError> {
        if len > MAX_TELEMETRY {
            Err(TransportError::TooLong {
                len,
                most: MAX_TELEMETRY,
            })
        } else {
            Ok(())
        }
    }
}

/// Options of all sockets: bounds, and detection of peers that vanish.
fn tune(socket: &Socket, is_ipv6: bool, most_bytes: usize, receive: i32, send: i32) -> ::zmq::Result<()> {
    socket.set_linger(LINGER.as_millis() as i32)?;
    socket.set_ipv6(is_ipv6)?;
    socket.set_maxmsgsize(most_bytes as i64)?;
    socket.set_rcvhwm(receive)?;
    socket.set_sndhwm(send)?;
    // Longer than a ping can take with two seconds of delay and lost packets.
    socket.set_heartbeat_ivl(3_000)?;
    socket.set_heartbeat_timeout(15_000)?;
    socket.set_reconnect_ivl(100)?;
    socket.set_reconnect_ivl_max(1_000)
}

/// Milliseconds for a poll, rounded up.
fn ceil_ms(time: Duration) -> i64 {
    i64::try_from(time.as_micros().div_ceil(1000)).unwrap_or(i64::MAX)
}

/// See [`crate::fuzzing::zmq`].
pub(crate) fn fuzz(bytes: &[u8]) {
    zmtp::fuzz(bytes);
    if let Some(message) = envelope::ToRobot::parse(bytes) {
        assert_eq!(message.encode(), bytes);
    }
    if let Some(message) = envelope::ToController::parse(bytes) {
        assert_eq!(message.encode(), bytes);
    }
}
