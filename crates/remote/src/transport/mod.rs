//! Transports carry requests from controllers to robots, responses back, and telemetry to all controllers that listen.
//!
//! A transport moves frames without knowing their meaning; the user chooses the wire format ([`Wire`]). The transport
//! calls its user from its own threads, as soon as a frame arrives: nothing is polled. The same test suite runs over
//! all transports (`tests/conformance.rs`, decision 173).

pub mod gzip;
pub mod link;
pub mod local;
mod peer;
#[cfg(feature = "zmq")]
pub mod zmq;

pub use peer::Peer;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The format of the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// Ropewalk's own wire (`proto/ropewalk_remote.proto`): identities, expiry, outcomes.
    Own,
    /// Robot Remote Control's wire, version 6, for peers of other vendors. Requests of one sender are answered in their
    /// order; a request carries neither its sender nor its time.
    V6,
}

/// The priority class of a request. Transports with several channels use one for each class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Commands, heartbeats, and the right to move.
    Command,
    /// Latest values, descriptions.
    Request,
    /// Pieces of files.
    File,
}

/// The content of a telemetry frame, for transports with topics or priorities.
#[derive(Clone, Copy, Debug)]
pub struct Stream<'a> {
    /// [`TelemetryKind::NAME`](crate::TelemetryKind::NAME).
    pub kind: &'a str,
    /// The channel; 0 where there is only one.
    pub channel: u8,
    /// [`TelemetryKind::PRIORITY`](crate::TelemetryKind::PRIORITY).
    pub priority: u8,
}

/// The robot's end of a transport.
pub trait RobotEnd: Send + Sync {
    /// Returns the format of the frames.
    fn wire(&self) -> Wire;

    /// Starts to receive. Calls `sink` with requests from the transport's own threads, until [`RobotEnd::stop`] at the
    /// latest. Called once.
    ///
    /// # Errors
    /// [`TransportError`] if it cannot receive: an address in use, no permission.
    fn start(&self, sink: Arc<dyn RobotSink>) -> Result<(), TransportError>;

    /// Announces frames of this stream. A transport whose listeners must know of a stream beforehand announces it at
    /// once, so that the first frame does not wait for that. Does nothing by default. Never blocks.
    ///
    /// # Errors
    /// [`TransportError`]: there are too many streams, or the transport was stopped.
    fn announce(&self, stream: Stream<'_>) -> Result<(), TransportError> {
        let _ = stream;
        Ok(())
    }

    /// Sends a frame to all listeners. Never blocks, however slow a listener is: frames without room are lost, and
    /// their listener learns of it ([`ControllerSink::lost`], or by the sequence within the frame).
    ///
    /// # Errors
    /// [`TransportError`]: the frame is longer than the transport takes, or the transport was stopped.
    fn publish(&self, stream: Stream<'_>, frame: &[u8]) -> Result<(), TransportError>;

    /// Ends the transport: it does not call the sink after this. Answers in progress are sent first, if that takes no
    /// longer than 100 ms. Idempotent.
    fn stop(&self);

    /// Returns the kind and place of the transport, for logs: `zmq tcp://127.0.0.1:7001`.
    fn describe(&self) -> String;
}

/// Receives requests of a robot's end, on threads of the transport. Implementations have to return soon: they call
/// handlers, which decide whether they queue.
pub trait RobotSink: Send + Sync {
    /// Handles a request of `from`. The answer may be given at once or later, from any thread; without one, the
    /// controller's request times out.
    fn request(&self, frame: &[u8], from: &Peer, reply: Reply);

    /// `peer` lost its permission: its key was removed from the list. The rights that it holds are to end.
    fn revoked(&self, peer: &Peer) {
        let _ = peer;
    }
}

/// Sends the answer to the sender of a request.
pub struct Reply(Answer);

type Answer = Box<dyn FnOnce(&[u8]) -> Result<(), TransportError> + Send>;

impl Reply {
    /// Creates a reply that calls `send` with the answer's frame.
    pub fn new(send: impl FnOnce(&[u8]) -> Result<(), TransportError> + Send + 'static) -> Self {
        Reply(Box::new(send))
    }

    /// Sends the answer. Never blocks.
    ///
    /// # Errors
    /// [`TransportError`]: the requester is gone, or the frame is too long.
    pub fn send(self, frame: &[u8]) -> Result<(), TransportError> {
        (self.0)(frame)
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}

/// The controller's end of a transport.
pub trait ControllerEnd: Send + Sync {
    /// Returns the format of the frames.
    fn wire(&self) -> Wire;

    /// Starts: connects, or keeps trying in the background, and calls `sink` with telemetry from its own threads, until
    /// [`ControllerEnd::stop`] at the latest. Called once.
    ///
    /// # Errors
    /// [`TransportError`] if it can never succeed: a malformed address, no permission.
    fn start(&self, sink: Arc<dyn ControllerSink>) -> Result<(), TransportError>;

    /// Sends a request. `done` is called exactly once, from any thread (possibly this one, before this returns), with
    /// the answer or the reason why there is none. Never blocks. Many requests may be in progress. A transport sends a
    /// request at most once to its robot.
    fn request(&self, class: Class, frame: &[u8], timeout: Duration, done: Done);

    /// Receives answers to requests of a class in this thread, in place of the transport's own thread, so that a caller
    /// that waits for an answer needs no wake-up. Returns when `over` is true, which is checked after each received
    /// item, and after `timeout` at the latest. It may return at any time before, and does so if the transport does not
    /// support it, another thread already receives, or no request is in progress: the caller then waits in another way.
    fn receive(&self, class: Class, timeout: Duration, over: &dyn Fn() -> bool) {
        let _ = (class, timeout, over);
    }

    /// Makes a [`ControllerEnd::receive`] for this class check `over` at once.
    fn wake(&self, class: Class) {
        let _ = class;
    }

    /// Sets which telemetry is wanted; before the first call, all of it. A transport without topics may continue to
    /// deliver all.
    fn listen(&self, streams: Listen<'_>);

    /// Ends the transport: requests in progress end with [`TransportError::Ended`], and the sink is not called after
    /// this. Idempotent.
    fn stop(&self);

    /// As [`RobotEnd::describe`].
    fn describe(&self) -> String;
}

/// Callback for the answer to a request.
pub type Done = Box<dyn FnOnce(Result<&[u8], TransportError>) + Send>;

/// Which telemetry a controller receives.
#[derive(Clone, Copy, Debug)]
pub enum Listen<'a> {
    /// All telemetry.
    All,
    /// These kinds and channels.
    To(&'a [Stream<'a>]),
}

/// Receives telemetry of a controller's end, on threads of the transport.
pub trait ControllerSink: Send + Sync {
    /// Handles a telemetry frame.
    fn telemetry(&self, frame: &[u8]);

    /// Reports the number of frames that did not reach this end since the last call, as far as the transport knows.
    fn lost(&self, frames: u64);

    /// Reports whether the robot's end is reachable, as far as the transport knows; what users see depends on
    /// heartbeats.
    fn connected(&self, connected: bool);
}

/// Why a frame was not delivered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// No answer came within the request's time limit. The request may have been executed.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// Nothing was sent, or the peer that had the request died: with the transport's reason. The request may have been
    /// executed.
    #[error("unreachable: {0}")]
    Unreachable(String),
    /// Nothing reached a peer that could have executed it: with the transport's reason.
    #[error("not sent: {0}")]
    NotSent(String),
    /// Longer than this transport allows.
    #[error("a frame of {len} B exceeds the limit of {most} B: send less at a time")]
    TooLong {
        /// Bytes of the frame.
        len: usize,
        /// Maximum length.
        most: usize,
    },
    /// The maximum number of requests is in progress.
    #[error("{0} requests are already in progress, the limit: wait for one to finish")]
    Busy(usize),
    /// The transport was stopped.
    #[error("the transport was stopped")]
    Ended,
    /// The bytes are not a body of the kind: with the reason.
    #[error("not a valid {kind}: {error}")]
    Malformed {
        /// The kind's name.
        kind: &'static str,
        /// The parser's error.
        error: String,
    },
    /// It cannot be set up: the reason, and how to fix it.
    #[error("{0}")]
    Setup(String),
}

impl TransportError {
    /// Its text after the word "unreachable", which every outcome of that kind begins with.
    pub(crate) fn reason(&self) -> String {
        match self {
            TransportError::Unreachable(why) | TransportError::NotSent(why) => why.clone(),
            other => other.to_string(),
        }
    }
}
