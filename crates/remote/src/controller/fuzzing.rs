//! A controller without threads, whose robot sends arbitrary frames.

use super::Expiry;
use super::core::Core;
use crate::transport::{Class, ControllerEnd, ControllerSink, Done, Listen, TransportError, Wire};
use crate::{command, telemetry, types};
use prost::bytes::Bytes;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Answers each request with the next frame.
struct Answers {
    wire: Wire,
    frames: Mutex<std::vec::IntoIter<Vec<u8>>>,
}

impl ControllerEnd for Answers {
    fn wire(&self) -> Wire {
        self.wire
    }
    fn start(&self, _: Arc<dyn ControllerSink>) -> Result<(), TransportError> {
        Ok(())
    }
    fn request(&self, _: Class, _: &[u8], _: Duration, done: Done) {
        let frame = self.frames.lock().expect("no panic").next();
        match frame {
            Some(frame) => done(Ok(&frame)),
            None => done(Err(TransportError::Ended)),
        }
    }
    fn listen(&self, _: Listen<'_>) {}
    fn stop(&self) {}
    fn describe(&self) -> String {
        "fuzzed".into()
    }
}

/// Feeds each frame in as telemetry, and as the answer to greetings, commands and requests: each of those ends.
pub(crate) fn hear(frames: &[&[u8]], wire: Wire) {
    let answers: Vec<Vec<u8>> = frames.iter().map(|f| f.to_vec()).collect();
    let end = Arc::new(Answers {
        wire,
        frames: Mutex::new(answers.into_iter()),
    });
    let core = Arc::new(Core::new(
        "c".into(),
        Duration::from_secs(1),
        end.clone(),
        vec![end],
    ));
    core.on::<telemetry::CurrentPose>(0, |_, _| {});
    core.greet();
    let twist = core.send::<command::Twist>(&types::Twist::default(), Expiry::After(Duration::from_secs(60)));
    let pose = core.fetch::<telemetry::CurrentPose>(0, Duration::from_secs(60));
    for frame in frames {
        match wire {
            Wire::Own => core.receive_telemetry(Bytes::copy_from_slice(frame)),
            Wire::V6 => core.receive_telemetry_v6(frame),
        }
    }
    let _ = core.latest::<telemetry::CurrentPose>(0);
    core.stop();
    assert!(twist.is_ready() && pose.is_ready(), "they end with any frames");
}
