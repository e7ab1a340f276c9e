//! A wrapper around any transport that compresses each frame as upstream does: the inflated length as a big-endian
//! `u32`, then a zlib stream. Both ends have to be wrapped.
//!
//! ```
//! use remote::transport::{Wire, gzip, local};
//!
//! let (end, connect) = local::end("rover", Wire::Own);
//! let robot = remote::Robot::builder("rover").end(gzip::robot(end)).start()?;
//! let desk = remote::Controller::builder("desk").end(gzip::controller(connect.end())).start()?;
//! assert!(desk.wait_until_found(std::time::Duration::from_secs(10)));
//! # Ok::<(), remote::transport::TransportError>(())
//! ```

use super::{
    Class, ControllerEnd, ControllerSink, Done, Listen, Peer, Reply, RobotEnd, RobotSink, Stream,
    TransportError, Wire,
};
use crate::zlib::{self, ZlibError};
use std::sync::Arc;
use std::time::Duration;

/// Maximum bytes of one inflated request that a robot accepts: 64 MiB.
pub const LONGEST_REQUEST: u64 = 64 << 20;
/// Maximum bytes of one inflated telemetry frame that a controller accepts: 64 MiB.
pub const LONGEST_TELEMETRY: u64 = 64 << 20;
/// Maximum bytes of one inflated answer that a controller accepts: 257 MiB, because version 6's files come whole.
pub const LONGEST_ANSWER: u64 = 257 << 20;

/// Wraps a robot's end.
pub fn robot(end: Arc<dyn RobotEnd>) -> Arc<dyn RobotEnd> {
    Arc::new(Packed(end))
}

/// Wraps a controller's end.
pub fn controller(end: Arc<dyn ControllerEnd>) -> Arc<dyn ControllerEnd> {
    Arc::new(Packed(end))
}

/// Packs outgoing frames and unpacks incoming ones.
struct Packed<T>(T);

fn pack(frame: &[u8]) -> Result<Vec<u8>, TransportError> {
    let too_long = |e| match e {
        ZlibError::TooLong { most, .. } => TransportError::TooLong {
            len: frame.len(),
            most: most as usize,
        },
        e => TransportError::Setup(e.to_string()),
    };
    zlib::pack(frame).map_err(too_long)
}

impl RobotEnd for Packed<Arc<dyn RobotEnd>> {
    fn wire(&self) -> Wire {
        self.0.wire()
    }

    fn start(&self, sink: Arc<dyn RobotSink>) -> Result<(), TransportError> {
        self.0.start(Arc::new(Packed(sink)))
    }

    fn announce(&self, stream: Stream<'_>) -> Result<(), TransportError> {
        self.0.announce(stream)
    }

    fn publish(&self, stream: Stream<'_>, frame: &[u8]) -> Result<(), TransportError> {
        self.0.publish(stream, &pack(frame)?)
    }

    fn stop(&self) {
        self.0.stop();
    }

    fn describe(&self) -> String {
        format!("gzip {}", self.0.describe())
    }
}

impl RobotSink for Packed<Arc<dyn RobotSink>> {
    fn request(&self, frame: &[u8], from: &Peer, reply: Reply) {
        let reply = Reply::new(move |frame| reply.send(&pack(frame)?));
        match zlib::unpack(frame, LONGEST_REQUEST) {
            Ok(frame) => self.0.request(&frame, from, reply),
            // The robot refuses and counts the empty frame.
            Err(e) => {
                tracing::debug!("a request is not compressed: {e}");
                self.0.request(&[], from, reply);
            }
        }
    }

    fn revoked(&self, peer: &Peer) {
        self.0.revoked(peer);
    }
}

impl ControllerEnd for Packed<Arc<dyn ControllerEnd>> {
    fn wire(&self) -> Wire {
        self.0.wire()
    }

    fn start(&self, sink: Arc<dyn ControllerSink>) -> Result<(), TransportError> {
        self.0.start(Arc::new(Packed(sink)))
    }

    fn request(&self, class: Class, frame: &[u8], timeout: Duration, done: Done) {
        let packed = match pack(frame) {
            Ok(packed) => packed,
            Err(e) => return done(Err(e)),
        };
        let unpack = |result: Result<&[u8], TransportError>| match result {
            Err(e) => done(Err(e)),
            Ok(frame) => match zlib::unpack(frame, LONGEST_ANSWER) {
                Ok(frame) => done(Ok(&frame)),
                Err(e) => done(Err(TransportError::Unreachable(format!(
                    "cannot decompress the answer: {e}"
                )))),
            },
        };
        self.0.request(class, &packed, timeout, Box::new(unpack));
    }

    fn receive(&self, class: Class, timeout: Duration, over: &dyn Fn() -> bool) {
        self.0.receive(class, timeout, over);
    }

    fn wake(&self, class: Class) {
        self.0.wake(class);
    }

    fn listen(&self, streams: Listen<'_>) {
        self.0.listen(streams);
    }

    fn stop(&self) {
        self.0.stop();
    }

    fn describe(&self) -> String {
        format!("gzip {}", self.0.describe())
    }
}

impl ControllerSink for Packed<Arc<dyn ControllerSink>> {
    fn telemetry(&self, frame: &[u8]) {
        match zlib::unpack(frame, LONGEST_TELEMETRY) {
            Ok(frame) => self.0.telemetry(&frame),
            Err(e) => {
                tracing::debug!("telemetry is not compressed: {e}");
                self.0.lost(1);
            }
        }
    }

    fn lost(&self, frames: u64) {
        self.0.lost(frames);
    }

    fn connected(&self, connected: bool) {
        self.0.connected(connected);
    }
}
