//! What carries requests from controllers to robots, responses back, and telemetry to everyone who listens.
//!
//! A transport moves frames and knows nothing of what they mean; which wire they are written in is its user's choice
//! ([`Wire`]). It calls its user from threads of its own, as soon as something came: nothing is polled. The same suite
//! of tests runs over all of them (`tests/conformance.rs`).

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

/// The language of the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// Ropewalk's own (`proto/ropewalk_remote.proto`): identities, expiry, outcomes.
    Own,
    /// Robot Remote Control's, version 6, for peers of other makers. A request is answered in the order of asking by its sender; it
    /// says neither who sent it nor when.
    V6,
}

/// How urgent a request is: each class has its own way where a transport has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Commands, heartbeats, and the right to move.
    Command,
    /// Latest values, descriptions.
    Request,
    /// Pieces of files.
    File,
}

/// What a telemetry frame carries: transports with topics or priorities go by it.
#[derive(Clone, Copy, Debug)]
pub struct Stream<'a> {
    /// [`TelemetryKind::NAME`](crate::TelemetryKind::NAME).
    pub kind: &'a str,
    /// The channel; 0 where there is only one.
    pub channel: u8,
    /// [`TelemetryKind::PRIORITY`](crate::TelemetryKind::PRIORITY).
    pub priority: u8,
}

/// The end of a transport that a robot has.
pub trait RobotEnd: Send + Sync {
    /// What the frames are written in.
    fn wire(&self) -> Wire;

    /// Begins to receive. Requests go to `sink` from the transport's own threads, at most until [`RobotEnd::stop`]. Called once.
    ///
    /// # Errors
    /// [`TransportError`] if nothing can be received: an address in use, no permission.
    fn start(&self, sink: Arc<dyn RobotSink>) -> Result<(), TransportError>;

    /// Frames of this stream will come: transports that have to tell listeners so first do it now, so that the first frame
    /// does not wait for that. By itself it does nothing. Never blocks.
    ///
    /// # Errors
    /// [`TransportError`]: there are too many streams, or it has ended.
    fn announce(&self, stream: Stream<'_>) -> Result<(), TransportError> {
        let _ = stream;
        Ok(())
    }

    /// Sends a frame to everyone who listens. Never blocks, whoever listens however slowly: what there is no room for is lost, and its
    /// listener learns of it ([`ControllerSink::lost`], or by the sequence within the frame).
    ///
    /// # Errors
    /// [`TransportError`]: the frame is longer than the transport takes, or it has ended.
    fn publish(&self, stream: Stream<'_>, frame: &[u8]) -> Result<(), TransportError>;

    /// Ends: no call of the sink begins after it. What is under way is answered first, where that does not take longer than 100 ms. Idempotent.
    fn stop(&self);

    /// What it is and where, for logs: `zmq tcp://127.0.0.1:7001`.
    fn describe(&self) -> String;
}

/// What a robot's end hands up, from threads of the transport. Implementations return soon: they call handlers, which decide whether they
/// queue.
pub trait RobotSink: Send + Sync {
    /// A request of `from` came. The answer may be given at once or later, from any thread; without one the controller's time ends.
    fn request(&self, frame: &[u8], from: &Peer, reply: Reply);

    /// From now on `peer` may not speak: its key was taken off the list. What it holds is to end.
    fn revoked(&self, peer: &Peer) {
        let _ = peer;
    }
}

/// The way back to whoever sent a request.
pub struct Reply(Answer);

type Answer = Box<dyn FnOnce(&[u8]) -> Result<(), TransportError> + Send>;

impl Reply {
    /// A way back that calls `send` with the answer's frame.
    pub fn new(send: impl FnOnce(&[u8]) -> Result<(), TransportError> + Send + 'static) -> Self {
        Reply(Box::new(send))
    }

    /// Sends the answer. Never blocks.
    ///
    /// # Errors
    /// [`TransportError`]: whoever asked is gone, or the frame is too long.
    pub fn send(self, frame: &[u8]) -> Result<(), TransportError> {
        (self.0)(frame)
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}

/// The end of a transport that a controller has.
pub trait ControllerEnd: Send + Sync {
    /// What the frames are written in.
    fn wire(&self) -> Wire;

    /// Begins: connects, or goes on trying in the background, and hands telemetry to `sink` from threads of its own, at most until [`ControllerEnd::stop`]. Called once.
    ///
    /// # Errors
    /// [`TransportError`] if it can never succeed: a malformed address, no permission.
    fn start(&self, sink: Arc<dyn ControllerSink>) -> Result<(), TransportError>;

    /// Sends a request; `done` is called exactly once, from any thread (maybe this one, before this returns), with the answer or why there is none. Never blocks. Many
    /// may be under way. A transport sends a request at most once to its robot.
    fn request(&self, class: Class, frame: &[u8], timeout: Duration, done: Done);

    /// Receives in this thread, in place of the transport's own, what comes for requests of a class, so that who waits for an answer needs nobody to wake it:
    /// until `over`, which is asked after each thing that came, at most for `timeout`. It may return sooner, as soon as it likes, and does where
    /// the transport has nothing of the kind, another thread does it, or nothing is under way: who called waits on by other means.
    fn receive(&self, class: Class, timeout: Duration, over: &dyn Fn() -> bool) {
        let _ = (class, timeout, over);
    }

    /// Lets a [`ControllerEnd::receive`] for this class ask `over` at once.
    fn wake(&self, class: Class) {
        let _ = class;
    }

    /// Says which telemetry is wanted; before the first call all of it. A transport without topics may go on delivering all.
    fn listen(&self, streams: Listen<'_>);

    /// Ends: requests under way are answered with [`TransportError::Ended`], and no call of the sink begins after it. Idempotent.
    fn stop(&self);

    /// As [`RobotEnd::describe`].
    fn describe(&self) -> String;
}

/// Who is called with a request's answer.
pub type Done = Box<dyn FnOnce(Result<&[u8], TransportError>) + Send>;

/// Which telemetry a controller listens to.
#[derive(Clone, Copy, Debug)]
pub enum Listen<'a> {
    /// Whatever comes.
    All,
    /// These kinds and channels.
    To(&'a [Stream<'a>]),
}

/// What a controller's end hands up, from threads of the transport.
pub trait ControllerSink: Send + Sync {
    /// A telemetry frame came.
    fn telemetry(&self, frame: &[u8]);

    /// So many frames did not reach this end since the last call, as far as the transport knows.
    fn lost(&self, frames: u64);

    /// Whether the robot's end is reachable, as far as the transport knows; heartbeats decide what users are told.
    fn connected(&self, connected: bool);
}

/// Why a frame was not carried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// No answer came within the request's time. It may have been carried out.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// Nothing was sent, or whoever had the request died: with the transport's words. It may have been carried out.
    #[error("unreachable: {0}")]
    Unreachable(String),
    /// Nothing reached whoever could have carried it out: with the transport's words.
    #[error("unreachable, and not sent: {0}")]
    NotSent(String),
    /// Longer than this transport takes.
    #[error("a frame of {len} B, but {most} B is the most: send less at a time")]
    TooLong {
        /// Bytes of the frame.
        len: usize,
        /// Bytes that fit.
        most: usize,
    },
    /// As many requests are under way as may be.
    #[error("{0} requests are under way already: wait for one to end")]
    Busy(usize),
    /// The transport was stopped.
    #[error("the transport has ended")]
    Ended,
    /// The bytes are no body of the kind: with what is wrong with them.
    #[error("this is no body of {kind}: {error}")]
    Malformed {
        /// The kind's name.
        kind: &'static str,
        /// What their parser says.
        error: String,
    },
    /// It cannot be set up: what, and the mend.
    #[error("{0}")]
    Setup(String),
}
