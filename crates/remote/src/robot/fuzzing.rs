//! A robot without transports and threads, for frames that no controller would send.

use super::builder::RobotBuilder;
use super::core::Core;
use crate::safety::MOST_JUMP;
use crate::transport::{Peer, Reply, Wire};
use crate::{command, own, telemetry, types};
use prost::Message;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Serves each frame; each one receives at most one answer, which is a valid response.
pub(crate) fn serve(frames: &[&[u8]], wire: Wire) {
    let RobotBuilder { name, options, .. } = RobotBuilder::new("robot");
    let core = Arc::new(Core::new(name, Vec::new(), options));
    core.take_permissions();
    // Each command runs at most once, and commands that do not stop run in rising order, unless a controller was
    // forgotten.
    let carried = Arc::new(Mutex::new(Vec::new()));
    let seen = carried.clone();
    core.handle::<command::Twist>(move |twist, context| {
        if let super::Origin::Controller { id, .. } = context.origin {
            let stops = super::commands::stands_still(&twist);
            seen.lock().expect("no panic").push((id, context.sequence, stops));
        }
        Ok(())
    });
    core.handle::<command::SimpleAction>(|_, _| Err("no".into()));
    core.set::<telemetry::CurrentPose>(0, &types::Pose::default())
        .expect("nothing to send to");
    let asked = core.ask_permission("fuzzed?");
    for frame in frames {
        let answers = Arc::new(AtomicUsize::new(0));
        let count = answers.clone();
        let reply = Reply::new(move |answer| {
            count.fetch_add(1, Ordering::Relaxed);
            if wire == Wire::Own {
                own::Response::decode(answer).expect("an answer");
            }
            Ok(())
        });
        match wire {
            Wire::Own => core.serve(frame, &Peer::Unproven, reply),
            Wire::V6 => core.serve_v6(0, frame, reply),
        }
        assert_eq!(answers.load(Ordering::Relaxed), 1);
    }
    let forgotten = core
        .counters
        .statistics(crate::clock::now())
        .dropped
        .contains_key("controllers_forgotten");
    let carried = carried.lock().expect("no panic");
    let rises = |(n, (id, sequence, stops)): (usize, &(u64, u64, bool))| {
        carried[..n].iter().all(|(other, before, stopped)| {
            // A sequence that jumps does not count for the order of the commands after it.
            let jumped = *stopped && *before > MOST_JUMP;
            other != id || before < sequence || (before != sequence && (*stops || jumped))
        })
    };
    assert!(forgotten || carried.iter().enumerate().all(rises), "{carried:?}");
    drop(asked);
    core.stop();
}
